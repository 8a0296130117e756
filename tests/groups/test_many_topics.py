"""Consumer groups with very many topics: their hashes are computed in turns, and nobody names too many of them."""

from __future__ import annotations

from typing import Any

import pytest

from pykbroker.groups.common import topics
from pykbroker.groups.common.requests import MOST_NAMES
from pykbroker.groups.common.topics import FEW_TOPICS, FixedTopics, MetadataHash, topic_hash
from pykbroker.groups.consumer.consumer_group import ConsumerGroup
from pykbroker.groups.modern.modern_member import sorted_names
from pykbroker.long_work import whole
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata_records import RegisterBrokerRecord
from tests.server.work_per_step import WorkPerStep

from .consumer_requests import consumer_beat
from .test_driver import GROUP, in_world
from .world import NODE_ID, World

MANY = 2_000
NAMES = [f"topic-{number}" for number in range(MANY)]


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> WorkPerStep:
    work = WorkPerStep(monkeypatch, at_least=MANY, most=MANY // 2)
    work.count(topics, "topic_hash")
    return work


async def beat(world: World, epoch: int = 0, **said: Any) -> Any:
    answer: Any = await world.call("c", consumer_beat(GROUP, "m", epoch, **said), 1)
    assert answer.error_code == ErrorCode.NONE, answer.error_message
    return answer


def metadata_hash(world: World) -> int:
    shard = world.driver.shard(0)
    assert shard is not None
    group = shard.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    return group.metadata_hash


def with_many_topics(world: World) -> None:
    for name in NAMES:
        world.create_topic(name, 1)


def test_a_member_that_names_many_topics_has_them_hashed_in_turns(work: WorkPerStep) -> None:
    async def main(world: World) -> None:
        with_many_topics(world)
        with work.watching():
            await beat(world, topics=NAMES)
        assert metadata_hash(world) == MetadataHash(world.driver._topics).of(NAMES)

    in_world(main)


def test_a_member_whose_expression_matches_many_topics_has_them_hashed_in_turns(work: WorkPerStep) -> None:
    async def main(world: World) -> None:
        with_many_topics(world)
        with work.watching():
            await beat(world, regex="topic-.*")
        assert metadata_hash(world) == MetadataHash(world.driver._topics).of(NAMES)

    in_world(main)


def test_many_topics_that_have_changed_are_hashed_anew_in_turns(work: WorkPerStep) -> None:
    async def main(world: World) -> None:
        with_many_topics(world)
        epoch = (await beat(world, topics=NAMES)).member_epoch
        before = metadata_hash(world)
        world.replay(RegisterBrokerRecord(broker_id=NODE_ID, broker_epoch=2, rack="there", fenced=False))
        with work.watching():
            await beat(world, epoch)
        assert metadata_hash(world) != before

    in_world(main)


def test_shards_share_what_is_known_of_topics() -> None:
    """And it is as new as the metadata where none of them is led here."""

    async def main(world: World) -> None:
        hashes = world.driver.metadata_hash
        before = hashes.of(["events"])
        for index in (0, 1):
            shard = world.driver.shard(index)
            assert shard is not None
            assert shard.consumer._metadata_hash is hashes
            world.resign(index)
        world.delete_topic("events")
        world.create_topic("events", 3)
        assert hashes.of(["events"]) != before

    in_world(main, partitions=2)


def test_what_was_forgotten_is_learned_again_unless_it_is_gone() -> None:
    known = {name: (name.rjust(16).encode(), 2) for name in NAMES[: FEW_TOPICS + 2]}
    hashes = MetadataHash(FixedTopics(known))
    before = hashes.of(known)
    hashes.forget(next(iter(known)))
    assert not hashes.has_forgotten_many
    hashes.forget_all()
    assert hashes.has_forgotten_many
    gone, changed, *_ = known
    del known[gone]
    known[changed] = known[changed][0], 3
    whole(hashes.learn_again())
    assert not hashes.has_forgotten_many
    assert hashes.of(known) == MetadataHash(FixedTopics(known)).of(known) != before
    assert topic_hash(FixedTopics(known), gone) == 0


def test_nobody_names_more_topics_than_a_step_can_do_with() -> None:
    async def main(world: World) -> None:
        names = [str(number) for number in range(MOST_NAMES + 1)]
        answer: Any = await world.call("c", consumer_beat(GROUP, "m", topics=names), 1)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert answer.error_message == f"SubscribedTopicNames has more than {MOST_NAMES} names."
        await beat(world, topics=names[:-1])

    in_world(main)


@pytest.mark.parametrize("names", [[], ["a"], ["a", "b"], ["b", "a"], ["a", "a"], ["b", "a", "b", "c"]], ids=str)
def test_names_are_kept_sorted_names_and_once(names: list[str]) -> None:
    assert sorted_names(names) == tuple(sorted(set(names)))


def test_a_log_line_names_the_first_of_many_topics() -> None:
    async def main(world: World) -> None:
        with_many_topics(world)
        await beat(world, topics=NAMES)
        (joined,) = (
            words
            for transition in world.driver.history.transitions(GROUP)
            for words in transition.causes
            if "joined" in words
        )
        assert joined.endswith(f"topic-1005 and {MANY - 10} more")

    in_world(main)
