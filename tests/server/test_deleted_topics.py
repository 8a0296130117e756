"""What becomes of the logs of a topic that is deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata_records import RemoveTopicRecord
from pykbroker.server.replicas.hosted_partitions import HostedPartitions
from tests.api.api_node import ApiNode, in_virtual_time
from tests.server.work_per_step import WorkPerStep

PARTITIONS = 100
MOST_PER_STEP = 20
"""Each is a directory that gets another name."""


def test_others_run_while_the_logs_of_a_topic_with_many_partitions_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = ApiNode(tmp_path)
    topic_id = node.create_topic("large", PARTITIONS)
    work = WorkPerStep(monkeypatch, at_least=PARTITIONS, most=MOST_PER_STEP)
    work.count(HostedPartitions, "remove")

    async def run() -> None:
        changes = node.image.replay(RemoveTopicRecord(topic_id=topic_id), node.image.offset + 1)
        with work.watching():
            await node.replicas.prepare(node.image, changes)
            node.replicas.apply(node.image, changes)
        assert node.replicas.get_partition("large", 0) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert not list(node.replicas.partitions())

    in_virtual_time(run)
