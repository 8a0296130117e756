"""Findings about configurations that have no effect, or another one than is thought. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pykbroker.config.unserved_keys import given_without_effect
from pykbroker.metadata.topic_names import SHARE_STATE_TOPIC

from ..facts import BrokerSettings, Facts, Topic
from ..findings import Finding, counted, error, some, warning

_ENOUGH_BROKERS: Final = 3
_INTERNAL: Final = {
    "__consumer_offsets": ("offsets.topic.replication.factor", "groups cannot form"),
    "__transaction_state": ("transaction.state.log.replication.factor", "transactions cannot begin"),
    SHARE_STATE_TOPIC: ("share.coordinator.state.topic.replication.factor", "share groups get no records"),
}


def of_settings(facts: Facts) -> Iterator[Finding]:
    yield from _of_topics(facts)
    yield from _of_brokers(facts)
    yield from _internal_topics(facts)


def _of_topics(facts: Facts) -> Iterator[Finding]:
    """An internal topic of a single node has fewer replicas than its settings name, as it comes."""
    topics = [each for each in facts.topics if each.partitions]
    impossible = [
        each
        for each in topics
        if each.min_isr is not None and each.min_isr > each.replication_factor and not each.is_internal
    ]
    if impossible:
        yield warning(
            "min-isr-above-replicas",
            _count(impossible),
            "min.insync.replicas is larger than the number of replicas: "
            + some([f"{each.name} ({each.min_isr} of {each.replication_factor})" for each in impossible]),
            "It protects less than it says: brokers count no more replicas than there are, and older ones refuse "
            "acks=all (NOT_ENOUGH_REPLICAS). Lower it, or add replicas.",
        )
    unclean = [each for each in topics if each.unclean]
    if unclean:
        yield warning(
            "unclean-elections",
            _count(unclean),
            f"unclean.leader.election.enable is true: {some([each.name for each in unclean])}",
            "A replica that is not in sync may become leader, and what was acknowledged is lost then.",
        )
    single = [each for each in topics if each.replication_factor == 1]
    if single and facts.registered >= _ENOUGH_BROKERS:
        yield warning(
            "single-replica",
            _count(single),
            f"one replica in a cluster of {facts.registered} brokers: {some([each.name for each in single])}",
            "They are away whenever their broker is, and lost with its disk: create topics with a replication factor "
            "of 3 (`default.replication.factor`).",
        )


def _of_brokers(facts: Facts) -> Iterator[Finding]:
    for each in facts.settings:
        if each.is_apache_kafka:
            continue
        unused = given_without_effect({name: each.values[name] for name in each.given if name in each.values})
        if unused:
            yield warning(
                "setting-without-effect",
                f"broker {each.node_id}",
                f"{counted(len(unused), 'setting')} that pykbroker does not act on: {some(unused)}",
                "Nothing comes of them: take them out, or do not rely on them (docs/not-yet.md).",
            )


def _internal_topics(facts: Facts) -> Iterator[Finding]:
    """Apache Kafka does not create them with fewer replicas than it is told, those on fenced brokers included;
    pykbroker takes what there is.
    """
    make = warning if facts.fenced is None else error
    for topic, (key, consequence) in _INTERNAL.items():
        wanted = [_number(each, key) for each in facts.settings if each.is_apache_kafka]
        if topic == SHARE_STATE_TOPIC and not facts.share_groups:
            continue  # nobody needs it, in a cluster that may know none
        if topic in facts.absent_topics and wanted and max(wanted) > facts.registered:
            yield make(
                "internal-topic-replicas",
                topic,
                f"{key} is {max(wanted)}, and there are {counted(facts.registered, 'broker')}: {consequence}",
                f"Set {key} to {facts.registered} (and its min.isr no higher), or start more brokers.",
            )


def _number(settings: BrokerSettings, key: str) -> int:
    text = settings.values.get(key, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _count(topics: list[Topic]) -> str:
    return counted(len(topics), "topic")
