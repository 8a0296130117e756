"""A journal as a capture file that Wireshark and tshark read: TCP segments made up around the frames that were kept.

The format is that of libpcap (nanosecond resolution, raw IP). Sequence numbers, acknowledgements and handshakes fit, so
that a connection is followed as a stream. A frame that the journal has cut is cut in the capture, too, as by a snap
length. Where a connection's first exchanges are forgotten, its stream begins with the first that is kept. What came by
TLS is there in the clear, and SASL's exchange is not there.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from .exchange import Exchange, Peer

_MAGIC_NS: Final = 0xA1B23C4D
_LINKTYPE_RAW: Final = 101
_SEGMENT_BYTES: Final = 60_000
"""Of a frame in one packet: with its headers within the 65,535 bytes of IP."""
_SIZE: Final = struct.Struct(">i")
_SYN, _PSH, _ACK = 0x02, 0x08, 0x10
_WINDOW: Final = 65_535
_TCP: Final = struct.Struct(">HHIIBBHHH")
_IP4: Final = struct.Struct(">BBHHHBBH4s4s")
_IP6: Final = struct.Struct(">IHBB16s16s")
_TCP_PROTOCOL: Final = 6


@dataclass(slots=True)
class _Stream:
    """The next sequence numbers of both ends."""

    peer: Peer
    from_client: int = 1
    from_broker: int = 1
    is_open: bool = False


def pcap(exchanges: Iterable[Exchange]) -> Iterator[bytes]:
    """The bytes of a capture file, in pieces."""
    yield struct.pack("<IHHiIII", _MAGIC_NS, 2, 4, 0, 0, 1 << 18, _LINKTYPE_RAW)
    streams: dict[Peer, _Stream] = {}
    for at_ns, exchange, is_response in _frames(exchanges):
        stream = streams.setdefault(exchange.peer, _Stream(exchange.peer))
        if not stream.is_open:
            yield from _handshake(stream, at_ns)
        if is_response:
            yield from _segments(stream, at_ns, exchange.response, exchange.response_bytes, from_client=False)
        else:
            yield from _segments(stream, at_ns, exchange.request, exchange.request_bytes, from_client=True)


def _frames(exchanges: Iterable[Exchange]) -> list[tuple[int, Exchange, bool]]:
    """Requests and responses by their times; within a connection one comes after the other, whatever the clock did."""
    frames: list[tuple[int, Exchange, bool]] = []
    latest: dict[Peer, int] = {}
    for exchange in exchanges:
        received_ns = max(exchange.received_ns, latest.get(exchange.peer, 0))
        answered_ns = max(exchange.answered_ns, received_ns)
        frames.append((received_ns, exchange, False))
        if exchange.response_bytes:
            frames.append((answered_ns, exchange, True))
        latest[exchange.peer] = answered_ns
    return sorted(frames, key=itemgetter(0))


def _handshake(stream: _Stream, at_ns: int) -> Iterator[bytes]:
    stream.is_open = True
    stream.from_client = stream.from_broker = 0
    yield _packet(stream, at_ns, _SYN, from_client=True)
    stream.from_client = 1
    yield _packet(stream, at_ns, _SYN | _ACK, from_client=False)
    stream.from_broker = 1
    yield _packet(stream, at_ns, _ACK, from_client=True)


def _segments(stream: _Stream, at_ns: int, kept: bytes, size: int, *, from_client: bool) -> Iterator[bytes]:
    """The packets of one frame. kept: without its size, which comes first on the wire.

    Of a frame that is cut, the first packet is cut already: a dissector then reads it as far as it goes, instead of
    waiting for the rest.
    """
    data, whole = _SIZE.pack(size) + kept, _SIZE.size + size
    if len(data) < whole:
        data = data[: min(_SEGMENT_BYTES, whole) - 1]
    position = 0
    while position < whole:
        length = min(_SEGMENT_BYTES, whole - position)
        yield _packet(stream, at_ns, _PSH | _ACK, data[position : position + length], length, from_client=from_client)
        position += length
        if from_client:
            stream.from_client = (stream.from_client + length) & 0xFFFFFFFF
        else:
            stream.from_broker = (stream.from_broker + length) & 0xFFFFFFFF


def _packet(
    stream: _Stream, at_ns: int, flags: int, payload: bytes = b"", length: int = 0, *, from_client: bool
) -> bytes:
    """One record of the file. length: of the payload on the wire, of which `payload` is what is kept."""
    peer = stream.peer
    client, broker = (peer.host, peer.port), (peer.broker_host, peer.broker_port)
    (source, source_port), (target, target_port) = (client, broker) if from_client else (broker, client)
    sequence, acknowledged = (
        (stream.from_client, stream.from_broker) if from_client else (stream.from_broker, stream.from_client)
    )
    tcp = _TCP.pack(
        source_port, target_port, sequence, acknowledged if flags & _ACK else 0, 5 << 4, flags, _WINDOW, 0, 0
    )
    header = _ip_header(source, target, len(tcp) + length) + tcp
    seconds, nanoseconds = divmod(at_ns, 1_000_000_000)
    record = struct.pack("<IIII", seconds, nanoseconds, len(header) + len(payload), len(header) + length)
    return record + header + payload


def _ip_header(source: str, target: str, length: int) -> bytes:
    from_, to = _address(source), _address(target)
    if from_.version == to.version == 4:
        header = _IP4.pack(0x45, 0, 20 + length, 0, 0x4000, 64, _TCP_PROTOCOL, 0, from_.packed, to.packed)
        return header[:10] + _checksum(header) + header[12:]
    return _IP6.pack(6 << 28, length, _TCP_PROTOCOL, 64, _as_ip6(from_), _as_ip6(to))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:  # no address, but a name: of a transport that has none
        return ipaddress.IPv4Address("127.0.0.1")


def _as_ip6(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bytes:
    packed: bytes = address.packed
    return packed if address.version == 6 else bytes(10) + b"\xff\xff" + packed


def _checksum(header: bytes) -> bytes:
    total = sum(struct.unpack(">10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    checksum: int = ~total & 0xFFFF
    return checksum.to_bytes(2, "big")
