"""Many small requests to the store at once: each waits for the network far longer than it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

AT_ONCE = 32
"""As many as a client of S3 keeps connections."""

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


def together(ask: Callable[[Asked], Answer], of: Iterable[Asked], at_once: int = AT_ONCE) -> Iterator[Answer]:
    """What `ask` gives of each, in their order; no more than `at_once` answers are held.

    Raises the first error, in that order, that one of them raises.
    """
    rest = iter(of)
    some = list(islice(rest, at_once))
    if len(some) <= 1:
        yield from map(ask, some)
        return
    with ThreadPoolExecutor(at_once, thread_name_prefix="store") as pool:
        while some:
            yield from pool.map(ask, some)
            some = list(islice(rest, at_once))
