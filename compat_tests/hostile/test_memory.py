"""What an attacker may make a broker allocate: rows 5, 20 and 23, measured on pykbroker alone."""

import os
import struct
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from compat_tests.brokers import BrokerProcess, answers_api_versions
from compat_tests.waiting import until
from compat_tests.wire import Closed, Wire, header, uvarint

MIB = 2**20
METADATA = 3


def assert_closed_by(broker: BrokerProcess, frame: bytes) -> None:
    with Wire(broker.address) as wire:
        try:
            wire.send_frame(frame)
        except Closed:
            return
        with pytest.raises(Closed):
            wire.receive()


def resident_mib(broker: BrokerProcess) -> float:
    return float(psutil.Process(broker.pid).memory_info().rss) / MIB


def peak_resident_mib(broker: BrokerProcess) -> float:
    lines = Path(f"/proc/{broker.pid}/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(peak) / 1024


def test_announced_bytes_that_never_come_cost_no_memory(own_broker: BrokerProcess) -> None:
    before = resident_mib(own_broker)
    with ExitStack() as connections:
        for _ in range(20):
            wire = connections.enter_context(Wire(own_broker.address))
            wire.send_raw(struct.pack(">i", 100 * MIB))
        for _ in range(20):
            assert answers_api_versions(own_broker.address)
        assert resident_mib(own_broker) - before < 10


def test_memory_grows_with_the_bytes_that_came_and_not_with_those_announced(own_broker: BrokerProcess) -> None:
    before = resident_mib(own_broker)
    with Wire(own_broker.address) as wire:
        wire.send_raw(struct.pack(">i", 100 * MIB) + os.urandom(4 * MIB))
        for _ in range(20):
            assert answers_api_versions(own_broker.address)
        assert resident_mib(own_broker) - before < 20


def test_many_large_requests_that_do_not_come_take_bounded_memory(own_broker: BrokerProcess) -> None:
    """`queued.max.request.bytes` has a default: 350 times a megabyte of an announced frame, and an honest client."""
    before = resident_mib(own_broker)
    with ExitStack() as connections:
        for _ in range(350):
            wire = connections.enter_context(Wire(own_broker.address))
            with suppress(Closed, TimeoutError):  # as long as the broker does not read, the system takes what it may
                wire.send_raw_for(struct.pack(">i", 100 * MIB) + bytes(MIB), deadline_s=0.02)
        for _ in range(20):
            assert answers_api_versions(own_broker.address)
        until(lambda: "bytes of a request" in own_broker.log_text(), "a line that says who was closed")
        assert peak_resident_mib(own_broker) - before < 200


def test_millions_of_unknown_tagged_fields_close_the_connection(own_broker: BrokerProcess) -> None:
    """Ten megabytes of header, in two bytes a field."""
    count = 5_200_000
    before = peak_resident_mib(own_broker)
    tags = uvarint(count) + b"".join(uvarint(tag) + b"\x00" for tag in range(100)) + b"\x7f\x00" * (count - 100)
    assert_closed_by(own_broker, header(METADATA, 9, tags=tags) + b"\x00\x00\x00\x00\x00")
    assert peak_resident_mib(own_broker) - before < 60
    assert answers_api_versions(own_broker.address)


def test_millions_of_empty_topic_names_do_not_become_millions_of_objects(own_broker: BrokerProcess) -> None:
    """Eight megabytes of Metadata request, in two bytes a topic."""
    count = 4_200_000
    before = peak_resident_mib(own_broker)
    assert_closed_by(own_broker, header(METADATA, 4) + struct.pack(">i", count) + bytes(2 * count) + b"\x00")
    assert peak_resident_mib(own_broker) - before < 100
    assert answers_api_versions(own_broker.address)
