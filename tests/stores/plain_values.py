"""Names that nobody else has, and values as files of text have them."""

from __future__ import annotations

import base64
import uuid
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID


def unique() -> str:
    """A name for a table, a bucket or a folder of this test alone."""
    return f"t{uuid.uuid4().hex[:12]}"


def plain(value: Any) -> Any:
    """A value as JSON and CSV have it; None stays."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal | UUID) else value
