"""The judge of histories: it finds what is planted, every time, and nothing in good histories.

PYKBROKER_HISTORY_SEEDS=N goes through more good ones.
"""

from __future__ import annotations

import io
import json
import os
import time
from collections import Counter
from itertools import count
from pathlib import Path
from random import Random

import pytest

from pykbroker.protocol.errors import ErrorCode

from .__main__ import main
from .check import check, check_lines
from .findings import INFORMATIONAL
from .graph import components, shortest_cycle
from .model import good_history
from .model_broker import COMPACTED
from .mutations import MUTATIONS
from .operations import (
    FAIL,
    INFO,
    OK,
    Acknowledgement,
    Delivery,
    MalformedHistory,
    Operation,
    Read,
    Send,
    format_history,
    parse_history,
)
from .recorder import Recorder, merge, outcome_of

GOOD_HISTORIES = int(os.environ.get("PYKBROKER_HISTORY_SEEDS", "1000"))
TIMES_PLANTED = 50


def test_good_histories_give_no_alarm() -> None:
    seen: Counter[str] = Counter()
    for seed in range(GOOD_HISTORIES):
        report = check(good_history(seed))
        assert not report.bad, f"seed {seed}\n{report}"
        seen.update(report.figures)
    kinds = ("send info", "send fail", "txn ok", "txn fail", "txn info", "commit fail", "committed ok", "own ok")
    for kind in (*kinds, "deliver ok", "acknowledge ok"):
        assert seen[kind] >= GOOD_HISTORIES // 10, f"the histories have hardly any {kind}"


@pytest.mark.parametrize("name", MUTATIONS)
def test_what_is_planted_is_found(name: str) -> None:
    planted: Counter[str] = Counter()
    for seed in count():
        for mutation in MUTATIONS[name]:
            mutated = mutation(good_history(seed), Random(seed))
            if mutated is not None:
                report = check(mutated)
                assert name in report.names, f"{mutation.__name__}, seed {seed}: {report}"
                assert report.bad or name in INFORMATIONAL
                planted[mutation.__name__] += 1
        assert seed < 40 * TIMES_PLANTED, f"hardly any history can be broken: {planted}"
        if planted.total() >= TIMES_PLANTED and len(planted) == len(MUTATIONS[name]):
            return


def test_there_are_more_than_twenty_kinds() -> None:
    assert len(MUTATIONS.keys() - INFORMATIONAL) >= 20


def test_a_longer_history_costs_no_more_per_operation() -> None:
    """A hundred thousand operations take some seconds."""
    per_operation = []
    for steps in (1_000, 10_000):
        operations = good_history(1, steps)
        start = time.process_time()
        check(operations)
        per_operation.append((time.process_time() - start) / len(operations))
    assert per_operation[1] < 5 * per_operation[0]


# The format


def as_told(operation: Operation) -> tuple[object, ...]:
    return tuple(getattr(operation, name) for name in Operation.__slots__ if name != "number")


def test_a_history_that_is_written_and_read_is_the_same() -> None:
    for seed in range(20):
        operations = good_history(seed)
        again = parse_history(format_history(operations))
        assert sorted(map(str, map(as_told, again))) == sorted(
            str(as_told(operation)) for operation in parse_history(format_history(again))
        )
        assert len(again) == len(operations)
        report = check(again)
        assert not report.bad, report
        assert report.names == check(operations).names


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"proc": 1, "type": "ok", "f": "send", "t_ns": 1}',
        '{"proc": 1, "type": "invoke", "f": "dance", "t_ns": 1}',
        '{"proc": 1, "type": "invoke", "f": "send", "t_ns": 1, "mops": [["sent"]]}',
        '{"proc": 1, "type": "invoke", "f": "deliver", "t_ns": 1, "mops": [["deliver", "g", "a-0", [[1]]]]}',
        '{"proc": 1, "type": "invoke", "f": "poll", "t_ns": 1, "mops": [["acknowledge", "g", "a", "x", "ok", []]]}',
    ],
)
def test_what_is_no_history_is_refused_with_the_line(line: str) -> None:
    with pytest.raises(MalformedHistory, match="line 2"):
        check_lines(["", line])


def test_a_record_that_is_read_again_and_again_is_held_once() -> None:
    """A chaos run's readers begin anew every half a minute: a round's history has each record dozens of times."""
    recorder = Recorder()
    for found in ({"a-0": [(7, "x"), (8, ["y", 1])]}, {"a-0": [(7, "x"), (8, ["y", 1])]}):
        polling = recorder.invoke(1, "poll")
        polling.polled(found)
        polling.ok()
    first, second = recorder.operations()
    assert first.reads == [Read("a-0", 7, "x"), Read("a-0", 8, ("y", 1))]
    assert all(one is other for one, other in zip(first.reads, second.reads, strict=True))


