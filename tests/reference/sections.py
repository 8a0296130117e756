"""The sections of the broker's keys, in the order in which somebody sets a broker up."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pykbroker.config import own_keys


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page. pattern: of the whole name of a key."""

    title: str
    text: str
    pattern: str


SECTIONS: Final = (
    Section(
        "pykbroker's own",
        "Keys that Kafka does not have; [console.md](../console.md) and [metrics.md](../metrics.md) say more.",
        "|".join(map(re.escape, own_keys())),
    ),
    Section(
        "Shares, streams and tiers",
        "Share groups, streams groups and tiered storage, which are not served.",
        r"group\.share\..*|share\..*|group\.streams\..*|remote\..*|log\.local\..*|follower\.fetch\.last\.tiered.*",
    ),
    Section(
        "The node",
        "What the node is, and its place in the cluster.",
        r"node\.id|broker\..*|process\.roles|controlled\.shutdown.*|initial\.broker.*|server\.max\.startup.*|config\.providers",
    ),
    Section(
        "Listeners and connections",
        "How a node is reached, and by how many.",
        r"(advertised\.|early\.start\.)?listeners|listener\..*|inter\.broker\.listener\.name|security\.inter\.broker\.protocol"
        r"|socket\..*|max\.connection.*|connections\.max\.idle\.ms|connection\.failed\..*|queued\..*|num\.(io|network)\.threads"
        r"|background\.threads|request\.timeout\.ms",
    ),
    Section(
        "Controllers",
        "The quorum of controllers, and the metadata log.",
        r"controller\.(?!quota).*|(internal\.)?metadata\..*",
    ),
    Section("TLS", "Of all listeners, or of one ([security.md](../security.md)).", r"ssl\..*"),
    Section(
        "SASL and tokens",
        "Log-ins, and delegation tokens ([security.md](../security.md)).",
        r"sasl\..*|connections\.max\.reauth\.ms|delegation\..*",
    ),
    Section(
        "Rights and policies",
        "Who may do what ([security.md](../security.md)), and code of one's own that decides.",
        r"authorizer\..*|super\.users|allow\.everyone.*|principal\..*|.*\.policy\.class\.name|security\.providers",
    ),
    Section(
        "Topics",
        "What a topic has whose creator does not say, and who leads its partitions.",
        r"auto\.create.*|delete\.topic.*|num\.partitions|default\.replication.*|min\.insync.*|unclean\..*|auto\.leader.*"
        r"|leader\.imbalance.*|max\.request\.partition.*",
    ),
    Section("Compaction", "The cleaner of compacted topics.", r"log\.cleaner\..*"),
    Section(
        "Logs and retention",
        "Directories, segments, and how long records are kept. Most are defaults of a topic's keys.",
        r"log\..*|(message\.max|max\.decompressed\.message)\.bytes|compression\..*|num\.recovery.*|cordoned\..*|delete\.records.*",
    ),
    Section(
        "Replication",
        "Followers, their throttles, and moves between directories.",
        r"replica\..*|num\.replica.*|(leader|follower)\.replication.*|replication\..*|alter\.log\.dirs.*",
    ),
    Section("Fetches", "What consumers are answered.", r"fetch\..*|max\.incremental.*"),
    Section("Groups and offsets", "Consumer groups of both protocols.", r"group\..*|offset.*|errors\..*"),
    Section(
        "Transactions and producers", "Idempotence, transactions.", r"transaction.*|producer\..*|add\.partitions.*"
    ),
    Section("Quotas", "Windows in which clients are measured.", r"(controller\.|client\.)?quota\..*"),
    Section("Metrics and telemetry", "Kafka's reporters.", r"metrics?\..*|kafka\.metrics.*|telemetry\..*"),
    Section("What is unstable", "APIs and features that are not released.", r"unstable\..*"),
)
OTHERS: Final = Section("Others", "", r".*")


def by_section(names: Iterable[str]) -> dict[Section, list[str]]:
    """Return the names of each section, sorted; a name goes to the first section that takes it."""
    found: dict[Section, list[str]] = {section: [] for section in (*SECTIONS[2:], SECTIONS[1], SECTIONS[0], OTHERS)}
    for name in sorted(names):
        found[next(each for each in (*SECTIONS, OTHERS) if re.fullmatch(each.pattern, name))].append(name)
    return {section: taken for section, taken in found.items() if taken}
