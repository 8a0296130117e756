"""Requests about what befalls a node, in plain values, while the node itself is held."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import trio

from pykbroker.control.control import Control
from pykbroker.control.nodes import requests
from pykbroker.testing import Broker


def test_a_node_is_paused_cut_off_and_crashed() -> None:
    with Broker() as broker:
        topic = broker.create_topic("t")
        for number in range(10):
            topic.produce(str(number))
        (control,) = broker.controls

        def ask(request: Callable[..., object], values: Mapping[str, object]) -> Any:
            async def in_loop() -> object:
                answer = request(control, values)
                return answer if isinstance(answer, dict) else await answer  # type: ignore[misc]

            return broker.running_loop().call(in_loop)

        assert ask(requests.pause, {})["is_paused"] is True
        assert ask(requests.state, {})["is_running"] is True
        assert ask(requests.resume, {})["is_paused"] is False
        assert ask(requests.cut_off, {"from": "clients"})["cut_off_from"] == ["clients"]
        assert ask(requests.cut_off, {})["cut_off_from"] == ["clients", "nodes"]
        assert ask(requests.restore, {})["cut_off_from"] == []
        crashed = ask(requests.crash, {"lose_unflushed": True})
        assert crashed["lost_bytes"] > 0
        assert crashed["is_running"] is False
        broker.start()
        assert len(topic.values()) < 10
        assert ask(requests.crash, {"lose_unflushed": False})["lost_bytes"] == 0


@pytest.mark.parametrize(
    ("request_", "values", "said"),
    [
        (requests.resume, {}, "the node is not paused"),
        (requests.pause, {}, "the node does not run"),
        (requests.pause, {"for": "1s"}, "there is no field for here; there are none"),
        (requests.cut_off, {"form": "nodes"}, "there is no field form here; did you mean from?"),
        (requests.cut_off, {"from": "node"}, "did you mean nodes?"),
        (requests.cut_off, {"from": 1}, "`from` is a text, not int"),
        (requests.restore, {"x" * 1000: 1}, "there is no field xxx"),
    ],
)
def test_a_bad_request_is_told_in_one_line(
    request_: Callable[..., object], values: Mapping[str, object], said: str
) -> None:
    with pytest.raises(ValueError) as refused:
        request_(Control(), values)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 200


def test_a_crash_is_refused_where_nobody_can_end_the_node() -> None:
    with pytest.raises(ValueError, match="true or false, not str"):
        trio.run(requests.crash, Control(), {"lose_unflushed": "yes"})
    with pytest.raises(ValueError, match="the node does not run"):
        trio.run(requests.crash, Control(), {})


def test_a_crash_that_nobody_waits_for_any_more_is_a_whole_one() -> None:
    """A node that had ended, in a process that had not, would be neither alive nor gone."""
    with Broker() as broker:
        broker.create_topic("t").produce("lost")
        (control,) = broker.controls

        async def crash() -> None:
            with trio.CancelScope() as scope:
                scope.cancel()
                await requests.crash(control, {"lose_unflushed": True})

        assert control.mishaps.unflushed_bytes
        broker.running_loop().call(crash)
        assert not broker.is_running
        assert not control.mishaps.unflushed_bytes
