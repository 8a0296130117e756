"""One node's metadata directory is damaged or is configured away from the quorum: it does not start, or mends itself,
and the other nodes go on.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pykbroker.metadata.records import encode_record
from pykbroker.protocol.messages.metadata_records import PartitionChangeRecord
from pykbroker.protocol.records.batch import Record, RecordBatchHeader, decode_batch_header, encode_batch

from .cluster import Cluster
from .conftest import CLUSTER_PROPERTIES, assert_all_went_well
from .intruders import assert_unharmed, refusal
from .layout import PYKBROKER
from .topics import create_replicated_topic

DAMAGED = 3
METADATA = "__cluster_metadata-0"
OF_NO_TOPIC = encode_record(PartitionChangeRecord(topic_id=b"g" * 16, partition_id=0, leader=1))
OF_NO_TYPE = b"\x01\x63\x00"


@dataclass(frozen=True, slots=True)
class Patient:
    """A cluster of three, whose third node was stopped cleanly and whose directory is kept in `healthy`."""

    cluster: Cluster
    healthy: Path

    @property
    def data(self) -> Path:
        return self.cluster.nodes[DAMAGED].data_directory

    @property
    def properties_file(self) -> Path:
        return self.cluster.nodes[DAMAGED].properties_file

    def restore(self) -> None:
        shutil.rmtree(self.data)
        shutil.copytree(self.healthy, self.data)
        self.cluster.nodes[DAMAGED].write_properties()

    def configure(self, key: str, value: str) -> None:
        with self.properties_file.open("a") as lines:
            lines.write(f"{key}={value}\n")


@pytest.fixture(scope="module")
def one_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Patient]:
    directory = tmp_path_factory.mktemp("damaged")
    with Cluster(directory, [PYKBROKER] * 3, properties=CLUSTER_PROPERTIES) as cluster:
        cluster.start()
        create_replicated_topic(cluster, "t")
        cluster.wait_until_in_sync("t")
        if cluster.quorum().leader == DAMAGED:
            # Its last records would be nobody else's, and would be cut off before anybody reads them.
            cluster.stop(DAMAGED)
            cluster.start()
            cluster.wait_until_in_sync("t")
        cluster.stop(DAMAGED)
        shutil.copytree(cluster.nodes[DAMAGED].data_directory, directory / "healthy")
        yield Patient(cluster, directory / "healthy")
    assert_all_went_well(cluster)


@pytest.fixture
def patient(one_cluster: Patient) -> Iterator[Patient]:
    one_cluster.restore()
    yield one_cluster
    one_cluster.cluster.kill(DAMAGED)


def segment(data: Path) -> Path:
    (only,) = (data / METADATA).glob("*.log")
    return only


def batches(data: Path) -> list[tuple[int, RecordBatchHeader]]:
    """Where each begins in the log's file, and its header."""
    stored, position, found = segment(data).read_bytes(), 0, []
    while position < len(stored):
        header = decode_batch_header(stored, position)
        found.append((position, header))
        position += header.size_bytes
    return found


def flip_a_byte(data: Path) -> None:
    stored = bytearray(segment(data).read_bytes())
    position, header = batches(data)[len(batches(data)) // 2]
    stored[position + header.size_bytes - 3] ^= 0xFF
    segment(data).write_bytes(stored)


def put(value: bytes) -> Callable[[Path], None]:
    """In the place of the last record that stands alone, with a checksum that is right."""

    def damage(data: Path) -> None:
        stored = segment(data).read_bytes()
        position, header = next(
            (at, each) for at, each in reversed(batches(data)) if not each.is_control and each.records_count == 1
        )
        batch = encode_batch(
            [Record(key=None, value=value, timestamp=header.max_timestamp)],
            base_offset=header.base_offset,
            partition_leader_epoch=header.partition_leader_epoch,
        )
        segment(data).write_bytes(stored[:position] + batch + stored[position + header.size_bytes :])
        for index in (data / METADATA).glob("*index"):
            index.unlink()

    return damage


def rewrite(name: str, text: str) -> Callable[[Path], None]:
    def damage(data: Path) -> None:
        (data / name).write_text(text)

    return damage


def name_other_voters(data: Path) -> None:
    path = data / METADATA / "quorum-state"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"currentVoters": [{"voterId": 1}, {"voterId": 9}]}))


