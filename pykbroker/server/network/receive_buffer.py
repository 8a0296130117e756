"""A receive buffer cuts the bytes of a connection into frames, in memory that is borrowed only while it is needed.

A frame is handed out as a view into the buffer, without a copy. The rule for handlers: slices of a request are good
until the handler returns. A slice that is still alive later is not overwritten: the buffer is left to its holder and a
fresh one is taken, because a reused buffer under a live slice would write one client's bytes into another's topic.

The buffer grows with the bytes that arrived, never with the size that was announced, and a connection that waits keeps
at most 16 times what has arrived; an idle one keeps nothing.

What comes to a connection without a buffer lies on the pool's desk at first, which is the buffer that is lent next. A
small frame that came alone is copied off it, and nothing is borrowed. Whatever else came makes the desk the
connection's buffer, where it is.
"""

from __future__ import annotations

from struct import Struct

from .client_memory import ClientMemory

INITIAL_BYTES = 64 * 1024
_KEPT_BYTES = 2 << 20
_POOLED_BYTES = 6 << 20
_READ_AHEAD_BYTES = 32 * 1024
_WASTE_FACTOR = 16
_DETACHED_BYTES = 4096
_GROWTH_BYTES = 1 << 20
_ZEROS = memoryview(bytes(_GROWTH_BYTES))

_size_at = Struct(">i").unpack_from


class MalformedFrame(Exception):
    """The size prefix is not one of a request; `first_bytes` show what the peer may have meant."""

    def __init__(self, size: int, first_bytes: bytes) -> None:
        super().__init__(f"frame size {size}")
        self.size = size
        self.first_bytes = first_bytes


class BufferPool:
    """The pool has the buffers that no connection holds. The one returned last is warm in the cache and goes out first.

    memory: counts what is lent, and what connections keep aside.
    """

    def __init__(self, memory: ClientMemory | None = None) -> None:
        self.memory = memory or ClientMemory()
        self._free: list[bytearray] = []
        self._free_bytes = 0
        self._desk: memoryview | None = None

    @property
    def desk(self) -> memoryview:
        """Return what `take` gives next. Bytes stay there until anybody else writes: a connection that wants them takes
        it at once.
        """
        if self._desk is None:
            self._desk = memoryview(self._take_free())
        return self._desk

    def take(self) -> memoryview:
        """All of a buffer that nobody else has."""
        taken, self._desk = self.desk, None
        return taken

    def _take_free(self) -> bytearray:
        if not self._free:
            return bytearray(INITIAL_BYTES)
        buffer = self._free.pop()
        self._free_bytes -= len(buffer)
        return buffer

    def give(self, buffer: bytearray) -> None:
        size = len(buffer)
        if size <= _KEPT_BYTES and self._free_bytes + size <= _POOLED_BYTES:
            self._free.append(buffer)
            self._free_bytes += size


