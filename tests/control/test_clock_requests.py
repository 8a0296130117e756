"""Requests about the clocks, in plain values."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping
from typing import Any

import pytest
import trio

from pykbroker.control.clocks import requests
from pykbroker.control.clocks.advance import LONGEST_S, AdvanceNotDone, advance
from pykbroker.control.clocks.clocks import SCOPES
from pykbroker.control.control import Control
from pykbroker.server.coordinators.group_coordinator import GroupCoordinator
from pykbroker.testing import Broker

DAY_MS = 86_400_000


def ask(control: Control, request: Mapping[str, object]) -> Mapping[str, Any]:
    return trio.run(requests.advance, control, request)


def test_a_clock_is_advanced_while_the_node_is_down() -> None:
    control = Control()
    assert ask(control, {"duration": "1d", "scope": "offsets"}) == {"advanced_ms": {"offsets": DAY_MS}}
    assert requests.advanced(control, {"scope": "offsets"}) == {"advanced_ms": {"offsets": DAY_MS}}
    everything = requests.advanced(control, {})["advanced_ms"]
    assert everything == {
        "retention": 0,
        "tombstones": 0,
        "transactions": 0,
        "producers": 0,
        "offsets": DAY_MS,
        "tokens": 0,
        "sessions": 0,
    }


def test_what_is_due_on_a_running_node_has_happened_when_the_answer_comes() -> None:
    with Broker() as broker:
        topic = broker.create_topic("t")
        topic.produce("old")
        (control,) = broker.controls

        def asking(_: object) -> Awaitable[object]:
            return requests.advance(control, {"duration": "8d", "scope": "all"})

        broker.call(asking)
        assert topic.start_offsets() == {0: 1}


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({}, "say by how much and what for"),
        ({"duration": "7d"}, "say by how much and what for"),
        ({"duration": "7d", "scop": "retention"}, "there is no field scop here; did you mean scope?"),
        ({"duration": "7d", "scope": "retentions"}, "did you mean retention?"),
        ({"duration": "7d", "scope": ["retention"]}, "a scope is a text, not list"),
        ({"duration": 7, "scope": "retention"}, 'write "7s" for seconds'),
        ({"duration": {}, "scope": "retention"}, "not dict"),
        ({"duration": True, "scope": "retention"}, "not bool"),
        ({"duration": "-7d", "scope": "retention"}, "a clock goes forwards only"),
        ({"duration": "7d", "scope": "x" * 1000}, "there is no scope"),
        ({"y" * 1000: 1}, "there is no field"),
    ],
)
def test_a_bad_request_is_told_in_one_line(request_: Mapping[str, object], said: str) -> None:
    control = Control()
    with pytest.raises(ValueError) as refused:
        ask(control, request_)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 250
    assert {control.clocks.advanced_ms(each) for each in SCOPES} == {0}


@pytest.mark.parametrize(
    ("request_", "said"), [({"scope": 1}, "not int"), ({"scope": "y"}, "no scope y"), ({"a": 1}, "field a")]
)
def test_a_bad_question_is_told_in_one_line(request_: Mapping[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        requests.advanced(Control(), request_)


def groups_of(control: Control) -> GroupCoordinator:
    running = control.node
    assert running is not None
    assert running.parts is not None
    assert running.parts.broker_role is not None
    return running.parts.broker_role.broker.groups


def test_nobody_waits_for_a_node_that_has_ended_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as broker:
        (control,) = broker.controls

        async def die() -> None:
            broker.running_loop().nursery.start_soon(broker.nodes[0].kill)
            await trio.sleep_forever()

        monkeypatch.setattr(groups_of(control), "catch_up", die)
        began = time.monotonic()
        broker.clock.advance("1d", scope="sessions")
        assert time.monotonic() - began < LONGEST_S / 2
        assert not broker.is_running


def test_what_does_not_happen_in_time_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as broker:
        (control,) = broker.controls
        monkeypatch.setattr(groups_of(control), "catch_up", trio.sleep_forever)

        def advancing(_: object) -> Awaitable[None]:
            return advance([control], "1d", "sessions", timeout_s=0.05)

        with pytest.raises(AdvanceNotDone, match=r"the clocks are advanced, .*: sessions on node 1"):
            broker.call(advancing)
