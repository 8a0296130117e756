"""Runs of a log directory, cut at every operation: a start on what a crash leaves finds everything that was promised.

PYKBROKER_CRASH_STATES=thorough checks all states that `crash_states` knows instead of a part of them at each cut.
"""

import logging
import os

import pytest

from pykbroker.storage.segments.segment import LogSegment
from tests.storage.crash_runs import RUNS
from tests.storage.crash_search import crashes, find
from tests.storage.crash_states import Survivors
from tests.storage.recording_disk import RecordingDisk
from tests.storage.search_crash_states import MOST_FAILURES, go_through

IS_THOROUGH = os.environ.get("PYKBROKER_CRASH_STATES") == "thorough"
MOST_PER_CUT = None if IS_THOROUGH else 9
CRASHES_TWICE = 1 if IS_THOROUGH else 25
"""Of so many states one goes through a second crash while it is recovered, or after that."""

LEAST_STATES = {
    "appends": 1150,
    "follower": 1500,
    "deletions": 1300,
    "deletions_right_behind_a_roll": 650,
    "compaction": 3500,
    "topics": 1450,
    "restarts": 2450,
    "first_records_after_a_kill": 200,
    "rolls_behind_a_checkpoint": 600,
    "beginning_before_a_flush": 350,
    "aborts": 500,
    "removed_indexes": 650,
    "epochs_before_records": 650,
}
"""So that a test cannot shrink unnoticed."""


@pytest.mark.timeout(0 if IS_THOROUGH else 300)
@pytest.mark.parametrize("run", RUNS)
def test_every_crash_leaves_what_was_promised(run: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "pykbroker.storage")  # every second state has something to warn of
    states = set()
    for number, crash in enumerate(crashes(run, RUNS[run](), most_per_cut=MOST_PER_CUT)):
        crash.check(again=number % CRASHES_TWICE == 0)
        states.add(crash.state.key)
    assert len(states) >= LEAST_STATES[run]


@pytest.mark.timeout(0 if IS_THOROUGH else 300)
@pytest.mark.parametrize("run", ["follower", "restarts"])
def test_every_crash_leaves_what_was_promised_where_logs_are_closed_together(
    run: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.CRITICAL, "pykbroker.storage")
    monkeypatch.setattr("pykbroker.storage.directories.log_dirs._MANY_LOGS", 1)
    states = set()
    for number, crash in enumerate(crashes(run, RUNS[run](), most_per_cut=None if IS_THOROUGH else 3)):
        crash.check(again=number % CRASHES_TWICE == 0)
        states.add(crash.state.key)
    assert len(states) > 500


