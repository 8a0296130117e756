"""Frames out of a stream that is cut anyhow, in buffers that cost what has arrived."""

from __future__ import annotations

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.server.network.receive_buffer import INITIAL_BYTES, BufferPool, MalformedFrame, ReceiveBuffer

MAX_FRAME = 100 * 1024 * 1024
MIB = 1 << 20


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def receive_some(buffer: ReceiveBuffer, data: bytes) -> bytes:
    """Hand over as much of `data` as the buffer takes at once; returns the rest."""
    view = buffer.writable()
    assert view is not None
    count = min(len(view), len(data))
    view[:count] = data[:count]
    buffer.wrote(count)
    return data[count:]


def receive(buffer: ReceiveBuffer, data: bytes) -> None:
    """Hand over one frame's bytes."""
    while data:
        data = receive_some(buffer, data)


def feed(buffer: ReceiveBuffer, data: bytes) -> list[bytes]:
    """Hand over `data`, and take the frames as they become complete."""
    frames = []
    while data:
        data = receive_some(buffer, data)
        while (frame := buffer.next_frame()) is not None:
            frames.append(bytes(frame))
            del frame
    return frames


@given(
    st.lists(st.binary(min_size=1, max_size=70_000) | st.binary(min_size=1, max_size=30), min_size=1, max_size=8),
    st.lists(st.integers(1, 50_000), min_size=1),
    st.booleans(),
)
def test_frames_come_out_as_they_were_sent_however_the_stream_is_cut(
    bodies: list[bytes], cuts: list[int], rests: bool
) -> None:
    buffer, stream, frames = ReceiveBuffer(BufferPool(), MAX_FRAME), framed(*bodies), []
    step = 0
    while stream:
        cut = cuts[step % len(cuts)]
        frames += feed(buffer, stream[:cut])
        stream = stream[cut:]
        step += 1
        if rests:
            buffer.rest()
    assert frames == bodies
    assert buffer.received_bytes == 0


def test_frames_come_out_byte_by_byte() -> None:
    buffer, frames = ReceiveBuffer(BufferPool(), MAX_FRAME), []
    for byte in framed(b"first", b"second"):
        frames += feed(buffer, bytes([byte]))
        buffer.rest()
    assert frames == [b"first", b"second"]


@pytest.mark.parametrize("size", [-(2**31), -1, 0, MAX_FRAME + 1, 2**31 - 1])
def test_an_impossible_size_is_refused_at_once(size: int) -> None:
    buffer = ReceiveBuffer(BufferPool(), MAX_FRAME)
    with pytest.raises(MalformedFrame) as refused:
        feed(buffer, struct.pack(">i", size))
    assert refused.value.size == size


def test_the_largest_allowed_frame_passes() -> None:
    buffer = ReceiveBuffer(BufferPool(), 300_000)
    assert feed(buffer, framed(b"x" * 300_000)) == [b"x" * 300_000]
    with pytest.raises(MalformedFrame):
        feed(buffer, framed(b"x" * 300_001))


def test_an_announced_size_costs_nothing_until_bytes_come() -> None:
    buffer = ReceiveBuffer(BufferPool(), MAX_FRAME)
    feed(buffer, struct.pack(">i", MAX_FRAME) + b"x" * 1000)
    assert buffer.held_bytes == INITIAL_BYTES
    feed(buffer, b"x" * 500_000)
    assert buffer.held_bytes <= 2 * 501_004


def test_a_resting_buffer_keeps_only_what_has_arrived() -> None:
    pool = BufferPool()
    buffer = ReceiveBuffer(pool, MAX_FRAME)
    feed(buffer, struct.pack(">i", MAX_FRAME) + b"x" * 1000)
    buffer.rest()
    assert buffer.held_bytes == 1004
    assert feed(buffer, b"y" * (MAX_FRAME - 1000))[0][:1002] == b"x" * 1000 + b"yy"
    buffer.rest()
    assert buffer.held_bytes == 0


def test_connections_share_buffers_one_after_the_other() -> None:
    pool = BufferPool()
    first, second = ReceiveBuffer(pool, MAX_FRAME), ReceiveBuffer(pool, MAX_FRAME)
    feed(first, framed(b"hello"))
    used = first.writable().obj
    first.rest()
    assert second.writable().obj is used


