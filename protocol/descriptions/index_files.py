"""The files beside a segment: `.index`, `.timeindex` and `.txnindex`. Offsets in the first two are relative to the
segment's base offset, which is the name of the file. A file in use is longer than its entries, filled up with zeros."""

# construct's types are objects made by decorators, which pyright takes for the classes and functions behind them.
# pyright: reportOperatorIssue=false, reportArgumentType=false, reportAssignmentType=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

from typing import Final

import construct as c

OFFSET_ENTRY: Final = c.Struct("relative_offset" / c.Int32sb, "position" / c.Int32sb)
TIME_ENTRY: Final = c.Struct("timestamp" / c.Int64sb, "relative_offset" / c.Int32sb)
ABORTED_TRANSACTION: Final = c.Struct(
    "version" / c.Int16sb,
    "producer_id" / c.Int64sb,
    "first_offset" / c.Int64sb,
    "last_offset" / c.Int64sb,
    "last_stable_offset" / c.Int64sb,
)
