"""`bootstrap.checkpoint` as Kafka's StorageTool writes it, and as it may lie on a damaged disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykbroker.protocol.messages.metadata_records import FeatureLevelRecord
from pykbroker.protocol.schema import Message
from pykbroker.server.quorum.bootstrap_checkpoint import (
    FILE_NAME,
    InvalidBootstrapCheckpoint,
    read_bootstrap_checkpoint,
    write_bootstrap_checkpoint,
)
from pykbroker.storage.files.disk import OsDisk

# What `format` of Apache Kafka 4.3.1 wrote for a cluster with its default features.
WRITTEN_BY_KAFKA = bytes.fromhex(
    "0000000000000000000000470000000002ce94039d002000000000000001a1fe29c18c000001a1fe29c18cffffffffffffffffffffffffff"
    "ff000000012a0000000800000003160000000000000000000000000000000000000001000000f10000000002fae87a510000000000050000"
    "01a1fe29c1ca000001a1fe29c1caffffffffffffffffffffffffffff000000063a000000012e010c00116d657461646174612e7665727369"
    "6f6e001e00005a000002014e010c0021656c696769626c652e6c65616465722e7265706c696361732e76657273696f6e0001000034000004"
    "0128010c000e67726f75702e76657273696f6e00010000340000060128010c000e73686172652e76657273696f6e0001000038000008012c"
    "010c001073747265616d732e76657273696f6e000100004000000a0134010c00147472616e73616374696f6e2e76657273696f6e00020000"
    "00000000000000070000003f000000000209ff4ea4002000000000000001a1fe29c1cb000001a1fe29c1cbffffffffffffffffffffffffff"
    "ff000000011a00000008000000040600000000"
)
FEATURES: list[Message] = [FeatureLevelRecord(name="metadata.version", feature_level=30)]


def test_kafkas_own_checkpoint_is_read(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(WRITTEN_BY_KAFKA)
    assert read_bootstrap_checkpoint(OsDisk(), str(tmp_path)) == [
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
        FeatureLevelRecord(name="group.version", feature_level=1),
        FeatureLevelRecord(name="share.version", feature_level=1),
        FeatureLevelRecord(name="streams.version", feature_level=1),
        FeatureLevelRecord(name="transaction.version", feature_level=2),
    ]


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_bootstrap_checkpoint(OsDisk(), str(tmp_path), FEATURES, 1_700_000_000_000)
    assert read_bootstrap_checkpoint(OsDisk(), str(tmp_path)) == FEATURES


def test_a_directory_without_one_says_so(tmp_path: Path) -> None:
    assert read_bootstrap_checkpoint(OsDisk(), str(tmp_path)) is None


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    for size in range(len(WRITTEN_BY_KAFKA)):
        (tmp_path / FILE_NAME).write_bytes(WRITTEN_BY_KAFKA[:size])
        with pytest.raises(InvalidBootstrapCheckpoint, match=FILE_NAME):
            read_bootstrap_checkpoint(OsDisk(), str(tmp_path))


def test_a_flipped_bit_under_the_checksum_is_refused(tmp_path: Path) -> None:
    damaged = bytearray(WRITTEN_BY_KAFKA)
    damaged[-3] ^= 1
    (tmp_path / FILE_NAME).write_bytes(damaged)
    with pytest.raises(InvalidBootstrapCheckpoint, match="checksum"):
        read_bootstrap_checkpoint(OsDisk(), str(tmp_path))
