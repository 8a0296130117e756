"""Findings about log directories. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..facts import Directory, Facts
from ..findings import Finding, error, warning

_FULL_SHARE: Final = 0.01
_NEARLY_FULL_SHARE: Final = 0.10


def of_disks(facts: Facts) -> Iterator[Finding]:
    for each in facts.directories:
        subject = f"broker {each.node_id}: {each.path}"
        if each.error is not None:
            yield error(
                "directory-offline",
                subject,
                f"the log directory is out of service ({each.error})",
                "Its partitions are led elsewhere, or nowhere. See the broker's log and the disk; a restart takes it "
                "into service again.",
            )
        elif _share(each) < _FULL_SHARE:
            yield error(
                "disk-full", subject, _room(each), "Make room now: a broker whose disk is full takes no records."
            )
        elif _share(each) < _NEARLY_FULL_SHARE:
            yield warning(
                "disk-nearly-full",
                subject,
                _room(each),
                "Make room, or bound what is kept (retention.bytes, retention.ms).",
            )


def _share(directory: Directory) -> float:
    if directory.usable_bytes is None or not directory.total_bytes:
        return 1.0
    return directory.usable_bytes / directory.total_bytes


def _room(directory: Directory) -> str:
    assert directory.usable_bytes is not None
    assert directory.total_bytes is not None
    return (
        f"{_share(directory):.1%} of its volume is free "
        f"({directory.usable_bytes / 1e9:.1f} of {directory.total_bytes / 1e9:.1f} GB)"
    )
