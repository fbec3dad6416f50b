"""What a store of artifacts must do: `StoreSuite`, over the fixture `store`."""

# ruff: noqa: SIM300 - the expected value comes first, as in all tests

from __future__ import annotations

from trueup.artifacts import Artifacts, Store
from trueup.errors import ArtifactError, ArtifactExists, ArtifactMissing
from trueup.model.base import canonical, sha256
from trueup.model.plan import ObjectRef, Partition, Slice
from trueup.model.states import Phase
from trueup.testing.suites.support import in_threads, refusal, unique

# Partition ids go into keys, and a partition id may hold anything.
ODD_NAMES = ["date=2013-01-05", "a b+c", "50%", "q?x=1", "a#b", "é/ü", "dots..", "~!@$&'()*,:;", "日本"]
BINARY = bytes(range(256)) * 3


class StoreSuite:
    """Tests for any `trueup.artifacts.store.Store`; needs the fixture `store`."""

    def test_what_was_put_is_got(self, store: Store) -> None:
        for put in (store.put, store.put_once):
            for data in (b"", b"text\r\n", BINARY):
                key = unique("object")
                put(key, data)
                assert data == store.get(key)

    def test_what_is_not_there_is_missing_by_name(self, store: Store) -> None:
        key = unique("nothing")
        assert key in str(refusal(ArtifactMissing, store.get, key))
        assert key in str(refusal(ArtifactMissing, store.get_range, key, 0, 10))
        assert store.checksum(store.location(key)) is None

    def test_put_once_again_with_the_same_bytes_succeeds(self, store: Store) -> None:
        key = unique("once")
        for _ in range(2):
            store.put_once(key, BINARY)
        assert BINARY == store.get(key)

    def test_put_once_with_other_bytes_is_refused_and_the_first_stay(self, store: Store) -> None:
        key = unique("once")
        store.put_once(key, b"first")
        assert key in str(refusal(ArtifactExists, store.put_once, key, b"second"))
        assert b"first" == store.get(key)

    def test_put_once_respects_what_put_wrote(self, store: Store) -> None:
        key = unique("once")
        store.put(key, b"first")
        refusal(ArtifactExists, store.put_once, key, b"second")
        store.put_once(key, b"first")

    def test_an_object_has_a_version_and_what_is_not_there_has_none(self, store: Store) -> None:
        key = unique("version")
        refusal(ArtifactMissing, store.version, key)
        store.put(key, b"first")
        assert store.version(key) == store.version(key) != ""

    def test_put_replaces(self, store: Store) -> None:
        key = unique("put")
        store.put(key, b"first")
        store.put(key, b"second")
        assert (b"second", sha256(b"second")) == (store.get(key), store.checksum(store.location(key)))

    def test_of_eight_that_put_other_bytes_once_one_wins(self, store: Store) -> None:
        key = unique("race")
        answers = in_threads(8, lambda index: store.put_once(key, b"%d" % index))
        assert (1, 7) == (answers.count(None), sum(isinstance(answer, ArtifactExists) for answer in answers))
        assert b"%d" % answers.index(None) == store.get(key)

    def test_eight_that_put_the_same_bytes_once_all_succeed(self, store: Store) -> None:
        key = unique("race")
        assert [None] * 8 == in_threads(8, lambda _: store.put_once(key, BINARY))

    def test_a_range_gives_those_bytes_as_far_as_they_go(self, store: Store) -> None:
        key = unique("range")
        store.put(key, BINARY)
        end = len(BINARY)
        for offset, length in ((0, 1), (5, 10), (0, end), (end - 3, 10), (end, 5), (end + 9, 5), (7, 0)):
            expected = (offset, length, BINARY[offset : offset + length])
            assert expected == (offset, length, store.get_range(key, offset, length))

    def test_the_checksum_is_the_stores_own(self, store: Store) -> None:
        for put in (store.put, store.put_once):
            key = unique("checksum")
            put(key, BINARY)
            assert sha256(BINARY) == store.checksum(store.location(key))

    def test_what_is_no_location_in_this_store_has_no_checksum(self, store: Store) -> None:
        key = unique("elsewhere")
        store.put(key, b"x")
        for location in (
            key,
            "",
            "s3://",
            "s3://bucket",
            f"postgres://host/{key}",
            f"/{key}",
            "s3:///" + key,
        ):
            assert (location, None) == (location, store.checksum(location))

    def test_a_location_names_bucket_and_key(self, store: Store) -> None:
        location = store.location("runs/r/plan.json")
        assert location.startswith("s3://")
        assert location.endswith("/runs/r/plan.json")

    def test_keys_may_hold_any_character(self, store: Store) -> None:
        prefix = unique("odd") + "/"
        for name in ODD_NAMES:
            key = f"{prefix}{name}/1.jsonl"
            store.put_once(key, name.encode())
            found = (store.get(key), store.checksum(store.location(key)))
            assert (name.encode(), sha256(name.encode())) == found
        assert sorted(f"{prefix}{name}/1.jsonl" for name in ODD_NAMES) == list(store.list(prefix))

    def test_a_list_gives_the_keys_under_a_prefix_in_order(self, store: Store) -> None:
        prefix = unique("list")
        for name in ("b/2", "b/10", "a", "b", "c/1"):
            store.put(f"{prefix}/{name}", b"x")
        assert [f"{prefix}/b/10", f"{prefix}/b/2"] == list(store.list(f"{prefix}/b/"))
        assert [f"{prefix}/{name}" for name in ("a", "b", "b/10", "b/2", "c/1")] == list(store.list(prefix))
        assert [] == list(store.list(unique("nothing")))


