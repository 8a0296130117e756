"""Quotas of clients are set, refused, described and taken away as by Apache Kafka (KIP-546)."""

from __future__ import annotations

import math

import pytest

from .answers import TestAnswers
from .apache_kafka.tools import Tool, run_tool
from .brokers import Broker
from .conftest import FreshBroker
from .quota_requests import DEFAULT, EXACT, SPECIFIED, Parts, alter, component, describe, entry, set_quotas
from .waiting import until

RATE = "producer_byte_rate"


@pytest.fixture
def quotas_broker(fresh_broker: FreshBroker) -> Broker:
    """A broker of its own: quotas of defaults hold for everybody."""
    return fresh_broker({})


def test_what_may_not_be_set_is_refused_with_kafkas_words(quotas_broker: Broker, answers: TestAnswers) -> None:
    broker = quotas_broker
    bob: Parts = {"user": "bob"}
    refused = {
        "no entity": entry({}, {RATE: 1.0}),
        "an empty user": entry({"user": ""}, {RATE: 1.0}),
        "an empty client id": entry({"client-id": ""}, {RATE: 1.0}),
        "an empty address": entry({"ip": ""}, {"connection_creation_rate": 1.0}),
        "an unknown type": entry({"group": "g"}, {RATE: 1.0}),
        "an unknown type beside a known one": entry({"user": "bob", "zone": "z"}, {RATE: 1.0}),
        "an address beside a user": entry({"ip": "10.0.0.1", "user": "bob"}, {RATE: 1.0}),
        "an address beside a client id": entry({"client-id": "c", "ip": None}, {RATE: 1.0}),
        "an address that is none": entry({"ip": "no such host."}, {"connection_creation_rate": 1.0}),
        "an unknown key": entry(bob, {"bytes": 1.0}),
        "an unknown key is taken away": entry(bob, {"bytes": None}),
        "the key of an address for a user": entry(bob, {"connection_creation_rate": 1.0}),
        "the key of a user for an address": entry({"ip": "10.0.0.1"}, {RATE: 1.0}),
        "nothing": entry(bob, {RATE: 0.0}),
        "less than nothing": entry(bob, {"request_percentage": -1.0}),
        "a fraction of a byte": entry(bob, {RATE: 1.5}),
        "a tiny fraction": entry(bob, {RATE: 1.0000001}),
        "a fraction that is almost none": entry(bob, {RATE: 1.9999999}),
        "more than a long": entry(bob, {RATE: 1e19}),
        "just a long": entry(bob, {RATE: 2.0**63}),
        "more than an int": entry({"ip": "10.0.0.1"}, {"connection_creation_rate": 2.0**31}),
        "a fraction of a connection": entry({"ip": "10.0.0.1"}, {"connection_creation_rate": 0.5}),
        "endless": entry(bob, {RATE: math.inf}),
        "a fraction of a percent": entry({"user": "eve"}, {"request_percentage": 0.5}),
        "a good value before a bad one": entry({"user": "mallory"}, {"consumer_byte_rate": 5.0, RATE: -1.0}),
        "a key twice": entry(bob, [(RATE, 1.0), (RATE, 2.0)]),
        "no change": entry({"user": "nobody"}, {}),
        "what is not there is taken away": entry({"user": "nobody"}, {RATE: None}),
    }
    for name, bad in refused.items():
        answers.same(name, alter(broker, bad))
    answers.same("one twice", alter(broker, entry({"user": "two"}, {RATE: 2.0}), entry({"user": "two"}, {RATE: 3.0})))
    both = entry({"user": "two", "client-id": "c"}, {RATE: 2.0})
    answers.same("two parts twice", alter(broker, both, both))
    default = entry({"user": None, "client-id": None}, {RATE: 2.0})
    answers.same("defaults twice", alter(broker, default, default, version=0))
    answers.same("nobody at all", alter(broker))
    many = [entry({"user": f"u{number}"}, {RATE: 1.0}) for number in range(3)]
    answers.same("good beside bad", alter(broker, *many, entry({"user": "u9"}, {RATE: -1.0})))
    answers.same("all that is set", describe(broker))


def test_a_dry_run_changes_nothing(quotas_broker: Broker, answers: TestAnswers) -> None:
    rows = alter(quotas_broker, entry({"user": "bob"}, {RATE: 1.0}), validate_only=True)
    answers.same("good", rows)
    answers.same("bad", alter(quotas_broker, entry({"user": "bob"}, {RATE: -1.0}), validate_only=True))
    answers.same("described", describe(quotas_broker))


