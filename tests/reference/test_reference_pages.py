"""The pages that are made of the code: they are in step with it, lead somewhere, and leave nothing out."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from pykbroker.config.texts import Kind, text_of
from pykbroker.quotas.entities import IP_KEYS, USER_AND_CLIENT_KEYS
from pykbroker.server.node.handlers import HANDLERS
from pykbroker.server.quorum.forwarding import FORWARDABLE

from . import api_tables, remarks
from .client_properties import OF_ALL, OF_CONSUMERS, OF_PRODUCERS
from .config_pages import KINDS
from .entries import Entry, entries_of
from .kafka_keys import NOT_OFFERED, kafka_keys
from .pages import DOCS, ROOT, stale_pages, with_parts
from .quotas import MEANINGS
from .sections import OTHERS, by_section
from .variables import documented, special
from .words import anchor, valid_of

OTHER_DEFAULTS = {
    "broker.id",
    "controller.listener.names",
    "listeners",
    "node.id",
    "process.roles",
}
"""Keys that need not be given here, or are for one machine, or name what is served."""
OTHERWISE_IN_FORMATS = re.compile(r"(key|value|header|headers|line|null|parse|print|ignore)\.|bootstrap\.servers")
"""Properties of `--formatter-property` and `--reader-property`, which docs/terminal.md has, and what a flag says."""
_READ = re.compile(r'(?:properties(?:\.get\(|\[)|whole_number\((?:flags\.)?properties, )"([a-z.]+)"')


def test_the_pages_are_in_step_with_the_code() -> None:
    stale = [str(path.relative_to(ROOT)) for path in stale_pages()]
    assert stale == [], "make reference"


def test_a_page_that_differs_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(remarks.OF_KIND["broker"], "num.partitions", "Not as it was.")
    assert set(stale_pages()) == {DOCS / "reference" / "broker.md"}


def test_a_part_without_its_marks_is_refused() -> None:
    page = "a\n<!-- made of the code: x -->\nold\n<!-- end of x -->\nb\n"
    assert with_parts(page, {"x": "new"}) == "a\n<!-- made of the code: x -->\n\nnew\n\n<!-- end of x -->\nb\n"
    with pytest.raises(ValueError, match="made of the code: y"):
        with_parts(page, {"y": "new"})


@pytest.mark.parametrize("kind", KINDS)
def test_each_key_has_an_anchor_of_its_own(kind: Kind) -> None:
    page = (DOCS / "reference" / f"{kind}.md").read_text()
    anchors = Counter(anchor(line.lstrip("# ")) for line in page.splitlines() if line.startswith("#"))
    assert [name for name, times in anchors.items() if times > 1] == []
    assert {anchor(each.name) for each in entries_of(kind)} <= anchors.keys()


def test_every_key_of_a_node_has_a_section() -> None:
    assert OTHERS not in by_section(each.name for each in entries_of("broker"))
    assert by_section(["no.such.key"]) == {OTHERS: ["no.such.key"]}


def test_every_key_that_kafka_documents_is_there() -> None:
    for kind in ("broker", "topic", "group"):
        offered = {name for name in kafka_keys(kind) if kind != "group" or not name.startswith(NOT_OFFERED)}
        assert offered
        assert offered <= {each.name for each in entries_of(kind)}


def test_defaults_that_are_not_kafkas_are_known() -> None:
    entries = [each for kind in KINDS for each in entries_of(kind)]
    assert {each.name for each in entries if each.has_other_default} == OTHER_DEFAULTS


def test_remarks_are_about_keys_that_are_there() -> None:
    for kind, said in remarks.OF_KIND.items():
        assert said.keys() <= {each.name for each in entries_of(kind)}


def entry(name: str, kind: Kind = "broker") -> Entry:
    return next(each for each in entries_of(kind) if each.name == name)


def test_an_entry_says_when_a_key_counts_and_what_differs() -> None:
    assert list(entry("listeners").lines()) == [
        "### listeners",
        "",
        text_of("listeners"),
        "",
        "- list; default `PLAINTEXT://127.0.0.1:9092`",
        "- changes at run time, of one broker (per-broker)",
        "- in a container: `KAFKA_LISTENERS`",
        "- **Here**: `--port` of the command line wins over the port. Kafka's default is `PLAINTEXT://:9092`.",
        "",
    ]
    assert "- string; no default" in entry("broker.rack").lines()
    assert "- password; no default; never shown" in entry("ssl.key.password").lines()
    assert entry("num.io.threads").is_without_effect
    assert entry("principal.builder.class").ends_the_start
    assert "- **Here**: Kafka has no default." in entry("node.id").lines()
    assert "- of Kafka, which does not document it" in entry("unclean.leader.election.interval.ms").lines()
    assert "for one listener" in entry("ssl.keystore.location").changes
    assert entry("num.replica.fetchers").changes.startswith("changes at run time")
    assert "a change at run time is refused" in entry("sasl.mechanism.inter.broker.protocol").changes
    (synonyms,) = [line for line in entry("retention.ms", "topic").lines() if "broker.md" in line]
    assert "(broker.md#logretentionms), " in synonyms
    assert synonyms.endswith("then [`log.retention.hours`](broker.md#logretentionhours)")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("num.partitions", "at least 1"),
        ("compression.gzip.level", "1 to 9, or -1"),
        ("process.roles", "some of `broker` and `controller`"),
        ("group.consumer.migration.policy", "`DISABLED`, `DOWNGRADE`, `UPGRADE` or `BIDIRECTIONAL` in any case"),
        ("remote.log.metadata.manager.class.name", "not empty"),
        ("broker.rack", ""),
    ],
)
def test_what_a_key_allows_is_said_in_words(name: str, words: str) -> None:
    assert valid_of(entry(name).key) == words


def test_every_key_of_quotas_is_documented() -> None:
    page = (DOCS / "reference" / "quotas.md").read_text()
    assert set(re.findall(r"^### (\w+)$", page, re.MULTILINE)) == {*USER_AND_CLIENT_KEYS, *IP_KEYS} == set(MEANINGS)
    assert f"(reference/quotas.md) | {len(MEANINGS)} |" in (DOCS / "configuration-reference.md").read_text()


def test_every_variable_with_a_meaning_of_its_own_is_documented() -> None:
    assert documented() == special()


def test_every_property_that_commands_act_on_is_documented() -> None:
    files = [ROOT / "pykbroker" / "client" / "from_properties.py", *(ROOT / "pykbroker" / "cli").glob("perf_*.py")]
    files += [
        ROOT / "pykbroker" / "cli" / f"{name}.py" for name in ("producer_settings", "consume_flags", "consume_run")
    ]
    read = {name for path in files for name in _READ.findall(Path(path).read_text())}
    assert len(read) > 10
    known = {*OF_ALL, *OF_PRODUCERS, *OF_CONSUMERS}
    assert {name for name in read - known if not OTHERWISE_IN_FORMATS.match(name)} == set()


def test_what_a_broker_forwards_is_what_envelopes_may_hold() -> None:
    brokers = HANDLERS.broker.by_api_key
    assert {key for key, handler in brokers.items() if api_tables.is_forwarded(handler)} == {
        int(key) for key in FORWARDABLE
    }
