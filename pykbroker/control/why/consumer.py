"""The reasons why a consumer gets no more, partition by partition.

The consumer's reason is the gravest of its partitions (`partition_look`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pykbroker.groups.offsets.committed_offsets import CommittedOffset
from pykbroker.server.replicas.fetch_sightings import FetchingClient
from pykbroker.server.runtime.log_lines import printable

from .answers import GETS_NOTHING, ConsumerAnswer, PartitionAnswer
from .group import why_group
from .members import members_of
from .partition_look import SHARE, WITHOUT_MEMBERS, Asked, PartitionLook
from .rights import denials_of_group, group_is_denied
from .sources import NoCoordinator, Sources, Turns
from .wording import capital, client, counted

MOST_PARTITIONS: Final = 100


class BadQuestion(ValueError):
    """The question names neither a group nor a client, or a partition without its topic."""


async def why_consumer(
    sources: Sources,
    group_id: str | None = None,
    *,
    client_id: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
) -> ConsumerAnswer:
    """Say why the consumers of a group, or the client of an id, get what they get. Raises BadQuestion."""
    if not group_id and client_id is None:
        raise BadQuestion("name a group, or the client id of a consumer without one")
    if partition is not None and topic is None:
        raise BadQuestion("a partition goes with its topic")
    turns = Turns()
    asked = Asked(None, client_id)
    if group_id:
        asked.group = await why_group(sources, group_id)
        await asked.take_members(await members_of(sources, group_id, turns), turns)
    if client_id is not None:
        asked.client_ids.add(client_id)
    places, missing = await _places(sources, asked, topic, partition, turns)
    if group_id:
        asked.committed = _committed(sources, group_id, places[:MOST_PARTITIONS])
    answers = list(missing)
    for place in places[: MOST_PARTITIONS - len(answers)]:
        answers.append(await _look(sources, asked, place).answer())
        await turns.took(20)
    answers.sort(key=lambda each: GETS_NOTHING.index(each.reason))
    return _joined(sources, asked, group_id, answers, len(places) + len(missing))


def _look(sources: Sources, asked: Asked, place: tuple[str, int]) -> PartitionLook:
    if asked.group is not None and asked.group.type == SHARE:
        from .share_look import ShareLook  # a process without share groups needs none of it

        return ShareLook(sources, asked, *place)
    return PartitionLook(sources, asked, *place)


def _joined(
    sources: Sources, asked: Asked, group_id: str | None, answers: list[PartitionAnswer], count: int
) -> ConsumerAnswer:
    facts: list[str] = []
    if group_id:
        facts += denials_of_group(sources, group_id)
    if answers:
        reason, verdict = answers[0].reason, answers[0].verdict
        facts += answers[0].facts
        if len(answers) > 1:
            same = sum(each.reason == reason for each in answers)
            facts.append(f"So it is with {same} of {counted(count, 'partition')} that were looked at.")
    else:
        reason, verdict = _without_partitions(sources, asked, group_id)
    return ConsumerAnswer(
        verdict=verdict,
        reason=reason,
        facts=tuple(dict.fromkeys(facts)),
        group=group_id,
        client_id=asked.client_id,
        partitions=tuple(answers),
        partition_count=count,
    )


def _without_partitions(sources: Sources, asked: Asked, group_id: str | None) -> tuple[str, str]:
    """Return the reason where no partition is known."""
    if asked.group is None:
        seen = any(broker.fetch_sightings is not None for broker in sources.brokers)
        words = "has fetched nothing since this broker started" if seen else "is not looked at: fetches are not noted"
        return "no-fetch", f"{capital(client(asked.client_id or '', ''))} {words}."
    if group_id and group_is_denied(sources, group_id):
        return "not-authorized", next(denials_of_group(sources, group_id))
    if asked.group.reason in WITHOUT_MEMBERS:
        return asked.group.reason, asked.group.verdict
    if asked.group.reason == "not-ready":
        return asked.group.reason, asked.group.verdict
    if asked.group.reason == "rebalancing":
        return "group-rebalances", asked.group.verdict
    words = f"subscribe to {asked.named_topics or 'nothing that is known'}"
    return "not-assigned", f"No partition is assigned to any member of group {printable(group_id)}; they {words}."


async def _places(
    sources: Sources, asked: Asked, topic: str | None, partition: int | None, turns: Turns
) -> tuple[list[tuple[str, int]], list[PartitionAnswer]]:
    """The partitions that the question is about, and answers for those that do not exist."""
    image = sources.image
    if topic is not None:
        known = image.topic(topic)
        if known is None:
            return [], [_no_topic(sources, asked, topic, partition or 0)]
        if partition is None:
            return [(topic, index) for index in sorted(known.partitions)], []
        if partition not in known.partitions:
            verdict = (
                f"There is no partition {partition} of {printable(topic)}, which has 0 to {len(known.partitions) - 1}."
            )
            return [], [
                PartitionAnswer(topic=topic, partition=partition, reason="partition-does-not-exist", verdict=verdict)
            ]
        return [(topic, partition)], []
    places: dict[tuple[str, int], None] = {}
    missing: list[PartitionAnswer] = []
    for name in sorted({*asked.subscribers, *(topic for topic, _ in asked.owners)}):
        known = image.topic(name)
        if known is None:
            missing.append(_no_topic(sources, asked, name, 0))
        else:
            places.update(dict.fromkeys((name, index) for index in sorted(known.partitions)))
        await turns.took(1 if known is None else len(known.partitions))
    if asked.group is not None and not places:
        places.update(((each.topic, each.partition), None) for each in asked.group.partitions)
        places.update(((each.topic, each.partition), None) for each in asked.group.shared)
    if asked.group is None:
        for sighting in _sightings(sources, asked.client_id, None):
            places.update(dict.fromkeys((*sighting.current, *sighting.former)))
    return [place for place in places if image.partition(*place) is not None], missing


def _no_topic(sources: Sources, asked: Asked, topic: str, partition: int) -> PartitionAnswer:
    name = printable(topic)
    facts = [f"auto.create.topics.enable is {str(sources.any.config.bool('auto.create.topics.enable')).lower()}."]
    subscribers = asked.subscribers[topic]
    if subscribers:
        facts.append(f"{counted(subscribers, 'member subscribes', 'members subscribe')} to it.")
    return PartitionAnswer(
        topic=topic,
        partition=partition,
        reason="topic-does-not-exist",
        verdict=f"Topic {name} does not exist.",
        facts=tuple(facts),
    )


def _committed(
    sources: Sources, group_id: str, places: list[tuple[str, int]]
) -> Mapping[tuple[str, int], CommittedOffset]:
    found = sources.coordinator_of(group_id)
    if isinstance(found, NoCoordinator):
        return {}
    pending = found[1].offsets.pending
    offsets = ((place, pending.committed_offset(group_id, *place)) for place in places)
    return {place: offset for place, offset in offsets if offset is not None}


def _sightings(sources: Sources, client_id: str | None, host: str | None) -> Iterator[FetchingClient]:
    for broker in sources.brokers:
        for each in broker.fetch_sightings or ():
            if each.client_id == client_id and (host is None or each.host == host):
                yield each
