"""The judge: every family of anomalies over one history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from .compaction import check_compaction
from .copies import check_copies
from .cycles import check_cycles
from .findings import Report
from .groups import check_groups
from .index import History
from .liveness import check_liveness
from .offsets import check_offsets
from .operations import Operation, parse_history
from .positions import check_positions
from .producers import check_producers
from .shares import check_shares
from .trimming import check_trimming
from .values import check_values
from .visibility import check_visibility


def check(operations: Sequence[Operation]) -> Report:
    history = History(operations)
    kinds = Counter(f"{operation.kind} {operation.outcome}" for operation in operations)
    report = Report([], len(operations), dict(kinds))
    for family in (
        check_values,
        check_visibility,
        check_positions,
        check_offsets,
        check_producers,
        check_groups,
        check_shares,
        check_copies,
        check_compaction,
        check_trimming,
        check_cycles,
    ):
        report.anomalies += family(history)
    report.anomalies += check_liveness(history, report.figures)
    return report


def check_lines(lines: Iterable[str]) -> Report:
    """Raises MalformedHistory."""
    return check(parse_history(lines))
