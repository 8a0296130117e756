"""`pykbroker start --as` and `pykbroker probe`: a node offers what a personality says, and says what it cannot.

`docs/personality-differences.md` has every difference of a probe of `start --as X` from the personality X;
PYKBROKER_REWRITE=1 writes it anew.
"""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from compat_tests.brokers import Pykbroker, pykbroker_command
from compat_tests.wire import Closed, Wire, decode_answer
from pykbroker.personality.differences import Difference, differences
from pykbroker.personality.shipped import shipped, shipped_names
from pykbroker.personality.toml_file import read_personality
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.cli.conftest import TIMEOUT_S, Outcome

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "personality-differences.md"
REWRITE: Final = os.environ.get("PYKBROKER_REWRITE") == "1"


def call(*arguments: str | Path) -> Outcome:
    """A command as a process."""
    done = subprocess.run(
        pykbroker_command(*map(str, arguments)), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


class PykbrokerAs(Pykbroker):
    """A broker with a personality, by its name or file."""

    def __init__(self, directory: Path, name: str, properties: dict[str, str] | None = None) -> None:
        super().__init__(directory, properties)
        del self.properties["group.initial.rebalance.delay.ms"]  # which the personality has
        self.properties |= properties or {}
        self._name = name

    def command(self) -> list[str]:
        return [*super().command(), "--as", self._name]


@contextmanager
def running(broker: Pykbroker) -> Iterator[Pykbroker]:
    broker.start()
    try:
        yield broker
    finally:
        broker.close()


def probed(broker: Pykbroker, file: Path, *options: str) -> Outcome:
    done = call("probe", broker.bootstrap, "-o", file, *options)
    assert done.code == 0, done.err
    return done


def section(name: str, found: list[Difference]) -> list[str]:
    """The rows of the page for one personality."""
    return [
        f"## {name}",
        "",
        f"| | {shipped(name).software} | `pykbroker start --as {name}` |",
        "|---|---|---|",
        *(f"| {each.table} {each.name} | {shown(each.left)} | {shown(each.right)} |" for each in found),
        "",
    ]


def shown(value: str | None) -> str:
    return "" if value is None else value.replace("|", "\\|") or '""'


def sections(page: str) -> dict[str, list[str]]:
    parts = ("\n" + page).split("\n## ")
    return {
        part.partition("\n")[0]: [f"## {line}" if not n else line for n, line in enumerate(part.split("\n"))]
        for part in parts[1:]
    }


@pytest.mark.parametrize("name", shipped_names())
def test_a_probe_gives_the_personality_again_but_for_what_the_page_lists(name: str, tmp_path: Path) -> None:
    with running(PykbrokerAs(tmp_path / "broker", name)) as broker:
        probed(broker, tmp_path / "probed.toml", "--thorough")
        log = broker.log_text()
    rows = section(name, list(differences(shipped(name), read_personality(tmp_path / "probed.toml"))))
    if REWRITE:
        text = PAGE.read_text()
        before = sections(text)
        head = text.partition("\n## ")[0].rstrip("\n")
        kept = {each: "\n".join(before.get(each, [])).rstrip("\n") for each in shipped_names()}
        kept[name] = "\n".join(rows).rstrip("\n")
        PAGE.write_text("\n\n".join([head, *filter(None, kept.values())]) + "\n")
    listed = sections(PAGE.read_text())[name]
    assert "\n".join(rows).rstrip("\n") == "\n".join(listed).rstrip("\n")
    assert f"{shipped(name).software} has these versions, and pykbroker has not: Produce 0-2" in log


def test_a_probe_changes_nothing(tmp_path: Path) -> None:
    with running(Pykbroker(tmp_path / "broker")) as broker:
        done = probed(broker, tmp_path / "probed.toml")
        topics = call("topics", "--list", "--bootstrap-server", broker.bootstrap)
        groups = call("groups", "--list", "--bootstrap-server", broker.bootstrap)
        transactions = call("transactions", "--bootstrap-server", broker.bootstrap, "list")
        log = broker.log_text()
    assert "not asked, since __consumer_offsets does not exist" in done.err
    assert (topics.code, topics.out) == (0, "")
    assert (groups.code, groups.out) == (0, "")
    assert transactions.code == 0
    assert len(transactions.lines) <= 1
    assert "CreateTopics" not in log


def test_a_probe_goes_to_the_screen_and_is_a_personality(tmp_path: Path) -> None:
    with running(Pykbroker(tmp_path / "broker")) as broker:
        done = call("probe", broker.bootstrap, "--software", "mine")
    assert done.code == 0
    (tmp_path / "mine.toml").write_text(done.out)
    found = read_personality(tmp_path / "mine.toml")
    assert (found.software, found.brokers, found.authorizer) == ("mine", 1, False)


def test_nobody_is_there_to_be_probed() -> None:
    done = call("probe", "127.0.0.1:1")
    assert (done.code, done.out) == (1, "")
    assert "127.0.0.1:1" in done.err


def versions_answer(wire: Wire, version: int) -> ApiVersionsResponse:
    """An answer that is perhaps of version 0, whichever was asked for."""
    wire.send_raw(struct.pack(">ihhihb", 11, 18, version, 1, -1, 0))
    frame = wire.receive()
    answer = decode_answer(frame, 18, 0)
    assert isinstance(answer, ApiVersionsResponse)
    return answer


def test_other_versions_are_refused_as_by_that_kafka(tmp_path: Path) -> None:
    with running(PykbrokerAs(tmp_path / "broker", "2.1")) as broker, Wire(broker.address) as wire:
        refused = versions_answer(wire, 3)
        assert (refused.error_code, refused.api_keys) == (35, [])
        answer = wire.call(ApiVersionsRequest(), 2)
        assert isinstance(answer, ApiVersionsResponse)
        assert (answer.error_code, answer.supported_features) == (0, [])
        assert isinstance(wire.call(MetadataRequest(topics=[]), 7), MetadataResponse)
        with pytest.raises(Closed):
            wire.call(MetadataRequest(topics=[]), 8)
    assert "MetadataRequest version 8 is not served" in broker.log_text()


def test_later_releases_name_the_versions_of_api_versions(tmp_path: Path) -> None:
    with running(PykbrokerAs(tmp_path / "broker", "2.8")) as broker, Wire(broker.address) as wire:
        refused = versions_answer(wire, 4)
    assert refused.error_code == 35
    assert [(each.api_key, each.min_version, each.max_version) for each in refused.api_keys] == [(18, 0, 3)]


def test_properties_of_the_node_win(tmp_path: Path) -> None:
    with running(PykbrokerAs(tmp_path / "broker", "2.1", {"message.max.bytes": "5000"})) as broker:
        probed(broker, tmp_path / "probed.toml")
    assert read_personality(tmp_path / "probed.toml").limits["message.max.bytes"] == 5000
    assert read_personality(tmp_path / "probed.toml").limits["group.max.session.timeout.ms"] == 300_000


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("--as 2.7", "--as: there is no personality '2.7' (did you mean 2.8?); there are 2.1, 2.8, 3.9, 4.0, 4.3, 4.4"),
        ("--as ./none.toml", "--as: none.toml: No such file or directory"),
        ("--as 2.8 --override controller.quorum.voters=1@127.0.0.1:1,2@127.0.0.1:2", "--as needs a listener"),
    ],
)
def test_what_cannot_be_started_is_one_line(tmp_path: Path, arguments: str, complaint: str) -> None:
    done = call("start", "--ephemeral", *arguments.split())
    assert done.code == 1
    assert complaint in done.err
    assert "Traceback" not in done.err
