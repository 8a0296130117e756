"""Capture files are read by a parser of our own, which knows nothing of the writer, and by tshark."""

from __future__ import annotations

import ipaddress
import struct
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pykbroker.control.journal.exchange import Exchange, Outcome
from pykbroker.control.journal.journal import Journal
from pykbroker.control.journal.pcap import pcap
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse

from .entries import PEER, START_NS, batch, begin, heartbeat, new_journal, record
from .test_decoding import produce

IP6 = replace(PEER, number=2, host="::1", broker_host="::1", port=50_001)
MIXED = replace(PEER, number=3, host="::1", broker_host="127.0.0.1", port=50_002)
SYN, ACK, PSH = 0x02, 0x10, 0x08


@dataclass(frozen=True)
class Packet:
    at_ns: int
    source: tuple[str, int]
    target: tuple[str, int]
    sequence: int
    acknowledged: int
    flags: int
    payload: bytes
    length: int


def exchanges_of(journal: Journal) -> list[Exchange]:
    return [each for each in journal.entries() if isinstance(each, Exchange)]


def packets_of(exchanges: Iterable[Exchange]) -> list[Packet]:
    data = b"".join(pcap(exchanges))
    magic, major, minor, _, _, _, link = struct.unpack_from("<IHHiIII", data)
    assert (magic, major, minor, link) == (0xA1B23C4D, 2, 4, 101)
    position, packets = 24, []
    while position < len(data):
        seconds, nanoseconds, captured, length = struct.unpack_from("<IIII", data, position)
        assert captured <= length
        assert nanoseconds < 1_000_000_000
        ip = data[position + 16 : position + 16 + captured]
        assert len(ip) == captured
        packets.append(parse(seconds * 1_000_000_000 + nanoseconds, ip, length))
        position += 16 + captured
    return packets


def parse(at_ns: int, ip: bytes, length: int) -> Packet:
    if ip[0] >> 4 == 4:
        assert ip[0] == 0x45
        assert int.from_bytes(ip[2:4], "big") == length
        assert ip[9] == 6
        assert checksum(ip[:20]) == 0, "over a header with its checksum"
        addresses, header = (ip[12:16], ip[16:20]), 20
    else:
        assert ip[0] >> 4 == 6
        assert int.from_bytes(ip[4:6], "big") + 40 == length
        assert ip[6] == 6
        addresses, header = (ip[8:24], ip[24:40]), 40
    tcp = ip[header:]
    ports = struct.unpack_from(">HH", tcp)
    sequence, acknowledged = struct.unpack_from(">II", tcp, 4)
    assert tcp[12] >> 4 == 5
    source, target = (
        (str(ipaddress.ip_address(address)), port) for address, port in zip(addresses, ports, strict=True)
    )
    return Packet(at_ns, source, target, sequence, acknowledged, tcp[13], tcp[20:], length - header - 20)


