"""A request becomes partitions: each part of its window once, with a stable, readable id."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import date
from hashlib import sha256
from itertools import pairwise
from urllib.parse import quote

from trueup.errors import RequestError
from trueup.model.job import (
    DatePartitions,
    JobPartitions,
    KeyRangePartitions,
    ListPartitions,
    S3PrefixPartitions,
)
from trueup.model.jobs import AnyJob
from trueup.model.plan import Partition
from trueup.model.reconcile_job import QuantilePartitions, SplitPartitions
from trueup.model.request import Request
from trueup.planning.calendar import Span
from trueup.planning.inputs import fill, varies
from trueup.planning.weights import UNKNOWN_PACE, Pace
from trueup.planning.windows import (
    check_count,
    chosen_of,
    date_spans,
    in_utf8,
    integer_ranges,
    keys_of,
    list_items,
    text_label,
    text_ranges,
    window,
)

# Far below what the ledger and S3 take: a sort key 1,024 bytes with `PART#`, a key 1,024 with run and launch.
MOST_ID_BYTES = 512
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def partitions(
    job: AnyJob,
    request: Request,
    *,
    listing: Iterable[tuple[str, int]] | None = None,
    named: Iterable[str | Partition] | None = None,
    pace: Pace = UNKNOWN_PACE,
) -> Iterator[Partition]:
    """The partitions of a request, in order of their keys. Weights are seconds of work.

    `listing` is what lies under the S3 prefix (key without the bucket, bytes); `named` what the job's own
    hook returned: labels, or whole Partitions with ids and weights of their own. Bounds are text: local dates
    for days and longer, instants in UTC for hours, the keys themselves for ranges.
    RequestError: the request does not fit the job, or two partitions would be the same.
    """
    window(job, request)
    return _checked(job, _generate(job, request, listing, named, pace))


def _generate(
    job: AnyJob,
    request: Request,
    listing: Iterable[tuple[str, int]] | None,
    named: Iterable[str | Partition] | None,
    pace: Pace,
) -> Iterator[Partition]:
    match job.partitions:
        case DatePartitions() as settings:
            return _by_date(settings, request, pace)
        case KeyRangePartitions(type="integer") as settings:
            return _by_integer(settings, request, pace)
        case KeyRangePartitions() as settings:
            return _by_text(settings, request, pace)
        case ListPartitions() as settings:
            return _by_list(settings, request, pace)
        case S3PrefixPartitions() as settings:
            return _by_object(settings, request, listing, pace)
        case JobPartitions() | QuantilePartitions() as settings:
            return _by_hook(settings, request, named, pace)
        case SplitPartitions() as settings:
            return _by_split(settings, request, pace)


def _by_date(settings: DatePartitions, request: Request, pace: Pace) -> Iterator[Partition]:
    for span in date_spans(settings, request):
        partition_id = f"date={span.label}"
        yield Partition(
            partition_id=partition_id,
            low=span.low,
            high=span.high,
            input=fill(settings.input, _date_fields(span, settings.unit)) if settings.input else None,
            weight=pace.weight(partition_id, settings.seconds),
        )


def _date_fields(span: Span, unit: str) -> dict[str, str]:
    day: date = span.day
    fields = {"label": span.label, "low": span.low, "high": span.high, "date": day.isoformat()}
    fields |= {"year": f"{day.year:04d}", "month": f"{day.month:02d}", "day": f"{day.day:02d}"}
    if unit == "week":  # the year of an ISO week is not always its Monday's
        fields |= {"year": span.label[:4], "week": span.label[6:]}
    return fields if span.hour is None else fields | {"hour": f"{span.hour:02d}"}


def _by_integer(settings: KeyRangePartitions, request: Request, pace: Pace) -> Iterator[Partition]:
    size = settings.size or 1
    for start, end in integer_ranges(settings, request):
        low = start
        while low < end:
            # Steps begin at multiples of the size, so that a partition has the same id in every window.
            high = min((low // size + 1) * size, end)
            label = f"{low}-{high - 1}"
            yield _ranged(settings, label, str(low), str(high), pace, share=(high - low) / size)
            low = high


def _by_text(settings: KeyRangePartitions, request: Request, pace: Pace) -> Iterator[Partition]:
    for low, high in text_ranges(settings, request):
        yield _ranged(settings, text_label(low, high), low, high, pace)


def _ranged(
    settings: KeyRangePartitions,
    label: str,
    low: str | None,
    high: str | None,
    pace: Pace,
    share: float = 1.0,
) -> Partition:
    partition_id = named_id(settings.key, label)
    return Partition(
        partition_id=partition_id,
        low=low,
        high=high,
        input=fill(settings.input, {"label": label, "low": low or "", "high": high or ""}),
        weight=pace.weight(partition_id, settings.seconds, share=share),
    )


def _by_list(settings: ListPartitions, request: Request, pace: Pace) -> Iterator[Partition]:
    for item in list_items(settings, request):
        partition_id = named_id(settings.key, item)
        weight = pace.weight(partition_id, settings.seconds)
        yield Partition(
            partition_id=partition_id, input=fill(settings.input, {"label": item}) or item, weight=weight
        )


def _by_object(
    settings: S3PrefixPartitions, request: Request, listing: Iterable[tuple[str, int]] | None, pace: Pace
) -> Iterator[Partition]:
    if listing is None:
        raise ValueError("partitions by S3 prefix need the listing")
    bucket, _, prefix = settings.prefix.removeprefix("s3://").partition("/")
    objects = {
        _object_label(settings.key, key.removeprefix(prefix)): (key, size)
        for key, size in listing
        if key.startswith(prefix) and key.endswith(settings.suffix) and not key.endswith("/")
    }
    chosen = _chosen(request, settings.key, objects)
    for label in sorted(objects):
        if chosen is None or label in chosen:
            key, size = objects[label]
            partition_id = named_id(settings.key, label)
            weight = pace.weight(partition_id, settings.seconds, size=size)
            yield Partition(partition_id=partition_id, input=f"s3://{bucket}/{key}", weight=weight)


def _by_split(settings: SplitPartitions, request: Request, pace: Pace) -> Iterator[Partition]:
    made = [
        partition_of(settings.key, low, high, pace.weight(settings.key, settings.seconds))
        for low, high in pairwise([None, *settings.splits, None])
    ]
    chosen = _chosen(request, settings.key, [one.label for one in made])
    yield from (one for one in made if chosen is None or one.label in chosen)


def partition_of(
    key: str, low: tuple[str, ...] | None, high: tuple[str, ...] | None, seconds: float
) -> Partition:
    """A range of keys of a reconciliation; its bounds are JSON lists of the key's first columns."""
    label = text_label(*(None if bound is None else ",".join(bound) for bound in (low, high)))
    texts = [None if bound is None else json.dumps(bound, ensure_ascii=False) for bound in (low, high)]
    return Partition(partition_id=named_id(key, label), low=texts[0], high=texts[1], weight=seconds)


