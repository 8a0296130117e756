"""Deletions: what a pattern reaches is shown and asked for; what is named exactly goes without a word to scripts."""

from collections.abc import Callable

import pytest

from tests.cli.conftest import Outcome
from tests.cli.terminals import at_terminal

Call = Callable[..., Outcome]


@pytest.fixture
def two(call: Call, topic: str) -> list[str]:
    """Two topics whose names begin alike."""
    names = [f"{topic}-a", f"{topic}-b"]
    assert call("topics create", *names).code == 0
    return names


def remaining(call: Call, names: list[str]) -> list[str]:
    listed = call("topics --list").lines
    return [name for name in names if name in listed]


@pytest.mark.parametrize("form", ["topics delete", "topics --delete"])
def test_a_pattern_deletes_nothing_unless_somebody_said_yes(call: Call, two: list[str], topic: str, form: str) -> None:
    refused = call(f"{form} --topic {topic}-.*")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        "Error: Delete 2 topics with all records? Nobody can be asked here, and --yes was not given. It would be "
        f"{two[0]} (1 partition, replication factor 1), {two[1]} (1 partition, replication factor 1)\n"
    )
    assert remaining(call, two) == two
    assert call(f"{form} --topic {topic}-.* --yes") == Outcome(0, "", "")
    assert remaining(call, two) == []


def test_a_pattern_that_is_a_name_too_is_still_a_pattern_where_it_reaches_others(call: Call, topic: str) -> None:
    names = [f"{topic}.x", f"{topic}-x"]
    assert call("topics create", *names).code == 0
    refused = call(f"topics --delete --topic {topic}.x")
    assert refused.code == 1
    assert "Delete 2 topics" in refused.err
    assert call("topics delete", names[0]) == Outcome(0, "", "")
    assert remaining(call, names) == names[1:]


def test_names_between_commas_are_exact_names(call: Call, two: list[str]) -> None:
    assert call(f"topics --delete --topic {','.join(two)}") == Outcome(0, "", "")
    assert remaining(call, two) == []


def test_internal_topics_go_by_their_names_alone_and_when_asked_for(call: Call, run: Call, topic: str) -> None:
    call("topics create", topic)
    run(f"consume --topic {topic} --group {topic} --timeout-ms 1")
    internal = [name for name in call("topics --list").lines if name.startswith("__")]
    assert "__consumer_offsets" in internal  # and `__transaction_state`, where a transaction was run before
    for flags in ("--topic .*", "--topic .* --internal"):
        kept = call(f"topics delete {flags}")
        assert kept.code == 1
        assert kept.err.startswith(f"Internal topics stay: {', '.join(internal)}\nError: Delete ")
    refused = call("topics delete __consumer_offsets")
    assert refused == Outcome(
        1,
        "",
        "Error: '__consumer_offsets' is internal, and what it keeps of groups or transactions would be lost: "
        "--internal deletes it\n",
    )
    assert "__consumer_offsets" in call("topics --list").lines
    assert call("topics delete __consumer_offsets --internal").code == 0
    assert "__consumer_offsets" not in call("topics --list").lines


def test_of_many_that_would_go_some_are_shown_and_the_others_counted(call: Call, topic: str) -> None:
    call("topics create", *(f"{topic}-{number}" for number in range(23)))
    refused = call(f"topics delete --topic {topic}-.*")
    assert "Delete 23 topics" in refused.err
    assert refused.err.endswith(", … and 3 more\n")
    assert call(f"topics delete --topic {topic}-.* --yes").code == 0


@pytest.mark.parametrize(("answer", "code", "left"), [(b"n\n", 1, 2), (b"\n", 1, 2), (b"y\n", 0, 0), (b"\x03", 130, 2)])
def test_a_person_at_a_terminal_sees_what_goes_and_is_asked(
    call: Call, bootstrap: str, two: list[str], topic: str, answer: bytes, code: int, left: int
) -> None:
    arguments = ["topics", "delete", "--bootstrap-server", bootstrap, *(two if code else ["--topic", f"{topic}-.*"])]
    ended, shown = at_terminal(arguments, answer=answer)
    assert all(name in shown for name in two)
    assert "Delete 2 topics with all records" in shown
    assert ended == code
    assert len(remaining(call, two)) == left
