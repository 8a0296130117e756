"""One direction of a simulated connection: bytes in order, bounded, in pieces that arrive when their link lets them."""

from __future__ import annotations

import math
import random
from collections import deque

import trio

from .links import Link

_NOT_YET = math.inf


class Pipe:
    """One direction of a connection, on `link`. The reader's news, bytes taken or nobody there, goes over `back`."""

    def __init__(self, rng: random.Random, link: Link, back: Link, capacity_bytes: int) -> None:
        self._rng = rng
        self._link = link
        self._back = back
        self._capacity_bytes = capacity_bytes
        self._pieces: deque[tuple[float, memoryview]] = deque()
        self._held_bytes = 0
        self._unacknowledged = 0
        """Bytes that were read, of which the writer could not be told."""
        self._last_arrival = 0.0
        self._changed = trio.lowlevel.ParkingLot()
        self.is_reader_closed = False
        self._is_writer_closed = False
        self._is_end_known = False
        """To the reader: nothing comes any more."""
        self.is_reader_reset = False
        self.is_writer_reset = False
        self._is_reader_gone = False
        """Its machine lost its memory: whatever it is sent is answered with a reset, once there is an answer."""
        self._is_writer_gone = False
        self._is_reset_on_its_way = False
        self.twin: Pipe = self
        """The other direction of the connection."""
        self.waits = 0
        link.use(self)

    @property
    def is_over(self) -> bool:
        return self.is_reader_reset or (self.is_reader_closed and self._is_writer_closed)

    @property
    def is_end_in_sight(self) -> bool:
        """The reader's system knows that nothing comes behind what has arrived."""
        all_arrived = not self._pieces or self._pieces[-1][0] <= trio.current_time()
        return self.is_reader_closed or self.is_reader_reset or (self._is_end_known and all_arrived)

    def peek(self, size: int) -> bytes | None:
        """Return up to `size` bytes of the piece that `read_now` gives next; b"" and None as there."""
        if self.is_reader_closed or self.is_reader_reset or (self._is_end_known and not self._pieces):
            return b""
        if not self._pieces or self._pieces[0][0] > trio.current_time():
            return None
        return bytes(self._pieces[0][1][:size])

    def read_now(self, view: memoryview) -> int | None:
        if self.is_reader_closed:
            raise trio.ClosedResourceError
        if self.is_reader_reset:
            raise trio.BrokenResourceError
        if not self._pieces:
            return 0 if self._is_end_known else None
        arrival, piece = self._pieces[0]
        if arrival > trio.current_time():
            return None
        count = min(len(piece), len(view))
        view[:count] = piece[:count]
        self._acknowledge(count)
        if count == len(piece):
            self._pieces.popleft()
        else:
            self._pieces[0] = (arrival, piece[count:])
        self._changed.unpark_all()
        return count

    def _acknowledge(self, count: int) -> None:
        if self._back.is_cut:
            self._unacknowledged += count
        else:
            self._held_bytes -= count + self._unacknowledged
            self._unacknowledged = 0

    async def wait_readable(self) -> None:
        if self.is_reader_closed:
            raise trio.ClosedResourceError
        if self.is_reader_reset or (self._is_end_known and not self._pieces):
            await trio.lowlevel.checkpoint()
        elif self._pieces and self._pieces[0][0] != _NOT_YET:
            await trio.sleep_until(self._pieces[0][0])
        else:
            await self._changed.park()

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        rest = memoryview(bytes(data))
        await trio.lowlevel.checkpoint()
        while len(rest):
            size = self._write_piece(rest)
            if not size:
                await self._changed.park()
                self.waits += 1
            rest = rest[size:]

    def write_now(self, data: bytes) -> int:
        """Write what there is room for, from the front: the count of bytes."""
        return self._write_piece(memoryview(data)) if data else 0

    def _write_piece(self, data: memoryview) -> int:
        if self._is_writer_closed:
            raise trio.ClosedResourceError
        if self.is_writer_reset or self._is_refused():
            raise trio.BrokenResourceError
        room = self._capacity_bytes - self._held_bytes
        if room <= 0:
            return 0
        size = self._piece_size(min(room, len(data)))
        self._pieces.append((self._next_arrival(), data[:size]))
        self._held_bytes += size
        self._changed.unpark_all()
        return size

    def _is_refused(self) -> bool:
        """Tell whether a write is refused: the reader has gone, and bytes and the answer get through."""
        if self._link.is_cut or self._back.is_cut:
            return False
        if self._is_reader_gone:
            self._reset_by_who_has_gone()
        return self._is_reader_gone or self.is_reader_closed or self.is_reader_reset

    def _reset_by_who_has_gone(self) -> None:
        self.reset_writer()
        self.twin.reset_reader()

    def _next_arrival(self) -> float:
        if self._link.is_cut:
            return _NOT_YET
        self._last_arrival = max(self._last_arrival, trio.current_time() + self._link.delay_s())
        return self._last_arrival

    def _piece_size(self, most: int) -> int:
        """Mostly all of it, sometimes a little: readers must not rely on where a stream is cut."""
        return most if self._rng.random() < 0.7 else self._rng.randint(1, most)

    # The link

    def stall(self) -> None:
        now = trio.current_time()
        self._pieces = deque((arrival if arrival <= now else _NOT_YET, piece) for arrival, piece in self._pieces)

    def resume(self, silence_s: float) -> None:
        self.twin.acknowledge_all()
        if self._is_reset_on_its_way:
            self.reset_reader()
            self.twin.reset_writer()
        if self._is_writer_gone:
            return
        if self._is_reader_gone:
            if self._pieces:
                self._reset_by_who_has_gone()
            return
        if any(arrival == _NOT_YET for arrival, _ in self._pieces):
            self._last_arrival = trio.current_time() + self._link.delay_after_silence_s(silence_s)
            self._pieces = deque((min(arrival, self._last_arrival), piece) for arrival, piece in self._pieces)
        self._is_end_known = self._is_writer_closed
        self._changed.unpark_all()

    def acknowledge_all(self) -> None:
        """The way back is there again."""
        self._acknowledge(0)
        self._changed.unpark_all()

    # Ends

    def close_reader(self) -> None:
        self.is_reader_closed = True
        self._changed.unpark_all()

    def close_writer(self) -> None:
        self._is_writer_closed = True
        self._is_end_known = not self._link.is_cut
        self._changed.unpark_all()

    def reset_reader(self) -> None:
        self.is_reader_reset = True
        self._pieces.clear()
        self._changed.unpark_all()

    def reset_writer(self) -> None:
        self.is_writer_reset = True
        self._changed.unpark_all()

    def abort_writer(self) -> None:
        """End the writer: its machine tells the reader so, now or when the link is there again."""
        self.reset_writer()
        self.twin.reset_reader()
        if self._link.is_cut:
            self._is_reset_on_its_way = True
        else:
            self.reset_reader()
            self.twin.reset_writer()

    def forget_writer(self) -> None:
        """Forget the writer, whose machine has no power: the reader hears nothing, and nobody takes what it answers."""
        self._is_writer_gone = True
        self.twin._is_reader_gone = True