def _by_hook(
    settings: JobPartitions | QuantilePartitions,
    request: Request,
    named: Iterable[str | Partition] | None,
    pace: Pace,
) -> Iterator[Partition]:
    if named is None:
        raise ValueError("partitions by the job's own hook need what the hook named")
    made = [_hooked(settings, entry, pace) for entry in each_named(named)]
    chosen = _chosen(request, settings.key, [one.label for one in made])
    yield from (one for one in made if chosen is None or one.label in chosen)


def each_named(given: object) -> Iterator[str | Partition]:
    """What a job's `partitions(window)` gave, one by one.

    Raises RequestError where one is neither a name nor a Partition.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise _no_name(given)  # The names in a text would be its characters.
    for entry in given:
        if not isinstance(entry, str | Partition):
            raise _no_name(entry)
        yield entry


def _hooked(settings: JobPartitions | QuantilePartitions, entry: str | Partition, pace: Pace) -> Partition:
    if isinstance(entry, Partition):
        checked_id(entry.id)
        for text in (entry.low, entry.high, entry.input):
            in_utf8(text or "")
        return entry
    partition_id = named_id(settings.key, entry)
    weight = pace.weight(partition_id, settings.seconds)
    return Partition(partition_id=partition_id, input=entry, weight=weight)


def _no_name(given: object) -> RequestError:
    return RequestError(
        f"the job's partitions(window) gave {type(given).__name__} {str(given)[:100]!r}.",
        remedy="Give a list of names, or of Partition values.",
        field="partitions",
    )


def _chosen(request: Request, key: str, known: Iterable[str]) -> set[str] | None:
    wanted = keys_of(request, key)
    return None if wanted is None else chosen_of(wanted, known)


def named_id(key: str, label: str) -> str:
    """The id `key=label`; RequestError where the label is empty or not printable, or the id too long."""
    if not label:
        raise RequestError("a partition has no name.", remedy="Give each a name.", field="keys")
    return checked_id(f"{key}={label}")


def checked_id(partition_id: str) -> str:
    """The id itself; RequestError where a ledger, a log line or a person could not carry it."""
    if _CONTROL.search(partition_id):
        raise RequestError(
            f"{partition_id!r} has control characters.",
            remedy="Name partitions in printable text.",
            field="keys",
        )
    size = len(in_utf8(partition_id))
    if size > MOST_ID_BYTES:
        raise RequestError(
            f"the partition id {partition_id[:40]!r}... has {size} bytes, more than {MOST_ID_BYTES}.",
            remedy="Use shorter names.",
            field="keys",
        )
    return partition_id


def _object_label(key: str, name: str) -> str:
    """A label for any S3 key: control characters are quoted, and a long one ends in a part of its SHA-256."""
    clean = _CONTROL.sub(lambda match: quote(match[0]), name)
    data = in_utf8(clean)
    room = MOST_ID_BYTES - len(key) - 1
    if len(data) <= room:
        return clean
    return data[: room - 17].decode(errors="ignore") + "~" + sha256(name.encode()).hexdigest()[:16]


def _checked(job: AnyJob, made: Iterable[Partition]) -> Iterator[Partition]:
    ids: set[str] = set()
    inputs: set[str] = set()
    one_input_each = varies(getattr(job.partitions, "input", None))
    for partition in made:
        if partition.id in ids:
            raise RequestError(
                f"two partitions are called {partition.id}.", remedy="Name each once.", field="keys"
            )
        ids.add(partition.id)
        if one_input_each and partition.input is not None:
            if partition.input in inputs:
                raise _shared_input(partition)
            inputs.add(partition.input)
        check_count(len(ids))
        yield partition


def _shared_input(partition: Partition) -> RequestError:
    return RequestError(
        f"{partition.id} would read {partition.input}, as another one does, and count its records twice.",
        remedy="Put {label} into the job file's input pattern.",
        field="partitions.input",
    )
