"""A job for the tests of the command line, and what lies in a folder."""

from __future__ import annotations

from pathlib import Path

JOB = """\
name: flights-summary
class: flights:Summary
parameters:
  type: object
  properties:
    most: {type: integer}
    price: {type: number}
partitions:
  by: date
target:
  name: summary
  guard: none
"""
CODE = """\
from trueup import Backfill

class Summary(Backfill):
    def read(self, part, after):
        return iter(())
    def write(self, rows, ctx):
        raise AssertionError

class Reader(Backfill):
    def read(self, part, after):
        return iter(())

class Other:
    pass
"""


def contents(folder: Path) -> dict[Path, bytes | None]:
    """Every file below a folder with its bytes, but for what Python compiles."""
    return {
        path: path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if "__pycache__" not in path.parts
    }
