"""The segments of a log by the names of its files, when it is opened, and the files that are left over."""

import posixpath
from collections.abc import Sequence, Set

from ..files.disk import Disk
from ..files.errors import CorruptLog
from .log_evidence import LogEvidence
from .segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)

_LEFTOVER_SUFFIXES = (DELETED_SUFFIX, CLEANED_SUFFIX, ".tmp")


def base_offsets(disk: Disk, directory: str, names: Sequence[str], evidence: LogEvidence) -> list[int]:
    """Those of the segments; removes what is left of files that were to go. Raises `CorruptLog`."""
    stems = {name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)}
    _check_none_is_missing(directory, names, stems, evidence)
    # The indexes first: they must not be left alone by a crash on the way, as if their data were missing.
    for name in sorted(names, key=_is_leftover):
        stem, dot, suffix = name.rpartition(".")
        is_orphan = dot + suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX) and stem not in stems
        if is_orphan or _is_leftover(name):
            disk.remove(posixpath.join(directory, name))
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def _check_none_is_missing(directory: str, names: Sequence[str], stems: Set[str], evidence: LogEvidence) -> None:
    """Raises `CorruptLog`. Whoever removes a segment in front of others leaves its data under another name at first,
    and only a log that is truncated loses its last ones.
    """
    last = max(stems, default="")
    for name in names:
        stem = name.removesuffix(INDEX_SUFFIX).removesuffix(TIME_INDEX_SUFFIX)
        path = posixpath.join(directory, stem + LOG_SUFFIX)
        if (
            stem != name
            and stem < last
            and stem not in stems
            and f"{stem}{LOG_SUFFIX}{DELETED_SUFFIX}" not in names
            and (evidence.is_nothing_unflushed or int(stem) < evidence.recovery_point)
        ):
            raise CorruptLog(f"{path} is missing: the file beside it, {name}, is still there")


def _is_leftover(name: str) -> bool:
    return name.endswith(_LEFTOVER_SUFFIXES)
