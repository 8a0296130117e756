"""The configurations of brokers and topics that a personality keeps.

Kept are those that clients notice, whatever their values, and any other that has not the default of Kafka 4.3. Left
out are places and keys of one machine (listeners, directories, stores), secrets, and what says how large a cluster is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from pykbroker.config.broker_keys import broker_keys
from pykbroker.config.topic_keys import topic_keys

from .personality import Setting

LIMITS: Final = (
    "message.max.bytes",
    "socket.request.max.bytes",
    "fetch.max.bytes",
    "max.request.partition.size.limit",
    "max.incremental.fetch.session.cache.slots",
    "max.connections",
    "max.connections.per.ip",
    "connections.max.idle.ms",
    "offset.metadata.max.bytes",
    "group.max.size",
    "group.min.session.timeout.ms",
    "group.max.session.timeout.ms",
    "group.consumer.max.size",
    "group.consumer.min.session.timeout.ms",
    "group.consumer.max.session.timeout.ms",
    "group.consumer.min.heartbeat.interval.ms",
    "group.consumer.max.heartbeat.interval.ms",
    "transaction.max.timeout.ms",
    "delegation.token.max.lifetime.ms",
)
OF_BROKERS: Final = (
    "auto.create.topics.enable",
    "delete.topic.enable",
    "num.partitions",
    "default.replication.factor",
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "compression.type",
    "log.cleanup.policy",
    "log.retention.hours",
    "log.retention.bytes",
    "log.segment.bytes",
    "log.message.timestamp.type",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.after.max.ms",
    "log.message.timestamp.difference.max.ms",
    "log.message.format.version",
    "log.message.downconversion.enable",
    "offsets.retention.minutes",
    "group.initial.rebalance.delay.ms",
    "group.coordinator.rebalance.protocols",
    "group.consumer.session.timeout.ms",
    "group.consumer.heartbeat.interval.ms",
    "group.consumer.assignors",
    "transactional.id.expiration.ms",
    "producer.id.expiration.ms",
    "quota.producer.default",
    "quota.consumer.default",
)
"""Some of them are of older releases alone."""

OF_TOPICS: Final = (
    "cleanup.policy",
    "max.message.bytes",
    "min.insync.replicas",
    "retention.ms",
    "message.timestamp.type",
)

_OF_ONE_MACHINE: Final = re.compile(
    r"""advertised\. | alter\. | authorizer\. | broker\.id | broker\.rack | cluster\. | config\.providers | controller\.
    | controlled\. | create\.topic\.policy | early\.start | host\.name | inter\.broker\. | kafka\.metrics | listener
    | log\.dir | max\.connections\.per\.ip\.overrides | metadata\.log\.dir | metric | node\.id | num\..*threads
    | num\.recovery | offsets\.topic\.(replication|num) | password\. | port$ | principal\. | process\.roles | remote\.
    | replica\. | reserved\. | sasl\. | security\. | share\.coordinator | socket\.(send|receive|listen) | ssl\.
    | super\.users | transaction\.state\.log | zookeeper\. | .*\.class(\.name)?$ | .*threads$ | .*linger\.ms$""",
    re.VERBOSE,
)
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}|-?[1-8][0-9]{18}|922337203685477580[0-7]|9[01][0-9]{17}", re.ASCII)
_DECIMAL: Final = re.compile(r"-?[0-9]{1,9}\.[0-9]{1,9}", re.ASCII)


def kept_limits(described: Mapping[str, str]) -> dict[str, Setting]:
    return {name: to_setting(described[name]) for name in LIMITS if name in described}


def kept_of_brokers(described: Mapping[str, str]) -> dict[str, Setting]:
    return _kept(described, OF_BROKERS, {name: key.default for name, key in broker_keys().items()}, without=LIMITS)


def kept_of_topics(described: Mapping[str, str]) -> dict[str, Setting]:
    return _kept(described, OF_TOPICS, {name: key.default for name, key in topic_keys().items()}, without=())


def _kept(
    described: Mapping[str, str], always: Iterable[str], defaults: Mapping[str, str | None], without: Iterable[str]
) -> dict[str, Setting]:
    others = sorted(
        name
        for name, text in described.items()
        if name in defaults and (defaults[name] or "") != text and _OF_ONE_MACHINE.match(name) is None
    )
    names = [each for each in dict.fromkeys([*always, *others]) if each in described and each not in without]
    return {name: to_setting(described[name]) for name in names}


def to_setting(text: str) -> Setting:
    """A text of DescribeConfigs, as the value that it says."""
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text) and str(int(text)) == text:
        return int(text)
    if _DECIMAL.fullmatch(text) and repr(float(text)) == text:
        return float(text)
    return text


def to_text(value: Setting) -> str:
    """A value as it stands in a `server.properties`."""
    return str(value).lower() if isinstance(value, bool) else str(value)
