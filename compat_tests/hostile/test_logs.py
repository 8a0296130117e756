"""What strangers may write into pykbroker's log: little, and never a line of their own."""

import pytest

from compat_tests.brokers import BrokerProcess, answers_api_versions
from compat_tests.waiting import until
from compat_tests.wire import Closed, Wire, header
from pykbroker.protocol.messages.groups import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from pykbroker.protocol.messages.topics import CreatableTopic

from .scene import Scene

FORGED = "2026-01-01 00:00:00,000 INFO forged"
METADATA = 3


def send_garbage(broker: BrokerProcess, data: bytes) -> None:
    with Wire(broker.address) as wire:
        wire.send_raw(data)
        with pytest.raises(Closed):
            wire.receive()


def test_a_flood_of_garbage_is_a_few_lines_of_log(own_broker: BrokerProcess) -> None:
    before = len(own_broker.log_text().splitlines())
    for _ in range(300):
        send_garbage(own_broker, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answers_api_versions(own_broker.address)
    assert 0 < len(own_broker.log_text().splitlines()) - before < 30


def test_a_client_id_cannot_forge_a_line_of_log(own_broker: BrokerProcess) -> None:
    """Of a malformed request, and of a member whose id the broker makes from it."""
    client_id = f"innocent\n{FORGED}\r{FORGED}\x1b[31m"
    frame = header(METADATA, 1, client_id=client_id.encode()) + b"\x00\x00\x00\x01\xff\xff"
    send_garbage(own_broker, len(frame).to_bytes(4, "big") + frame)
    group = Scene(own_broker).group()
    with Wire(own_broker.address) as wire:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=f"range\n{FORGED}", metadata=b"")],
            reason=f"because\n{FORGED}",
        )
        answer = wire.call(request, 3, client_id=client_id)
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code == 0
    until(lambda: group in own_broker.log_text(), "the group is in the log")
    assert_not_forged(own_broker)


def test_a_topic_name_cannot_forge_a_line_of_log(own_broker: BrokerProcess) -> None:
    topic = CreatableTopic(name=f"topic\n{FORGED}", num_partitions=1, replication_factor=1)
    assert Scene(own_broker).create(topic) == "INVALID_TOPIC_EXCEPTION"
    assert_not_forged(own_broker)


def test_a_group_name_cannot_forge_a_line_of_log(own_broker: BrokerProcess) -> None:
    Scene(own_broker).group()
    with Wire(own_broker.address) as wire:
        request = JoinGroupRequest(
            group_id=f"group\n{FORGED}",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        answer = wire.call(request, 3)
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code == 0
    assert_not_forged(own_broker)


def assert_not_forged(broker: BrokerProcess) -> None:
    log = broker.log_text()
    assert not [line for line in log.splitlines() if line.startswith(FORGED)], log
    assert "\x1b" not in log
