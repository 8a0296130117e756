"""How a controller makes itself known, with a controller elsewhere that answers before the news of it are here."""

from __future__ import annotations

from typing import cast

import trio
from trio.testing import wait_all_tasks_blocked

from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.protocol.messages.brokers import ControllerRegistrationResponse
from pykbroker.protocol.messages.metadata_records import RegisterControllerRecord
from pykbroker.protocol.schema import Message
from pykbroker.server.node.controller_registration import ControllerRegistrar
from pykbroker.server.quorum.controller_channel import ControllerChannel
from pykbroker.sim.determinism import run_deterministic

INCARNATION = bytes([3] * 16)


class Channel:
    def __init__(self) -> None:
        self.asked: list[Message] = []

    async def submit(self, request: Message) -> Message:
        self.asked.append(request)
        return ControllerRegistrationResponse()


def registrar_of(channel: Channel, image: MetadataImage) -> ControllerRegistrar:
    return ControllerRegistrar(3, INCARNATION, [], cast(ControllerChannel, channel), lambda: image)


def test_a_controller_registers_once_though_other_news_come_before_its_own() -> None:
    async def main() -> None:
        image, channel = MetadataImage(), Channel()
        registrar = registrar_of(channel, image)
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as starting:
                starting.start_soon(nursery.start, registrar.run)
                for node_id in (1, 2, 3):
                    await wait_all_tasks_blocked()
                    own = INCARNATION if node_id == 3 else bytes(16)
                    record = RegisterControllerRecord(controller_id=node_id, incarnation_id=own)
                    registrar.apply(image, image.replay(record, node_id))
            nursery.cancel_scope.cancel()
        assert len(channel.asked) == 1

    run_deterministic(main, seed=1)


def test_a_controller_whose_registration_does_not_come_registers_again() -> None:
    async def main() -> None:
        image, channel = MetadataImage(), Channel()
        registrar = registrar_of(channel, image)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(registrar.run)
            await trio.sleep(0.2)
            registrar.apply(image, ImageChanges(others=True))
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
        assert len(channel.asked) == 3

    run_deterministic(main, seed=1)
