"""The questions from plain arguments to JSON, as a program asks them; and those that are asked wrongly."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from pykbroker.control.why import text
from pykbroker.control.why.requests import ask, brokers_of
from pykbroker.control.why.sources import NothingToAsk, Sources
from pykbroker.testing import Broker


def asked(broker: Broker, question: str, **arguments: Any) -> dict[str, Any]:
    async def in_loop() -> dict[str, Any]:
        return await ask(brokers_of(node.node for node in broker.nodes), question, arguments)

    return broker.running_loop().call(in_loop)


def test_answers_are_json_and_text(broker: Broker, topic: str, name: str) -> None:
    for question, arguments in {
        "group": {"group": name},
        "consumer": {"group": name, "topic": topic, "partition": "1", "client_id": None},
        "lso": {"topic": topic, "partition": 0},
        "throttle": {"client_id": "app", "user": "alice"},
    }.items():
        answer = asked(broker, question, **arguments)
        assert answer["question"] == question
        assert json.loads(json.dumps(answer)) == answer
        assert text.of_answer(answer).startswith(answer["verdict"])


@pytest.mark.parametrize(
    ("question", "arguments", "complaint"),
    [
        ("grop", {}, "did you mean group?"),
        ("group", {"groop": "g"}, "did you mean group?"),
        ("group", {}, "name a group"),
        ("lso", {"topic": "t", "partition": "-1"}, "a number from 0 on"),
        ("lso", {"topic": "t", "partition": True}, "a number from 0 on"),
        ("lso", {"topic": 5}, "topic is a text"),
        ("consumer", {}, "name a group"),
    ],
)
def test_a_bad_question_is_one_line(broker: Broker, question: str, arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as caught:
        asked(broker, question, **arguments)
    assert len(str(caught.value).splitlines()) == 1


def test_who_names_nothing_is_asked_for_it(broker: Broker) -> None:
    with pytest.raises(ValueError, match="name a group"):
        broker.why.group("")
    with pytest.raises(ValueError, match="name a topic"):
        broker.why.lso("", 0)


def test_where_no_broker_runs_nobody_is_asked() -> None:
    with pytest.raises(NothingToAsk):
        Sources([])


def test_what_clients_named_does_nothing_to_a_terminal() -> None:
    shown = text.of_answer({"question": "x", "verdict": "group \x1b[2J\nis", "facts": ["a\rb"]})
    assert shown == "group \\x1b[2J\\nis\n  - a\\rb"


def test_coroutines_ask_the_same(topic: str, broker: Broker) -> None:
    async def main() -> str:
        return (await broker.aio.why.lso(topic)).reason

    assert trio.run(main) == broker.why.lso(topic).reason
