"""`pykbroker top` with share groups and streams groups."""

from __future__ import annotations

import json

from click.testing import CliRunner

from pykbroker.cli.main import main
from pykbroker.client.group_offsets import commit_offsets
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.testing import Broker
from tests.groups.live_members import StreamsMember, share_consumer, shared_records


def test_groups_of_these_types_are_shown_with_their_lag() -> None:
    with Broker() as broker:
        broker.create_topic("events").produce(*(b"x" for _ in range(10)))
        explicit = {"share_acknowledgement_mode": "explicit"}
        broker.call(commit_offsets, "app", {TopicPartition("events", 0): 7})
        with (
            share_consumer(broker.bootstrap_servers, "workers", "events", **explicit) as consumer,
            StreamsMember(broker.bootstrap_servers, "app", "m") as member,
        ):
            member.join()
            for record in shared_records(consumer, 10)[:4]:
                consumer.acknowledge(record)
            consumer.commit_sync()
            command = ["top", "--bootstrap-server", broker.bootstrap_servers, "--json", "--interval", "1"]
            result = CliRunner().invoke(main, command)
            assert result.exit_code == 0, result.output
            groups = {each["name"]: each for each in json.loads(result.stdout)["groups"]}
            assert (groups["workers"]["kind"], groups["workers"]["lag"]) == ("share", 6)
            assert (groups["app"]["kind"], groups["app"]["lag"]) == ("streams", 3)
