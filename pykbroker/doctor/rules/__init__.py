"""Rules: from facts to findings, without a network or a clock. A module for each part of a cluster:

- `connecting`: what an outcome of a knock means.
- `entry`: bootstrap servers, certificates, the age of the broker.
- `advertised`: the addresses that brokers hand out.
- `cluster`: controllers, fenced brokers, the clock.
- `partitions`, `groups`, `disks`, `settings`.
"""

from __future__ import annotations

from ..facts import Facts
from ..findings import Finding, Severity
from .advertised import loopback, of_addresses
from .cluster import of_cluster
from .disks import of_disks
from .entry import of_entry
from .groups import of_groups
from .partitions import of_partitions
from .settings import of_settings


def findings_of(facts: Facts, security_protocol: str, now_s: float) -> list[Finding]:
    """All findings, errors first. now_s: since 1970."""
    found = [
        *of_entry(facts, security_protocol, now_s),
        *of_addresses(facts, security_protocol),
        *loopback(facts),
        *of_cluster(facts),
        *of_partitions(facts),
        *of_groups(facts),
        *of_disks(facts),
        *of_settings(facts),
    ]
    return sorted(found, key=lambda each: each.severity is not Severity.ERROR)
