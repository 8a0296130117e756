"""`pykbroker delete-records` against a broker."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from pykbroker.cli.main import main
from tests.cli.conftest import Outcome
from tests.cli.terminals import at_terminal

Call = Callable[..., Outcome]


def offsets_file(path: Path, *rows: tuple[str, int, int]) -> Path:
    partitions = [{"topic": topic, "partition": index, "offset": offset} for topic, index, offset in rows]
    file = path / "offsets.json"
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return file


def test_each_partition_is_told_its_low_watermark_or_what_is_wrong(
    call: Call, topic: str, given: Callable[..., None], tmp_path: Path
) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    given(topic, *[b"value"] * 5)
    file = offsets_file(tmp_path, (topic, 0, 3), (topic, 1, 0))
    done = call(f"delete-records --offset-json-file {file}")
    assert done == Outcome(
        0,
        "Executing records delete operation\n"
        "Records delete operation completed:\n"
        f"partition: {topic}-0\tlow_watermark: 3\n"
        f"partition: {topic}-1\terror: Topic '{topic}' has no partition 1\n",
        "",
    )
    everything = call(f"delete-records --offset-json-file {offsets_file(tmp_path, (topic, 0, -1))}")
    assert everything.lines[-1] == f"partition: {topic}-0\tlow_watermark: 5"
    too_far = call(f"delete-records --offset-json-file {offsets_file(tmp_path, (topic, 0, 6))}")
    assert too_far.lines[-1].startswith(f"partition: {topic}-0\terror: ")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not JSON"),
        ("[]", "lacks the list of partitions"),
        ('{"version": 2, "partitions": []}', "has the version 2, not 1"),
        ('{"partitions": [{"topic": "t"}]}', 'without topic, partition and offset: {"topic": "t"}'),
        (
            json.dumps({"partitions": [{"topic": "t", "partition": 0, "offset": offset} for offset in (1, 2)]}),
            "names t-0 twice",
        ),
    ],
)
def test_a_file_that_says_nothing_sound_is_one_line(call: Call, tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(text)
    refused = call(f"delete-records --offset-json-file {file}")
    assert (refused.code, refused.out) == (1, "")
    assert reason in refused.err
    assert len(refused.err.splitlines()) == 1


def test_a_missing_file_is_one_line(call: Call, tmp_path: Path) -> None:
    refused = call(f"delete-records --offset-json-file {tmp_path}/none.json")
    assert (refused.code, refused.err) == (1, f"Error: Cannot read {tmp_path}/none.json: No such file or directory\n")


def test_without_a_broker_it_is_one_line(tmp_path: Path) -> None:
    file = offsets_file(tmp_path, ("t", 0, 3), ("t", 1, 3))
    flags = ["--bootstrap-server", "127.0.0.1:1", "--offset-json-file", str(file)]
    result = CliRunner().invoke(main, ["delete-records", *flags])
    assert result.exit_code == 1
    assert result.stderr == "Error: No broker can be reached (127.0.0.1:1: Connection refused)\n"


# In words


@pytest.fixture
def filled(call: Call, topic: str, given: Callable[..., None]) -> str:
    """A topic with one partition and five records."""
    call(f"topics create {topic} --partitions 1")
    given(topic, *[b"value"] * 5)
    return topic


@pytest.mark.parametrize(("before", "low_watermark"), [("3", 3), ("end", 5), ("end-1", 4)])
def test_records_are_deleted_up_to_a_place(call: Call, filled: str, before: str, low_watermark: int) -> None:
    done = call(f"delete-records --topic {filled} --partition 0 --before {before} --yes --json")
    assert json.loads(done.out) == [
        {"topic": filled, "partition": 0, "low_watermark": low_watermark, "error": None},
    ]
    assert (done.code, done.err) == (0, "")


def test_records_are_deleted_up_to_a_time(call: Call, filled: str) -> None:
    nothing = call(f"delete-records --topic {filled} --yes --before", "1h ago")
    assert nothing.lines[-1] == f"partition: {filled}-0\tlow_watermark: 0"
    assert call(f"delete-records --topic {filled} --yes --before now").lines[-1].endswith("low_watermark: 5")


def test_an_offset_of_a_partition_is_named_and_all_else_needs_a_yes(call: Call, filled: str) -> None:
    assert call(f"delete-records --topic {filled} --partition 0 --before 1").code == 0
    for flags in ("--before 2", "--partition 0 --before end", "--partition 0 --before now"):
        refused = call(f"delete-records --topic {filled} {flags}")
        assert (refused.code, refused.out) == (1, "")
        assert "Nobody can be asked here, and --yes was not given" in refused.err
        assert f"{filled}-0 up to offset " in refused.err
    assert call(f"delete-records --topic {filled} --partition 0 --before 1").lines[-1].endswith("low_watermark: 1")


@pytest.mark.parametrize(("answer", "code", "low"), [(b"n\n", 1, 0), (b"y\n", 0, 3)])
def test_a_person_sees_how_many_records_go_and_is_asked(
    call: Call, bootstrap: str, filled: str, tmp_path: Path, answer: bytes, code: int, low: int
) -> None:
    flags = ["--topic", filled, "--before", "3"], ["--offset-json-file", str(offsets_file(tmp_path, (filled, 0, 3)))]
    for given_by in flags:
        line = ["delete-records", "--bootstrap-server", bootstrap, *given_by]
        ended, shown = at_terminal(line, answer=answer)
        assert ended == code
        if given_by is flags[0] or code:
            assert f"{filled}-0 up to offset 3 (3)" in shown
            assert "Delete up to 3 records of 1 partition? [y/N]" in shown
    assert call(f"delete-records --topic {filled} --partition 0 --before 0").lines[-1].endswith(f"low_watermark: {low}")


def test_what_is_not_there_is_one_line(call: Call, filled: str) -> None:
    missing = call(f"delete-records --topic {filled}x --before end")
    assert missing.err.startswith(f"Error: There is no topic '{filled}x'. Did you mean '{filled}'")
    missing = call(f"delete-records --topic {filled} --partition 7 --before end")
    assert missing.err == f"Error: Topic '{filled}' has no partition 7\n"
    too_far = call(f"delete-records --topic {filled} --partition 0 --before 6 --json")
    assert too_far.code == 1
    assert json.loads(too_far.out)[0]["low_watermark"] is None


def test_a_file_may_name_what_is_not_there_and_a_person_sees_it(bootstrap: str, filled: str, tmp_path: Path) -> None:
    file = offsets_file(tmp_path, (filled, 0, -1), (f"{filled}-gone", 0, 1), (filled, 7, 1))
    line = ["delete-records", "--bootstrap-server", bootstrap, "--offset-json-file", str(file)]
    ended, shown = at_terminal(line, answer=b"n\n")
    assert ended == 1
    assert f"{filled}-0 up to offset 5 (5)" in shown
    assert shown.count("(has no leader, or does not exist)") == 2