@pytest.mark.parametrize(("start", "is_stuck"), [(7, True), (8, False)])
def test_a_log_of_which_all_is_deleted_is_read_by_who_is_told_so(start: int, is_stuck: bool) -> None:
    recorder = Recorder(now_ns=count().__next__)
    recorder.tell(0, "trimmed", keys=("a-0",), keeps_ms=0)
    recorder.tell(0, "heal")
    sending = recorder.invoke(1, "send")
    sending.sent(sending.sending("a-0", "x"), 7)
    sending.ok()
    polling = recorder.invoke(2, "poll")
    polling.note(start={"a-0": start}, final=True)
    polling.ok()
    assert ("stuck" in check(recorder.operations()).names) == is_stuck


@pytest.mark.parametrize(("below", "is_skip"), [(8, True), (9, False)])
def test_a_reader_may_skip_what_somebody_had_asked_to_delete(below: int, is_skip: bool) -> None:
    """Whole-cluster seed 544400: the leader that had deleted it was replaced before it told anybody of its start."""
    recorder = Recorder(now_ns=count().__next__)
    recorder.tell(0, "trimmed", keys=("a-0",), start_returns=True)
    sending = recorder.invoke(1, "send")
    for offset in (7, 8, 9):
        sending.sent(sending.sending("a-0", str(offset)), offset)
    sending.ok()
    recorder.tell(3, "trim", below={"a-0": below})
    for offset in (7, 9):
        polling = recorder.invoke(2, "poll")
        polling.polled({"a-0": [(offset, str(offset))]})
        polling.ok()
    assert ("poll-skip" in check(recorder.operations()).names) == is_skip


@pytest.mark.parametrize(
    ("outcome", "decided_ns", "offset", "begun_ns", "is_bad"),
    [
        (INFO, 50, 9, 40, False),
        (INFO, 50, None, 40, False),
        (INFO, 50, 2, 40, True),  # before the value
        (INFO, None, 9, 40, True),  # nobody asked to commit it
        (FAIL, 50, 9, 40, True),
        (INFO, 950, 9, 940, True),  # the tombstone itself would be there still
    ],
)
def test_a_value_may_be_gone_with_a_tombstone_of_which_nobody_knows_the_end(
    outcome: str, decided_ns: int | None, offset: int | None, begun_ns: int, is_bad: bool
) -> None:
    """A client left its commit behind, and the records were cleaned before anybody read them."""
    declared = Operation(0, 1, "compacted", OK, 0, 1, keys=("latest-0",))
    declared.details["delete_retention_ms"] = 0.0005
    value = Operation(1, 2, "send", OK, 10, 20, sends=[Send("latest-0", 3, ("k", "v", 1))])
    tombstone = Operation(2, 3, "txn", outcome, begun_ns, begun_ns + 15, decided_ns=decided_ns)
    tombstone.sends = [Send("latest-0", offset, ("k", None, 2))]
    reader = Operation(3, 4, "poll", OK, 980, 1_000, isolation="read_committed", is_final=True, keys=("latest-0",))
    reader.reads = [Read("latest-0", 20, ("other", "v", 3))]
    other = Operation(4, 2, "send", OK, 30, 35, sends=[Send("latest-0", 20, ("other", "v", 3))])
    report = check([declared, value, tombstone, reader, other])
    assert ("compaction" in report.names) is is_bad, report


def test_what_never_ended_has_the_parts_that_had_begun() -> None:
    recorder = Recorder(now_ns=count().__next__)
    recording = recorder.invoke(1, "txn")
    recording.sending("a-0", "x")
    number = recording.sending("a-0", "y")
    recording.sent(number, 7)
    recording.decided()
    (operation,) = recorder.operations()
    assert (operation.outcome, operation.decided_ns) == (INFO, 3)
    assert operation.sends == [Send("a-0", None, "x"), Send("a-0", None, "y")]


