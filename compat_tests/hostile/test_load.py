"""A few of the attacks on every run; `make hostile` has all of them, longer, and with figures.

The bounds are far from what is measured on a quiet machine: an attack that finds its way is off by orders of magnitude.
"""

from pathlib import Path

import pytest

from compat_tests.loop_holds import LONGEST_MS

from .load.every_attack import ATTACKS
from .load.measurement import measure

SECONDS = 1.5
MOST_MIB = 256
TELLING = (
    "Produce: 31 million empty headers in 5 kB of zstd",
    "Produce: 400,000 empty gzip members",
    "Produce: 2,000 partitions, a zstd bomb in each",
    "DescribeConfigs: one broker 10,000 times",
    "Metadata: 200,000 unknown names, 133 answers unread",
    "Fetch: 100,000 unknown partitions, 60 that wait",
    "Fetch: clients that leave while it waits",
    "1,000 connections with 1 MB of 100 announced",
    "TLS: 1,000 half-open handshakes",
    "TLS: data, a byte a record",
    "TLS: new keys in each record",
)


@pytest.mark.parametrize("name", TELLING)
def test_an_honest_client_is_served_beside(name: str, tmp_path: Path) -> None:
    felt = measure(name, tmp_path / "broker", SECONDS, settled_within_s=0)
    assert felt.is_alive
    assert felt.serves_again
    assert not felt.errors
    assert felt.peak_mib <= MOST_MIB
    assert felt.longest_hold is None or felt.longest_hold.cpu_ms <= LONGEST_MS


def test_every_telling_attack_is_one() -> None:
    assert set(TELLING) <= ATTACKS.keys()