def checksum(header: bytes) -> int:
    total = sum(struct.unpack(">10H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def streams_of(packets: Iterable[Packet]) -> dict[tuple[tuple[str, int], tuple[str, int]], bytes]:
    """Put together what each end sent, as a receiver does, and check every number on the way."""
    streams: dict[tuple[tuple[str, int], tuple[str, int]], bytearray] = {}
    expected: dict[tuple[tuple[str, int], tuple[str, int]], int] = {}
    for packet in packets:
        way, back = (packet.source, packet.target), (packet.target, packet.source)
        if packet.flags & SYN:
            assert way not in expected, "one handshake for each connection"
            expected[way] = packet.sequence + 1
            streams[way] = bytearray()
        else:
            assert packet.sequence == expected[way]
            expected[way] = (packet.sequence + packet.length) % (1 << 32)
        if packet.flags & ACK:
            assert packet.acknowledged == expected[back]
        streams[way] += packet.payload + bytes(packet.length - len(packet.payload))
    return {way: bytes(stream) for way, stream in streams.items()}


def frames_of(stream: bytes) -> list[bytes]:
    frames, position = [], 0
    while position < len(stream):
        (size,) = struct.unpack_from(">i", stream, position)
        frames.append(stream[position + 4 : position + 4 + size])
        assert len(frames[-1]) == size
        position += 4 + size
    return frames


CLIENT, BROKER = ("127.0.0.1", 40_000), ("127.0.0.1", 9092)


def test_the_frames_of_a_connection_are_its_stream() -> None:
    journal = new_journal()
    exchanges = [
        heartbeat(journal),
        record(journal, produce(("t", [batch(b"x" * 62_000)])), None, 9),
        heartbeat(journal),
    ]
    packets = packets_of(exchanges)
    assert [each.flags for each in packets[:3]] == [SYN, SYN | ACK, ACK]
    assert packets[0].at_ns == START_NS
    streams = streams_of(packets)
    assert frames_of(streams[CLIENT, BROKER]) == [each.request for each in exchanges]
    assert frames_of(streams[BROKER, CLIENT]) == [exchanges[0].response, exchanges[2].response]


def test_connections_have_streams_of_their_own() -> None:
    journal = new_journal()
    for peer in (PEER, IP6, MIXED, PEER, IP6):
        heartbeat(journal, peer=peer)
    streams = streams_of(packets_of(exchanges_of(journal)))
    counts = {way[0]: len(frames_of(stream)) for way, stream in streams.items() if way[0][1] != 9092}
    assert counts == {CLIENT: 2, ("::1", 50_001): 2, ("::1", 50_002): 1}


def test_a_frame_that_is_cut_keeps_its_place() -> None:
    journal = new_journal()
    first = record(journal, produce(("t", [batch(b"x" * 300_000)])), None, 9)
    second = heartbeat(journal)
    packets = packets_of(exchanges_of(journal))
    assert any(each.length > len(each.payload) for each in packets)
    frames = frames_of(streams_of(packets)[CLIENT, BROKER])
    assert [len(frame) for frame in frames] == [first.request_bytes, len(second.request)]
    assert frames[0][:59_000] == first.request[:59_000]
    assert frames[1] == second.request


def test_what_waits_has_no_answer_yet() -> None:
    journal = new_journal()
    exchange = begin(journal, HeartbeatRequest(group_id="g"), 4)
    streams = streams_of(packets_of([exchange]))
    assert frames_of(streams[CLIENT, BROKER]) == [exchange.request]
    assert not streams[BROKER, CLIENT]


def test_a_clock_that_is_set_back_puts_no_answer_before_its_request() -> None:
    times = iter([START_NS, START_NS + 5, START_NS - 1_000, START_NS - 900])
    journal = Journal(lambda: next(times))
    heartbeat(journal)
    heartbeat(journal)
    packets = packets_of(exchanges_of(journal))
    assert [each.at_ns for each in packets] == sorted(each.at_ns for each in packets)
    streams_of(packets)


def test_sequence_numbers_go_round() -> None:
    journal = new_journal()
    exchange = begin(journal, HeartbeatRequest(group_id="g"), 4)
    exchange.request_bytes = (1 << 31) - 1
    journal.end(exchange, Outcome.NO_ANSWER)
    other = begin(journal, HeartbeatRequest(group_id="g"), 4)
    other.request_bytes = (1 << 31) - 1
    heartbeat(journal)
    last = packets_of(exchanges_of(journal))[-2:]
    assert last[0].sequence < 1 << 31
    assert last[1].acknowledged == (last[0].sequence + last[0].length) % (1 << 32)


@pytest.mark.tshark
def test_tshark_reads_it(tmp_path: Path) -> None:
    journal = new_journal()
    heartbeat(journal)
    record(journal, HeartbeatRequest(group_id="g"), HeartbeatResponse(error_code=27), 3, peer=IP6)
    record(journal, produce(("orders", [batch(b"x" * 62_000)])), None, 8)
    record(journal, produce(("orders", [batch(b"x" * 300_000)])), None, 8)
    heartbeat(journal)
    path = tmp_path / "journal.pcap"
    path.write_bytes(b"".join(pcap(exchanges_of(journal))))
    found = tshark(path, "-Y", "kafka", "-T", "fields", "-e", "kafka.api_key", "-e", "kafka.correlation_id")
    keys = [line.split("\t")[0] for line in found if line.split("\t")[0]]
    assert keys.count("12") >= 3
    assert keys.count("0") == 2
    assert not tshark(path, "-Y", "tcp.analysis.flags")


def tshark(path: Path, *arguments: str) -> list[str]:
    command = ["tshark", "-n", "-r", str(path), "-d", "tcp.port==9092,kafka", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.splitlines()
