"""Members that subscribe by a regular expression."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from pykbroker.groups.consumer import regular_expressions
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_group_records import ConsumerGroupRegularExpressionKey

from .consumer_requests import LEAVING, VERSION, assigned, consumer_beat
from .conversation import GROUP, Conversation
from .topics import ChangingTopics


class Members:
    """Members of one group, each with the epoch that it heard last."""

    def __init__(self, topics: ChangingTopics) -> None:
        self.topics = topics
        self.talk = Conversation(topics)
        self._epochs: dict[str, int] = {}

    def beat(self, member_id: str, epoch: int | None = None, **fields: Any) -> Any:
        """The partitions by topic name, or the error, or None where nothing has changed."""
        epoch = self._epochs.get(member_id, 0) if epoch is None else epoch
        request = consumer_beat(GROUP, member_id, epoch, **fields)
        answer = self.talk.ask(f"beat {self.talk.asked}", request, VERSION)
        if answer.error_code:
            return ErrorCode(answer.error_code), answer.error_message
        self._epochs[member_id] = answer.member_epoch
        partitions = assigned(answer)
        if partitions is None:
            return None
        return {self.topics.topic_name(topic_id): part for topic_id, part in partitions.items()}

    def change(self, *names: str) -> None:
        self.talk.shard.on_topics_changed(names)

    @property
    def written(self) -> list[tuple[str, list[str] | None]]:
        """The expressions of which something was written, with the topics."""
        return [
            (record.key.regular_expression, None if record.value is None else record.value.topics)
            for record in self.talk.records
            if isinstance(record.key, ConsumerGroupRegularExpressionKey)
        ]


@pytest.fixture
def members() -> Members:
    return Members(ChangingTopics(orders=2, payments=1, __consumer_offsets=1))


def test_a_member_gets_the_topics_whose_whole_names_match(members: Members) -> None:
    assert members.beat("m", regex="order.|.*ment.") == {"orders": [0, 1], "payments": [0]}
    assert members.written == [("order.|.*ment.", ["orders", "payments"])]


def test_an_expression_does_not_match_a_part_of_a_name(members: Members) -> None:
    assert members.beat("m", regex="order") == {}


def test_internal_topics_match_like_others(members: Members) -> None:
    assert members.beat("m", regex="__.*") == {"__consumer_offsets": [0]}


def test_topics_by_name_and_by_expression_come_together(members: Members) -> None:
    assert members.beat("m", regex="o.*", topics=["payments"]) == {"orders": [0, 1], "payments": [0]}


@pytest.mark.parametrize("expression", ["a(b", "[a", "\\", "a**", "(?=x)", "a{2000}"])
def test_what_re2_does_not_take_is_refused_and_leaves_no_group_behind(members: Members, expression: str) -> None:
    code, message = members.beat("m", regex=expression)
    assert code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert message.startswith(f"SubscribedTopicRegex `{expression}` is not a valid regular expression: ")
    assert members.talk.shard.groups == {}
    assert members.talk.records == []


def test_a_member_that_sends_an_invalid_expression_keeps_what_it_has(members: Members) -> None:
    members.beat("m", topics=["orders"])
    code, _ = members.beat("m", regex="(")
    assert code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert members.beat("m", topics=["orders"], owned={}, rebalance=60_000) == {"orders": [0, 1]}


def test_a_group_whose_expression_matches_nothing_stays_in_its_first_epoch(members: Members) -> None:
    assert members.beat("m", regex="nothing.*") == {}
    assert members.talk.group.group_epoch == members.talk.group.assignment_epoch == 1


def test_members_with_the_same_expression_share_its_record(members: Members) -> None:
    members.beat("a", regex="o.*")
    members.talk.advance(1_000)
    members.beat("b", regex="o.*")
    assert members.written == [("o.*", ["orders"])]
    members.beat("a", LEAVING)
    assert members.written == [("o.*", ["orders"])]
    members.beat("b", LEAVING)
    assert members.written[1:] == [("o.*", None)]


def test_an_expression_that_nobody_has_any_more_is_forgotten(members: Members) -> None:
    members.beat("m", regex="o.*")
    members.talk.advance(1_000)
    members.beat("m", regex="p.*")
    assert members.written[1:] == [("o.*", None), ("p.*", ["payments"])]
    assert list(members.talk.group.resolved_regexes) == ["p.*"]


def test_a_new_topic_is_found_ten_seconds_after_the_last_look(members: Members) -> None:
    members.beat("m", regex="o.*")
    members.topics.create("offers")
    members.change("offers")
    members.talk.advance(10_000)
    assert members.beat("m") is None
    members.talk.advance(1)
    assert members.beat("m") == {"orders": [0, 1], "offers": [0]}


def test_a_topic_that_does_not_match_is_looked_at_once(members: Members) -> None:
    members.beat("m", regex="o.*")
    epoch = members.talk.group.group_epoch
    members.topics.create("new")
    members.change("new")
    for _ in range(3):
        members.talk.advance(20_000)
        assert members.beat("m") is None
    assert members.written == [("o.*", ["orders"])] * 2
    assert members.talk.group.group_epoch == epoch


def test_a_deleted_topic_goes(members: Members) -> None:
    members.beat("m", regex="o.*|p.*")
    members.topics.delete("payments")
    members.change("payments")
    members.talk.advance(20_000)
    assert members.beat("m") == {"orders": [0, 1]}
    assert members.written[1:] == [("o.*|p.*", ["orders"])]


def test_every_topic_is_looked_at_when_the_refresh_interval_is_over(members: Members) -> None:
    members.beat("m", regex="o.*")
    members.topics.create("offers")
    interval_ms = members.talk.shard.config.consumer_regex_refresh_interval_ms
    for _ in range(interval_ms // 40_000):
        members.talk.advance(40_000)
        assert members.beat("m") is None
    members.talk.advance(1)
    assert members.beat("m") == {"orders": [0, 1], "offers": [0]}


def test_more_changes_than_are_remembered_mean_a_look_at_every_topic(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regular_expressions, "MAX_CHANGES", 2)
    members.beat("m", regex="o.*")
    for name in ("offers", "a", "b", "c"):
        members.topics.create(name)
        members.change(name)
    members.talk.advance(20_000)
    assert members.beat("m") == {"orders": [0, 1], "offers": [0]}


def test_a_group_that_was_read_back_looks_again_where_topics_have_changed(members: Members) -> None:
    members.beat("m", regex="o.*")
    members.topics.create("offers")
    successor = Conversation(members.topics)
    for record in members.talk.records:
        successor.shard.replay(record.key, record.value)
    successor.now_ms = members.talk.now_ms
    successor.take(successor.shard.start_timers(successor.now_ms, successor.now_ms))
    members.talk = successor
    assert successor.group.is_subscribed_to("orders")
    successor.advance(20_000)
    assert members.beat("m") == {"orders": [0, 1], "offers": [0]}


def test_the_library_is_loaded_when_somebody_subscribes_by_an_expression() -> None:
    script = "import sys, pykbroker.server.node.node, pykbroker.groups.shard; sys.exit('re2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0
