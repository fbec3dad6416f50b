"""A function whose process dies, or hangs until it is killed: packed beside the real `app.py` by a test.

It looks for its trouble in a folder, as files named `<run>.<function>.<how>`; each strikes once.
"""

from __future__ import annotations

import importlib
import os
import time
from pathlib import Path
from typing import Any

HOWS = ("before", "after", "hang")


def handler(event: dict[str, Any], context: object) -> Any:
    """As the function's own handler, unless its process is to die before or after the work, or to hang."""
    how = _meant(event.get("runId") or event["order"]["runId"])
    if how == "before":
        os._exit(9)
    answer = importlib.import_module("app").handler(event, context)
    if how == "after":
        os._exit(9)
    if how == "hang":
        time.sleep(3600)
    return answer


def _meant(run_id: str) -> str:
    function = os.environ["AWS_LAMBDA_FUNCTION_NAME"].rpartition("-")[2]
    for how in HOWS:
        try:
            Path(os.environ["TROUBLE"], f"{run_id}.{function}.{how}").unlink()
        except FileNotFoundError:
            continue
        return how
    return ""