def test_a_small_frame_that_comes_alone_borrows_no_buffer() -> None:
    pool = BufferPool()
    first, second = ReceiveBuffer(pool, MAX_FRAME), ReceiveBuffer(pool, MAX_FRAME)
    receive(first, framed(b"hello"))
    assert first.has_lone_frame
    receive(second, framed(b"world"))
    assert pool.memory.request_bytes == first.held_bytes == 0
    frames = [buffer.next_frame() for buffer in (first, second)]
    assert frames == [b"hello", b"world"]
    assert first.next_frame() is None


@pytest.mark.parametrize("body", [b"x" * 5000, b"hello"])
def test_what_is_more_than_a_small_frame_stays_where_it_was_received(body: bytes) -> None:
    pool = BufferPool()
    first, second = ReceiveBuffer(pool, MAX_FRAME), ReceiveBuffer(pool, MAX_FRAME)
    used = first.writable().obj
    receive(first, framed(body) + b"\0\0")
    assert not first.has_lone_frame
    assert pool.memory.request_bytes == first.held_bytes == INITIAL_BYTES
    receive(second, framed(b"y" * 5000))
    frame = first.next_frame()
    assert frame == body
    assert frame.obj is used


@pytest.mark.parametrize("size", [1000, 200_000])
def test_a_slice_that_a_handler_keeps_is_never_overwritten(size: int) -> None:
    buffer = ReceiveBuffer(BufferPool(), MAX_FRAME)
    receive(buffer, framed(b"a" * size))
    kept = buffer.next_frame()
    assert kept is not None
    assert feed(buffer, framed(b"b" * size, b"c" * size)) == [b"b" * size, b"c" * size]
    buffer.rest()
    assert bytes(kept) == b"a" * size


def test_a_buffer_under_a_live_slice_does_not_go_back_to_the_pool() -> None:
    pool = BufferPool()
    buffer = ReceiveBuffer(pool, MAX_FRAME)
    receive(buffer, framed(b"12345"))
    kept = buffer.next_frame()
    assert kept is not None
    buffer.rest()
    other = ReceiveBuffer(pool, MAX_FRAME)
    feed(other, framed(b"67890"))
    assert bytes(kept) == b"12345"


def test_a_large_frame_grows_in_its_place_and_by_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """To copy what has come of 100 MiB would hold the event loop each time."""
    buffer = ReceiveBuffer(BufferPool(), MAX_FRAME)
    moved: list[int] = []
    move = ReceiveBuffer._move_to_front

    def note(self: ReceiveBuffer, capacity: int) -> None:
        moved.append(capacity)
        move(self, capacity)

    monkeypatch.setattr(ReceiveBuffer, "_move_to_front", note)
    body = bytes(40 * MIB)
    held = [0]
    data = memoryview(framed(body))
    while data:
        view = buffer.writable()
        assert view is not None
        count = min(len(view), len(data))
        view[:count] = data[:count]
        buffer.wrote(count)
        del view
        data = data[count:]
        held.append(buffer.held_bytes)
    frame = buffer.next_frame()
    assert frame == body
    assert not moved
    assert max(after - before for before, after in itertools.pairwise(held)) <= 8 * MIB


def test_who_keeps_a_slice_of_a_large_frame_does_not_make_the_next_buffer_a_large_one() -> None:
    buffer = ReceiveBuffer(BufferPool(), MAX_FRAME)
    receive(buffer, framed(bytes(8 * MIB)))
    kept = buffer.next_frame()
    assert kept is not None
    assert feed(buffer, framed(b"small")) == [b"small"]
    assert buffer.held_bytes == INITIAL_BYTES
    assert len(kept) == 8 * MIB


def test_a_buffer_grows_by_a_megabyte_at_most() -> None:
    buffer = ReceiveBuffer(BufferPool(), MAX_FRAME)
    rest, held = framed(bytes(8 * MIB)), [INITIAL_BYTES]
    while rest:
        rest = receive_some(buffer, rest)
        held.append(buffer.held_bytes)
    assert max(after - before for before, after in itertools.pairwise(held)) == MIB
