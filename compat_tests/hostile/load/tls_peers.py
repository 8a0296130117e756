"""An attacker's TLS connection, whose records it forms as it likes."""

from __future__ import annotations

import hmac
import ssl
import struct
import tempfile
from collections.abc import Iterable
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .peers import Peer

APPLICATION_DATA, HANDSHAKE = 23, 22
KEY_UPDATE_ASKS_FOR_ONE = b"\x18\x00\x00\x01\x01"
CIPHER, HASH, KEY_BYTES, NONCE_BYTES, TAG_BYTES = "TLS_AES_256_GCM_SHA384", "sha384", 32, 12, 16


def client_hello() -> bytes:
    """What a client begins with."""
    outgoing = ssl.MemoryBIO()
    client = client_context().wrap_bio(ssl.MemoryBIO(), outgoing)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def client_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class TlsPeer:
    """One connection by TLS 1.3; `shake_hands` comes first."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl: ssl.SSLObject | None = None
        self.secret = b""
        """With which the client encrypts (RFC 8446, 7.1)."""

    async def shake_hands(self) -> None:
        """Raises `Gone` where the broker refuses."""
        with tempfile.NamedTemporaryFile("r") as keys:
            context = client_context()
            context.keylog_filename = keys.name
            self._ssl = context.wrap_bio(self._incoming, self._outgoing)
            while not self._step():
                await self._peer.send_raw(self._outgoing.read())
                self._incoming.write(await self._peer.receive())
            self.secret = _client_secret(Path(keys.name))
        await self._peer.send_raw(self._outgoing.read())

    def _step(self) -> bool:
        assert self._ssl is not None
        try:
            self._ssl.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def records(self, pieces: Iterable[bytes]) -> bytes:
        """Each piece in a record of its own."""
        assert self._ssl is not None
        for piece in pieces:
            self._ssl.write(piece)
        return self._outgoing.read()

    def key_updates(self, count: int) -> bytes:
        """So many records, each of which asks for new keys and has new ones itself. No `records` may follow."""
        assert self._ssl is not None
        cipher = self._ssl.cipher()
        assert cipher is not None
        assert cipher[0] == CIPHER
        return b"".join(self._key_update() for _ in range(count))

    def _key_update(self) -> bytes:
        key, nonce = expand(self.secret, b"key", KEY_BYTES), expand(self.secret, b"iv", NONCE_BYTES)
        content = KEY_UPDATE_ASKS_FOR_ONE + bytes([HANDSHAKE])
        header = struct.pack(">BHH", APPLICATION_DATA, 0x0303, len(content) + TAG_BYTES)
        self.secret = expand(self.secret, b"traffic upd", len(self.secret))
        return header + AESGCM(key).encrypt(nonce, content, header)

    async def send(self, data: bytes) -> None:
        await self._peer.send_raw(data)


def expand(secret: bytes, label: bytes, size: int) -> bytes:
    """HKDF-Expand-Label without a context, of at most one hash (RFC 8446, 7.1)."""
    label = b"tls13 " + label
    info = struct.pack(">HB", size, len(label)) + label + b"\0\1"
    return hmac.digest(secret, info, HASH)[:size]


def _client_secret(key_log: Path) -> bytes:
    lines = (line.split() for line in key_log.read_text().splitlines())
    return next(bytes.fromhex(line[2]) for line in lines if line[0] == "CLIENT_TRAFFIC_SECRET_0")