def test_filters_find_what_kafkas_find(quotas_broker: Broker, answers: TestAnswers) -> None:
    broker = quotas_broker
    entities: list[Parts] = [
        {"user": "bob"},
        {"user": "bob", "client-id": "c"},
        {"user": "bob", "client-id": None},
        {"user": None},
        {"user": None, "client-id": "c"},
        {"user": None, "client-id": None},
        {"client-id": "c"},
        {"client-id": None},
        {"user": "with space/and %"},
    ]
    for number, parts in enumerate(entities):
        set_quotas(broker, parts, {RATE: 1000.0 + number, "request_percentage": 0.25 + number})
    for address in ("10.0.0.1", "::1", None):
        set_quotas(broker, {"ip": address}, {"connection_creation_rate": 10.0})
    until(lambda: len(describe(broker)[2] or ()) == len(entities) + 3, "the broker knows all quotas")
    filters = {
        "everything": (),
        "a user": (component("user", EXACT, "bob"),),
        "the default user": (component("user", DEFAULT),),
        "any user": (component("user", SPECIFIED),),
        "any user and client": (component("user", SPECIFIED), component("client-id", SPECIFIED)),
        "bob and any client": (component("user", EXACT, "bob"), component("client-id", SPECIFIED)),
        "bob and the default client": (component("user", EXACT, "bob"), component("client-id", DEFAULT)),
        "a client": (component("client-id", EXACT, "c"),),
        "an address": (component("ip", EXACT, "10.0.0.1"),),
        "any address": (component("ip", SPECIFIED),),
        "a strange user": (component("user", EXACT, "with space/and %"),),
        "nobody": (component("user", EXACT, "nobody"),),
        "no type": (component("", SPECIFIED),),
        "an unknown type": (component("group", SPECIFIED),),
        "a type twice": (component("user", SPECIFIED), component("user", DEFAULT)),
        "an address beside a user": (component("ip", SPECIFIED), component("user", DEFAULT)),
        "exact without a name": (component("user", EXACT),),
        "default with a name": (component("user", DEFAULT, "bob"),),
        "specified with a name": (component("user", SPECIFIED, "bob"),),
        "an unknown match": (component("user", 7),),
    }
    for name, components in filters.items():
        for strict in (False, True):
            answers.same(f"{name}, {strict=}", describe(broker, *components, strict=strict))
    answers.same("version 0", describe(broker, component("user", DEFAULT), version=0))


def test_quotas_are_changed_and_taken_away_and_outlive_a_restart(quotas_broker: Broker, answers: TestAnswers) -> None:
    broker = quotas_broker
    set_quotas(broker, {"user": "bob"}, {RATE: 1.0, "consumer_byte_rate": 2.0})
    set_quotas(broker, {"user": "bob"}, {RATE: 3.0, "consumer_byte_rate": None, "controller_mutation_rate": 0.5})
    set_quotas(broker, {"client-id": "gone"}, {RATE: 1.0})
    set_quotas(broker, {"client-id": "gone"}, {RATE: None})
    answers.same("before", describe(broker))
    broker.stop()
    broker.start()
    until(lambda: bool(describe(broker)[2]), "the quotas are there again")
    answers.same("after", describe(broker))


@pytest.mark.java
def test_kafkas_configs_command_sets_and_describes_quotas(quotas_broker: Broker, answers: TestAnswers) -> None:
    broker = quotas_broker

    def command(*arguments: str) -> list[str]:
        done = run_tool(Tool.CONFIGS, "--bootstrap-server", broker.bootstrap, *arguments)
        return sorted(done.stdout.splitlines())

    users = ("--entity-type", "users", "--entity-name", "bob")
    clients = ("--entity-type", "clients", "--entity-name", "c")
    address = ("--entity-type", "ips", "--entity-name", "127.0.0.1")
    steps = {
        "a user": ("--alter", "--add-config", f"{RATE}=1024,request_percentage=12.5", *users),
        "a user's client": ("--alter", "--add-config", "consumer_byte_rate=2048", *users, *clients),
        "a client": ("--alter", "--add-config", "controller_mutation_rate=3", *clients),
        "all users": ("--alter", "--add-config", f"{RATE}=4096", "--entity-type", "users", "--entity-default"),
        "all clients": ("--alter", "--add-config", f"{RATE}=8192", "--entity-type", "clients", "--entity-default"),
        "an address": ("--alter", "--add-config", "connection_creation_rate=50", *address),
        "all addresses": (
            *("--alter", "--add-config", "connection_creation_rate=60"),
            *("--entity-type", "ips", "--entity-default"),
        ),
        "the user's client described": ("--describe", *users, *clients),
        "clients described": ("--describe", "--entity-type", "clients"),
        "users and clients described": ("--describe", "--entity-type", "users", "--entity-type", "clients"),
        "addresses described": ("--describe", "--entity-type", "ips"),
        "a key is gone": ("--alter", "--delete-config", "request_percentage", *users),
        "and described": ("--describe", "--entity-type", "users", "--entity-type", "clients"),
    }
    for name, arguments in steps.items():
        answers.same(name, command(*arguments))
