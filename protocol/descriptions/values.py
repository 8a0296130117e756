"""Values of Kafka's types, each as one `construct`: numbers, text, arrays and structs that may be null, tags."""

# construct's types are objects made by decorators, which pyright takes for the classes and functions behind them.
# pyright: reportOperatorIssue=false, reportArgumentType=false, reportAssignmentType=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

from typing import Any, Final

import construct as c

NUMBERS: Final[dict[str, c.Construct]] = {
    "bool": c.Flag,
    "int8": c.Int8sb,
    "int16": c.Int16sb,
    "uint16": c.Int16ub,
    "int32": c.Int32sb,
    "uint32": c.Int32ub,
    "int64": c.Int64sb,
    "float64": c.Float64b,
    "uuid": c.Bytes(16),
}


def parse(description: c.Construct, data: bytes) -> Any:
    """`description.parse`, without the type that checkers derive for its result (None)."""
    return description.parse(data)


def sized(size: c.Construct, null: int, excess: int) -> c.Construct:
    """Bytes behind their size. `null` is the size that means null, `excess` what is subtracted from any other."""
    return c.FocusedSeq(
        "content",
        "size" / c.Rebuild(size, lambda context: null if context.content is None else len(context.content) + excess),
        "content" / c.IfThenElse(c.this.size == null, c.Computed(None), c.Bytes(c.this.size - excess)),
    )


def text(content: c.Construct) -> c.Construct:
    return c.ExprAdapter(content, _from_utf_8, _to_utf_8)


def _from_utf_8(raw: bytes | None, _context: Any) -> str | None:
    return None if raw is None else raw.decode("utf-8", "replace")


def _to_utf_8(value: str | None, _context: Any) -> bytes | None:
    return None if value is None else value.encode()


BYTES: Final = sized(c.Int32sb, -1, 0)
COMPACT_BYTES: Final = sized(c.VarInt, 0, 1)
STRING: Final = text(sized(c.Int16sb, -1, 0))
COMPACT_STRING: Final = text(COMPACT_BYTES)


def array(element: c.Construct, flexible: bool) -> c.Construct:
    """Elements behind their count, or null; in flexible versions the count is one more, and zero means null."""
    null, excess = (0, 1) if flexible else (-1, 0)
    count = c.VarInt if flexible else c.Int32sb
    return c.FocusedSeq(
        "elements",
        "count"
        / c.Rebuild(count, lambda context: null if context.elements is None else len(context.elements) + excess),
        "elements" / c.IfThenElse(c.this.count == null, c.Computed(None), c.Array(c.this.count - excess, element)),
    )


def nullable(struct: c.Construct, null_mark: int) -> c.Construct:
    """A struct behind a byte that says whether there is one."""
    return c.FocusedSeq(
        "content",
        "mark" / c.Rebuild(c.Int8sb, lambda context: null_mark if context.content is None else 1),
        "content" / c.IfThenElse(c.this.mark == null_mark, c.Computed(None), struct),
    )


def tagged_section(known: dict[int, c.Construct]) -> c.Construct:
    """Entries of tag and value; values of unknown tags are bytes."""
    value = c.Prefixed(c.VarInt, c.Switch(c.this.tag, known, default=c.GreedyBytes))
    return c.PrefixedArray(c.VarInt, c.Struct("tag" / c.VarInt, "value" / value))
