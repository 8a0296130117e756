"""Every API answers in every version that it serves: no answer holds what its version cannot carry.

Each API is asked with nothing in the request, and with one of everything, by names that exist.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import trio

from pykbroker.api import HANDLERS
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import UnsupportedVersion
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from pykbroker.protocol.schema import Message
from pykbroker.protocol.source import is_present
from pykbroker.protocol.uuids import METADATA_TOPIC_ID
from pykbroker.server.network.handlers import Handler, ListenerKind

from .serving import Client
from .test_controller_listener import CONTROLLER_PORT, CREATE, Nodes, with_a_controller

PORTS: dict[ListenerKind, int] = {"broker": 9092, "controller": CONTROLLER_PORT}
PATIENCE_S = 60
_VALUES: dict[str, Any] = {
    "acks": 1,
    "max_wait_ms": 100,
    "min_bytes": 1,
    "max_bytes": 1 << 20,
    "partition_max_bytes": 1 << 20,
    "timeout_ms": 1_000,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "transaction_timeout_ms": 10_000,
    "session_epoch": -1,
    "resource_type": 2,
    "replica_id": -1,
    "timestamp": -1,
    "protocol_type": "consumer",
    "group_id": "g",
    "generation_id": -1,
    "transactional_id": "x",
    "voter_id": 1,
    "resource_type_filter": 2,
    "pattern_type_filter": 3,
    "operation": 3,
    "permission_type": 3,
}
"""By a field's name; another text is the topic's name, another number is 0."""


def filled(cls: Any, version: int, texts: dict[str, str]) -> Any:
    """One element in each array."""
    values: dict[str, Any] = {}
    for f in cls.__schema__.fields:
        if not is_present(f, version):
            continue
        if f.element == "struct":
            part = filled(f.struct, version, texts)
        elif f.element == "string":
            part = texts.get(f.name, _VALUES.get(f.name, texts["*"]))
        elif f.element == "uuid":
            part = METADATA_TOPIC_ID
        elif f.element in ("bytes", "records"):
            part = b""
        else:
            part = _VALUES.get(f.name, f.new_default() if not f.is_array else 0)
        values[f.name] = [part] if f.is_array else part
    return cls(**values)


def requests(handler: Handler, version: int) -> list[Message]:
    cls = handler.request_type
    names = ["t", "__cluster_metadata"]
    return [cls(), *(filled(cls, version, {"*": name}) for name in names)]


def observation() -> FetchRequest:
    """By a replica with a directory, so that the leader of the quorum has one to tell of."""
    partition = FetchPartition(current_leader_epoch=1, last_fetched_epoch=0, replica_directory_id=b"d" * 16)
    topic = FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return FetchRequest(replica_state=ReplicaState(replica_id=7), topics=[topic], max_bytes=1)


async def ask_all(nodes: Nodes, handler: Handler, listener: ListenerKind) -> int:
    """Returns how many answers came."""
    count = 0
    for version in range(handler.min_version, handler.max_version + 1):
        for request in requests(handler, version):
            client = Client(await nodes.network.connect("127.0.0.1", PORTS[listener]))
            with trio.move_on_after(PATIENCE_S), suppress(EOFError, trio.BrokenResourceError, UnsupportedVersion):
                await client.ask(request, version)
                count += 1
            client.transport.close()
    return count


@pytest.mark.parametrize("listener", PORTS)
def test_every_answer_fits_into_its_version(listener: ListenerKind, caplog: pytest.LogCaptureFixture) -> None:
    handlers = HANDLERS.broker if listener == "broker" else HANDLERS.controller
    counts: dict[str, int] = {}

    async def scenario(nodes: Nodes) -> None:
        await nodes.broker.ask(CREATE, 7)
        await nodes.controller.ask(observation(), FetchRequest.__schema__.stable_versions.high)
        for handler in handlers:
            counts[ApiKey(handler.api_key).name] = await ask_all(nodes, handler, listener)

    with_a_controller(scenario)
    assert "cannot carry" not in caplog.text
    assert "Traceback" not in caplog.text
    silent = [name for name, count in counts.items() if not count]
    assert not silent, "these APIs never answered"
