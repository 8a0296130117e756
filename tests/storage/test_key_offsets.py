"""The map of keys to offsets beside a dict, up to its last slot."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from pykbroker.storage.compaction.key_offsets import SLOT_BYTES, KeyOffsetMap, slots_in

BATCHES = st.lists(st.lists(st.binary(max_size=3), max_size=10), max_size=30)


@given(BATCHES, st.sampled_from([2, 4, 16, 1024]))
def test_it_is_a_dict_that_gets_full(batches: list[list[bytes]], slots: int) -> None:
    keys = KeyOffsetMap(memory_bytes=slots * SLOT_BYTES, load_factor=0.9, expected_keys=10_000)
    room = min(max(int(slots * 0.9), 1), slots - 1)
    model: dict[bytes, int] = {}
    for offset, key in enumerate(key for batch in batches for key in batch):
        has_room = key in model or len(model) < room
        before = [model[key]] if key in model else []
        assert keys.put([key], [offset]) == (before if has_room else None)
        if has_room:
            model[key] = offset
        assert keys.get([key]) == [model.get(key, -1)]
    assert keys.get(model) == list(model.values())


@given(BATCHES, st.integers(0, 40_000))
def test_in_whatever_form_it_is_in_memory_it_tells_the_same(batches: list[list[bytes]], memory_bytes: int) -> None:
    """From the table alone, over one that begins with a dict, to a dict alone."""
    keys = KeyOffsetMap(memory_bytes=(512 * SLOT_BYTES) + memory_bytes, load_factor=0.9, expected_keys=300)
    model: dict[bytes, int] = {}
    offset = 0
    for batch in batches:
        superseded = set()
        for number, key in enumerate(batch, offset):
            if key in model:
                superseded.add(model[key])
            model[key] = number
        found = keys.put(batch, range(offset, offset + len(batch)))
        assert found is not None
        assert sorted(found) == sorted(superseded)
        offset += len(batch)
        assert keys.get([*model, b"none"]) == [*model.values(), -1]


def test_memory_is_never_more_than_allowed_or_needed() -> None:
    assert slots_in(128 << 20) * SLOT_BYTES <= 128 << 20
    assert slots_in(0) == 2
    keys = KeyOffsetMap(memory_bytes=128 << 20, load_factor=0.9, expected_keys=100)
    assert keys.size_bytes <= 256 * SLOT_BYTES
    assert keys.put([b"%d" % number for number in range(100)], range(100)) == []


def test_a_dict_takes_no_more_than_the_table_leaves() -> None:
    names = [b"key number %09d" % number for number in range(20_000)]
    keys = KeyOffsetMap(memory_bytes=2 << 20, load_factor=0.9, expected_keys=20_000, reserved_bytes=20_000)
    tracemalloc.start()
    try:
        for start in range(0, len(names), 100):
            keys.put([bytes(bytearray(name)) for name in names[start : start + 100]], range(start, start + 100))
            assert tracemalloc.get_traced_memory()[1] <= 2 << 20
    finally:
        tracemalloc.stop()
    assert keys.get(names) == list(range(20_000))
