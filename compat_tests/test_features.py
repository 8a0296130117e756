"""Levels of features: who tells them, and how they change (KIP-584)."""

from collections.abc import Callable

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.brokers import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse

from .answers import TestAnswers
from .apache_kafka.tools import Tool, run_tool
from .brokers import Broker, BrokerProcess
from .conftest import FreshBroker
from .waiting import until
from .wire import Wire

UPGRADE, SAFE_DOWNGRADE = 1, 2
OURS = ("group.version", "transaction.version")


def finalized(broker: Broker) -> dict[str, int]:
    return {name: level for name, level in finalized_at(broker.address).items() if name in OURS}


def finalized_at(address: tuple[str, int]) -> dict[str, int]:
    request = ApiVersionsRequest(client_software_name="compat", client_software_version="1")
    with Wire(address) as wire:
        answer = wire.call(request, 4)
    assert isinstance(answer, ApiVersionsResponse)
    return {each.name: each.max_version_level for each in answer.finalized_features}


def update(broker: Broker, name: str, level: int, type_: int, version: int = 2) -> tuple[int, str | None, object]:
    change = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=type_)
    with Wire(broker.address) as wire:
        answer = wire.call(UpdateFeaturesRequest(feature_updates=[change]), version)
    assert isinstance(answer, UpdateFeaturesResponse)
    return answer.error_code, answer.error_message, [(each.feature, each.error_code) for each in answer.results]


def test_levels_go_up_and_down(fresh_broker: FreshBroker, answers: TestAnswers) -> None:
    broker = fresh_broker({})
    until(lambda: finalized(broker) == {"group.version": 1, "transaction.version": 2}, "the levels of a new cluster")
    answers.same("unasked", update(broker, "group.version", 0, UPGRADE))
    answers.same("too high", update(broker, "transaction.version", 3, UPGRADE))
    answers.same("unknown", update(broker, "nosuch.version", 1, UPGRADE))
    answers.same("down", update(broker, "transaction.version", 1, SAFE_DOWNGRADE))
    until(lambda: finalized(broker)["transaction.version"] == 1, "the level is lower")
    answers.same("not up that way", update(broker, "transaction.version", 2, SAFE_DOWNGRADE))
    answers.same("up", update(broker, "transaction.version", 2, UPGRADE, version=1))
    until(lambda: finalized(broker)["transaction.version"] == 2, "the level is back")
    answers.same("off", update(broker, "group.version", 0, SAFE_DOWNGRADE))
    until(lambda: finalized(broker) == {"transaction.version": 2}, "the feature is off")


def test_the_listeners_of_brokers_and_of_controllers_tell_the_level_of_kraft_version(
    fresh_process: Callable[..., BrokerProcess],
) -> None:
    node = fresh_process()
    listeners = [("127.0.0.1", port) for port in (node.port, node.controller_port)]
    assert [finalized_at(each).get("kraft.version") for each in listeners] == [None, None]
    until(lambda: update(node, "kraft.version", 1, UPGRADE)[0] == ErrorCode.NONE, "the voter has told of itself")
    assert [finalized_at(each).get("kraft.version") for each in listeners] == [1, 1]


@pytest.mark.java
def test_kafkas_feature_command_upgrades_and_downgrades(fresh_broker: FreshBroker, answers: TestAnswers) -> None:
    broker = fresh_broker({})

    def command(*arguments: str) -> str:
        return run_tool(Tool.FEATURES, "--bootstrap-server", broker.bootstrap, *arguments).stdout

    answers.same("downgrade", command("downgrade", "--feature", "group.version=0"))
    answers.same("upgrade", command("upgrade", "--feature", "group.version=1"))
    described = [line for line in command("describe").splitlines() if line.split("\t")[0].endswith(OURS)]
    answers.same("describe", [line.split("Epoch")[0] for line in described])