SNAPSHOT = f"{METADATA}/00000000000000900005-0000000001.checkpoint"

DAMAGES = {
    "a flipped byte": (flip_a_byte, ("0.log is damaged at position", "the checksum is wrong")),
    "a record of no topic": (put(OF_NO_TOPIC), (f"{METADATA}: record ", "there is no topic with the id 6767")),
    "a record of no type": (put(OF_NO_TYPE), (f"{METADATA}: the record at offset ", "type 99 version 0 is not known")),
    "an election that is none": (rewrite(f"{METADATA}/quorum-state", "?"), (METADATA, "quorum-state is not JSON")),
    "an election of others": (name_other_voters, ("belongs to a metadata quorum of the nodes 1, 9",)),
    "a snapshot ahead of the log": (rewrite(SNAPSHOT, "?"), (SNAPSHOT, "the metadata can't be put together")),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_metadata_keeps_one_node_from_starting_in_one_line(patient: Patient, name: str) -> None:
    damage, expected = DAMAGES[name]
    damage(patient.data)
    line = refusal(patient.cluster.nodes[DAMAGED])
    assert all(each in line for each in expected), line
    assert_unharmed(patient.cluster, "t", 1, 2)


def test_what_the_line_says_about_damage_mends_it(patient: Patient) -> None:
    flip_a_byte(patient.data)
    line = refusal(patient.cluster.nodes[DAMAGED])
    assert "all files of that directory but quorum-state may be moved away, and this node fetches them again" in line
    for path in (patient.data / METADATA).iterdir():
        if path.name != "quorum-state":
            path.unlink()
    patient.cluster.start(DAMAGED)
    patient.cluster.wait_until_in_sync("t")
    assert_unharmed(patient.cluster, "t", 1, 2, 3)


def test_other_voters_than_those_of_the_log_are_refused(patient: Patient) -> None:
    configured = patient.cluster.nodes[DAMAGED].properties["controller.quorum.voters"]
    patient.configure("controller.quorum.voters", configured.replace("1@", "8@"))
    line = refusal(patient.cluster.nodes[DAMAGED])
    assert "of the nodes 1, 2, 3, and this node is configured for one of 8, 2, 3:" in line
    patient.restore()
    patient.configure("node.id", "2")
    assert "belongs to node 3, not to node 2" in refusal(patient.cluster.nodes[DAMAGED])
    assert_unharmed(patient.cluster, "t", 1, 2)


def test_a_voter_without_its_static_voters_says_that_it_only_follows(patient: Patient) -> None:
    servers = ",".join(each.controller_endpoint for each in patient.cluster.members)
    patient.configure("controller.quorum.voters", "")
    patient.configure("controller.quorum.bootstrap.servers", servers)
    patient.cluster.start(DAMAGED)
    patient.cluster.wait_until_in_sync("t")
    assert "this node voted in a quorum of [1, 2, 3], whose log names no voters" in patient.cluster.log_text(DAMAGED)
    assert_unharmed(patient.cluster, "t", 1, 2, 3)


def test_a_log_without_its_last_records_and_epochs_gets_them_from_the_leader(patient: Patient) -> None:
    """As after a crash: nothing else tells that there were more."""
    middle, _ = batches(patient.data)[len(batches(patient.data)) // 2]
    segment(patient.data).write_bytes(segment(patient.data).read_bytes()[:middle])
    (patient.data / METADATA / "leader-epoch-checkpoint").write_text("?")
    patient.cluster.start(DAMAGED)
    patient.cluster.wait_until_in_sync("t")
    assert_unharmed(patient.cluster, "t", 1, 2, 3)
