"""The kinds of files in a log directory, by their names."""

import re
from enum import StrEnum
from typing import NamedTuple

from ..directories import meta_properties, partition_metadata
from ..directories.shutdown_marks import CLEAN_SHUTDOWN_FILE
from ..producers.producer_snapshots import SNAPSHOT_SUFFIX
from ..segments import leader_epochs
from ..segments.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from .text_files import OFFSET_CHECKPOINTS

DAMAGED_SUFFIX = ".damaged"
"""Behind the names of bytes that were taken out of a segment."""

LEFTOVER_SUFFIXES = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, DAMAGED_SUFFIX, ".tmp", ".part")


class FileKind(StrEnum):
    LOG = "segment"
    OFFSET_INDEX = "offset index"
    TIME_INDEX = "time index"
    TRANSACTION_INDEX = "transaction index"
    PRODUCER_SNAPSHOT = "producer snapshot"
    METADATA_SNAPSHOT = "metadata snapshot"
    OFFSET_CHECKPOINT = "offset checkpoint"
    LEADER_EPOCHS = "leader epoch checkpoint"
    PARTITION_METADATA = "partition metadata"
    META_PROPERTIES = "meta.properties"
    QUORUM_STATE = "quorum state"
    CLEAN_SHUTDOWN = "clean shutdown marker"


QUORUM_STATE_FILE = "quorum-state"
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
METADATA_SNAPSHOT_SUFFIX = ".checkpoint"

_BY_NAME = {
    leader_epochs.FILE_NAME: FileKind.LEADER_EPOCHS,
    partition_metadata.FILE_NAME: FileKind.PARTITION_METADATA,
    meta_properties.FILE_NAME: FileKind.META_PROPERTIES,
    QUORUM_STATE_FILE: FileKind.QUORUM_STATE,
    CLEAN_SHUTDOWN_FILE: FileKind.CLEAN_SHUTDOWN,
} | dict.fromkeys(OFFSET_CHECKPOINTS, FileKind.OFFSET_CHECKPOINT)

_BY_SUFFIX = {
    LOG_SUFFIX: FileKind.LOG,
    INDEX_SUFFIX: FileKind.OFFSET_INDEX,
    TIME_INDEX_SUFFIX: FileKind.TIME_INDEX,
    TRANSACTION_INDEX_SUFFIX: FileKind.TRANSACTION_INDEX,
    SNAPSHOT_SUFFIX: FileKind.PRODUCER_SNAPSHOT,
    METADATA_SNAPSHOT_SUFFIX: FileKind.METADATA_SNAPSHOT,
}

_LAST_SUFFIX = re.compile(r"(\.\d+-\d+)?(\.(deleted|cleaned|swap|damaged|tmp|part))+$")


class FileName(NamedTuple):
    """The parts of a file's name.

    base_offset: None where the name does not begin with one. is_in_use: no suffix says that the file is on its way.
    """

    kind: FileKind
    base_offset: int | None
    is_in_use: bool


def parse_file_name(name: str) -> FileName | None:
    """Return None for a file of no known kind."""
    plain = _LAST_SUFFIX.sub("", name)
    kind = _BY_NAME.get(plain)
    if kind is None:
        dot = plain.rfind(".")
        kind = _BY_SUFFIX.get(plain[dot:]) if dot > 0 else None
    if kind is None:
        return None
    digits = re.match(r"\d{1,20}(?=[.-])", plain, re.ASCII)
    return FileName(kind, int(digits[0]) if digits else None, plain == name)