def test_a_recording_has_what_became_of_its_parts() -> None:
    file = io.StringIO()
    recorder = Recorder(file, now_ns=count().__next__)
    proc = recorder.new_process()
    recorder.tell(proc, "assign", keys=["a-0"])
    recording = recorder.invoke(proc, "txn")
    refused, sent = recording.sending("a-0", "x"), recording.sending("a-0", "y")
    recording.not_sent(refused)
    recording.sent(sent, 7)
    recording.polled({"b-0": [(3, "z")], "b-1": []})
    recording.commits("g", {"b-0": 4})
    recording.note(producer=("t", 1, 2), hw={"a-0": 8})
    recording.ok()
    assign, operation = parse_history(file.getvalue().splitlines())
    assert (assign.kind, assign.keys) == ("assign", ("a-0",))
    assert operation.outcome == OK
    assert operation.sends == [Send("a-0", 7, "y")]
    assert operation.reads == [Read("b-0", 3, "z")]
    assert [tuple(commit) for commit in operation.commits] == [("g", "b-0", 4)]
    assert operation.producer is not None
    assert operation.producer.epoch == 2


def test_what_a_share_group_gave_and_what_its_members_said_has_outcomes_by_partition() -> None:
    recorder = Recorder(now_ns=count().__next__)
    given = recorder.invoke(1, "deliver")
    given.delivered("s", {"a-0": [(3, "x", 1), (4, "y", 2)], "a-1": []})
    given.ok()
    saying = recorder.invoke(1, "acknowledge")
    saying.acknowledging("s", "accept", {"a-0": [(3, 1)], "a-1": [(7, 1)]})
    saying.acknowledging("s", "release", {"a-0": [(4, 2)]})
    saying.acknowledged({"a-0": OK})
    saying.ok()
    unanswered = recorder.invoke(1, "acknowledge")
    unanswered.acknowledging("s", "reject", {"a-1": [(8, 1)]})
    first, second, third = recorder.operations()
    assert first.reads == [Read("a-0", 3, "x"), Read("a-0", 4, "y")]
    assert first.deliveries == [Delivery("s", "a-0", 3, 1), Delivery("s", "a-0", 4, 2)]
    assert second.acknowledgements == [
        Acknowledgement("s", "a-0", 3, 1, "accept", OK),
        Acknowledgement("s", "a-1", 7, 1, "accept", INFO),
        Acknowledgement("s", "a-0", 4, 2, "release", OK),
    ]
    assert (third.outcome, third.acknowledgements) == (INFO, [Acknowledgement("s", "a-1", 8, 1, "reject", INFO)])


def test_errors_count_strictly() -> None:
    assert outcome_of(0) == OK
    assert outcome_of(ErrorCode.REQUEST_TIMED_OUT) == INFO
    assert outcome_of(ErrorCode.NOT_LEADER_OR_FOLLOWER) == INFO
    assert outcome_of(ErrorCode.INVALID_PRODUCER_EPOCH) == FAIL


def test_histories_of_several_processes_are_one_in_the_order_of_time() -> None:
    first = [json.dumps({"proc": 1, "type": step, "f": "poll", "t_ns": t}) for step, t in (("invoke", 1), ("ok", 5))]
    second = [json.dumps({"proc": 1, "type": step, "f": "poll", "t_ns": t}) for step, t in (("invoke", 2), ("ok", 3))]
    operations = parse_history(merge([first, second]))
    assert [(each.invoked_ns, each.completed_ns) for each in operations] == [(1, 5), (2, 3)]
    assert operations[0].proc != operations[1].proc


def test_the_command_prints_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    operations = good_history(1)
    path = tmp_path / "history.jsonl"
    path.write_text("\n".join(format_history(operations)))
    assert main([str(path)]) == 0
    assert capsys.readouterr().out.startswith("good: ")
    final = next(each for each in operations if each.is_final and each.reads and each.keys != (COMPACTED,))
    final.reads.append(Read(final.keys[0], 10_000, "from nowhere"))
    path.write_text("\n".join(format_history(operations)))
    assert main([str(path)]) == 1
    told = capsys.readouterr().out
    assert told.startswith("BAD: ")
    assert "phantom: 1, such as: nobody wrote 'from nowhere'" in told
    assert main([str(tmp_path / "missing")]) == 2
    assert main([]) == 2


# Cycles


def test_components_and_their_shortest_cycles() -> None:
    edges = [{1: 1}, {2: 1}, {0: 1, 3: 2}, {2: 1, 4: 1}, {}]
    assert sorted(map(sorted, components(edges, 1))) == [[0, 1, 2]]
    (whole,) = components(edges, 3)
    assert sorted(whole) == [0, 1, 2, 3]
    assert sorted(shortest_cycle(edges, 3, whole, 2) or []) == [2, 3]
    assert sorted(shortest_cycle(edges, 1, whole, 1) or []) == [0, 1, 2]
