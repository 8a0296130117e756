"""A broker's membership of its cluster, on a controller that answers as the test says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
import trio

from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from pykbroker.protocol.messages.metadata_records import ConfigRecord, RegisterBrokerRecord
from pykbroker.protocol.schema import Message
from pykbroker.server.node.broker_lifecycle import (
    BrokerIdentity,
    BrokerLifecycle,
    RegistrationError,
    UnreportedDirectoryFailure,
)
from pykbroker.sim.clock import SimulatedClock
from pykbroker.sim.determinism import run_deterministic

FENCED, UNFENCED = BrokerHeartbeatResponse(is_fenced=True), BrokerHeartbeatResponse(is_fenced=False)


class World:
    """Broker 2. registrations, heartbeats: what the controller answers, the last one for ever."""

    def __init__(self, **properties: str) -> None:
        self.image = MetadataImage()
        self.registrations = [BrokerRegistrationResponse(broker_epoch=7)]
        self.heartbeats = [UNFENCED]
        self.asked: list[Message] = []
        self.offline: list[bytes] = []
        self.cordoned: list[bytes] = []
        clock = SimulatedClock()
        identity = BrokerIdentity(2, "cluster", bytes(16), None, (), (bytes([9] * 16),))
        config = BrokerConfig({"node.id": "2", "log.dirs": "/data", **properties})
        self.lifecycle = BrokerLifecycle(
            identity,
            cast(Any, self),
            lambda: self.image,
            config,
            clock,
            offline_directories=lambda: self.offline,
            cordoned_directories=lambda: self.cordoned,
        )

    async def submit(self, request: Message, *, timeout_ms: int | None = None) -> Message:
        """The channel to the controller."""
        await trio.lowlevel.checkpoint()
        self.asked.append(request)
        answers: list[Any] = self.registrations if isinstance(request, BrokerRegistrationRequest) else self.heartbeats
        return cast(Message, answers.pop(0) if len(answers) > 1 else answers[0])

    @property
    def beats(self) -> list[BrokerHeartbeatRequest]:
        return [each for each in self.asked if isinstance(each, BrokerHeartbeatRequest)]

    def appear(self) -> None:
        """The image has the broker, and it is not fenced."""
        changes = self.image.replay(RegisterBrokerRecord(broker_id=2, broker_epoch=7, fenced=False), 8)
        self.image.offset = 8
        self.lifecycle.apply(self.image, changes)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    run_deterministic(scenario, seed=1)


def test_it_is_started_when_it_is_unfenced_and_this_node_has_heard_of_it() -> None:
    async def scenario() -> None:
        world = World()
        world.heartbeats = [FENCED, UNFENCED]
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def appear_later() -> None:
                await trio.sleep(0.5)
                world.appear()

            await nursery.start(world.lifecycle.run)
            assert trio.current_time() == pytest.approx(0.5)
            assert world.lifecycle.epoch == 7
            nursery.cancel_scope.cancel()

    run(scenario)


def test_heartbeats_come_at_their_interval_and_at_once_when_there_is_news() -> None:
    async def scenario() -> None:
        world = World()
        world.appear()
        async with trio.open_nursery() as nursery:
            await nursery.start(world.lifecycle.run)
            await trio.sleep(6.5)
            assert len(world.beats) == 4
            world.offline.append(bytes([9] * 16))
            world.lifecycle.wake()
            await trio.sleep(0.01)
            assert [beat.offline_log_dirs for beat in world.beats[-2:]] == [[], [bytes([9] * 16)]]
            nursery.cancel_scope.cancel()

    run(scenario)


def test_cordoned_directories_are_told_at_once_and_not_before_the_metadata_are_as_new_as_the_registration() -> None:
    async def scenario() -> None:
        world = World()
        world.heartbeats = [FENCED, UNFENCED]
        world.cordoned = [bytes([9] * 16)]
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def appear_later() -> None:
                await trio.sleep(0.5)
                world.appear()

            await nursery.start(world.lifecycle.run)
            assert world.beats[0].cordoned_log_dirs is None, "what was set at run time is not known yet"
            await trio.sleep(0.01)
            assert world.beats[-1].cordoned_log_dirs == [bytes([9] * 16)]
            count = len(world.beats)
            world.cordoned.clear()
            record = ConfigRecord(resource_type=4, resource_name="2", name="cordoned.log.dirs", value="")
            world.lifecycle.apply(world.image, world.image.replay(record, 9))
            await trio.sleep(0.01)
            assert [beat.cordoned_log_dirs for beat in world.beats[count:]] == [[]]
            nursery.cancel_scope.cancel()

    run(scenario)


@pytest.mark.parametrize(
    "error_code",
    [ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_REGISTRATION],
)
def test_a_refused_registration_ends_the_node_in_one_line(error_code: ErrorCode) -> None:
    async def scenario() -> None:
        world = World()
        world.registrations = [BrokerRegistrationResponse(error_code=error_code)]
        with pytest.raises(RegistrationError) as refused:
            await world.lifecycle.run()
        assert error_code.name in str(refused.value)
        assert "\n" not in str(refused.value)
        if error_code is ErrorCode.UNSUPPORTED_VERSION:
            assert "metadata.version has to be from 30 to 33" in str(refused.value)
        assert len(world.asked) == 1

    run(scenario)


def test_the_session_of_a_process_that_was_killed_is_waited_for() -> None:
    async def scenario() -> None:
        world = World()
        taken = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
        world.registrations = [taken] * 9 + world.registrations
        world.appear()
        async with trio.open_nursery() as nursery:
            await nursery.start(world.lifecycle.run)
            assert world.lifecycle.epoch == 7
            nursery.cancel_scope.cancel()

    run(scenario)


def test_an_id_that_stays_taken_ends_the_node() -> None:
    async def scenario() -> None:
        world = World(**{"initial.broker.registration.timeout.ms": "5000"})
        world.registrations = [BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)]
        with pytest.raises(RegistrationError, match="another broker with this id is in the cluster"):
            await world.lifecycle.run()
        assert 5 <= trio.current_time() < 7

    run(scenario)


def test_a_broker_that_was_unregistered_registers_again() -> None:
    async def scenario() -> None:
        world = World()
        world.heartbeats = [UNFENCED, BrokerHeartbeatResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED), UNFENCED]
        world.registrations += [BrokerRegistrationResponse(broker_epoch=20)]
        world.appear()
        async with trio.open_nursery() as nursery:
            await nursery.start(world.lifecycle.run)
            await trio.sleep(5)
            assert world.lifecycle.epoch == 20
            nursery.cancel_scope.cancel()

    run(scenario)


def test_it_leaves_when_the_controller_lets_it() -> None:
    async def scenario() -> None:
        world = World()
        world.heartbeats = [UNFENCED, UNFENCED, BrokerHeartbeatResponse(is_fenced=True, should_shut_down=True)]
        await world.lifecycle.leave()
        assert [beat.want_shut_down for beat in world.beats] == [True] * 3

    run(scenario)


def test_it_leaves_without_a_controller_too() -> None:
    async def scenario() -> None:
        world = World()
        world.heartbeats = [BrokerHeartbeatResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)]
        await world.lifecycle.leave()
        assert trio.current_time() == pytest.approx(5, abs=0.1)

    run(scenario)


def test_a_failed_directory_of_which_no_controller_hears_ends_the_node() -> None:
    async def scenario() -> None:
        world = World(**{"log.dir.failure.timeout.ms": "3000"})
        world.heartbeats = [BrokerHeartbeatResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)]
        world.appear()
        world.offline.append(bytes([9] * 16))
        with pytest.raises(UnreportedDirectoryFailure):
            await world.lifecycle.run()
        assert 3 <= trio.current_time() < 5

    run(scenario)


def test_a_change_of_others_is_no_reason_for_a_heartbeat() -> None:
    async def scenario() -> None:
        world = World()
        world.appear()
        async with trio.open_nursery() as nursery:
            await nursery.start(world.lifecycle.run)
            world.lifecycle.apply(world.image, ImageChanges(brokers={3: None}))
            await trio.sleep(1)
            assert len(world.beats) == 1
            nursery.cancel_scope.cancel()

    run(scenario)
