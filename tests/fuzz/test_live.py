"""Bent requests to a node with a topic, a group and a transactional id: it stays as it is, whatever they ask."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from compat_tests.ports import take_ports
from compat_tests.wire import Wire
from pykbroker.protocol.messages.groups import JoinGroupRequest, JoinGroupRequestProtocol
from pykbroker.protocol.messages.transactions import InitProducerIdRequest
from pykbroker.testing import Broker

from .live import GROUP, TOPIC, TRANSACTIONAL_ID, Learned, ask, bent_requests, served_versions

SEED = int(os.environ.get("PYKBROKER_FUZZ_SEED", "1"))
ROUNDS = int(os.environ.get("PYKBROKER_FUZZ_ROUNDS", "3"))
HOST = "127.0.0.1"


class Addresses(NamedTuple):
    broker: tuple[str, int]
    controllers: tuple[str, int]


@pytest.fixture
def addresses() -> Iterator[Addresses]:
    port, controller_port = take_ports(2)
    listeners = f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}"
    properties = {"listeners": listeners, "controller.listener.names": "CONTROLLER", "num.partitions": 3}
    with Broker(properties) as broker:
        broker.create_topic(TOPIC, partitions=3)
        with Wire((HOST, port)) as wire:
            protocol = JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")
            wire.call(JoinGroupRequest(group_id=GROUP, protocol_type="consumer", protocols=[protocol]), 5)
            wire.call(InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=10_000), 4)
        yield Addresses((HOST, port), (HOST, controller_port))


@pytest.mark.parametrize("listener", Addresses._fields)
def test_no_request_is_an_error_of_the_nodes(
    addresses: Addresses, listener: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = getattr(addresses, listener)
    served, learned = served_versions(address), Learned()
    outcomes: Counter[str] = Counter()
    for request, version, frame in bent_requests(SEED, served, ROUNDS, learned):
        logged = len(caplog.records)
        asked = ask(address, request, version, frame, learned)
        outcomes[asked.outcome] += 1
        errors = [each for each in caplog.records[logged:] if each.levelno >= logging.ERROR or each.exc_info]
        assert not errors, f"seed {SEED}: {asked}, and the log says {[each.getMessage() for each in errors]}"
    assert outcomes["answered"] > outcomes["closed"]
    # Others are served as before.
    for each in addresses:
        assert served_versions(each)
