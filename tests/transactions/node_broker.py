"""A whole node of ours, for scenarios: from its sockets to the files that it leaves, in simulated time."""

from __future__ import annotations

from collections.abc import Iterator

import trio

from pykbroker.metadata.features import TRANSACTION_VERSION
from pykbroker.protocol.messages.brokers import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from pykbroker.protocol.schema import Message
from pykbroker.sim.determinism import run_deterministic
from pykbroker.sim.node import LOG_DIRECTORY
from tests.server.serving import Client
from tests.sim.whole_node import World

from .scenarios import CONFIG, Scenario
from .session import Session
from .wire_broker import WireBroker

_UNSAFE_DOWNGRADE = 3
_SEED = 1


class NodeBroker(WireBroker):
    def __init__(self, world: World) -> None:
        self._world = world
        self._clients: dict[str, Client] = {}

    async def call(self, client: str, request: Message, version: int) -> Message:
        if client not in self._clients:
            self._clients[client] = await self._world.connect()
        return await self._clients[client].ask(request, version)

    async def sleep(self, ms: int) -> None:
        await trio.sleep(ms / 1000)

    async def set_level(self, level: int) -> None:
        update = FeatureUpdateKey(feature=TRANSACTION_VERSION, max_version_level=level, upgrade_type=_UNSAFE_DOWNGRADE)
        response = await self.call("x", UpdateFeaturesRequest(feature_updates=[update]), 1)
        assert isinstance(response, UpdateFeaturesResponse)
        assert not response.error_code, response

    def segments(self) -> Iterator[tuple[str, bytes]]:
        disk = self._world.node.disk
        for directory in sorted(disk.list_directory(LOG_DIRECTORY)):
            path = f"{LOG_DIRECTORY}/{directory}"
            if disk.is_directory(path):
                for name in sorted(disk.list_directory(path)):
                    if name.endswith(".log"):
                        yield directory, disk.read_file(f"{path}/{name}")


def play_on_node(scenario: Scenario, level: int) -> list[str]:
    """The transcript."""

    async def main() -> list[str]:
        async with trio.open_nursery() as nursery:
            world = World(_SEED, nursery, CONFIG)
            await world.start()
            broker = NodeBroker(world)
            await broker.set_level(level)
            await broker.prepare()
            session = Session(broker)
            await scenario.play(session)
            session.tell_log(last=scenario.told_records)
            nursery.cancel_scope.cancel()
        return session.lines

    return run_deterministic(main, seed=_SEED)
