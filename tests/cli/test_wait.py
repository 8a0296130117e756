"""`pykbroker wait`: exit codes and the one line that says what there is instead."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Outcome


def test_a_topic_with_records_is_waited_for(
    call: Callable[..., Outcome], given: Callable[..., None], topic: str
) -> None:
    call(f"topics --create --topic {topic}")
    given(topic, b"a", b"b")
    assert call(f"wait --topic {topic} --records 2 --timeout 10s").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topic", "nowhere", "--timeout", "100ms"], "waited 0.1 s for topic nowhere; it does not exist"),
        (["--group", "nobody", "--timeout", "2"], "waited 2 s for group nobody to be Stable; it does not exist"),
        (["--group", "g", "--state", "stabel"], "did you mean Stable"),
        (["--records", "1"], "'records' is waited for with a topic"),
        ([], "nothing to wait for"),
        (["--topic", "t", "--timeout", "soon"], "'soon' is not a time"),
    ],
)
def test_what_is_not_so_is_one_line_and_exit_code_1(
    call: Callable[..., Outcome], arguments: list[str], message: str
) -> None:
    outcome = call("wait", *arguments)
    assert outcome.code == 1
    assert message in outcome.err
    assert len(outcome.err.splitlines()) == 1
