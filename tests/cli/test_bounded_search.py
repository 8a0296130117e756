"""Searches by JMESPath that would never end, and what `consume --where` makes of them."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import jmespath
import psutil
import pytest

from compat_tests.waiting import until
from pykbroker.cli.records.bounded_search import TooMuch, bounded_search
from tests.cli.conftest import TIMEOUT_S, Outcome

MOST = 20_000
DOCUMENT: dict[str, Any] = {"a": {"b": 3, "c": [1, 2, {"d": "x"}]}, "names": ["b", "a", "c"], "text": "abc"}


@pytest.mark.parametrize(
    "expression",
    [
        "a.b == `3`",
        "a.c[2].d",
        "a.*",
        "names[?@ == 'a'] | length(@) > `0`",
        "sort(names)[0]",
        "[a.b, text]",
        "{x: a, y: @.names}",
        "map(&length(@), names)",
        "a.c[] | [0]",
        "to_string(a)",
        "nothing.here",
        "a == `{}` || !text && names",
    ],
)
def test_a_usual_search_finds_what_jmespath_finds(expression: str) -> None:
    compiled = jmespath.compile(expression)
    assert bounded_search(compiled)(DOCUMENT, MOST) == compiled.search(DOCUMENT)


@pytest.mark.parametrize(
    "expression",
    [
        " | ".join(["[@,@]"] * 60),
        f"({' | '.join(['[@,@]'] * 60)}) == ({' | '.join(['[@,@]'] * 60)})",
        " | ".join(["{a: @, b: @}"] * 60),
        " | ".join(["[@,@] | []"] * 60),
        " | ".join(["to_string([@,@])"] * 60),
        "text | " + " | ".join(["join('', [@,@])"] * 60),
        "names | " + " | ".join(["map(&[@,@], @) | []"] * 60),
        "names | " + " | ".join(["[*].[@,@] | []"] * 60),
        f"names[*].sort(`{json.dumps(list(range(MOST)))}`)",
    ],
)
def test_a_search_that_grows_with_each_step_is_ended(expression: str) -> None:
    search = bounded_search(jmespath.compile(expression))
    for _ in range(2):
        with pytest.raises(TooMuch):
            search(DOCUMENT, MOST)


def test_each_document_has_the_whole_bound() -> None:
    search = bounded_search(jmespath.compile("sort(names)[0]"))
    assert [search(DOCUMENT, 50) for _ in range(100)] == ["a"] * 100


def test_a_search_that_takes_too_much_ends_the_command_with_a_line(
    call: Callable[..., Outcome], run: Callable[..., Outcome], given: Callable[..., None], topic: str
) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    given(topic, b'{"a":1}')
    ended = run(f"consume --topic {topic} -e --where", " | ".join(["[@,@]"] * 60))
    assert ended.code == 1
    assert f"--where takes too much for {topic}-0@0: " in ended.err
    assert "Traceback" not in ended.err


def test_sigterm_ends_a_search_at_once(
    call: Callable[..., Outcome],
    start: Callable[..., subprocess.Popen[bytes]],
    given: Callable[..., None],
    topic: str,
) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    given(topic, *[b"[1,2,3]"] * 3_000)
    # A fraction of a second for each record, within the bound.
    consumer = start(f"consume --topic {topic} -e --where", " | ".join(["[@,@]"] * 13) + " | to_string(@)")
    process = psutil.Process(consumer.pid)
    until(lambda: process.cpu_times().user > 3, "the records are searched", TIMEOUT_S)
    consumer.send_signal(signal.SIGTERM)
    assert consumer.wait(TIMEOUT_S) == 128 + signal.SIGTERM
