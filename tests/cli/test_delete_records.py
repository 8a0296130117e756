"""`pykbroker delete-records` against a broker."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from pykbroker.cli.main import main
from tests.cli.conftest import Outcome

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
