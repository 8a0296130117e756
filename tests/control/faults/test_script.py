"""Faults in TOML: what is in a file is done, or nothing of it, and a mistake is told with its line."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pykbroker.control.faults.errors import BadFault
from pykbroker.control.faults.faults import MOST_DISK_RULES, Faults
from pykbroker.control.faults.plan import MOST_RULES
from pykbroker.control.faults.script import LARGEST_BYTES, FaultScript, script_text
from pykbroker.server.runtime.garbage_collection import no_full_collections
from tests.api.api_node import in_virtual_time

SCRIPT = """\
# the leader moves while a rebalance goes on
seed = 7

[[fault]]
api = "Produce"
topic = "orders"
nth = 3
error = "NOT_LEADER_OR_FOLLOWER"

[[disk]]
error = "ENOSPC"
topic = "orders"
times = 2

[[fault]]
name = "slow joins"
api = "JoinGroup"
until = { answered = { api = "Metadata", times = 2 } }
"""


def test_a_script_is_done_in_its_order() -> None:
    faults = Faults()
    rules = faults.load(FaultScript(SCRIPT))
    assert [rule.name for rule in rules] == ["fault 1", "disk fault 1", "slow joins"]
    assert [each["does"] for each in faults.as_json()["faults"]] == [
        "NOT_LEADER_OR_FOLLOWER before it is carried out",
        "answer held until Metadata is answered 2 times",
        "ENOSPC for write",
    ]
    assert faults.plan.seed == 7


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        (
            'api = "Produse"',
            'api = "Produce"',
            r"s.toml, line 5, \[\[fault\]\] 1: there is no API 'Produse' \(did you mean",
        ),
        ("nht = 3", "nth = 3", r"s.toml, line 7, \[\[fault\]\] 1: a fault has no 'nht' \(did you mean nth\?\)"),
        ('error = "ENOSPCE"', 'error = "ENOSPC"', r"s.toml, line 11, \[\[disk\]\] 1: .*did you mean ENOSPC"),
        ("{ anwered =", "{ answered =", r"s.toml, line 18, \[\[fault\]\] 2: 'until' is"),
        (
            'api = "Metdata"',
            'api = "Metadata"',
            r"s.toml, line 18, \[\[fault\]\] 2: 'until': there is no API 'Metdata' \(did you mean Metadata\?\)",
        ),
        ("seed = -7", "seed = 7", r"s.toml, line 2: 'seed' is a whole number"),
        ("sed = 7", "seed = 7", r"s.toml, line 2: a script has no 'sed' \(did you mean seed\?\)"),
        ("[[falt]]", "[[fault]]", r"s.toml, line 4: a script has no 'falt' \(did you mean fault\?\)"),
        ("times = ", "times = 2\n", r"s.toml: .*line 13"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_nothing_is_done(wrong: str, right: str, message: str) -> None:
    faults = Faults()
    with pytest.raises(BadFault, match=message):
        faults.load(FaultScript(SCRIPT.replace(right, wrong), "s.toml"))
    assert list(faults) == []
    assert faults.plan.seed == 0


def test_a_table_in_single_brackets_is_told() -> None:
    with pytest.raises(BadFault, match=r"line 1: 'fault' is a table in double brackets, \[\[fault\]\]"):
        FaultScript('[fault]\napi = "Produce"\ncut = true\n')


def test_a_fault_that_does_nothing_is_told_with_its_table() -> None:
    with pytest.raises(BadFault, match=r"script, line 5, \[\[fault\]\] 2: a fault does something"):
        FaultScript('[[fault]]\ndelay = 1\n\n\n[[fault]]\napi = "Produce"\n')


def test_a_script_is_a_file_or_a_text(tmp_path: Path) -> None:
    file = tmp_path / "faults.toml"
    file.write_text(SCRIPT)
    assert script_text(file) == (SCRIPT, str(file))
    assert script_text(str(file)) == (SCRIPT, str(file))
    assert script_text(SCRIPT) == (SCRIPT, "script")
    with pytest.raises(FileNotFoundError):
        script_text(tmp_path / "none.toml")
    file.write_bytes(b"\xff")
    with pytest.raises(BadFault, match="is not UTF-8 text"):
        script_text(file)
    file.write_bytes(b"#" * (LARGEST_BYTES + 1))
    with pytest.raises(BadFault, match="that is no script of faults"):
        script_text(file)


def test_deep_nesting_is_a_mistake_like_others() -> None:
    with pytest.raises(BadFault, match="script"):
        FaultScript("x = " + "[" * 100_000)


def test_names_are_those_of_the_first_run_when_all_was_cleared() -> None:
    faults = Faults()
    first = [rule.name for rule in faults.load(FaultScript(SCRIPT))]
    with pytest.raises(BadFault, match="there is a fault 'slow joins' already"):
        faults.load(FaultScript(SCRIPT))
    assert len(list(faults)) == 3
    faults.clear()
    assert [rule.name for rule in faults.load(FaultScript(SCRIPT))] == first


def test_a_script_has_the_names_that_its_chances_go_by_whatever_was_there_before() -> None:
    faults = Faults()
    first = [rule.name for rule in faults.load(FaultScript(SCRIPT))]
    faults.clear()
    for options in ({"delay": 1}, {"cut": True}):
        faults.remove(faults.add(options))
    faults.remove(faults.add_disk({"error": "EIO"}))
    assert [rule.name for rule in faults.load(FaultScript(SCRIPT))] == first
    assert faults.add({"cut": True}).name == "fault 2"


def test_a_script_of_as_many_faults_as_there_may_be_is_loaded_within_a_turn_of_the_loop() -> None:
    script = FaultScript("[[fault]]\ncut = true\n" * MOST_RULES + '[[disk]]\nerror = "EIO"\n' * MOST_DISK_RULES)
    took_s = []
    for _ in range(5):  # of which one may have met other work of this process
        faults = Faults()
        began_s = time.thread_time()
        with no_full_collections():
            rules = faults.load(script)
        took_s.append(time.thread_time() - began_s)
    assert min(took_s) < 0.1  # a fifth of it as a rule
    assert len({rule.name for rule in rules}) == MOST_RULES + MOST_DISK_RULES


def test_no_two_faults_of_whatever_kind_have_one_name() -> None:
    faults = Faults()
    full = faults.add_disk({"error": "ENOSPC", "name": "fault 1"})
    with pytest.raises(BadFault, match="there is a fault 'fault 1' already"):
        faults.add({"cut": True, "name": "fault 1"})
    assert faults.add({"cut": True}).name == "fault 2"
    with pytest.raises(BadFault, match="there is a fault 'fault 2' already"):
        faults.add_disk({"error": "EIO", "name": "fault 2"})
    assert faults.find("fault 1") is full


def test_a_wait_for_a_fault_ends_when_it_comes_about() -> None:
    async def test() -> None:
        faults = Faults()
        rule = faults.add_disk({"error": "EIO"})
        assert not rule.when_taken
        rule.strikes("read", "/data/x")
        await faults.wait_taken(rule, 1, 10)
        assert not rule.when_taken

    in_virtual_time(test)
