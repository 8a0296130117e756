"""Share groups and streams groups as `doctor`, `top` and `why` see them by Kafka's own protocol."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compat_tests.answers import TestAnswers
from compat_tests.brokers import Broker, pykbroker_command
from compat_tests.topics import fill_topic
from compat_tests.waiting import until
from tests.groups.live_members import StreamsMember, share_consumer, shared_records
from tests.groups.streams_requests import subtopology, topology

from .examined import TIMEOUT_S, examine

FreshBroker = Callable[..., Broker]
RECORDS = 10
WORKERS, APP = "workers", "app"
EXPLICIT = {"share_acknowledgement_mode": "explicit", "client_id": "worker"}


def asked(broker: Broker, *words: str) -> Any:
    """What a command prints as JSON, of the broker."""
    command = pykbroker_command(*words[:1], "--bootstrap-server", broker.bootstrap, "--json", *words[1:])
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    return json.loads(done.stdout)


def test_a_share_group_whose_records_are_in_somebody_s_hands_and_one_that_all_have_left(
    fresh_broker: FreshBroker, answers: TestAnswers, tmp_path: Path
) -> None:
    broker = fresh_broker()
    fill_topic(broker, "jobs", 1, RECORDS)
    with share_consumer(broker.bootstrap, WORKERS, "jobs", **EXPLICIT) as consumer:
        for record in shared_records(consumer, RECORDS)[:4]:
            consumer.acknowledge(record)
        consumer.commit_sync()
        stuck = examine(broker.bootstrap, tmp_path)
        groups = {
            each["name"]: (each["kind"], each["lag"]) for each in asked(broker, "top", "--interval", "1")["groups"]
        }
        why = asked(broker, "why", "group", WORKERS)
        of_consumer = asked(broker, "why", "consumer", WORKERS)
    answers.same("stuck", [stuck.code, stuck.ids, stuck.document["looked_at"]["groups"]])
    assert (stuck.code, stuck.ids) == (2, ["share-group-stuck"])
    answers.same("top", groups)
    assert groups == {WORKERS: ("share", RECORDS - 4)}
    told = [why["reason"], why["type"], why["lag"], why["member_count"], why["partition_count"]]
    answers.same("why group", told)
    assert told == ["stable", "share", RECORDS - 4, 1, 1]
    answers.same("why consumer", [(each["partition"], each["reason"]) for each in of_consumer["partitions"]])
    left = examine(broker.bootstrap, tmp_path)
    answers.same("left", [left.code, left.ids])
    assert (left.code, left.ids) == (2, ["share-group-without-members"])
    assert left.finding("share-group-without-members")["seen"].endswith(f"{WORKERS} (lag {RECORDS - 4})")


def test_a_streams_group_whose_source_topic_is_missing_and_then_there(
    fresh_broker: FreshBroker, answers: TestAnswers, tmp_path: Path
) -> None:
    broker = fresh_broker({"auto.create.topics.enable": "false"})
    with StreamsMember(broker.bootstrap, APP, "m", topology(subtopology("0", "words"))) as member:
        member.join()
        waiting = examine(broker.bootstrap, tmp_path)
        why = asked(broker, "why", "group", APP)
        answers.same("waiting", [waiting.code, waiting.ids])
        assert (waiting.code, waiting.ids) == (1, ["streams-group-not-ready"])
        assert "app (missing: words)" in waiting.finding("streams-group-not-ready")["seen"]
        told = [why["reason"], why["type"], why["state"], why["missing_topics"]]
        answers.same("why group", told)
        assert told == ["not-ready", "streams", "NotReady", ["words"]]
        fill_topic(broker, "words", 2, RECORDS)
        until(lambda: member.beat() and asked(broker, "why", "group", APP)["reason"] == "stable", "a stable group")
        ready = examine(broker.bootstrap, tmp_path)
    answers.same("ready", [ready.code, ready.ids])
    assert (ready.code, ready.ids) == (0, [])
