"""TLS is a transport over another transport: what it is given to send is encrypted, what it receives is decrypted.

OpenSSL works on memory here and never on the socket, so that bytes come and go as those of a plaintext connection do:
non-blocking first, then a wait in Trio. Data is encrypted and decrypted a record at a time, because the memory that
OpenSSL once took for a connection is not given back before the connection ends. Kafka's counterpart is
`SslTransportLayer`.

What the peer may make us do is bounded: a handshake takes `HANDSHAKE_S` and so many bytes at most, and its costly steps
run in threads, a few at a time (`Handshakes`); renegotiation is refused by the context; answers to key updates wait
until the peer takes them, up to a limit; one call of `receive_now` decrypts what one call of the socket brought, and no
more than some records where they are small: a key update is 27 bytes, and costs as much as kilobytes of data.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Final

import trio

from ..runtime.threads import Threads
from .region_reads import read_part
from .transport import Address, FileRegion, NextTurn, Part, Transport

HANDSHAKE_S: Final = 10.0
"""The time that a peer has for its part of the handshake, also where it sends nothing."""

_RECORD_BYTES = 16 * 1024
"""The most that one record holds (RFC 8446, 5.1)."""
_SENT_AT_ONCE_BYTES = 64 * 1024
"""What is encrypted before the peer has taken it."""
_TURN_BYTES = 256 * 1024
_RECEIVED_AT_ONCE_BYTES = 64 * 1024
_RECORD_OVERHEAD_BYTES = 512
_RECORD_HEADER_BYTES = 5
_SMALL_RECORD_BYTES = 4 * 1024
_RECORDS_AT_ONCE = 32
"""OpenSSL works through all key updates that it has been given, 30 µs each, before it says anything."""
_SMALL_RECORDS_IN_A_TURN = 64
_RECORDS_WITHOUT_DATA = 100
_HANDSHAKE_BYTES = 256 * 1024
_UNSENT_CONTROL_BYTES = 64 * 1024
_HANDSHAKE_RECORD = 0x16
_HANDSHAKES_AT_ONCE = 2


class HandshakeFailed(ConnectionError):
    """The two sides do not agree, or the peer does not speak TLS; the text is one line without the peer's address."""


class Handshakes:
    """The costly steps of handshakes run in threads, a few at a time, in the order in which they come: a signature of
    RSA takes a millisecond, and whoever connects again and again must not take all threads.

    One object serves a node. Its scratch buffer is used between two waits only.
    """

    def __init__(self, threads: Threads) -> None:
        self.threads = threads
        self.desk = memoryview(bytearray(_RECEIVED_AT_ONCE_BYTES))
        self._limiter = trio.Semaphore(_HANDSHAKES_AT_ONCE)

    async def step(self, ssl_object: ssl.SSLObject) -> None:
        """Raises `ssl.SSLError`, of which `ssl.SSLWantReadError` is no failure."""
        async with self._limiter:
            await self.threads.run(ssl_object.do_handshake)


