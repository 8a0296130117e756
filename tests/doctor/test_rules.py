"""From facts to findings: each rule, and the edges at which it says nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pykbroker.doctor.facts import AdvertisedAddress, BrokerSettings, Candidate, Directory, Quorum
from pykbroker.doctor.findings import MOST_NAMES, Severity, exit_code, some
from pykbroker.doctor.knocks import ListenerKind, Outcome
from pykbroker.doctor.rules.connecting import meaning
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.schema import Versions

from .cluster_facts import NOW_S, VERSIONS, failed, findings, group, healthy, ids, only, served, topic


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_healthy_cluster_has_none(brokers: int) -> None:
    facts = healthy(brokers)
    facts.topics = [topic("plain", replicas=range(1, brokers + 1))]
    facts.groups = [group(("Stable", 5, 9), ("Stable", 8, 12)), group(("Empty", 5, 5), ("Empty", 5, 5))]
    facts.quorum = Quorum(1, clock_ahead_ms=20, uncertain_ms=5)
    facts.directories = [Directory(1, "/data", None, 100, 50), Directory(2, "/data", None, None, None)]
    assert findings(facts) == []
    assert exit_code(findings(facts)) == 0


# The way in


@pytest.mark.parametrize("outcome", [each for each in Outcome if each is not Outcome.SERVED])
def test_each_way_to_fail_is_told_with_what_to_do(outcome: Outcome) -> None:
    facts = replace(healthy(), knocks=[failed(outcome)], entry=None, addresses=[], settings=[])
    found = only(facts)
    assert (found.id, found.severity, found.subject) == (f"bootstrap-{outcome}", Severity.ERROR, "kafka:9092")
    assert found.seen
    assert found.advice.endswith(".")


def test_one_bootstrap_server_of_several_that_fails_is_a_warning() -> None:
    facts = healthy()
    facts.knocks.append(failed(Outcome.REFUSED))
    assert (only(facts).severity, exit_code(findings(facts))) == (Severity.WARNING, 2)


@pytest.mark.parametrize(
    ("outcome", "kind", "advised"),
    [
        (Outcome.NEEDS_TLS, ListenerKind(True, False), "security.protocol=SSL,"),
        (
            Outcome.NEEDS_TLS,
            ListenerKind(True, True, ("PLAIN",)),
            "security.protocol=SASL_SSL, and sasl.mechanism of PLAIN",
        ),
        (Outcome.NEEDS_TLS, ListenerKind(True), "security.protocol=SSL or SASL_SSL"),
        (Outcome.NO_SASL, ListenerKind(False, False), "security.protocol=PLAINTEXT"),
        (Outcome.NEEDS_SASL, ListenerKind(False, True, ("PLAIN", "SCRAM-SHA-256")), "of PLAIN, SCRAM-SHA-256"),
    ],
)
def test_the_settings_that_fit_the_listener_are_named(outcome: Outcome, kind: ListenerKind, advised: str) -> None:
    assert advised in meaning(failed(outcome, kind=kind), "PLAINTEXT").advice


@pytest.mark.parametrize(
    ("days", "expected"), [(31, []), (29, ["certificate-ends-soon"]), (0, ["certificate-ends-soon"])]
)
def test_a_certificate_that_ends_soon(days: int, expected: list[str]) -> None:
    facts = healthy()
    entry = replace(facts.knocks[0], certificate_ends_s=NOW_S + days * 86_400 + 1)
    assert ids(replace(facts, knocks=[entry])) == expected


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (VERSIONS, []),
        ({ApiKey.PRODUCE: Versions(0, 7), ApiKey.FETCH: Versions(0, 10)}, []),
        ({ApiKey.PRODUCE: Versions(0, 6), ApiKey.FETCH: Versions(0, 8)}, ["broker-too-old"]),
    ],
)
def test_a_broker_of_kafka_2_0_is_too_old(versions: Any, expected: list[str]) -> None:
    facts = healthy()
    assert facts.entry is not None
    assert facts.entry.answer is not None
    entry = replace(facts.entry, answer=replace(facts.entry.answer, versions=versions))
    assert ids(replace(facts, knocks=[entry], entry=entry)) == expected


# Advertised addresses


def _advertised(**changes: Any) -> AdvertisedAddress:
    return replace(AdvertisedAddress(1, "kafka", 9092, failed(Outcome.UNRESOLVED), False, None), **changes)


def test_the_address_at_which_the_broker_answered_is_named_with_the_listener() -> None:
    facts = healthy()
    facts.settings = [BrokerSettings(1, {"advertised.listeners": "A://h:1,inner://Kafka:9092"}, frozenset(), True)]
    wrong = Candidate(served("127.0.0.1", 1, cluster_id="two"), False, None)
    other = Candidate(served("127.0.0.1", 2), True, False)
    right = Candidate(served("127.0.0.1", 19092), True, None)
    facts.addresses = [_advertised(candidates=(wrong, other, right))]
    found = only(facts)
    assert found.id == "advertised-unresolved"
    assert "127.0.0.1:9092 tells clients that broker 1 is at kafka:9092 (advertised.listeners, INNER)" in found.seen
    assert (
        "It answered at 127.0.0.1:19092: set advertised.listeners of broker 1 to INNER://127.0.0.1:19092."
        in found.advice
    )


def test_auto_is_advised_where_it_helps_alone() -> None:
    """A single broker of this make, at the port that it is advertised with."""
    facts = healthy()
    facts.settings = [BrokerSettings(1, {}, frozenset(), is_apache_kafka=False)]
    same = Candidate(served("127.0.0.1", 9092), True, True)
    mapped = Candidate(served("127.0.0.1", 19092), True, True)
    facts.addresses = [_advertised(candidates=(same,))]
    assert "or to auto, where no port is mapped" in only(facts).advice
    facts.addresses = [_advertised(candidates=(mapped,))]
    assert "auto" not in only(facts).advice


def test_where_nothing_was_found_what_was_tried_is_told() -> None:
    facts = healthy()
    facts.addresses = [_advertised(candidates=(Candidate(failed(Outcome.REFUSED, "localhost", 1), False, None),))]
    assert "It was not found at localhost:1 either." in only(facts).advice


def test_somebody_else_behind_the_address() -> None:
    facts = healthy()
    facts.addresses = [_advertised(knock=served("kafka", cluster_id="two"))]
    assert only(facts).id == "advertised-other-cluster"
    facts.addresses = [_advertised(knock=served("kafka"), is_same_cluster=True, is_node=False)]
    assert only(facts).id == "advertised-other-broker"


def test_two_brokers_at_one_address() -> None:
    facts = healthy(2)
    facts.addresses[1] = replace(facts.addresses[1], port=9092)
    assert only(facts).id == "advertised-shared"


def test_a_loopback_address_told_to_who_came_by_another_one() -> None:
    facts = healthy()
    entry = replace(served("10.0.0.7"), resolved=("10.0.0.7",))
    assert ids(replace(facts, knocks=[entry], entry=entry)) == ["advertised-loopback"]


def test_a_listener_on_which_no_broker_is_advertised() -> None:
    entry = served(brokers=0)
    assert ids(replace(healthy(), knocks=[entry], entry=entry, addresses=[])) == ["no-brokers"]


def test_addresses_that_there_was_no_time_for_are_no_finding() -> None:
    assert ids(replace(healthy(), addresses=[], settings=[])) == []


# Controllers, brokers, clocks


def test_no_controller_and_a_fenced_broker() -> None:
    facts = replace(healthy(), quorum=Quorum(None, "no answer"), fenced=[3])
    assert ids(facts) == ["no-controller", "broker-fenced"]


@pytest.mark.parametrize(
    ("ahead_ms", "uncertain_ms", "seen"),
    [(9_000, 5, None), (30_000, 25_000, None), (61_000, 1_000, "60 s ahead of"), (-61_000, 1_000, "60 s behind")],
)
def test_clocks_that_are_apart_beyond_doubt(ahead_ms: int, uncertain_ms: int, seen: str | None) -> None:
    facts = replace(healthy(), quorum=Quorum(1, clock_ahead_ms=ahead_ms, uncertain_ms=uncertain_ms))
    assert ids(facts) == ([] if seen is None else ["clock-skew"])
    assert seen is None or seen in only(facts).seen


# Partitions


def test_partitions_that_are_offline_short_or_behind() -> None:
    facts = healthy(3)
    facts.topics = [
        topic("gone", [], replicas=[2], leader=None),
        topic("short", [1], replicas=[1, 2], min_isr=2),
        topic("behind", [1, 2], replicas=[1, 2, 3]),
        topic("elsewhere", [2], [2], replicas=[2, 3], leader=None, error="LISTENER_NOT_FOUND"),
    ]
    found = {each.id: each for each in findings(facts)}
    assert found["partition-offline"].seen == "no leader: gone-0"
    assert found["partition-under-min-isr"].seen.endswith(": short-0")
    assert found["partition-under-replicated"].seen.endswith(": short-0, behind-0")
    assert found["listener-missing"].subject == "2 partitions"
    assert found["listener-missing"].seen.endswith(": elsewhere-0, elsewhere-1")


def test_names_are_bounded() -> None:
    assert some(range(MOST_NAMES)).endswith("8, 9")
    assert some(range(MOST_NAMES + 5)).endswith("8, 9 and 5 more")


# Settings of topics and brokers


def test_settings_that_protect_less_than_they_say() -> None:
    facts = healthy(3)
    facts.topics = [
        topic("careful", replicas=[1, 2], min_isr=3),
        topic("careless", replicas=[1, 2], unclean=True),
        topic("alone", replicas=[1]),
        topic("__transaction_state", replicas=[1, 2], min_isr=3, is_internal=True),
    ]
    assert ids(facts) == ["min-isr-above-replicas", "unclean-elections", "single-replica"]
    facts = healthy(1)
    facts.topics = [topic("alone", replicas=[1])]
    assert ids(facts) == []


def test_settings_that_this_broker_does_not_act_on() -> None:
    given = {"num.network.threads": "8", "num.io.threads": "8", "log.dirs": "/data"}
    facts = healthy()
    facts.settings = [BrokerSettings(1, given, frozenset(given), is_apache_kafka=False)]
    assert only(facts).seen == "1 setting that pykbroker does not act on: num.network.threads"
    facts.settings = [replace(facts.settings[0], given=frozenset())]
    assert ids(facts) == []
    facts.settings = [BrokerSettings(1, given, frozenset(given), is_apache_kafka=True)]
    assert ids(facts) == []


@pytest.mark.parametrize(
    ("is_apache_kafka", "fenced", "absent", "expected"),
    [
        (True, [], ["__consumer_offsets"], [("internal-topic-replicas", Severity.ERROR)]),
        (True, None, ["__consumer_offsets"], [("internal-topic-replicas", Severity.WARNING)]),
        (True, [2, 3], ["__consumer_offsets"], [("broker-fenced", Severity.WARNING)] * 2),
        (True, [], [], []),
        (False, [], ["__consumer_offsets"], []),
    ],
)
def test_an_internal_topic_that_cannot_be_created(
    is_apache_kafka: bool, fenced: list[int] | None, absent: list[str], expected: list[tuple[str, Severity]]
) -> None:
    """Replicas may lie on fenced brokers, too."""
    facts = replace(healthy(), fenced=fenced, absent_topics=frozenset(absent))
    facts.settings = [
        BrokerSettings(1, {"offsets.topic.replication.factor": "3"}, frozenset(), is_apache_kafka=is_apache_kafka)
    ]
    assert [(each.id, each.severity) for each in findings(facts)] == expected


# Groups


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (("Stable", 5, 9), ("Stable", 5, 30), ["group-lag-growing"]),
        (("Stable", 5, 9), ("Stable", 5, 9), []),
        (("Stable", 5, 9), ("Stable", 9, 12), []),
        (("Empty", 5, 9), ("Empty", 5, 12), ["group-without-members"]),
        (("Empty", 5, 9), ("Empty", 7, 12), []),
        (("Empty", 9, 9), ("Empty", 9, 9), []),
        (("Stable", 5, 9), ("Empty", 5, 9), []),
        (("PreparingRebalance", 5, 5), ("PreparingRebalance", 5, 5), ["group-rebalancing"]),
        (("PreparingRebalance", 5, 5), ("CompletingRebalance", 5, 5), []),
        (("Reconciling", 5, 5), ("Reconciling", 5, 5), ["group-rebalancing"]),
    ],
)
def test_groups_by_two_looks(first: tuple[str, int, int], last: tuple[str, int, int], expected: list[str]) -> None:
    facts = replace(healthy(), groups=[group(first, last)], watched_s=6.0)
    assert ids(facts) == expected


# Disks


@pytest.mark.parametrize(
    ("directory", "expected"),
    [
        (Directory(1, "/data", "KAFKA_STORAGE_ERROR", None, None), ["directory-offline"]),
        (Directory(1, "/data", None, 1_000, 9), ["disk-full"]),
        (Directory(1, "/data", None, 1_000, 10), ["disk-nearly-full"]),
        (Directory(1, "/data", None, 1_000, 99), ["disk-nearly-full"]),
        (Directory(1, "/data", None, 1_000, 100), []),
        (Directory(1, "/data", None, 0, 0), []),
    ],
)
def test_disks(directory: Directory, expected: list[str]) -> None:
    assert ids(replace(healthy(), directories=[directory])) == expected


def test_errors_come_before_warnings() -> None:
    facts = replace(healthy(), fenced=[3], quorum=Quorum(None), directories=[Directory(1, "/d", "X", None, None)])
    assert [each.severity for each in findings(facts)] == [Severity.ERROR, Severity.ERROR, Severity.WARNING]
    assert exit_code(findings(facts)) == 1
