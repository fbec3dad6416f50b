"""HTML that the pages of reports are made of: no scripts, no fonts, no images from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from importlib.resources import files

__all__ = ["document", "facts", "figure", "folded", "instant", "scroll", "table"]


def document(title: str, sections: Iterable[str]) -> str:
    """A whole page."""
    style = files("trueup.reporting").joinpath("page.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{style}</style>",
            "</head>",
            "<body>",
            "<main>",
            *sections,
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def facts(told: dict[str, str]) -> Iterable[str]:
    """Names and what they are."""
    yield '<dl class="facts">'
    for name, value in told.items():
        yield f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
    yield "</dl>"


def figure(name: str, value: str, more: str) -> str:
    """One figure with its name, for a `<dl class="figures">`."""
    small = f"<small>{escape(more)}</small>" if more else ""
    return f"<div><dt>{escape(name)}</dt><dd>{escape(value)}{small}</dd></div>"


def folded(summary: str, inner: str) -> str:
    """What is shown to those who ask for it."""
    return f"<details><summary>{escape(summary)}</summary>{inner}</details>"


def scroll(label: str, inner: str) -> str:
    """What may be wider than the page."""
    return f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">{inner}</div>'


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    total: Sequence[object] | None = None,
) -> str:
    """A table whose first column names the row; numbers stand to the right."""
    body = [list(row) for row in rows]
    like = body[0] if body else list(total or [])
    heads = "".join(
        f'<th scope="col"{_class(cell)}>{escape(name)}</th>' for name, cell in zip(columns, like, strict=True)
    )
    foot = f"<tfoot>{_row(total)}</tfoot>" if total is not None else ""
    table = (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{''.join(map(_row, body))}</tbody>{foot}</table>"
    )
    return scroll(caption, table)


def _row(cells: Sequence[object]) -> str:
    first, *rest = cells
    head = f'<th scope="row"{_class(first)}>{escape(_shown(first))}</th>'
    return f"<tr>{head}{''.join(f'<td{_class(cell)}>{escape(_shown(cell))}</td>' for cell in rest)}</tr>"


def _class(cell: object) -> str:
    if isinstance(cell, int):
        return ' class="number"'
    return ' class="wrap"' if isinstance(cell, str) and len(cell) > 40 else ""


def _shown(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def instant(at: datetime) -> str:
    """An instant for people."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
