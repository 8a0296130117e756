"""`pykbroker doctor`: its output, its exit codes and its bounds, against a broker."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner

from pykbroker.cli.main import main
from tests.cli.conftest import Outcome


def doctor(text: str) -> Outcome:
    result = CliRunner().invoke(main, ["doctor", *text.split()])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr)


def test_a_broker_that_is_served(bootstrap: str) -> None:
    done = doctor(f"{bootstrap} --watch 0")
    assert done.err == ""
    assert done.lines[0].startswith(f"{bootstrap} is served: cluster ")
    assert done.code in (0, 2)


def test_a_port_where_nobody_listens_is_exit_code_1() -> None:
    done = doctor("127.0.0.1:1 --json")
    document = json.loads(done.out)
    assert (done.code, done.err) == (1, "")
    assert [each["id"] for each in document["findings"]] == ["bootstrap-refused"]
    assert (document["served_by"], document["brokers"]) == (None, [])


def test_bounds_are_told_where_they_cut_something_off(call: Callable[..., Outcome], bootstrap: str, topic: str) -> None:
    assert call(f"topics --create --topic {topic}").code == 0
    done = doctor(f"{bootstrap} --json --watch 0 --max-topics 0")
    document = json.loads(done.out)
    assert document["looked_at"]["topics"] == 0
    assert any("topics were not looked at (--max-topics)" in each for each in document["unknown"])


@pytest.mark.parametrize("arguments", ["127.0.0.1:x", "--watch -1", "--command-config /nowhere"])
def test_bad_arguments_are_one_line(arguments: str) -> None:
    done = doctor(f"{arguments}")
    assert (done.code, done.out) == (1, "")
    assert done.err.count("\n") == 1
