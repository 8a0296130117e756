"""What Apache Kafka's DumpLogSegments has to complain of in whole log directories."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from .tools import Tool, run_tool

COMPLAINTS = (
    "isvalid: false",
    "invalid bytes",
    "Mismatches in",
    "Found timestamp mismatch",
    "Found out of order",
    "Index timestamp",
    "a hole: ",
    "failed sanity check",
    "Could not decode",
    "Error",
    "Exception",
)
DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
}
HOLE = re.compile(r"^\s*\d+ is followed by \d+")
"""It also calls it a hole that a segment does not begin at offset 0: -1 is followed by its base offset."""
PRINTED = (".log", ".snapshot", ".txnindex", ".checkpoint")


def find_complaints(directories: Iterable[Path], compacted: Iterable[str] = ()) -> list[str]:
    """Every segment to its last record, with the decoder of its topic; every index against its segment. compacted:
    partitions with holes between their offsets, of which the tool makes a note.
    """
    partitions = [path for each in directories for path in sorted(each.iterdir()) if path.is_dir()]
    indexes = [path for each in partitions for path in _files(each, (".index", ".timeindex"))]
    lines = _dump("--index-sanity-check", indexes)
    passed = sum("passed sanity check" in line for line in lines)
    assert passed == len(indexes), "\n".join(lines)
    for decoder in (*DECODERS.values(), "--deep-iteration"):
        files = [path for each in partitions if _decoder(each) == decoder for path in _files(each, PRINTED)]
        with_holes = {each for each in partitions if each.name in compacted}
        printed = _dump(decoder, [each for each in files if each.parent not in with_holes])
        assert not files or any("| offset:" in line for line in printed), printed
        lines += printed
        lines += [f"a hole: {line}" for line in printed if HOLE.match(line)]
        lines += _dump(decoder, [each for each in files if each.parent in with_holes])
    lines += _dump("--verify-index-only", indexes)
    return [line for line in lines if any(complaint in line for complaint in COMPLAINTS)]


def _decoder(partition: Path) -> str:
    return DECODERS.get(partition.name.rpartition("-")[0], "--deep-iteration")


def _files(partition: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """What is empty has nothing to be dumped."""
    return (path for path in sorted(partition.iterdir()) if path.suffix in suffixes and path.stat().st_size)


def _dump(option: str, files: list[Path]) -> list[str]:
    if not files:
        return []
    output = run_tool(Tool.DUMP_LOG_SEGMENTS, option, "--files", ",".join(map(str, files)), allowed=(0, 1))
    return [*output.lines, *output.stderr.splitlines()]
