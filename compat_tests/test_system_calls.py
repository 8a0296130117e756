"""A broker process under load, watched by strace: whatever it answers is durable before the answer begins to leave.

With `flush.messages=1` that holds of records and of committed offsets; of topics, which are metadata records, and of a
vote always. What the system calls tell is trusted here, and no code of the broker.
"""

import itertools
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from pykbroker.protocol.compile import decode
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from pykbroker.protocol.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from pykbroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from pykbroker.protocol.messages.quorum import (
    VoteRequest,
    VoteRequestPartitionData,
    VoteRequestTopicData,
    VoteResponse,
)
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.schema import Message
from tests.storage.file_trace import FileTrace

from .brokers import Place, Pykbroker, loopback_place, pykbroker_command
from .ports import take_ports
from .raw_client import RawClient
from .strace import StraceReader, strace_command, traced_pid
from .waiting import DEADLINE_S, until

pytestmark = pytest.mark.strace

CLIENTS = 3
RECORDS = 12
VALUE_BYTES = 60_000
PROPERTIES = {
    "log.flush.interval.messages": "1",
    "log.segment.bytes": "1048576",
    "offsets.topic.num.partitions": "1",
    "log.cleaner.enable": "false",
}
FORGETFUL = """
from pykbroker.storage.files.disk import {kind}
{kind}.{name} = lambda *args, **named: None
from pykbroker.cli.main import main
main()
"""
R = TypeVar("R", bound=Message)


class TracedBroker(Pykbroker):
    """Each start of it is a trace of its own. forgets: what the real disk's module has, and what of it does nothing."""

    def __init__(
        self, directory: Path, properties: Mapping[str, str], *, forgets: tuple[str, str] | None = None
    ) -> None:
        super().__init__(directory, properties, place=loopback_place())
        self._forgets = forgets
        self.traces: list[Path] = []

    def command(self) -> list[str]:
        if self._forgets is None:
            return super().command()
        kind, name = self._forgets
        python = pykbroker_command()[0]
        return [python, "-c", FORGETFUL.format(kind=kind, name=name), "start", str(self.properties_file)]

    def launch(self) -> None:
        output = self.directory / f"system-calls-{len(self.traces)}"
        place = self.place
        self.place = Place(place.host, place.port, place.controller_port, strace_command(output))
        super().launch()
        self.traces.append(output)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        if self.process is not None:
            self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        """strace takes no signals; it ends with its process."""
        assert self.process is not None
        pid = traced_pid(self.pid)
        if pid is None:
            self.process.kill()
        else:
            os.kill(pid, number)
        self.process.wait(DEADLINE_S)
        self.process = None


@dataclass
class Promises:
    """What was answered, by the correlation id of the answer: a beginning of names, and bytes of the files there."""

    by_id: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(0x7EED_0000))

    def ask(self, client: RawClient, request: Message, version: int, kind: type[R]) -> tuple[int, R]:
        number = next(self._ids)
        frame = client.call(encode_request(request, version, correlation_id=number, client_id="traced"))
        is_flexible = kind is not ProduceResponse
        response, _ = decode(kind, version, frame, 5 if is_flexible else 4)
        return number, response


class Checker:
    """Looks at what is durable whenever an answer leaves that was a promise."""

    def __init__(self, broker: TracedBroker, promises: Promises) -> None:
        self.trace = FileTrace(str(broker.data_directory))
        self.broken: list[str] = []
        self.seen: set[int] = set()
        self._promises = promises

    def read(self, broker: TracedBroker) -> None:
        reader = StraceReader(self.trace, self._sent)
        for output in broker.traces:
            reader.read(output)

    def _sent(self, data: bytes) -> None:
        number = int.from_bytes(data[4:8], "big")
        promise = self._promises.by_id.get(number)
        if promise is not None:
            self.seen.add(number)
            names, wanted = promise
            files = self.trace.durable_files()
            if not any(wanted in files[path] for path in files if path.startswith(names)):
                self.broken.append(f"{wanted[:40]!r} is not durable in {names}* when that is answered")


@contextmanager
def running(broker: TracedBroker) -> Iterator[TracedBroker]:
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


def create_topic(promises: Promises, client: RawClient, topic: str) -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name=topic, num_partitions=1, replication_factor=1)])
    number, response = promises.ask(client, request, 7, CreateTopicsResponse)
    assert response.topics[0].error_code == 0
    promises.by_id[number] = "__cluster_metadata-0/", topic.encode()


def produce(promises: Promises, broker: TracedBroker, topic: str, name: str, failures: list[BaseException]) -> None:
    try:
        with RawClient(broker.address) as client:
            for count in range(RECORDS):
                value = f"{name}.{count}.".encode()
                batch = encode_batch([Record(None, value + bytes(VALUE_BYTES), (), 1_700_000_000_000)])
                data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])]
                request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=data)
                number, response = promises.ask(client, request, 8, ProduceResponse)
                assert response.responses[0].partition_responses[0].error_code == 0
                promises.by_id[number] = f"{topic}-0/", value
    except BaseException as failure:
        failures.append(failure)


