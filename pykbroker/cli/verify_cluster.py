"""The topics of the metadata log, for `pykbroker verify`, which reads the log without opening it as a broker does."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from pykbroker.metadata.image import InconsistentMetadata, MetadataImage
from pykbroker.metadata.records import decode_record
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.records.batch import iter_records
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.raft.election_state import ElectionState
from pykbroker.server.quorum.snapshot_format import InvalidSnapshot, decode_snapshot
from pykbroker.storage.checks.batch_walk import BatchWalk, FoundBatch
from pykbroker.storage.checks.directory_check import ClusterFacts, TopicFacts
from pykbroker.storage.checks.file_kinds import FileKind, parse_file_name
from pykbroker.storage.directories.directory_names import METADATA_LOG_DIRECTORY
from pykbroker.storage.directories.meta_properties import read_meta_properties
from pykbroker.storage.files.disk import Disk
from pykbroker.storage.files.errors import FileError, InconsistentDirectory

_CLEANUP_POLICY = "cleanup.policy"
_DEFAULT_CLEANUP_POLICY = "log.cleanup.policy"


class _Unreadable(Exception):
    pass


def read_cluster(disk: Disk, directories: Sequence[str]) -> ClusterFacts:
    """Read the cluster's topics; they are None where no directory has a metadata log that can be read."""
    topics = None
    for directory in directories:
        path = posixpath.join(directory, METADATA_LOG_DIRECTORY)
        if disk.is_directory(path):
            node_id = _node_id(disk, directory)
            try:
                image = _read_image(disk, path)
            except (_Unreadable, FileError):
                break
            topics = _topic_facts(image, node_id) if node_id is not None else None
            break
    return ClusterFacts(topics, ElectionState.from_json)


def _node_id(disk: Disk, directory: str) -> int | None:
    try:
        meta = read_meta_properties(disk, directory)
    except InconsistentDirectory:
        return None
    return None if meta is None else meta.node_id


def _topic_facts(image: MetadataImage, node_id: int) -> dict[str, TopicFacts]:
    default = image.broker_config(node_id).get(_DEFAULT_CLEANUP_POLICY, "delete")
    return {
        topic.name: TopicFacts(
            topic_id=topic.topic_id,
            is_compacted="compact" in image.topic_config(topic.name).get(_CLEANUP_POLICY, default),
            partitions=frozenset(
                index for index, partition in topic.partitions.items() if node_id in partition.replicas
            ),
        )
        for topic in image.topics.values()
    }


def _read_image(disk: Disk, path: str) -> MetadataImage:
    image = MetadataImage()
    names = disk.list_directory(path)
    try:
        next_offset = _replay_snapshot(disk, path, names, image)
        for batch in _batches(disk, path, _segments(names)):
            if batch.header.next_offset <= next_offset:
                continue
            if batch.header.base_offset > next_offset or batch.data is None:
                raise _Unreadable
            if not batch.header.is_control:
                for record in iter_records(batch.data):
                    if record.offset >= next_offset and record.value is not None:
                        image.replay(decode_record(record.value), record.offset)
            next_offset = batch.header.next_offset
    except (InvalidRecords, MalformedMessage, InconsistentMetadata) as error:
        raise _Unreadable from error
    return image


def _replay_snapshot(disk: Disk, path: str, names: Sequence[str], image: MetadataImage) -> int:
    """The latest one that is whole; returns the offset of the first record that it does not cover."""
    found = ((parse_file_name(name), name) for name in names)
    snapshots = [
        (known.base_offset, name)
        for known, name in found
        if known is not None and known.is_in_use and known.kind is FileKind.METADATA_SNAPSHOT and known.base_offset
    ]
    for end_offset, name in sorted(snapshots, reverse=True):
        try:
            snapshot = decode_snapshot(disk.read_file(posixpath.join(path, name)))
        except InvalidSnapshot:
            continue
        for message in snapshot.messages:
            image.replay(message, end_offset - 1)
        return end_offset
    return 0


def _segments(names: Sequence[str]) -> list[str]:
    found = ((parse_file_name(name), name) for name in sorted(names))
    return [
        name
        for known, name in found
        if known is not None and known.is_in_use and known.kind is FileKind.LOG and known.base_offset is not None
    ]


def _batches(disk: Disk, path: str, names: Sequence[str]) -> Iterator[FoundBatch]:
    """Iterate over the batches to the end; damage in the last segment may be a torn tail, and ends them as well."""
    for name in names:
        file = disk.open(posixpath.join(path, name))
        try:
            for found in BatchWalk(file, 0, file.size(), base_offset=int(name.partition(".")[0])):
                if not isinstance(found, FoundBatch) or not found.is_crc_valid:
                    if found.end < file.size() or name != names[-1]:
                        raise _Unreadable
                    return
                yield found
        finally:
            file.close()
