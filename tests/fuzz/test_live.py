"""Bent requests to a node with a topic, groups and a transactional id: it stays as it is, whatever they ask.

Requests are made from the schemas (`live`), or are steps of stories of which some are changed, left out or repeated, as
the differential tests draw them: those get far into share groups, streams groups, transactions and telemetry.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import pytest

from compat_tests.differential.asking import Addresses, Asker
from compat_tests.differential.making import drawn
from compat_tests.differential.nodes import PROPERTIES, has_share_groups
from compat_tests.ports import take_ports
from compat_tests.wire import Wire
from pykbroker.config.streams_groups import TOPOLOGY_PLUGIN
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import FeatureUpdateKey, UpdateFeaturesRequest
from pykbroker.protocol.messages.groups import JoinGroupRequest, JoinGroupRequestProtocol
from pykbroker.protocol.messages.share_groups import ShareGroupHeartbeatRequest
from pykbroker.protocol.messages.transactions import InitProducerIdRequest
from pykbroker.testing import Broker, hosted_node
from tests.groups.streams_requests import streams_joining, subtopology, topology

from .live import GROUP, TOPIC, TRANSACTIONAL_ID, Learned, ask, bent_requests, served_versions

SEED = int(os.environ.get("PYKBROKER_FUZZ_SEED", "1"))
ROUNDS = int(os.environ.get("PYKBROKER_FUZZ_ROUNDS", "3"))
HOST = "127.0.0.1"


SEQUENCES = int(os.environ.get("PYKBROKER_FUZZ_SEQUENCES", "2"))
LEVEL_OF_4_4: Final = 33
_UPGRADE: Final = 1
_EVERYTHING: Final = {"num.partitions": "3", TOPOLOGY_PLUGIN: "memory", "auto.create.topics.enable": "true"}


@contextmanager
def running(monkeypatch: pytest.MonkeyPatch, more: Mapping[str, str]) -> Iterator[Addresses]:
    """Run a node that serves all there is, what clients push among it."""
    monkeypatch.setattr(hosted_node, "Environment", partial(hosted_node.Environment, takes_telemetry=True))
    port, controller_port = take_ports(2)
    listeners = f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}"
    properties = {"listeners": listeners, "controller.listener.names": "CONTROLLER", **_EVERYTHING, **more}
    with Broker(properties) as broker:
        broker.create_topic(TOPIC, partitions=3)
        yield Addresses((HOST, port), (HOST, controller_port))


@pytest.fixture(params=("4.3", "4.4"))
def addresses(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Addresses]:
    """A node of a cluster with the rules of that release, and with groups that have members."""
    with running(monkeypatch, {}) as found:
        with Wire(found.broker) as wire:
            if request.param == "4.4":
                update = FeatureUpdateKey(feature="metadata.version", max_version_level=LEVEL_OF_4_4)
                update.upgrade_type = _UPGRADE
                answer: Any = wire.call(UpdateFeaturesRequest(feature_updates=[update], timeout_ms=10_000), 1)
                assert answer.error_code == ErrorCode.NONE, answer
            protocol = JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")
            wire.call(JoinGroupRequest(group_id=GROUP, protocol_type="consumer", protocols=[protocol]), 5)
            wire.call(InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=10_000), 4)
            wire.call(ShareGroupHeartbeatRequest(group_id="share", member_id="1", subscribed_topic_names=[TOPIC]), 1)
            wire.call(streams_joining("streams", "1", topology(subtopology("1", TOPIC))), 1)
        yield found


@contextmanager
def naming(what: object) -> Iterator[None]:
    """Say of a failure what it belongs to."""
    try:
        yield
    except BaseException as error:
        error.add_note(str(what))
        raise


def no_errors(caplog: pytest.LogCaptureFixture, since: int) -> None:
    errors = [each for each in caplog.records[since:] if each.levelno >= logging.ERROR or each.exc_info]
    assert not errors, [each.getMessage() for each in errors]


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
        with naming(f"seed {SEED}: {asked}"):
            no_errors(caplog, logged)
    assert outcomes["answered"] > outcomes["closed"]
    # Others are served as before.
    for each in addresses:
        assert served_versions(each)


@pytest.mark.parametrize("scene", PROPERTIES)
def test_no_story_however_it_is_changed_is_an_error_of_the_nodes(
    scene: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with running(monkeypatch, PROPERTIES[scene]) as addresses:
        asker = Asker(addresses)
        asker.prepare(share_groups=has_share_groups(scene))
        for sequence in drawn(SEQUENCES, SEED, SEED * 100 % 90_000, scene):
            logged = len(caplog.records)
            with naming(f"seed {SEED}: {sequence.to_json()}"):
                answers = asker.ask(sequence)
                no_errors(caplog, logged)
            assert len(answers) == len(sequence.steps)
        asker.close()
        for each in addresses:
            assert served_versions(each)
