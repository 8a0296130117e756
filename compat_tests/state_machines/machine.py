"""What every machine has: a broker, a client of it, and names that no other example uses."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from compat_tests.brokers import Broker
from compat_tests.names import RUN

from .client import Client

_examples = itertools.count(1)


class BrokerMachine(RuleBasedStateMachine):
    """One example. Its names differ from those of all others, so that none sees what another one left."""

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self.broker = broker
        self.client = Client(broker.address)
        self.prefix = f"{type(self).__name__}-{RUN}-{next(_examples):05d}"

    def name(self, noun: str) -> str:
        return f"{self.prefix}.{noun}"

    def teardown(self) -> None:
        try:
            self.client.delete_topics_of(self.prefix)
        finally:
            self.client.close()


def explore(machine: Callable[[Broker], BrokerMachine], broker: Broker, options: settings) -> None:
    """Try as many sequences as the settings say. Fails with the shortest that it finds."""
    run_state_machine_as_test(lambda: machine(broker), settings=options)
