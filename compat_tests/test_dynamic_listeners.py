"""Listeners that are added and removed at run time, as Apache Kafka does it, and changes that it refuses."""

from __future__ import annotations

from typing import Final

from pykbroker.protocol.messages.api_versions import ApiVersionsRequest

from .answers import TestAnswers
from .broker_configs import APPEND, DELETE, SET, Change, alter, described
from .brokers import Broker
from .conftest import FreshBroker
from .ports import take_ports
from .waiting import until
from .wire import Closed, Wire

MAP: Final = "listener.security.protocol.map"
PROTOCOLS: Final = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,EXTRA:PLAINTEXT"
ADVERTISED: Final = "PLAINTEXT://127.0.0.1:1"
"""Nobody follows it: each request goes to a port that the test knows."""


def answers_at(wire: Wire) -> bool:
    try:
        wire.call(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 3)
    except (Closed, OSError):
        return False
    return True


def is_served(port: int) -> bool:
    try:
        with Wire(("127.0.0.1", port)) as wire:
            return answers_at(wire)
    except OSError:
        return False


def started(fresh_broker: FreshBroker) -> tuple[Broker, str]:
    """A broker that advertises its own listener alone, somewhere, and its listeners as the properties file has them."""
    broker = fresh_broker({MAP: "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", "advertised.listeners": ADVERTISED})
    return broker, described(broker.address, "listeners")["listeners"].value


def test_a_listener_that_is_not_advertised_comes_and_goes(fresh_broker: FreshBroker, answers: TestAnswers) -> None:
    broker, own = started(fresh_broker)
    address = broker.address
    (port,) = take_ports(1)
    listeners = ("listeners", SET, f"{own},EXTRA://127.0.0.1:{port}")
    answers.same("added", alter(address, listeners, (MAP, SET, PROTOCOLS)))
    until(lambda: is_served(port), "the listener is there")
    with Wire(("127.0.0.1", port)) as wire:
        answers.same("its clients are answered", answers_at(wire))
        answers.same("removed", alter(address, ("listeners", DELETE, None)))
        until(lambda: not answers_at(wire), "its connections are closed")
    until(lambda: not is_served(port), "the listener is gone")
    answers.same("the others stay", is_served(address[1]))


def test_changes_that_are_refused(fresh_broker: FreshBroker, answers: TestAnswers) -> None:
    """Where a rule is of the dynamic change, the words are Kafka's; where the file would be refused, too, our own."""
    broker, own = started(fresh_broker)
    address = broker.address
    (port,) = take_ports(1)
    extra = f"EXTRA://127.0.0.1:{port}"
    assert alter(address, ("listeners", SET, f"{own},{extra}"), (MAP, SET, PROTOCOLS)) == ("NONE", None)
    until(lambda: is_served(port), "the listener is there")
    other_protocol = (MAP, SET, PROTOCOLS.replace("EXTRA:PLAINTEXT", "EXTRA:SSL"))
    answers.same("another protocol", alter(address, other_protocol))
    answers.same("of all brokers", alter(address, ("listeners", SET, own), broker=""))
    answers.same("what is advertised", alter(address, ("advertised.listeners", SET, "PLAINTEXT://127.0.0.1:1")))
    refused: dict[str, Change] = {
        "without the listener between brokers": ("listeners", SET, f"{own.partition(',')[2]},{extra}"),
        "no protocol": ("listeners", APPEND, "UNKNOWN://127.0.0.1:1"),
        "no address": ("listeners", APPEND, "EXTRA2"),
        "one name twice": ("listeners", APPEND, "EXTRA://127.0.0.1:1"),
        "one port twice": ("listeners", SET, f"{own},EXTRA://127.0.0.1:{address[1]}"),
        "no map": (MAP, SET, "x"),
        "a map without those that are there": (MAP, SET, "PLAINTEXT:PLAINTEXT"),
        "none at all": ("listeners", SET, ""),
    }
    for question, change in refused.items():
        code, message = alter(address, change)
        answers.same(question, [code, bool(message)])
    answers.same("the listener stays", is_served(port))
    answers.same("tried alone", alter(address, ("listeners", DELETE, None), validate_only=True))
    answers.same("and stays", is_served(port))