class TlsTransport:
    """The transport speaks TLS once `shake_hands` has returned; nothing else may be called before, except `close`."""

    __slots__ = (
        "_handshakes",
        "_has_failed",
        "_incoming",
        "_inner",
        "_is_at_end",
        "_is_closed",
        "_is_drained",
        "_is_sending",
        "_is_shaking_hands",
        "_outgoing",
        "_peeked",
        "_received",
        "_record_bytes_left",
        "_records_without_data",
        "_small_records",
        "_ssl",
        "_unsent",
    )

    def __init__(
        self,
        inner: Transport,
        context: ssl.SSLContext,
        handshakes: Handshakes,
        *,
        server_side: bool,
        server_hostname: str | None = None,
    ) -> None:
        self._inner = inner
        self._handshakes = handshakes
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_side, server_hostname=server_hostname
        )
        self._received = b""
        """Ciphertext that OpenSSL has not been given yet."""
        self._peeked = b""
        self._unsent = b""
        """Ciphertext that the peer has not taken yet, from the time when nobody was sending."""
        self._is_at_end = self._is_closed = self._has_failed = False
        self._is_sending = self._is_shaking_hands = False
        self._is_drained = False
        """OpenSSL has given all that it can of what has been received."""
        self._record_bytes_left = 0
        """Of the record that OpenSSL has been given the beginning of."""
        self._small_records = 0
        """Since others had their turn."""
        self._records_without_data = 0

    @property
    def peer(self) -> Address:
        return self._inner.peer

    @property
    def local(self) -> Address | None:
        return self._inner.local

    @property
    def waits_for_peer(self) -> int:
        return self._inner.waits_for_peer

    @property
    def peer_certificate(self) -> bytes | None:
        """The peer's verified certificate as DER; None where it has shown none."""
        return self._ssl.getpeercert(binary_form=True)

    # The handshake

    async def shake_hands(self) -> None:
        """Raises HandshakeFailed, `trio.BrokenResourceError` where the peer has gone, `trio.ClosedResourceError`.

        The alert that tells the peer the reason has been sent then, as far as the peer took it at once.
        """
        with trio.move_on_after(HANDSHAKE_S) as scope:
            await self._shake_hands(scope)
            return
        raise HandshakeFailed(f"no TLS handshake within {HANDSHAKE_S:.0f} seconds")

    async def _shake_hands(self, scope: trio.CancelScope) -> None:
        received_bytes = 0
        if self._ssl.server_side:
            received_bytes = await self._receive_of_handshake(received_bytes)
        while not await self._step(scope):
            received_bytes = await self._receive_of_handshake(received_bytes)
        self._records_without_data = 0
        await self._send_sealed([])

    async def _step(self, scope: trio.CancelScope) -> bool:
        """Take one step of the handshake, and send what it gave; True after the last one.

        While many shake hands, the wait for a thread is not the peer's fault: `scope` ends as much later.
        """
        self._is_shaking_hands = True
        began = trio.current_time()
        try:
            await self._handshakes.step(self._ssl)
        except ssl.SSLWantReadError:
            done = False
        except ssl.SSLError as error:
            self._fail()
            raise HandshakeFailed(describe(error)) from None
        else:
            done = True
        finally:
            self._is_shaking_hands = False
            scope.deadline += trio.current_time() - began
        if self._is_closed:
            raise trio.ClosedResourceError
        await self._send_sealed([])
        return done

    async def _receive_of_handshake(self, received_bytes: int) -> int:
        desk = self._handshakes.desk
        while (count := self._inner.receive_now(desk[:_RECORD_BYTES])) is None:
            await self._inner.wait_readable()
        if not count:
            raise trio.BrokenResourceError("the peer closed during the TLS handshake")
        if not received_bytes and desk[0] != _HANDSHAKE_RECORD:
            self._has_failed = True
            raise HandshakeFailed("no TLS handshake (a plaintext client on a TLS port?)")
        if received_bytes + count > _HANDSHAKE_BYTES:
            self._has_failed = True
            raise HandshakeFailed(f"a TLS handshake of more than {_HANDSHAKE_BYTES} bytes")
        self._received += desk[:count]
        while self._feed():
            pass
        return received_bytes + count

    # Receiving

    def receive_now(self, view: memoryview) -> int | None:
        if self._peeked:
            given = min(len(view), len(self._peeked))
            view[:given] = self._peeked[:given]
            self._peeked = self._peeked[given:]
            return given
        if self._is_closed:
            raise trio.ClosedResourceError
        filled, has_received = 0, False
        count: int | None
        while filled < len(view):
            count = self._decrypt(view[filled:] if filled else view)
            if count:
                filled += count
                self._records_without_data = 0
            elif count == 0:
                return filled
            elif self._records_without_data > _RECORDS_WITHOUT_DATA:
                self._fail()
                raise trio.BrokenResourceError("the peer sends records of TLS without data in them")
            elif self._small_records >= _SMALL_RECORDS_IN_A_TURN:
                self._is_drained = False
                return filled or None
            elif not self._feed():
                if self._is_at_end:  # without a word of farewell, as many clients do
                    return filled
                if has_received or not self._receive_ciphertext(len(view) - filled):
                    self._is_drained = True
                    return filled or None
                has_received = True
        self._is_drained = False
        return filled

    def _decrypt(self, view: memoryview) -> int | None:
        """The count of bytes, 0 at the end of the stream, None where OpenSSL has to be given more."""
        try:
            return self._ssl.read(len(view), view)  # type: ignore[return-value]
        except ssl.SSLWantReadError:
            return None
        except ssl.SSLError as error:
            self._fail()
            raise trio.BrokenResourceError(describe(error)) from None
        finally:
            if self._outgoing.pending:
                self._send_control()

    def _feed(self) -> bool:
        """Give OpenSSL a piece of the ciphertext that has been received; False where nothing of it can be given."""
        given = self._give(self._received)
        self._received = self._received[given:]
        return given > 0

    def _give(self, ciphertext: bytes | memoryview) -> int:
        """Give OpenSSL some records, or a piece of a large one, and return how many bytes that are."""
        size = min(len(ciphertext), _RECORD_BYTES)
        end = self._record_bytes_left
        for _ in range(_RECORDS_AT_ONCE):
            if end + _RECORD_HEADER_BYTES > size:
                break
            record_bytes = ciphertext[end + 3] << 8 | ciphertext[end + 4]
            end += _RECORD_HEADER_BYTES + record_bytes
            self._small_records += record_bytes < _SMALL_RECORD_BYTES
            self._records_without_data += 1
        given = min(end, size)  # a header that is cut waits for its end
        self._record_bytes_left = end - given
        if given:
            self._incoming.write(ciphertext[:given])
        return given

    def _receive_ciphertext(self, wanted_bytes: int) -> bool:
        """Return False where nothing has arrived. OpenSSL is not told of the end: it would encrypt no answer then."""
        desk = self._handshakes.desk
        count = self._inner.receive_now(desk[: max(wanted_bytes, _RECORD_BYTES) + _RECORD_OVERHEAD_BYTES])
        if count is None:
            return False
        if count == 0:
            self._is_at_end = True
            return True
        arrived: bytes | memoryview = desk[:count]
        if self._received:  # a part of a header
            arrived = self._received + arrived
        given = self._give(arrived)
        self._received = bytes(arrived[given:])
        return True

    async def wait_readable(self) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError
        if self._peeked or not self._is_drained:
            await trio.lowlevel.checkpoint()
        else:
            await self._inner.wait_readable()
        self._small_records = 0

    def has_peer_left(self) -> bool:
        return self._inner.has_peer_left()

    def peek(self, size: int) -> bytes | None:
        if not self._peeked:
            peeked = bytearray(size)
            try:
                count = self.receive_now(memoryview(peeked))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return b""
            if not count:
                return None if count is None else b""
            self._peeked = bytes(peeked[:count])
        return self._peeked[:size]

    async def receive_into(self, view: memoryview) -> int:
        while (count := self.receive_now(view)) is None:
            await self.wait_readable()
        return count

    # Sending

    async def send(self, parts: Sequence[Part], next_turn: NextTurn = trio.lowlevel.checkpoint) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError
        self._is_sending = True
        try:
            if len(parts) == 1 and isinstance(only := parts[0], bytes) and len(only) <= _RECORD_BYTES:
                await self._send_sealed([self._sealed(only)])  # most answers
            else:
                await self._send_parts(parts, next_turn)
        finally:
            self._is_sending = False

    async def _send_parts(self, parts: Sequence[Part], next_turn: NextTurn) -> None:
        plaintext = bytearray()
        sent_bytes = 0
        for part in parts:
            if isinstance(part, (bytes, bytearray, memoryview)):
                view = memoryview(part)
                size = len(view)
            else:
                view, size = None, part.size
            for start in range(0, size, _SENT_AT_ONCE_BYTES):
                count = min(size - start, _SENT_AT_ONCE_BYTES)
                plaintext += await self._read(part, start, count) if view is None else view[start : start + count]
                if len(plaintext) < _SENT_AT_ONCE_BYTES:
                    continue
                await self._send_plaintext(plaintext)
                sent_bytes += len(plaintext)
                plaintext = bytearray()
                if sent_bytes >= _TURN_BYTES:  # a peer that takes everything at once must not starve others
                    sent_bytes = 0
                    await next_turn()
        if plaintext:
            await self._send_plaintext(plaintext)

    async def _read(self, part: Part, start: int, count: int) -> bytes | bytearray:
        assert not isinstance(part, (bytes, bytearray, memoryview))
        return await _read_of_region(part, start, count, self._handshakes.threads)

    async def _send_plaintext(self, plaintext: bytearray) -> None:
        view = memoryview(plaintext)
        await self._send_sealed(
            [self._sealed(view[start : start + _RECORD_BYTES]) for start in range(0, len(view), _RECORD_BYTES)]
        )

    def _sealed(self, plaintext: bytes | memoryview) -> bytes:
        try:
            self._ssl.write(plaintext)
        except ssl.SSLError as error:
            self._fail()
            raise trio.BrokenResourceError(describe(error)) from None
        return self._outgoing.read()

    async def _send_sealed(self, pieces: list[bytes]) -> None:
        """Send the pieces of ciphertext, and what else OpenSSL has to say behind them."""
        if self._unsent:
            pieces = [self._unsent, *pieces]
            self._unsent = b""
        while pieces or self._outgoing.pending:
            if self._outgoing.pending:
                pieces.append(self._outgoing.read())
            await self._inner.send(pieces)
            pieces = []

    def _send_control(self) -> None:
        """Send what OpenSSL answers by itself, such as to a key update. Raises `trio.BrokenResourceError` where the
        peer makes it answer and takes nothing.
        """
        if self._outgoing.pending + len(self._unsent) > _UNSENT_CONTROL_BYTES:
            self._fail()
            raise trio.BrokenResourceError("the peer takes no answers to its key updates")
        if self._is_sending:  # it goes out behind what is being sent
            return
        self._unsent += self._outgoing.read()
        self._flush_unsent()

    def send_now(self, data: bytes) -> int:
        """The ciphertext of one record at most waits here for the peer."""
        self._flush_unsent()
        if self._unsent:
            return 0
        taken = data[:_RECORD_BYTES]
        self._unsent = self._sealed(taken)
        self._flush_unsent()
        return len(taken)

    def _flush_unsent(self) -> None:
        if self._unsent:
            self._unsent = self._unsent[self._inner.send_now(self._unsent) :]

    # The end

    def _fail(self) -> None:
        """Tell the peer why, as far as it listens."""
        if not self._has_failed:
            self._has_failed = True
            self._say_last_word()

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if not (self._has_failed or self._is_shaking_hands or self._is_sending or self._is_at_end):
            try:
                self._ssl.unwrap()
            except (ssl.SSLError, OSError, ValueError):
                pass  # it waits for the peer's farewell, for which nobody waits
            self._say_last_word()
        self._inner.close()

    def _say_last_word(self) -> None:
        if self._is_sending or not (self._outgoing.pending or self._unsent):
            return
        try:
            self._inner.send_now(self._unsent + self._outgoing.read())
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass


async def _read_of_region(region: FileRegion, start: int, count: int, threads: Threads) -> bytes | bytearray:
    if region.file.fileno() is None:
        return region.read()[start : start + count]
    return await read_part(region, region.position + start, count, threads)


def describe(error: ssl.SSLError) -> str:
    """The reason in OpenSSL's words, without its numbers and places."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    reason = error.reason or ""
    return reason.lower().replace("_", " ") or str(error)