class ReceiveBuffer:
    """The buffer holds received bytes in [_start, _end) of `_buffer` that are not yet handed out.

    max_frame_bytes: of the frames to come; it may change between two of them.
    """

    __slots__ = ("_buffer", "_copied", "_end", "_memory", "_pool", "_start", "_stash", "_view", "max_frame_bytes")

    def __init__(self, pool: BufferPool, max_frame_bytes: int) -> None:
        self._pool = pool
        self._memory = pool.memory
        self.max_frame_bytes = max_frame_bytes
        self._buffer: bytearray | None = None
        self._view: memoryview | None = None
        self._copied: memoryview | None = None
        """A frame that came alone, on the desk, and is to be handed out next."""
        self._stash = b""
        self._start = 0
        self._end = 0

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its size prefix, or None until more bytes have come."""
        view, start = self._view, self._start
        if view is None:
            if not self._stash:
                copied, self._copied = self._copied, None
                return copied
            view = self._borrow_for_stash()
        available = self._end - start
        if available < 4:
            return None
        size: int = _size_at(view, start)[0]
        if size <= 0 or size > self.max_frame_bytes:
            raise MalformedFrame(size, bytes(view[start : min(self._end, start + 16)]))
        if available < 4 + size:
            return None
        self._start = end = start + 4 + size
        return view[start + 4 : end]

    def writable(self) -> memoryview | None:
        """Return the room for the next received bytes; never empty. Report them with `wrote`.

        None where the buffer would have to grow and memory is short: ask again after `ClientMemory.room`.
        """
        if self._view is None:
            if not self._stash:
                return self._pool.desk
            self._borrow_for_stash()
        wanted = self._frame_bytes()
        if not self._make_room(wanted):
            return None
        view, end = self._view, self._end
        assert view is not None
        missing = self._start + wanted - end
        if missing > _READ_AHEAD_BYTES:  # read to the frame's end only: what comes behind it would have to be moved
            return view[end : end + missing]
        return view[end:]

    def wrote(self, count: int) -> None:
        if self._view is None:
            desk = self._pool.desk
            if 4 < count <= _DETACHED_BYTES and count - 4 == _size_at(desk)[0] <= self.max_frame_bytes:
                self._copied = memoryview(bytes(desk[4:count]))
                return
            self._borrow()
        self._end += count

    def rest(self) -> None:
        """Give the buffer back, since nothing more is there to read, unless it holds a fair part of a frame."""
        buffer = self._buffer
        if buffer is None:
            return
        held = self._end - self._start
        if held * _WASTE_FACTOR <= len(buffer) or (self._memory.is_short and held <= INITIAL_BYTES // 2):
            self._set_aside()

    def detach(self, frame: memoryview) -> memoryview:
        """The same frame, out of the buffer where that would be kept for little: its handler may wait for long."""
        if self._buffer is None:
            return frame  # it came alone
        if len(frame) > _DETACHED_BYTES and not (self._memory.is_short and len(frame) <= INITIAL_BYTES):
            return frame
        if self._end > self._start and not self._memory.is_short:
            return frame  # what is behind it comes next
        copied = memoryview(bytes(frame))
        frame.release()
        self._set_aside()
        return copied

    def let_go(self) -> None:
        """The frame that was handed out last is released: keep no more than what has come behind it."""
        if self._buffer is not None:
            self._set_aside()

    def release(self) -> None:
        """The connection ends."""
        self._copied = None
        if self._stash:
            self._memory.give(self, len(self._stash))
            self._stash = b""
        if self._buffer is not None:
            self._give_back()

    def _set_aside(self) -> None:
        """Keep the bytes that nobody has taken so far, without the buffer around them."""
        if self._start == self._end:
            self._give_back()
            return
        assert self._buffer is not None
        kept = bytes(memoryview(self._buffer)[self._start : self._end])
        self._give_back()
        self._stash = kept
        self._memory.take(len(kept))

    @property
    def has_lone_frame(self) -> bool:
        """A small frame came alone: its client most likely waits for the answer before it sends more."""
        return self._copied is not None

    @property
    def lone_frame(self) -> memoryview | None:
        """Return that frame, which stays what `next_frame` returns next."""
        return self._copied

    def drop_lone_frame(self) -> None:
        self._copied = None

    @property
    def received_bytes(self) -> int:
        """Bytes of a frame that is not complete yet."""
        return len(self._stash) if self._buffer is None else self._end - self._start

    def peek(self, size: int) -> bytes:
        """Return up to `size` of them."""
        if self._buffer is None:
            return self._stash[:size]
        return bytes(self._buffer[self._start : min(self._end, self._start + size)])

    @property
    def held_bytes(self) -> int:
        """Memory that this connection keeps now."""
        return len(self._stash) if self._buffer is None else len(self._buffer)

    def _frame_bytes(self) -> int:
        """Size of the frame that is being received, with its prefix; as long as that is unknown, of a small one."""
        view = self._view
        if view is None or self._end - self._start < 4:
            return _READ_AHEAD_BYTES
        size: int = _size_at(view, self._start)[0]
        return 4 + size

    def _make_room(self, wanted: int) -> bool:
        assert self._buffer is not None
        capacity, held = len(self._buffer), self._end - self._start
        if self._start and (not held or self._start + wanted > capacity):
            self._move_to_front(capacity)
            capacity = len(self._buffer)
        if self._end == capacity:
            assert wanted > capacity, "a whole frame was left in the buffer"
            larger = min(2 * capacity, capacity + _GROWTH_BYTES, wanted)
            if not self._memory.admits(self, larger - capacity):
                return False
            self._grow(larger)
        return True

    def _grow(self, capacity: int) -> None:
        """Grow in place where nobody looks at the buffer: the system moves pages of a large block, and copies none."""
        assert self._buffer is not None
        assert not self._start
        if not self._is_exclusive():
            self._move_to_front(capacity)
            return
        more = capacity - len(self._buffer)
        self._memory.take(more)
        self._buffer.extend(_ZEROS[:more])
        self._view = memoryview(self._buffer)

    def _move_to_front(self, capacity: int) -> None:
        """Bring the held bytes to the front, into another buffer where this one is too small or still looked at."""
        assert self._buffer is not None
        old, start, end = self._buffer, self._start, self._end
        if self._is_exclusive() and capacity <= len(old):
            self._view = view = memoryview(old)
            if start < end:
                view[: end - start] = view[start:end]
        else:
            if capacity <= len(old):  # what comes next may be small
                capacity = min(capacity, max(INITIAL_BYTES, 2 * (end - start)))
            self._memory.take(capacity - len(old))
            self._buffer = fresh = bytearray(capacity)
            self._view = memoryview(fresh)
            fresh[: end - start] = memoryview(old)[start:end]
        self._start, self._end = 0, end - start

    def _borrow(self) -> None:
        """The desk, with what is on it."""
        self._view = view = self._pool.take()
        self._buffer = buffer = _buffer_of(view)
        self._memory.take(len(buffer))

    def _borrow_for_stash(self) -> memoryview:
        stash, self._stash = self._stash, b""
        view = self._pool.take() if len(stash) < INITIAL_BYTES else memoryview(bytearray(2 * len(stash)))
        self._memory.take(len(view) - len(stash))
        self._view, self._buffer = view, _buffer_of(view)
        view[: len(stash)] = stash
        self._start, self._end = 0, len(stash)
        return view

    def _give_back(self) -> None:
        assert self._buffer is not None
        self._memory.give(self, len(self._buffer))
        if self._is_exclusive():
            self._pool.give(self._buffer)
        self._buffer = self._view = None
        self._start = self._end = 0

    def _is_exclusive(self) -> bool:
        """Drop our own view and ask whether any slice is left: a bytearray refuses to be resized under one."""
        assert self._view is not None
        assert self._buffer is not None
        self._view.release()
        try:
            last = self._buffer.pop()
        except BufferError:
            return False
        self._buffer.append(last)
        return True


def _buffer_of(view: memoryview) -> bytearray:
    buffer = view.obj
    assert isinstance(buffer, bytearray)
    return buffer
