"""A node's start, elections and metadata, cut at every operation: it starts again, and never forgets a vote."""

from random import Random

from pykbroker.config import BrokerConfig
from pykbroker.metadata.features import bootstrap_records
from pykbroker.raft.election_state import ElectionState
from pykbroker.server.node.node_storage import NodeStorage
from tests.api.api_node import VirtualClock
from tests.storage.crash_states import Survivors
from tests.storage.recording_disk import RecordingDisk

PATH = "/var/lib/kafka/data"


def storage_of(disk: RecordingDisk) -> NodeStorage:
    """With other random numbers at each start, so that a new cluster id would be noticed."""
    config = BrokerConfig({"node.id": "1", "log.dirs": PATH})
    return NodeStorage.open(disk, config, clock=VirtualClock(), rng=Random(disk.boot_id()))


def test_a_node_starts_on_whatever_a_crash_left_and_remembers_its_votes() -> None:
    disk = RecordingDisk()
    promises: list[tuple[int, str | None, int, int]] = [(0, None, 0, 0)]
    """From that operation on: the cluster id, the epoch of the last vote, the end of the metadata log."""
    storage = storage_of(disk)
    cluster_id = storage.cluster_id
    promises.append((len(disk.journal), cluster_id, 0, 0))
    log = storage.metadata_log
    for epoch in range(1, 5):
        log.store_election(ElectionState(epoch, voted_id=1), [1])
        promises.append((len(disk.journal), cluster_id, epoch, promises[-1][3]))
        log.append_records(bootstrap_records(), epoch, 0)
        if epoch % 2:
            log.flush()
            promises.append((len(disk.journal), cluster_id, epoch, log.end_offset))
    survivors = Survivors.of_new_disk(disk)
    seen = set()
    for cut, operation in enumerate(disk.journal, 1):
        survivors.apply(operation)
        plain, others = survivors.choices(cut, 4)
        for choice in plain + others:
            state = survivors.state(choice)
            _, promised_id, epoch, end_offset = [each for each in promises if each[0] <= cut - choice.is_torn][-1]
            if (state.key, choice.is_killed, epoch, end_offset) in seen:
                continue
            seen.add((state.key, choice.is_killed, epoch, end_offset))
            again = storage_of(state.disk(disk)[0])
            where = f"cut {cut}, {choice.label}"
            assert promised_id in (None, again.cluster_id), where
            election = again.metadata_log.read_election([1])
            assert election.epoch >= max(epoch, again.metadata_log.last_epoch), where
            assert election.epoch == 0 or election.voted_id == 1, where
            assert again.metadata_log.end_offset >= end_offset, where
            assert sum(1 for _ in again.metadata_log.read()) == again.metadata_log.end_offset, where
    assert len(seen) >= 600
