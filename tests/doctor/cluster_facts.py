"""Facts of a healthy cluster, of which tests change one thing."""

from __future__ import annotations

from collections.abc import Sequence

from pykbroker.client.metadata import Node
from pykbroker.doctor.facts import AdvertisedAddress, BrokerSettings, Facts, Group, GroupLook, Partition, Topic
from pykbroker.doctor.findings import Finding
from pykbroker.doctor.knocks import BrokerAnswer, Knock, Outcome
from pykbroker.doctor.rules import findings_of
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.schema import Versions
from pykbroker.protocol.topic_partition import TopicPartition

NOW_S = 1_800_000_000.0
VERSIONS = {ApiKey.PRODUCE: Versions(0, 13), ApiKey.FETCH: Versions(4, 17)}


def served(host: str = "127.0.0.1", port: int = 9092, *, brokers: int = 1, cluster_id: str = "one") -> Knock:
    nodes = tuple(Node(number, "127.0.0.1", 9091 + number) for number in range(1, brokers + 1))
    answer = BrokerAnswer(VERSIONS, {"metadata.version": 30}, cluster_id, 1, nodes)
    return Knock(host, port, Outcome.SERVED, resolved=("127.0.0.1",), answer=answer)


def failed(outcome: Outcome, host: str = "kafka", port: int = 9092, **more: object) -> Knock:
    return Knock(host, port, outcome, **more)  # type: ignore[arg-type]


def healthy(brokers: int = 1) -> Facts:
    entry = served(brokers=brokers)
    assert entry.answer is not None
    addresses = [
        AdvertisedAddress(each.node_id, each.host, each.port, served(each.host, each.port), True, True)
        for each in entry.answer.nodes
    ]
    settings = [
        BrokerSettings(each.node_id, {"listeners": f"PLAINTEXT://{each.host}:{each.port}"}, frozenset(), True)
        for each in addresses
    ]
    return Facts([entry], entry, addresses, settings=settings)


def topic(
    name: str,
    *isrs: Sequence[int],
    replicas: Sequence[int] = (1,),
    leader: int | None = 1,
    error: str | None = None,
    min_isr: int | None = 1,
    unclean: bool = False,
    is_internal: bool = False,
) -> Topic:
    """A partition for each of `isrs`, by default one with all replicas in sync."""
    partitions = tuple(
        Partition(TopicPartition(name, index), leader, tuple(replicas), tuple(isr), error)
        for index, isr in enumerate(isrs or [replicas])
    )
    return Topic(name, is_internal, partitions, min_isr, unclean)


def group(first: tuple[str, int, int], last: tuple[str, int, int], name: str = "readers") -> Group:
    """Each look is the state, what is committed, and the end of the only partition."""
    looks = []
    for state, committed, end in (first, last):
        of = TopicPartition("records", 0)
        looks.append(GroupLook(state, {of: committed}, {of: end}))
    return Group(name, looks[0], looks[1])


def findings(facts: Facts, security_protocol: str = "PLAINTEXT") -> list[Finding]:
    return findings_of(facts, security_protocol, NOW_S)


def ids(facts: Facts) -> list[str]:
    return [each.id for each in findings(facts)]


def only(facts: Facts) -> Finding:
    [found] = findings(facts)
    return found
