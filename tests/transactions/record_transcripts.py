"""Writes the transcripts, as Apache Kafka answers.

    python -m tests.transactions.record_transcripts [SCENARIO ...]

Starts an Apache Kafka of one node for each level of transaction.version, with `scenarios.CONFIG`, and stops it again.
"""

from __future__ import annotations

import struct
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import trio

from compat_tests.apache_kafka.broker import CLUSTER_ID, ApacheKafka
from compat_tests.apache_kafka.tools import Tool, run_tool
from compat_tests.referee.conversations import note_version
from pykbroker.protocol.api_keys import response_type
from pykbroker.protocol.compile import decode
from pykbroker.protocol.framing import encode_request, response_header_version
from pykbroker.protocol.schema import Message

from .scenarios import CONFIG, SCENARIOS
from .session import Session
from .wire_broker import WireBroker

TRANSCRIPTS = Path(__file__).parent / "transcripts"
_ANSWER_TIMEOUT_S = 20
_APPEND_LINGER_MS = 100
_TRANSACTION_COORDINATOR = 1


class KafkaOfLevel(ApacheKafka):
    """An Apache Kafka whose cluster is formatted with a level of transaction.version."""

    def __init__(self, directory: Path, level: int) -> None:
        super().__init__(directory, CONFIG)
        self._level = level

    def prepare(self) -> None:
        feature = f"transaction.version={self._level}"
        run_tool(Tool.STORAGE, "format", "-t", CLUSTER_ID, "-c", str(self.properties_file), "--feature", feature)


class RealBroker(WireBroker):
    """Any broker, by its sockets and its files."""

    def __init__(self, address: tuple[str, int], log_dir: Path) -> None:
        self._address = address
        self._log_dir = log_dir
        self._streams: dict[str, trio.SocketStream] = {}
        self._correlation_ids = count(1)

    async def call(self, client: str, request: Message, version: int) -> Message:
        with trio.fail_after(_ANSWER_TIMEOUT_S):
            if client not in self._streams:
                self._streams[client] = await trio.open_tcp_stream(*self._address)
            stream = self._streams[client]
            await stream.send_all(encode_request(request, version, next(self._correlation_ids), client))
            (size,) = struct.unpack(">i", await _receive(stream, 4))
            frame = await _receive(stream, size)
        api_key = request.__schema__.api_key
        assert api_key is not None
        body = 5 if response_header_version(api_key, version) else 4
        response, end = decode(response_type(api_key), version, frame, body)
        assert end == len(frame)
        return response

    async def sleep(self, ms: int) -> None:
        await trio.sleep(ms / 1000)

    def segments(self) -> Iterator[tuple[str, bytes]]:
        for path in sorted(self._log_dir.glob("*-[0-9]*/*.log")):
            yield path.parent.name, path.read_bytes()


async def _receive(stream: trio.SocketStream, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = await stream.receive_some(size - len(data))
        if not chunk:
            raise EOFError("the broker closed the connection")
        data += chunk
    return bytes(data)


async def record(kafka: KafkaOfLevel, level: int, names: list[str]) -> None:
    broker = RealBroker(kafka.address, kafka.data_directory)
    await broker.prepare()
    for name in names:
        session = Session(broker)
        await SCENARIOS[name].play(session)
        await broker.sleep(_APPEND_LINGER_MS)
        session.tell_log(last=SCENARIOS[name].told_records)
        path = TRANSCRIPTS / str(level) / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(session.lines) + "\n")
        sys.stdout.write(f"{level} {name}: {len(session.lines)} lines\n")


def main(names: list[str]) -> None:
    for level in (0, 1, 2):
        chosen = [name for name, scenario in SCENARIOS.items() if level in scenario.levels and name in names]
        if not chosen:
            continue
        with tempfile.TemporaryDirectory() as directory:
            kafka = KafkaOfLevel(Path(directory), level)
            kafka.start()
            try:
                trio.run(record, kafka, level, chosen)
            finally:
                kafka.close()


if __name__ == "__main__":
    main(sys.argv[1:] or list(SCENARIOS))
    if not sys.argv[1:]:
        note_version(TRANSCRIPTS)
