"""The keys of groups: what bounds them, what a group has in the end, and where a share group begins."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.config import BrokerConfig, ConfigurationError, broker_keys, check_group_configs, group_keys
from pykbroker.config.dead_letters import DeadLetterSettings, dead_letter_settings
from pykbroker.config.group_bounds import BOUNDS, Bound, keys_of
from pykbroker.config.group_keys import GROUP_KEYS_OF_4_4, broker_key, broker_keys_of_groups, group_values
from pykbroker.config.offset_reset import OffsetReset, offset_reset

BROKER = BrokerConfig({})
OF_BROKER = {name: BROKER.text(name) or "" for name in broker_keys_of_groups()}


def refusal(name: str, text: str, broker_values: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigurationError) as refused:
        check_group_configs({name: text}, OF_BROKER | (broker_values or {}))
    return str(refused.value)


def test_bounds_are_keys_of_the_broker_and_of_groups() -> None:
    assert {key for bound in BOUNDS for key in keys_of(bound)} <= set(broker_keys())
    assert {bound.name for bound in BOUNDS} <= set(group_keys())


@pytest.mark.parametrize("name", [name for name in group_keys() if broker_key(name)])
def test_a_group_without_a_value_has_the_brokers(name: str) -> None:
    default = broker_key(name)
    assert default is not None
    assert broker_keys()[default].default == group_keys()[name].default
    if group_keys()[name].type in ("int", "long"):
        assert group_values({}, BROKER).int(name) == BROKER.int(default)


def test_a_group_without_a_list_has_the_brokers() -> None:
    key = "streams.rack.aware.assignment.tags"
    broker = BrokerConfig({f"group.{key}": "zone, rack"})
    assert group_values({}, BROKER).list(key) == []
    assert group_values({}, broker).list(key) == ["zone", "rack"]
    assert group_values({key: " cluster,zone"}, broker).list(key) == ["cluster", "zone"]
    assert group_values({key: ""}, broker).list(key) == []


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        (
            "share.session.timeout.ms",
            "60001",
            "share.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
        ),
        ("streams.num.standby.replicas", "3", "streams.num.standby.replicas must be less than or equal to 2"),
        ("streams.num.warmup.replicas", "21", "streams.num.warmup.replicas must be less than or equal to 20"),
        (
            "streams.task.offset.interval.ms",
            "14999",
            "streams.task.offset.interval.ms must be greater than or equal to 15000",
        ),
        (
            "streams.rack.aware.assignment.tags",
            "zone , rack,zone",
            "streams.rack.aware.assignment.tags must not contain duplicate tag keys.",
        ),
        (
            "streams.rack.aware.assignment.tags",
            "zone,,rack",
            "Configuration 'streams.rack.aware.assignment.tags' values must not be empty.",
        ),
        (
            "streams.assignor.name",
            "mine",
            "streams.assignor.name 'mine' is not a registered task assignor. Registered assignors are: [sticky].",
        ),
    ],
)
def test_a_group_of_4_4_may_have_what_the_broker_allows(name: str, text: str, reason: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_group_configs({name: text}, OF_BROKER, is_of_4_4=True)
    assert str(refused.value) == reason
    if name in GROUP_KEYS_OF_4_4:
        assert refusal(name, text) == f"Unknown group config name: {name}"
    check_group_configs({"streams.rack.aware.assignment.tags": "a,b"}, OF_BROKER, is_of_4_4=True)
    check_group_configs({"streams.assignor.name": "sticky"}, OF_BROKER, is_of_4_4=True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("group.streams.assignors", "mine"),
        ("group.streams.assignors", "sticky,org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor"),
        ("group.streams.rack.aware.assignment.tags", "a, b,a"),
        ("group.streams.topology.description.plugin.class", "com.example.Mine"),
        ("group.streams.num.warmup.replicas", "21"),
        ("group.streams.task.offset.interval.ms", "14999"),
    ],
)
def test_a_broker_that_could_not_serve_a_name_does_not_start(name: str, text: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(name)):
        BrokerConfig({name: text})


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        (
            "share.heartbeat.interval.ms",
            "4999",
            "must be greater than or equal to group.share.min.heartbeat.interval.ms",
        ),
        ("share.session.timeout.ms", "60001", "must be less than or equal to group.share.max.session.timeout.ms"),
        ("share.delivery.count.limit", "11", "must be less than or equal to group.share.max.delivery.count.limit"),
        ("share.delivery.count.limit", "1", "Value must be at least 2"),
        ("share.record.lock.duration.ms", "999", "Value must be at least 1000"),
        (
            "share.record.lock.duration.ms",
            "14999",
            "must be greater than or equal to group.share.min.record.lock.duration.ms",
        ),
        (
            "share.partition.max.record.locks",
            "4001",
            "must be less than or equal to group.share.max.partition.max.record.locks",
        ),
        ("share.assignment.interval.ms", "15001", "less than or equal to group.share.max.assignment.interval.ms"),
        ("share.isolation.level", "READ_COMMITTED", "String must be one of: read_committed, read_uncommitted"),
        ("share.renew.acknowledge.enable", "yes", "Expected value to be either true or false"),
        ("share.assignor.offload.enable", "true", "Unknown group config name: share.assignor.offload.enable"),
        ("streams.num.standby.replicas", "3", "must be less than or equal to group.streams.max.standby.replicas"),
        ("streams.num.standby.replicas", "-1", "Value must be at least 0"),
        ("streams.session.timeout.ms", "1000", "must be greater than or equal to group.streams.min.session.timeout.ms"),
    ],
)
def test_a_group_may_have_what_the_broker_allows(name: str, text: str, reason: str) -> None:
    assert reason in refusal(name, text)


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_a_heartbeat_is_shorter_than_a_session(kind: str) -> None:
    most = {f"group.{kind}.max.heartbeat.interval.ms": "90000"}
    expected = f"{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms"
    assert refusal(f"{kind}.heartbeat.interval.ms", "45000", most) == expected
    check_group_configs({f"{kind}.heartbeat.interval.ms": "44999"}, OF_BROKER | most)


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.name)
def test_a_value_counts_within_the_bounds_that_the_broker_has_now(bound: Bound) -> None:
    name, least, most = bound.name, bound.least, bound.most
    assert group_values({name: "2147483647"}, BROKER).int(name) == (BROKER.int(most) if most else 2147483647)
    assert group_values({name: "0"}, BROKER).int(name) == (BROKER.int(least) if least else 0)


def test_a_change_of_the_broker_at_run_time_counts_for_groups_without_a_value() -> None:
    dynamic = {"group.share.assignment.interval.ms": "7"}
    assert group_values({}, BROKER, dynamic).int("share.assignment.interval.ms") == 7
    own = {"share.assignment.interval.ms": "9"}
    assert group_values(own, BROKER, dynamic).int("share.assignment.interval.ms") == 9


def test_values_that_are_no_numbers() -> None:
    values = group_values({}, BROKER)
    assert values.str("share.isolation.level") == "read_uncommitted"
    assert values.bool("share.renew.acknowledge.enable")
    assert values.offset_reset == OffsetReset("latest")
    own = {"share.renew.acknowledge.enable": " False", "share.auto.offset.reset": "by_duration:P1D"}
    assert not group_values(own, BROKER).bool("share.renew.acknowledge.enable")
    assert group_values(own, BROKER).offset_reset == OffsetReset("by_duration", 86_400_000)


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("PT1H30M", 5_400_000),
        ("pt0.5s", 500),
        ("P1DT2H3M4.005S", 93_784_005),
        ("PT-1H61M", 60_000),
        ("-PT-2S", 2_000),
        ("PT0,000000001S", 1),
        ("PT1.S", 1_000),
        ("-PT0S", 0),
        ("P0D", 0),
        ("PT9223372036854775807S", 9223372036854775807_000),
    ],
)
def test_durations_are_those_of_java(text: str, expected_ms: int) -> None:
    assert offset_reset(f"by_duration:{text}") == OffsetReset("by_duration", expected_ms)


@pytest.mark.parametrize(
    "text",
    [
        *("", "P", "PT", "P1DT", "1D", "P1Y", "P1M", "PT1", "PT.5S", "-PT1S", "PT-0.5S", "P1D ", " P1D", "P\u0663D"),
        *("PT1.0000000001S", "PT9223372036854775808S", f"P{'9' * 5000}D"),
    ],
)
def test_what_is_no_duration_or_goes_forward_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        offset_reset(f"by_duration:{text}")


@pytest.mark.parametrize("text", ["none", "Latest", "by_duration", " latest", ""])
def test_another_way_to_begin_is_refused_in_kafkas_words(text: str) -> None:
    name = "share.auto.offset.reset"
    assert refusal(name, text) == (
        f"Invalid value {text} for configuration {name}: Invalid value `{text}` for configuration {name}. The value "
        "must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    )


def test_a_place_is_a_timestamp_for_list_offsets() -> None:
    assert offset_reset("earliest").timestamp(5) == -2
    assert offset_reset("latest").timestamp(5) == -1
    assert offset_reset("by_duration:PT2S").timestamp(5_000) == 3_000
    assert offset_reset("by_duration:P99999D").timestamp(5_000) == 0


@given(st.integers(0, 10**6), st.integers(-50, 50), st.integers(-(10**4), 10**4), st.integers(0, 999))
def test_parts_of_a_duration_add_up(days: int, hours: int, seconds: int, millis: int) -> None:
    sign = -1 if seconds < 0 else 1
    expected = days * 86_400_000 + hours * 3_600_000 + seconds * 1000 + sign * millis
    text = f"by_duration:P{days}DT{hours}H{seconds}.{millis:03}S"
    if expected >= 0:
        assert offset_reset(text) == OffsetReset("by_duration", expected)
    else:
        with pytest.raises(ValueError, match="negative"):
            offset_reset(text)


@pytest.mark.parametrize("topic", ["__dlq", "__consumer_offsets"])
def test_dead_letters_go_to_no_internal_topic(topic: str) -> None:
    key = "errors.deadletterqueue.topic.name"
    with pytest.raises(ConfigurationError) as refused:
        check_group_configs({key: topic}, OF_BROKER)
    assert str(refused.value) == f"{key}: DLQ topic name must not start with '__'"
    check_group_configs({key: f"dlq.{topic}"}, OF_BROKER)
    check_group_configs({key: ""}, OF_BROKER)


def test_the_settings_of_dead_letters_are_the_groups_and_the_brokers() -> None:
    def settings(dynamic: dict[str, str], **of_group: str) -> DeadLetterSettings:
        overrides = {f"errors.deadletterqueue.{name.replace('_', '.')}": text for name, text in of_group.items()}
        return dead_letter_settings(group_values(overrides, BROKER, dynamic), BROKER, dynamic)

    assert settings({}) == DeadLetterSettings("", copies_records=False, creates_topic=False, prefix="dlq.")
    changed = {
        "errors.deadletterqueue.auto.create.topics.enable": " TRUE ",
        "errors.deadletterqueue.topic.name.prefix": "",
    }
    assert settings(changed, topic_name="dlq.x", copy_record_enable="true") == DeadLetterSettings(
        "dlq.x", copies_records=True, creates_topic=True, prefix=""
    )