@pytest.mark.timeout(0 if IS_THOROUGH else 300)
@pytest.mark.parametrize(
    ("run", "last_cuts", "label"),
    [("aborts", 60, "names all, data none"), ("removed_indexes", 1, "names all, data all")],
)
def test_no_crash_of_a_start_that_builds_indexes_anew_loses_what_they_tell(
    run: str, last_cuts: int, label: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The start after that finds indexes that are there, and may not know that they were to be built anew."""
    caplog.set_level(logging.CRITICAL, "pykbroker.storage")
    life = RUNS[run]()
    found = [
        crash
        for crash in crashes(run, life)
        if crash.cut > len(life.disk.journal) - last_cuts and crash.state.choice.label == label
    ]
    assert found
    for crash in found:
        crash.check(again=True, is_thorough=True)


def test_the_states_are_more_than_ten_thousand() -> None:
    assert LEAST_STATES.keys() == RUNS.keys()
    assert sum(LEAST_STATES.values()) >= 10_000


def test_a_state_is_found_again_by_its_name() -> None:
    for crash in list(crashes("appends", RUNS["appends"](), most_per_cut=5))[::50]:
        again = find(crash.run, crash.cut, crash.state.choice.label)
        assert again.state.key == crash.state.key
        assert again.number == crash.number


def test_drawn_lives_keep_what_they_promised() -> None:
    *_, progress = go_through("make-test", 1500, most_per_cut=3)
    assert (progress.states, progress.failures) == (1500, [])
    assert progress.lives > 2


def test_a_search_finds_a_flush_that_syncs_nothing_and_names_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogSegment, "sync", lambda self: None)
    *_, progress = go_through("make-test", 1500, most_per_cut=3)
    assert len(progress.failures) == MOST_FAILURES
    assert all("python -m tests.storage.crash_search drawn:make-test." in each for each in progress.failures)


# The states themselves


def outcomes(disk: RecordingDisk) -> set[tuple[tuple[str, bytes | None], ...]]:
    """What a crash may leave now: paths with bytes, None for directories."""
    survivors = Survivors.of_new_disk(disk)
    for operation in disk.journal:
        survivors.apply(operation)
    plain, others = survivors.choices("a test", 50)
    states = map(survivors.state, [choice for choice in plain + others if not choice.is_killed])
    return {tuple((path, content) for path, _, content in state.files) for state in states}


def test_what_is_synced_survives_and_nothing_else_is_certain() -> None:
    disk = RecordingDisk()
    file = disk.open("/f", create=True)
    file.append([b"synced"])
    file.sync()
    assert outcomes(disk) == {(), (("/f", b"synced"),)}, "the name is not"
    disk.sync_directory("/")
    assert outcomes(disk) == {(("/f", b"synced"),)}
    file.append([b"1234"])
    file.append([b"5678"])
    contents = {content for [(_, content)] in outcomes(disk)}
    assert {
        b"synced",
        b"synced12",
        b"synced1234",
        b"synced12345",
        b"synced12345678",
        b"synced1234\0\0\0\0",
        b"synced\0\0\0\0" + b"5678",
    } <= contents
    assert all(content is not None and content.startswith(b"synced") for content in contents)


def test_files_and_names_survive_in_any_order() -> None:
    disk = RecordingDisk()
    for name in "ab":
        disk.open(f"/{name}", create=True).append([name.encode()])
    found = outcomes(disk)
    for expected in ((), (("/a", b"a"),), (("/b", b"b"),), (("/a", b""), ("/b", b"b")), (("/a", b"a"), ("/b", b""))):
        assert expected in found


def test_a_rename_is_done_or_not() -> None:
    disk = RecordingDisk()
    disk.open("/a", create=True)
    disk.sync_directory("/")
    disk.rename("/a", "/b")
    assert outcomes(disk) == {(("/a", b""),), (("/b", b""),)}


def test_names_go_in_their_order() -> None:
    disk = RecordingDisk()
    for name in ("/a", "/b"):
        disk.open(name, create=True)
    disk.sync_directory("/")
    disk.remove("/a")
    disk.rename("/b", "/c")
    a, b, c = (("/a", b""), ("/b", b""), ("/c", b""))
    assert outcomes(disk) == {(a, b), (b,), (c,)}


def test_a_durable_name_does_not_go_before_new_ones_come() -> None:
    disk = RecordingDisk()
    disk.open("/old", create=True)
    disk.sync_directory("/")
    for name in ("/new", "/newer"):
        disk.open(name, create=True)
    disk.remove("/old")
    new, newer, old = (("/new", b""), ("/newer", b""), ("/old", b""))
    assert outcomes(disk) == {(old,), (new, old), (newer, old), (new, newer, old), (new, newer)}


def test_a_replaced_file_is_old_or_new_at_every_cut() -> None:
    disk = RecordingDisk()
    disk.replace_file("/f", b"old")
    begun = len(disk.journal)
    disk.replace_file("/f", b"new")
    done = disk.journal
    for cut in range(begun, len(done) + 1):
        disk.journal = done[:cut]
        found = {dict(each)["/f"] for each in outcomes(disk)}
        assert found <= {b"old", b"new"}
    assert found == {b"new"}


def test_a_file_replaced_without_a_sync_may_be_empty() -> None:
    disk = RecordingDisk()
    disk.replace_file("/f", b"old")
    disk.replace_file("/f", b"new", sync=False)
    assert {b"old", b"", b"new"} <= {dict(each)["/f"] for each in outcomes(disk)}


def test_a_truncation_may_keep_the_size() -> None:
    disk = RecordingDisk()
    disk.replace_file("/f", b"123456")
    disk.open("/f").truncate(2)
    assert outcomes(disk) == {(("/f", each),) for each in (b"123456", b"12\0\0\0\0", b"12")}
