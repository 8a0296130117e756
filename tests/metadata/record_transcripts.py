"""Writes the transcripts, as Apache Kafka's controller answers: it is started anew for each scenario.

python -m tests.metadata.record_transcripts [SCENARIO ...]
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from compat_tests.apache_kafka.broker import CLUSTER_ID, kafka_command
from compat_tests.apache_kafka.tools import Tool, run_tool
from compat_tests.ports import take_ports
from compat_tests.referee.conversations import note_version
from pykbroker.metadata.records import decode_record
from pykbroker.protocol.api_keys import response_type
from pykbroker.protocol.compile import decode
from pykbroker.protocol.framing import encode_request, response_header_version
from pykbroker.protocol.records.batch import iter_batches, iter_records
from pykbroker.protocol.schema import Message

from .controller_scenarios import PROPERTIES, SCENARIOS
from .dialogue import PROPERTIES as COMMON
from .dialogue import Dialogue

TRANSCRIPTS = Path(__file__).parent / "transcripts"
NODE_ID = 3000
_START_TIMEOUT_S = 60


class KafkaController:
    """Apache Kafka with the role controller alone, by its socket and its log."""

    cluster_id = CLUSTER_ID

    def __init__(self, port: int, log_dir: Path) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._log = log_dir / "__cluster_metadata-0" / f"{0:020}.log"
        self._correlation_ids = count(1)

    def ask(self, request: Message, version: int) -> Message:
        self._socket.sendall(encode_request(request, version, next(self._correlation_ids), "transcripts"))
        (size,) = struct.unpack(">i", self._receive(4))
        frame = self._receive(size)
        api_key = request.__schema__.api_key
        assert api_key is not None
        response, end = decode(
            response_type(api_key), version, frame, 5 if response_header_version(api_key, version) else 4
        )
        assert end == len(frame)
        return response

    def wait(self, ms: int) -> None:
        time.sleep(ms / 1000)

    def log(self) -> list[Message]:
        return [
            decode_record(record.value)
            for batch in iter_batches(self._log.read_bytes(), allow_partial=True)
            if not batch.header.is_control
            for record in iter_records(batch)
            if record.value is not None
        ]

    def close(self) -> None:
        self._socket.close()

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self._socket.recv(size - len(data))
            if not chunk:
                raise EOFError("the controller closed the connection")
            data += chunk
        return bytes(data)


@contextmanager
def kafka_controller(properties: dict[str, str]) -> Iterator[KafkaController]:
    (port,) = take_ports(1)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        log_dir, properties_file = directory / "log", directory / "server.properties"
        everything = {
            "process.roles": "controller",
            "node.id": str(NODE_ID),
            "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:{port}",
            "listeners": f"CONTROLLER://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(log_dir),
            **COMMON,
            **properties,
        }
        properties_file.write_text("".join(f"{key}={value}\n" for key, value in everything.items()))
        run_tool(Tool.STORAGE, "format", "-t", CLUSTER_ID, "-c", str(properties_file))
        with (directory / "output").open("wb") as output:
            command = kafka_command(properties_file, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
            process = subprocess.Popen(command, stdout=output, stderr=output, cwd=directory)
        try:
            controller = _connect(process, port, log_dir)
            try:
                yield controller
            finally:
                controller.close()
        finally:
            process.kill()
            process.wait()


def _connect(process: subprocess.Popen[bytes], port: int, log_dir: Path) -> KafkaController:
    """Once it has registered itself, which it does when it is active."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "the controller ended"
        try:
            controller = KafkaController(port, log_dir)
        except ConnectionRefusedError:
            time.sleep(0.1)
            continue
        while time.monotonic() < deadline:
            if any(type(record).__name__ == "RegisterControllerRecord" for record in controller.log()):
                return controller
            time.sleep(0.1)
    raise AssertionError("the controller did not become active")


def main(names: list[str]) -> None:
    TRANSCRIPTS.mkdir(exist_ok=True)
    for name in names or SCENARIOS:
        with kafka_controller(PROPERTIES[name]) as controller:
            talk = Dialogue(controller)
            SCENARIOS[name](talk)
        (TRANSCRIPTS / f"{name}.txt").write_text("\n".join(talk.lines) + "\n")
        sys.stdout.write(f"{name}: {len(talk.lines)} lines\n")


if __name__ == "__main__":
    main(sys.argv[1:])
    if not sys.argv[1:]:
        note_version(TRANSCRIPTS)
