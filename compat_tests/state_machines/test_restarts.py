"""Restarts: after kill -9 and after clean stops a broker has all that it acknowledged, and what the model remembers.

The machine is that of the logs, with a broker of its own. Fetch sessions end with the process; a partition's leader
epoch rises, by how much is the controller's matter.
"""

from __future__ import annotations

import pytest
from hypothesis.stateful import precondition, rule

from compat_tests.brokers import Broker
from compat_tests.conftest import FreshBroker
from compat_tests.waiting import until
from tests.examples import examples

from .machine import explore
from .test_logs import LogsMachine

RESTARTS = 2
"""At most in an example: each takes as long as a hundred requests."""


class RestartsMachine(LogsMachine):
    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.restarts = 0

    @precondition(lambda self: self.restarts < RESTARTS)
    @rule()
    def kill(self) -> None:
        self.broker.kill()
        self._start()

    @precondition(lambda self: self.restarts < RESTARTS)
    @rule()
    def stop(self) -> None:
        self.broker.stop()
        self._start()

    def _start(self) -> None:
        self.restarts += 1
        self.broker.start()
        self.client.reconnect()
        for session in [*self.open_sessions]:
            self._is_over(session)
        for model in self.by_name.values():
            for index, partition in enumerate(model.partitions):
                until(lambda: self.client.leads(model.topic.name, index), f"{model.topic.name}-{index} leads")  # noqa: B023
                epoch = self.client.leader_epoch(model.topic.name, index)
                assert epoch >= partition.leader_epoch
                if epoch > partition.leader_epoch:
                    partition.lead(epoch)


def test_restarts_keep_what_the_model_keeps(fresh_broker: FreshBroker) -> None:
    explore(RestartsMachine, fresh_broker(), examples(5, stateful_step_count=25))


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_an_epoch_that_left_no_record_ends_where_the_next_one_begins(fresh_broker: FreshBroker, way: str) -> None:
    machine = RestartsMachine(fresh_broker())
    topic = machine.create_topic("empty", 1, {})
    getattr(machine, way)()
    for epoch in range(-1, 4):
        machine.offset_for_leader_epoch(topic, 0, epoch, -1)
    machine.teardown()
