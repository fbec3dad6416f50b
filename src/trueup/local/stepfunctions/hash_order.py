"""The order of names that AWS keeps in a Java HashMap: it shows in every text made of such an object.

Recorded on AWS: test_query_context_object_values (the fields of a template that are evaluated),
test_dynamodb_put_update_get_item (the attributes of an item).
"""

from __future__ import annotations

from collections.abc import Iterable

_BUCKETS = 16
"""Of an empty map; they are doubled while more than three quarters as many names are in it."""


def hash_order(names: Iterable[str]) -> list[str]:
    """The names as a HashMap gives them: by bucket, and within one as they came."""
    given = list(names)
    buckets = _BUCKETS
    while len(given) > buckets * 3 // 4:
        buckets *= 2
    return sorted(given, key=lambda name: _spread(name) & (buckets - 1))


def _spread(name: str) -> int:
    """Java's hash of a text, over its UTF-16 code units, with the upper half mixed into the lower."""
    raw = name.encode("utf-16-be")
    found = 0
    for position in range(0, len(raw), 2):
        found = (31 * found + int.from_bytes(raw[position : position + 2])) & 0xFFFFFFFF
    return found ^ found >> 16
