"""Faults as plain JSON, for HTTP."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pykbroker.control.control import Control
from pykbroker.control.faults import requests
from pykbroker.control.faults.disk_faults import DISK_OPTIONS, DiskRule
from pykbroker.control.faults.errors import BadFault
from pykbroker.control.faults.options import OPTIONS
from pykbroker.control.http.operations import operation
from pykbroker.testing.faults import DiskOptions, FaultOptions
from tests.api.api_node import in_virtual_time

Operation = Callable[..., Awaitable[Any]]


class Door:
    """Control as HTTP has it: arguments and answers go through JSON."""

    def __init__(self) -> None:
        self.control = Control()

    def __call__(self, asked: Operation, **arguments: Any) -> Any:
        async def ask() -> Any:
            return await asked(self.control, json.loads(json.dumps(arguments)))

        return json.loads(json.dumps(in_virtual_time(ask)))


def test_a_fault_is_added_listed_and_removed() -> None:
    door = Door()
    added = door(requests.add, api="Produce", topic="orders", nth=3, error="NOT_LEADER_OR_FOLLOWER")
    assert added == {
        "name": "fault 1",
        "api": "Produce",
        "topic": "orders",
        "does": "NOT_LEADER_OR_FOLLOWER before it is carried out",
        "fitted": 0,
        "taken": 0,
        "timed_out": 0,
    }
    disk = door(requests.add_disk, error="ENOSPC", path="orders-*", name="full")
    assert disk == {"name": "full", "does": "ENOSPC for write", "path": "orders-*", "fitted": 0, "taken": 0}
    assert door(requests.list_all) == {"seed": 0, "held": 0, "faults": [added, disk], "taken": []}
    assert door(requests.remove, name="full") == disk
    assert door(requests.clear) == {"removed": ["fault 1"]}
    assert door(requests.list_all)["faults"] == []


def test_a_script_is_loaded_and_its_holds_are_released() -> None:
    door = Door()
    (added,) = door(requests.load, toml='seed = 5\n[[fault]]\napi = "Produce"\nuntil = "go"\n')["added"]
    assert added["does"] == "answer held until 'go' is released"
    assert door(requests.list_all)["seed"] == 5
    assert door(requests.release, name="go") == {"released": 1}
    assert door(requests.list_all)["faults"][0]["is_met"]
    assert door(requests.set_seed, seed=6) == {"seed": 6}


def test_all_doors_have_the_same_options() -> None:
    python = FaultOptions.__annotations__.keys(), DiskOptions.__annotations__.keys()
    over_http = ({each.name for each in operation(f"faults {name}").parameters} for name in ("add", "add-disk"))
    assert (*python,) == (*over_http,) == (set(OPTIONS), set(DISK_OPTIONS))


def test_seconds_are_a_number_over_http_as_in_python() -> None:
    given = {"api": "Produce", "delay": 2, "hold": 0.5, "until": "go", "timeout": "3"}
    added = Door()(requests.add, **operation("faults add").arguments(given))
    assert added["does"] == "delayed by 2000 ms, answer held until 'go' is released, answer held for 500 ms"


def test_a_fault_is_waited_for() -> None:
    door = Door()
    door(requests.add_disk, error="EIO", name="broken")
    (rule,) = door.control.faults
    assert isinstance(rule, DiskRule)

    async def twice() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(requests.wait, door.control, {"name": "broken", "times": 2})
            for _ in range(2):
                await wait_all_tasks_blocked()
                assert nursery.child_tasks
                rule.strikes("read", "/data/x")

    in_virtual_time(twice)
    assert door(requests.wait, name="broken")["taken"] == 2


@pytest.mark.parametrize(
    ("asked", "arguments", "message"),
    [
        (requests.add, {"api": "Produse", "cut": True}, r"did you mean Produce\?"),
        (requests.add_disk, {"error": "EOI"}, r"did you mean EIO\?"),
        (requests.remove, {"name": "fault 7"}, r"there is no fault 'fault 7' \(did you mean fault 1\?\)"),
        (requests.remove, {}, "'name' is missing"),
        (requests.remove, {"nam": "x"}, r"did you mean name\?"),
        (requests.release, {"name": "x"}, "no fault holds until 'x' is released"),
        (requests.wait, {"name": "fault 1", "timeout": "50ms"}, "to come about 1 times; it did 0 times, and 0 were"),
        (requests.wait, {"name": "fault 2"}, r"there is no fault 'fault 2' \(did you mean fault 1\?\)"),
        (requests.wait, {"name": "fault 1", "timeout": "2m"}, "'timeout' is a minute at most, not '2m'"),
        (requests.wait, {"name": "fault 1", "times": 0}, "'times' is a whole number"),
        (requests.wait, {"name": "fault 1", "time": 2}, r"did you mean times\?"),
        (requests.load, {}, "'toml' is the text of a script"),
        (requests.load, {"toml": "[[falt]]\n"}, r"line 1: .*did you mean fault\?"),
        (requests.set_seed, {"seed": "7"}, "'seed' is a whole number"),
        (requests.list_all, {"x": 1}, "has no 'x'"),
    ],
)
def test_a_mistake_is_one_line(asked: Operation, arguments: dict[str, Any], message: str) -> None:
    door = Door()
    door(requests.add, api="Produce", cut=True)
    with pytest.raises(BadFault, match=message):
        door(asked, **arguments)
