"""The map of keys to offsets beside a dict, up to its last slot."""

from hypothesis import given
from hypothesis import strategies as st

from pykbroker.storage.key_offsets import SLOT_BYTES, KeyOffsetMap, slots_in


@given(st.lists(st.tuples(st.binary(max_size=3), st.integers(0, 2**62))), st.sampled_from([2, 4, 16, 1024]))
def test_it_is_a_dict_that_gets_full(pairs: list[tuple[bytes, int]], slots: int) -> None:
    keys = KeyOffsetMap(memory_bytes=slots * SLOT_BYTES, load_factor=0.9, expected_keys=10_000)
    room = min(max(int(slots * 0.9), 1), slots - 1)
    model: dict[bytes, int] = {}
    for key, offset in pairs:
        has_room = key in model or len(model) < room
        assert keys.put(key, offset) == has_room
        if has_room:
            model[key] = offset
        assert keys.get(key) == model.get(key, -1)
    assert {key: keys.get(key) for key in model} == model


def test_memory_is_never_more_than_allowed_or_needed() -> None:
    assert slots_in(128 << 20) * SLOT_BYTES <= 128 << 20
    assert slots_in(0) == 2
    keys = KeyOffsetMap(memory_bytes=128 << 20, load_factor=0.9, expected_keys=100)
    assert len(keys._table) <= 256 * SLOT_BYTES
    for number in range(100):
        assert keys.put(b"%d" % number, number)
