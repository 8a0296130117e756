"""One round of a run: clients work while faults go on, all is healed, everything is read, and all clients have ended.

The nodes go on from round to round, with their topics, groups and transactional ids.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from compat_tests.waiting import until

from .apart import WorkApart
from .contents import Contents
from .groups import begin_groups
from .nemesis import Nemesis, Say
from .producing import produce_plainly, produce_with_confluent, produce_with_kafka_python
from .reading import (
    live_in_a_classic_group,
    live_in_a_consumer_group,
    look_at_committed_offsets,
    read_committed,
    read_everything,
    read_uncommitted,
)
from .sharing import begin_sharing, share_with_confluent, share_with_own, wait_until_all_is_shared
from .stage import COPY, PLAIN, Client, Stage, Work, key_of, partitions
from .transacting import copy_as_another, copy_as_one, is_all_copied, transact

LIVELY_S = 25.0
"""How long all goes on, unharmed, and the judge looks for whoever is stuck."""
CLIENTS_END_S = 120.0
GOING_AGAIN_S = 120.0
"""From the end of the last fault, with everything running: until each client has got something done."""
ANOTHER_GOES_S = 30.0
"""How long another client of the same kind as one that is stuck may need for that."""

WRITERS: dict[str, Work] = {
    "confluent producer": produce_with_confluent,
    "kafka-python producer": produce_with_kafka_python,
    "plain producer": produce_plainly,
    "transactions": transact,
}
READERS: dict[str, Work] = {
    "reader of committed records": read_committed,
    "reader of all records": read_uncommitted,
    "member 1": WorkApart(live_in_a_classic_group),
    "member 2": WorkApart(live_in_a_classic_group),
    "newer member 1": WorkApart(live_in_a_consumer_group),
    "newer member 2": WorkApart(live_in_a_consumer_group),
    "observer of offsets": look_at_committed_offsets,
    "copier 1": WorkApart(copy_as_one),
    "copier 2": WorkApart(copy_as_another),
    "share member 1": WorkApart(share_with_confluent),
    "share member 2": WorkApart(share_with_confluent),
    "own share member": WorkApart(share_with_own),
}


@dataclass(frozen=True, slots=True)
class Played:
    """done: what each client got done while faults went on. given_up: clients that others took the place of, and what
    they had said. contents: of the topics, when all was over.
    """

    done: Counter[str]
    given_up: Counter[tuple[str, str]]
    contents: Contents


def play(stage: Stage, works: Mapping[str, Work], nemesis: Nemesis, seconds: float, say: Say) -> Played:
    """Raises AssertionError."""
    pairs = [[key_of(each), f"{COPY}-{each.partition}"] for each in partitions(PLAIN)]
    stage.recorder.tell(stage.recorder.new_process(), "copy", pairs=pairs)
    begin_groups(stage)
    begin_sharing(stage)
    writers, readers = _started(stage, works), _started(stage, READERS)
    clients = [*writers, *readers]
    nemesis.work_for(seconds)
    done = stage.progress.so_far()
    nemesis.recover()
    say("all is healed")
    nemesis.wait_until_in_sync()
    _wait_until_going_again(stage, clients)
    say("all are going again")
    stage.recorder.tell(stage.recorder.new_process(), "heal")
    time.sleep(LIVELY_S)
    stage.writing.clear()
    _finish(writers)
    until(lambda: is_all_copied(stage), "all is copied", CLIENTS_END_S)
    wait_until_all_is_shared(stage, CLIENTS_END_S)
    stage.reading.clear()
    _finish(readers)
    contents = read_everything(stage)
    say("everything is read")
    return Played(Counter({client.name: done[client.name] for client in clients}), stage.progress.given_up(), contents)


def _wait_until_going_again(stage: Stage, clients: list[Client]) -> None:
    """Raises AssertionError with what ended a client, or with where those are who get nothing done, and whether another
    one of the same kind does now: what stops every one of them is the cluster's, what stops one alone is its own.
    """
    before = stage.progress.so_far()

    def late() -> list[Client]:
        for client in clients:
            client.assert_not_failed()
        done = stage.progress.so_far() - before
        return [client for client in clients if not done[client.name]]

    try:
        until(lambda: not late(), "each client gets one more thing done", GOING_AGAIN_S)
    except AssertionError as failed:
        found = [f"{failed}"]
        for client in late():
            found += [client.where(), _how_another_does(stage, client)]
        raise AssertionError("\n".join(found)) from None


def _how_another_does(stage: Stage, client: Client) -> str:
    another = client.another()
    another.start()
    began_s = time.monotonic()
    try:
        until(lambda: stage.progress.so_far()[another.name], "it gets something done", ANOTHER_GOES_S)
    except AssertionError:
        return f"{another.name} gets nothing done within {ANOTHER_GOES_S} s either"
    return f"{another.name} got something done after {time.monotonic() - began_s:.1f} s"


def _started(stage: Stage, works: Mapping[str, Work]) -> list[Client]:
    clients = [Client(stage, name, work) for name, work in works.items()]
    for client in clients:
        client.start()
    return clients


def _finish(clients: list[Client]) -> None:
    for client in clients:
        client.finish(CLIENTS_END_S)
