"""The configuration reference: a page for each kind of key, and one that leads to all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, get_args

from pykbroker.config.texts import Kind

from .entries import Entry, entries_of
from .sections import by_section
from .words import MADE, anchor, code, default_of

KINDS: Final[tuple[Kind, ...]] = tuple(sorted(get_args(Kind), key=lambda kind: kind != "broker"))
TITLES: Final = {
    "broker": "Keys of a node",
    "topic": "Keys of a topic",
    "group": "Keys of a group",
    "client-metrics": "Keys of a subscription of client metrics",
}
_INTRODUCTIONS: Final = {
    "broker": """
What stands in `server.properties` of a broker or controller, in `--override KEY=VALUE`, or in `KAFKA_…` variables of
a container. [configuration-reference.md](../configuration-reference.md) says how to read an entry, and has all keys
by name.

**Keys of one listener.** Those of TLS and SASL, `max.connections` and `max.connection.creation.rate` may be given for
one listener, with its name in lower case: `listener.name.internal.ssl.client.auth=required`. A key of SASL may be
given for one mechanism of it: `listener.name.internal.scram-sha-256.sasl.jaas.config`. A key that protects, for a
listener that nobody has, ends the start.

**Keys of the console's connections.** `console.client.` and a key of [clients](clients.md) is what the console
connects to its broker with, such as `console.client.ssl.truststore.location`.
""",
    "topic": """
What `pykbroker topics create --config KEY=VALUE` and `pykbroker configs alter topic NAME --set KEY=VALUE` take. A
topic without a key has the value of the broker's key, as the broker has it then; where several are named, the first
that is set counts.
""",
    "group": """
What `pykbroker configs alter group NAME --set KEY=VALUE` takes, for groups of the consumer protocol (KIP-848). A
group without a key has the value of the broker's key, whose `group.consumer.min.…` and `.max.…` are its bounds.
""",
    "client-metrics": """
What `pykbroker configs alter client-metrics NAME --set KEY=VALUE` takes (KIP-714): which metrics clients push, how
often, and which clients do.
""",
}


def page_of_kind(kind: Kind) -> str:
    """Return the page of all keys of one kind."""
    entries = entries_of(kind)
    title = TITLES.get(kind, f"Keys of {kind}")
    lines = [MADE, "", f"# {title}", *_INTRODUCTIONS.get(kind, "\n").splitlines(), ""]
    lines += _in_sections(entries) if kind == "broker" else [line for entry in entries for line in _lowered(entry)]
    return "\n".join(lines).rstrip() + "\n"


def _lowered(entry: Entry) -> Iterator[str]:
    """Yield an entry on a page without sections."""
    return (line.removeprefix("#") if line.startswith("### ") else line for line in entry.lines())


def _in_sections(entries: Sequence[Entry]) -> Iterator[str]:
    entry_of = {each.name: each for each in entries}
    sections = by_section(entry_of)
    for section in sections:
        yield f"- [{section.title}](#{anchor(section.title)}): {len(sections[section])} keys"
    for section, names in sections.items():
        yield from ("", f"## {section.title}", "", *([section.text, ""] if section.text else []))
        for name in names:
            yield from entry_of[name].lines()


def index_page() -> str:
    """Return the page that leads to all keys."""
    entries = {kind: entries_of(kind) for kind in KINDS}
    of_brokers = entries["broker"]
    lines = [MADE, "", "# Configuration reference", *_READING.splitlines(), "", "| page | keys |", "|---|---|"]
    lines += [f"| [{TITLES.get(kind, kind)}](reference/{kind}.md) | {len(found)} |" for kind, found in entries.items()]
    lines += _OTHER_PAGES.splitlines()
    lines += _section("Defaults that are not Kafka's", _DEFAULTS, _defaults(of_brokers))
    lines += _section("Keys that end the start", _ENDING, _links(each for each in of_brokers if each.ends_the_start))
    silent = [each for each in of_brokers if each.is_without_effect]
    lines += _section("Keys without effect", _WITHOUT_EFFECT, _links(silent))
    every = [each for found in entries.values() for each in found]
    lines += _section("All keys by name", "", _table(sorted(every, key=lambda each: (each.name, each.kind))))
    return "\n".join(lines).rstrip() + "\n"


def _section(title: str, text: str, lines: Iterable[str]) -> list[str]:
    return ["", f"## {title}", *text.splitlines(), "", *lines]


def _link(entry: Entry) -> str:
    return f"[{code(entry.name)}](reference/{entry.kind}.md#{anchor(entry.name)})"


def _links(entries: Iterable[Entry]) -> list[str]:
    return [f"- {_link(each)}" for each in entries]


def _defaults(entries: Iterable[Entry]) -> Iterator[str]:
    yield from ("| key | here | in Kafka |", "|---|---|---|")
    for each in entries:
        if each.has_other_default and each.of_kafka is not None:
            of_kafka = "none" if each.of_kafka.default is None else code(each.of_kafka.default)
            yield f"| {_link(each)} | {code(each.default or '')} | {of_kafka} |"


def _table(entries: Iterable[Entry]) -> Iterator[str]:
    yield from ("| key | of | type | |", "|---|---|---|---|")
    for each in entries:
        state = "no effect" if each.is_without_effect else "not served" if each.ends_the_start else ""
        yield f"| {_link(each)} | {each.kind} | {each.key.type} | {state or default_of(each.default)} |"


_READING: Final = """
Every key that pykbroker knows: the keys of Apache Kafka 4.3, by Kafka's names, and a few of its own.
[configuration.md](configuration.md) says where keys are set and which value wins. A running broker tells the same of
the keys that it has, with the place where each was set:

<!-- first: pykbroker start --ephemeral -->

```console
pykbroker configs describe broker 1 --all --explain | grep -A 1 ' num.partitions='
```

```text
  num.partitions=1 sensitive=false synonyms={DEFAULT_CONFIG:num.partitions=1}
    How many partitions a topic has whose creator does not say.
```

An entry has the **type** by Kafka's name of it, what is **valid**, and the **default**. A `list` has commas between
its values, a `boolean` is `true` or `false`. A key that is *read-only* counts from the next start on. Others change
at run time by `pykbroker configs alter broker`: those of *one broker* with its id (`alter broker 1`), those of *all*
also with `--default`. **Here** stands what is not as in Apache Kafka."""
_OTHER_PAGES: Final = """| [Keys of quotas](reference/quotas.md) | 5 |
| [Environment variables of a container](reference/variables.md) | |
| [Properties of commands, `--command-config`](reference/clients.md) | |"""
_DEFAULTS: Final = """
Where Kafka has no default, the key must be given there. Some keys have Kafka's default in descriptions and do
something else where they are not given; their entries say so: `controller.quorum.append.linger.ms`,
`queued.max.request.bytes`, `socket.receive.buffer.bytes`, `socket.send.buffer.bytes`. `start --dev` has [defaults of
its own](development.md)."""
_ENDING: Final = """
Kafka guards something by these keys, and pykbroker does not serve them. Where one is set to a value that would
protect, the start ends with a line that names it, since the broker would be open where it is meant to be closed."""
_WITHOUT_EFFECT: Final = """
These may be set, and change nothing: what they are about is not there, or works in another way. A start says which of
them it was given."""
