"""Kafka's checkpoint files: a version, a count, and that many lines of words (`CheckpointFile`)."""

from collections.abc import Iterable, Mapping

from pykbroker.protocol.topic_partition import TopicPartition

from .disk import Disk
from .errors import CorruptLog

RECOVERY_POINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET = "log-start-offset-checkpoint"
HIGH_WATERMARK = "replication-offset-checkpoint"
CLEANED_OFFSET = "cleaner-offset-checkpoint"

_VERSION = "0"


def encode_checkpoint(rows: Iterable[Iterable[object]]) -> bytes:
    """Return the bytes of a checkpoint file with a line for each row."""
    lines = [" ".join(map(str, row)) for row in rows]
    return "\n".join((_VERSION, str(len(lines)), *lines, "")).encode()


def decode_checkpoint(data: bytes, path: str) -> list[list[str]]:
    """The lines' words; an empty file has none. Raises `CorruptLog` where the file is not what its count says."""
    lines = data.decode("utf-8", "replace").splitlines()
    if not lines:
        return []
    if lines[0] != _VERSION:
        raise CorruptLog(f"{path} has the version {lines[0][:20]!r}, not 0")
    if len(lines) < 2 or lines[1] != str(len(lines) - 2):
        raise CorruptLog(f"{path} does not hold the number of entries that it announces")
    return [line.split(" ") for line in lines[2:]]


class OffsetCheckpoint:
    """One of a log directory's files with an offset per partition."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path

    def read(self) -> dict[TopicPartition, int]:
        """Return the offsets by partition; a missing file has none. Raises `CorruptLog`."""
        if not self._disk.exists(self.path):
            return {}
        rows = decode_checkpoint(self._disk.read_file(self.path), self.path)
        try:
            return {TopicPartition(topic, int(partition)): int(offset) for topic, partition, offset in rows}
        except ValueError as error:
            raise CorruptLog(f"{self.path} has a line that is not a topic, a partition and an offset") from error

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write the offsets, durably, in the place of all that the file has. Raises `FileError`."""
        rows = [(at.topic, at.partition, offset) for at, offset in sorted(offsets.items())]
        self._disk.replace_file(self.path, encode_checkpoint(rows))
