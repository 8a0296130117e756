"""DescribeConfigs: a resource that is named ten thousand times is described out of the same bytes."""

from __future__ import annotations

from typing import Any

import pytest

from pykbroker.api import describe_configs as handlers
from pykbroker.api.describe_configs import describe_configs
from pykbroker.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from pykbroker.protocol.compile import encode_parts
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource

from .api_node import ApiNode, in_virtual_time
from .turns_taken import LONGEST_TURN_S, Turns, handle


def named(type_: int, name: str, keys: list[str] | None = None) -> DescribeConfigsResource:
    return DescribeConfigsResource(resource_type=type_, resource_name=name, configuration_keys=keys)


def ask(node: ApiNode, *resources: DescribeConfigsResource, version: int = 4) -> Any:
    request = DescribeConfigsRequest(resources=list(resources), include_synonyms=True)
    return in_virtual_time(lambda: node.call(describe_configs, request, version)).results


def take_turns(node: ApiNode, resources: list[DescribeConfigsResource]) -> tuple[Any, Turns]:
    request = DescribeConfigsRequest(resources=resources, include_synonyms=True)
    return in_virtual_time(lambda: handle(node.broker, describe_configs, request, 4))


def test_a_broker_that_is_named_ten_thousand_times_is_described_once(
    node: ApiNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    find = handlers.broker_configs

    def count(layers: Any) -> Any:
        nonlocal calls
        calls += 1
        return find(layers)

    monkeypatch.setattr(handlers, "broker_configs", count)
    response, turns = take_turns(node, [named(BROKER_RESOURCE, "1")] * 10_000)
    assert calls == 1
    assert turns.longest_s < 0.25
    parts = encode_parts(response, 4)
    held = {id(part): len(part) for part in parts if isinstance(part, bytes)}
    assert sum(held.values()) < 3_000_000, "of an answer of a hundred megabytes"


def test_an_answer_ends_where_no_client_would_take_it(node: ApiNode) -> None:
    response, _ = take_turns(node, [named(BROKER_RESOURCE, "1")] * 10_000)
    errors = [each.error_code for each in response.results]
    described = errors.index(ErrorCode.INVALID_REQUEST)
    assert described > 1000
    assert set(errors[described:]) == {ErrorCode.INVALID_REQUEST}
    assert sum(map(len, encode_parts(response, 4))) < 101 << 20  # type: ignore[arg-type]


def test_a_resource_that_is_named_twice_is_described_twice_with_the_keys_of_each(node: ApiNode) -> None:
    node.create_topic("t", retention_ms="5000")
    first, second, whole, again = ask(
        node,
        named(TOPIC_RESOURCE, "t", ["retention.ms"]),
        named(TOPIC_RESOURCE, "t", ["segment.bytes", "segment.bytes", "nobody's"]),
        named(TOPIC_RESOURCE, "t"),
        named(TOPIC_RESOURCE, "t", []),
    )
    assert [(each.name, each.value) for each in first.configs] == [("retention.ms", "5000")]
    assert [each.name for each in second.configs] == ["segment.bytes"]
    assert whole.configs == again.configs
    assert len(whole.configs) > 20


def test_keys_that_nobody_knows_ask_for_nothing(node: ApiNode) -> None:
    node.create_topic("t")
    (described,) = ask(node, named(TOPIC_RESOURCE, "t", ["nobody's"]))
    assert (described.error_code, described.configs) == (0, [])


@pytest.mark.parametrize("version", range(1, 5))
def test_topics_with_and_without_configurations_of_their_own_differ(node: ApiNode, version: int) -> None:
    node.create_topic("plain")
    node.create_topic("changed", retention_ms="5000")
    plain, changed = ask(node, named(TOPIC_RESOURCE, "plain"), named(TOPIC_RESOURCE, "changed"), version=version)
    differing = [
        (one.name, other.value) for one, other in zip(plain.configs, changed.configs, strict=True) if one != other
    ]
    assert differing == [("retention.ms", "5000")]


def test_many_groups_share_the_loop(node: ApiNode) -> None:
    response, turns = take_turns(node, [named(GROUP_RESOURCE, f"g{number}") for number in range(20_000)])
    assert len(response.results) == 20_000
    assert turns.longest_s < LONGEST_TURN_S
    assert len(turns.durations_s) > 20


def test_many_keys_share_the_loop(node: ApiNode) -> None:
    node.create_topic("t")
    resource = named(TOPIC_RESOURCE, "t", [f"k{number}" for number in range(100_000)])
    response, turns = take_turns(node, [resource])
    assert len(response.results) == 1
    assert turns.longest_s < LONGEST_TURN_S
    assert len(turns.durations_s) > 10


def test_an_internal_key_that_a_topic_has_can_be_asked_for(node: ApiNode) -> None:
    node.create_topic("t", internal_segment_bytes="300")
    node.create_topic("u")
    key = "internal.segment.bytes"
    has, lacks = ask(node, named(TOPIC_RESOURCE, "t", [key]), named(TOPIC_RESOURCE, "u", [key]))
    assert [(each.name, each.value) for each in has.configs] == [(key, "300")]
    assert lacks.configs == []


@pytest.mark.parametrize(
    ("type_", "name", "key", "words"),
    [
        (TOPIC_RESOURCE, "t", "retention.ms", "How long records are kept"),
        (BROKER_RESOURCE, "1", "log.retention.ms", "How long records are kept"),
        (BROKER_RESOURCE, "1", "num.io.threads", "no effect"),
        (GROUP_RESOURCE, "g", "consumer.session.timeout.ms", "After so long without a heartbeat"),
    ],
)
def test_what_a_key_means_is_told_where_it_is_asked_for(
    node: ApiNode, type_: int, name: str, key: str, words: str
) -> None:
    node.create_topic("t")

    def documentation(*, asked: bool, version: int = 4) -> str | None:
        request = DescribeConfigsRequest(resources=[named(type_, name, [key])], include_documentation=asked)
        [row] = in_virtual_time(lambda: node.call(describe_configs, request, version)).results[0].configs
        text: str | None = row.documentation
        return text

    assert words in (documentation(asked=True) or "")
    assert documentation(asked=False) is None


def test_every_key_of_a_broker_is_explained(node: ApiNode) -> None:
    request = DescribeConfigsRequest(resources=[named(BROKER_RESOURCE, "1")], include_documentation=True)
    rows = in_virtual_time(lambda: node.call(describe_configs, request, 4)).results[0].configs
    assert len(rows) > 300
    assert [row.name for row in rows if not row.documentation] == []
