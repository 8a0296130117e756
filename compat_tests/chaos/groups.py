"""The groups of a run, and where they begin in each round."""

from __future__ import annotations

from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import AdminClient

from compat_tests.waiting import until

from .stage import CALL_TIMEOUT_S, PLAIN, Stage, key_of, partitions

GROUPS: dict[str, dict[str, Any]] = {
    "readers": {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 1_000},
    "newer-readers": {"group_protocol": "consumer"},
}
"""With the settings of their members: by the consumer protocol the broker says how long and how often."""
COPIERS = "copiers"


def begin_groups(stage: Stage) -> None:
    """Let all groups begin where the round begins. Their last members have left.

    While a coordinator comes up, librdkafka hands out the refusal of each partition. Raises AssertionError with the
    last refusal where nothing else comes.
    """
    admin = AdminClient(stage.config())
    proc = stage.recorder.new_process()
    for group in (*GROUPS, COPIERS):
        _begin(stage, admin, proc, group)


def _begin(stage: Stage, admin: AdminClient, proc: int, group: str) -> None:
    beginnings = [stage.beginning(each) for each in partitions(PLAIN)]
    refusals: list[object] = []

    def is_committed() -> bool:
        recording = stage.recorder.invoke(proc, "commit")
        recording.commits(group, {key_of(each): each.offset for each in beginnings})
        try:
            (told,) = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, beginnings)]).values()
            refused = [
                each.error for each in told.result(CALL_TIMEOUT_S * 2).topic_partitions if each.error is not None
            ]
        except KafkaException as failed:
            refused = [failed]
        recording.ended("info" if refused else "ok")
        refusals[:] = refused
        return not refused

    try:
        until(is_committed, f"the group {group} begins")
    except AssertionError as failed:
        raise AssertionError(f"{failed}; its coordinator answered {refusals}") from None
