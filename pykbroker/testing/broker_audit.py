"""An audit of clients in a test: what they did on the wire that loses records, repeats them, or may.

With the option `--kafka-audit` of pytest each broker is audited from its beginning, and a test in which something is
found fails. Only facts of the wire count (`pykbroker.control.audit`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self

from pykbroker.control.audit.audit import Audit
from pykbroker.control.audit.findings import Finding, Findings, Kind, kinds_of

from . import audit_option

_KEPT: Final = 200
_SHOWN: Final = 20


class AuditFailed(AssertionError):
    """Clients did what loses records or repeats them; the message has the findings."""


class BrokerAudit:
    """An audit from when it is entered until its block ends. allow: the kinds of findings that are none.

    At the end of the block findings raise AuditFailed, unless something else is raised already. They stay readable.
    """

    def __init__(self, audit: Audit, allow: Iterable[str] = ()) -> None:
        self._audit = audit
        self._allowed = kinds_of(allow)
        self._ended: list[Finding] | None = None

    @property
    def findings(self) -> list[Finding]:
        """The findings so far, without what is allowed; the first thousand."""
        found = self._audit.findings if self._ended is None else self._ended
        return [each for each in found if each.kind not in self._allowed]

    def check(self) -> None:
        """Raise AuditFailed where there are findings."""
        if self.findings:
            raise AuditFailed(text_of(self.findings))

    def __enter__(self) -> Self:
        if self._audit.goes_on:
            raise RuntimeError("there is an audit of this broker already: one at a time, and --kafka-audit is one")
        self._ended = None
        self._audit.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = list(self._audit.end())
        if error is None:
            self.check()


def text_of(findings: Iterable[Finding]) -> str:
    """Return findings for people, a line each."""
    lines = [str(each) for each in findings]
    rest = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "\n".join(["the audit of this broker's clients has found:", *lines[:_SHOWN], *rest])


_findings: deque[Findings] = deque(maxlen=_KEPT)
"""Those of the latest brokers, while every broker is audited; the brokers themselves are not kept."""


def opened(audit: Audit) -> None:
    """Note that a cluster is about to open, of which this is the audit."""
    if audit_option.is_on():
        audit.begin()
        _findings.append(audit.findings)


def take_findings(allow: frozenset[Kind]) -> list[Finding]:
    """Return what was found in all audits since the last call, without the kinds that are allowed."""
    found = []
    for findings in list(_findings):
        found += [each for each in findings.take() if each.kind not in allow]
    return found