def load(promises: Promises, broker: TracedBroker, topic: str) -> None:
    """Several producers at once, each with one request at a time."""
    failures: list[BaseException] = []
    threads = [
        threading.Thread(target=produce, args=(promises, broker, topic, f"{topic}-{number}", failures))
        for number in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def commit_offsets(promises: Promises, client: RawClient, topic: str) -> None:
    def is_served() -> bool:
        request = FindCoordinatorRequest(coordinator_keys=["a-group"])
        return promises.ask(client, request, 4, FindCoordinatorResponse)[1].coordinators[0].error_code == 0

    until(is_served, "the group has a coordinator")
    for count in range(5):
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=count, committed_metadata=f"metadata {count}"
        )
        request = OffsetCommitRequest(
            group_id="a-group",
            generation_id_or_member_epoch=-1,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )

        def is_committed(request: OffsetCommitRequest = request, count: int = count) -> bool:
            number, response = promises.ask(client, request, 8, OffsetCommitResponse)
            if response.topics[0].partitions[0].error_code:
                return False
            promises.by_id[number] = "__consumer_offsets-0/", f"metadata {count}".encode()
            return True

        until(is_committed, "an offset is committed")


def live(broker: TracedBroker) -> Promises:
    """A start, topics, records, offsets, kill -9 and a clean stop."""
    promises = Promises()
    with running(broker):
        with RawClient(broker.address) as client:
            create_topic(promises, client, "first")
            load(promises, broker, "first")
            commit_offsets(promises, client, "first")
        broker.kill()
        broker.start()
        with RawClient(broker.address) as client:
            create_topic(promises, client, "second")
        load(promises, broker, "second")
        broker.stop()
    return promises


def test_whatever_is_answered_is_durable(tmp_path: Path) -> None:
    broker = TracedBroker(tmp_path / "broker", PROPERTIES)
    promises = live(broker)
    checker = Checker(broker, promises)
    checker.read(broker)
    assert not checker.broken
    assert not checker.trace.violations
    assert checker.seen == promises.by_id.keys(), "strace has not told of every answer"
    assert checker.trace.calls > 400
    on_disk = {
        str(path.relative_to(broker.data_directory)): path.read_bytes() for path in broker.data_directory.rglob("*.log")
    }
    assert {path: data for path, data in checker.trace.durable_files().items() if path.endswith(".log")} == on_disk


@pytest.mark.parametrize(
    ("forgets", "what"),
    [(("OsDiskFile", "sync"), b"is not durable in first-0"), (("OsDisk", "sync_directory"), b"is not durable in")],
)
def test_a_broker_that_forgets_to_sync_is_found(tmp_path: Path, forgets: tuple[str, str], what: bytes) -> None:
    broker = TracedBroker(tmp_path / "broker", PROPERTIES, forgets=forgets)
    promises = Promises()
    with running(broker), RawClient(broker.address) as client:
        create_topic(promises, client, "first")
        load(promises, broker, "first")
    checker = Checker(broker, promises)
    checker.read(broker)
    assert any(what.decode() in each for each in checker.broken)


def vote(promises: Promises, client: RawClient, candidate: int, epoch: int) -> bool:
    """Ask for a vote in an epoch, as another voter does. Returns whether it is granted."""
    partition = VoteRequestPartitionData(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=candidate,
        replica_directory_id=bytes(16),
        voter_directory_id=bytes(16),
        last_offset_epoch=0,
        last_offset=0,
    )
    topic = VoteRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    number, response = promises.ask(client, VoteRequest(topics=[topic]), 0, VoteResponse)
    assert response.error_code == 0
    answer = response.topics[0].partitions[0]
    assert answer.error_code == 0
    if answer.vote_granted:
        state = f'"leaderEpoch":{epoch},"votedId":{candidate},'
        promises.by_id[number] = "__cluster_metadata-0/quorum-state", state.encode()
    return bool(answer.vote_granted)


class TracedVoter(TracedBroker):
    """A controller in a quorum of three, of which the others do not run."""

    def __init__(self, directory: Path, *, forgets: tuple[str, str] | None = None) -> None:
        super().__init__(directory, {}, forgets=forgets)
        ports = [self.port, *take_ports(2)]
        self.properties |= {
            "process.roles": "controller",
            "node.id": "1",
            "listeners": f"CONTROLLER://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(f"{id}@127.0.0.1:{port}" for id, port in enumerate(ports, 1)),
            "controller.quorum.election.timeout.ms": "600000",
            "controller.quorum.fetch.timeout.ms": "600000",
        }


def ask_for_votes(voter: TracedVoter) -> Promises:
    promises = Promises()
    with running(voter):
        for epochs in ((5, 6), (7,)):
            with RawClient(voter.address) as client:
                for epoch in epochs:
                    assert vote(promises, client, 2 + epoch % 2, epoch)
                    assert not vote(promises, client, 3 - epoch % 2, epoch)
            voter.kill()
            voter.start()
        with RawClient(voter.address) as client:
            assert not vote(promises, client, 2, 7), "the vote of another candidate is forgotten"
    return promises


@pytest.mark.parametrize("forgets", [("os", "fsync"), ("OsDisk", "sync_directory")])
def test_a_voter_that_forgets_to_sync_is_found(tmp_path: Path, forgets: tuple[str, str]) -> None:
    voter = TracedVoter(tmp_path / "voter", forgets=forgets)
    promises = Promises()
    with running(voter), RawClient(voter.address) as client:
        assert vote(promises, client, 2, 5)
    checker = Checker(voter, promises)
    checker.read(voter)
    assert any("quorum-state* when that is answered" in each for each in checker.broken)


def test_a_vote_is_durable_before_it_is_told(tmp_path: Path) -> None:
    voter = TracedVoter(tmp_path / "voter")
    promises = ask_for_votes(voter)
    assert len(promises.by_id) == 3
    checker = Checker(voter, promises)
    checker.read(voter)
    assert not checker.broken
    assert not checker.trace.violations
    assert checker.seen == promises.by_id.keys()
