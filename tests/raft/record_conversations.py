"""Writes the conversations, as a voter of Apache Kafka answers: it is started anew for each scenario.

python -m tests.raft.record_conversations [SCENARIO ...]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from compat_tests.apache_kafka.broker import kafka_command
from compat_tests.apache_kafka.tools import Tool, run_tool
from compat_tests.ports import take_ports
from compat_tests.referee.conversations import note_version
from compat_tests.waiting import until
from compat_tests.wire import Closed, Silent, Wire
from pykbroker.metadata.records import decode_record
from pykbroker.protocol.messages.fetch import FetchResponse
from pykbroker.protocol.messages.metadata_records import RegisterControllerRecord
from pykbroker.protocol.records.batch import RecordBatch, iter_batches, iter_records
from pykbroker.protocol.schema import Message
from pykbroker.protocol.uuids import uuid_from_text
from pykbroker.raft.snapshots import SnapshotId

from .voter_dialogue import CLUSTER_ID, LISTENER, NODE_ID, PROPERTIES, Dialogue
from .voter_scenarios import SCENARIOS, SITUATIONS, Situation, fetch_from

_END_DEADLINE_S = 10.0
CONVERSATIONS = Path(__file__).parent / "conversations"


class KafkaVoter:
    """By its socket and its files. A process of the role controller alone."""

    def __init__(self, directory: Path, situation: Situation, ports: Sequence[int]) -> None:
        self.ports = dict(zip((NODE_ID, *situation.others), ports, strict=True))
        self._address = ("127.0.0.1", ports[0])
        self._situation = situation
        self._log_dir = directory / "log"
        self._properties_file = directory / "server.properties"
        self._output = directory / "output"
        self._process: subprocess.Popen[bytes] | None = None
        self._registrations_before = 0
        voters = [f"{node}@127.0.0.1:{port}" for node, port in self.ports.items()]
        properties = {
            **PROPERTIES,
            "listeners": f"{LISTENER}://127.0.0.1:{ports[0]}",
            "log.dirs": str(self._log_dir),
            "metadata.log.max.record.bytes.between.snapshots": "1" if situation.has_snapshots else "20971520",
        }
        if situation.is_dynamic:
            properties["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{ports[0]}"
        else:
            properties["controller.quorum.voters"] = ",".join(voters)
        self._properties_file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        standalone = ["--standalone"] if situation.is_dynamic else []
        run_tool(Tool.STORAGE, "format", *standalone, "-t", CLUSTER_ID, "-c", str(self._properties_file))
        lines = (self._log_dir / "meta.properties").read_text().splitlines()
        [directory_id] = [line.split("=", 1)[1].replace("\\", "") for line in lines if line.startswith("directory.id=")]
        self.directory_id = uuid_from_text(directory_id)

    def start(self) -> None:
        self._registrations_before = self._registrations()
        options = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        with self._output.open("ab") as output:
            command = kafka_command(self._properties_file, *options)
            self._process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self._output.parent)
        until(self._is_there, "the voter answers")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def ask(self, request: Message, version: int) -> Message | None:
        """Started again where it ends."""
        answer = self._ask(request, version)
        assert self._process is not None
        if answer is None and self._has_ended():
            self.start()
        return answer

    def _has_ended(self) -> bool:
        assert self._process is not None
        try:
            self._process.wait(_END_DEADLINE_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _ask(self, request: Message, version: int) -> Message | None:
        with Wire(self._address) as wire:
            try:
                return wire.call(request, version)
            except (Closed, Silent):
                return None

    def ends_of_epochs(self) -> dict[int, int]:
        headers = [batch.header for batch in self._batches()]
        return {header.partition_leader_epoch: header.next_offset for header in headers}

    def latest_snapshot(self) -> SnapshotId | None:
        found = []
        for path in (self._log_dir / "__cluster_metadata-0").glob("*.checkpoint"):
            end_offset, epoch = path.stem.split("-")
            found.append(SnapshotId(int(end_offset), int(epoch)))
        return max((each for each in found if each.end_offset), default=None)

    def _is_there(self) -> bool:
        """It answers; and where it is the only voter, the log has all that it writes when it is active."""
        assert self._process is not None
        assert self._process.poll() is None, self._output.read_text()[-2000:]
        try:
            with Wire(self._address):
                pass
        except OSError:
            return False
        if self._situation.others:
            return True
        is_active = self._registrations() > self._registrations_before
        return is_active and (not self._situation.has_snapshots or self._offers_snapshot())

    def _offers_snapshot(self) -> bool:
        """The latest one covers the whole log."""
        [end] = self.ends_of_epochs().values()
        answer = self._ask(fetch_from(1, 0, 0), 17)
        assert isinstance(answer, FetchResponse)
        return answer.responses[0].partitions[0].snapshot_id.end_offset == end

    def _registrations(self) -> int:
        """Of controllers, in the log: the last that one writes when it is active."""
        return sum(
            isinstance(decode_record(record.value), RegisterControllerRecord)
            for batch in self._batches()
            if not batch.header.is_control
            for record in iter_records(batch)
            if record.value is not None
        )

    def _batches(self) -> list[RecordBatch]:
        file = self._log_dir / "__cluster_metadata-0" / f"{0:020}.log"
        return list(iter_batches(file.read_bytes(), allow_partial=True)) if file.exists() else []


@contextmanager
def kafka_voter(situation: Situation) -> Iterator[KafkaVoter]:
    ports = take_ports(1 + len(situation.others))
    with tempfile.TemporaryDirectory() as name:
        voter = KafkaVoter(Path(name), situation, ports)
        try:
            voter.start()
            if situation.is_restarted:
                voter.kill()
                voter.start()
            yield voter
        finally:
            voter.kill()


def main(names: list[str]) -> None:
    CONVERSATIONS.mkdir(exist_ok=True)
    for name in names or SCENARIOS:
        scenario = SCENARIOS[name]
        with kafka_voter(SITUATIONS[scenario]) as voter:
            talk = Dialogue(voter)
            scenario(talk)
        (CONVERSATIONS / f"{name}.txt").write_text("\n".join(talk.lines))
        sys.stdout.write(f"{name}: {len(talk.answers)} answers\n")


if __name__ == "__main__":
    main(sys.argv[1:])
    if not sys.argv[1:]:
        note_version(CONVERSATIONS)