class ArtifactsSuite:
    """Tests for `trueup.artifacts.Artifacts` over any store; needs the fixture `store`."""

    def test_partitions_are_read_if_they_are_those_that_were_hashed(self, store: Store) -> None:
        partitions = [Partition(partition_id=f"date=2013-01-0{day}") for day in (1, 2)]
        data = _lines(partitions)
        ref = ObjectRef(key=unique("partitions"), sha256=sha256(data), bytes=len(data))
        store.put(ref.key, data)
        assert partitions == Artifacts(store).partitions(ref)
        store.put(ref.key, data.replace(b"2013-01-02", b"2013-01-03"))
        error = refusal(ArtifactError, Artifacts(store).partitions, ref)
        assert sha256(data) in str(error)

    def test_a_slice_is_a_range_of_the_dispatch(self, store: Store) -> None:
        partitions = [Partition(partition_id=name, input=f"s3://in/{name}.csv") for name in ("é", "b", "c")]
        first, second = _lines(partitions[:1]), _lines(partitions[1:])
        key = unique("dispatch")
        store.put(key, first + second)
        slices = [_slice(key, 0, len(first), 1), _slice(key, len(first), len(second), 2)]
        assert [partitions[:1], partitions[1:]] == [Artifacts(store).slice(one) for one in slices]

    def test_a_slice_of_a_dispatch_that_was_changed_is_refused(self, store: Store) -> None:
        data = _lines([Partition(partition_id=name) for name in "abc"])
        key = unique("dispatch")
        store.put(key, data)
        for offset, length, partitions in ((0, len(data), 2), (3, len(data), 3), (len(data) + 5, 10, 3)):
            slice_ = _slice(key, offset, length, partitions)
            assert key in str(refusal(ArtifactError, Artifacts(store).slice, slice_))
        refusal(ArtifactMissing, Artifacts(store).slice, _slice(unique("nothing"), 0, 5, 1))

    def test_rejects_are_stored_as_lines_and_may_be_stored_again(self, store: Store) -> None:
        run_id = unique("run")
        for lines in (b'{"row": 1}\n', b'{"row": 1}\n{"row": 2}\n'):
            location = Artifacts(store).put_rejects(run_id, Phase.APPLY, "date=2013-01-05", "1.jsonl", lines)
        key = f"runs/{run_id}/apply/rejects/date=2013-01-05/1.jsonl"
        assert store.location(key) == location
        assert b'{"row": 1}\n{"row": 2}\n' == store.get(key)


def _lines(partitions: list[Partition]) -> bytes:
    return b"".join(canonical(part.document()) + b"\n" for part in partitions)


def _slice(key: str, offset: int, length: int, partitions: int) -> Slice:
    return Slice(slice_id=7, key=key, offset=offset, length=length, partitions=partitions, weight=1.0)
