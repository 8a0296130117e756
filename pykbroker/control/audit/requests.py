"""The audit for programs in any language: plain JSON values out."""

from __future__ import annotations

from typing import Any

from .audit import Audit
from .findings import Findings


def begin(audit: Audit) -> dict[str, Any]:
    """Begin an audit anew."""
    audit.begin()
    return look(audit)


def look(audit: Audit) -> dict[str, Any]:
    """Return what was found so far."""
    return _values(audit.findings, goes_on=audit.goes_on)


def end(audit: Audit) -> dict[str, Any]:
    """End the audit, and return what was found."""
    return _values(audit.end(), goes_on=False)


def _values(findings: Findings, *, goes_on: bool) -> dict[str, Any]:
    return {
        "goes_on": goes_on,
        "count": len(findings),
        "counts": {kind.value: count for kind, count in sorted(findings.counts.items())},
        "findings": [each.as_json() for each in findings],
    }
