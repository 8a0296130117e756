"""Keys of SASL that are set while a broker runs.

Apache Kafka takes and describes them, whatever they say, and its listeners never look at them, before the next start or
behind it. pykbroker checks what it is told, and log-ins go by it from then on; what it does not serve it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.apache_kafka.tools import Tool, run_tool
from compat_tests.broker_configs import APPEND, DELETE, SET, alter, described, plain
from compat_tests.brokers import BrokerProcess, answers_api_versions
from compat_tests.conftest import assert_all_went_well, make_broker, watch_log
from compat_tests.ports import take_ports
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.messages.metadata import MetadataRequest
from pykbroker.protocol.messages.sasl import SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse
from pykbroker.security.sasl.credentials import LOGIN_MODULES

from .modules import PLAIN_MODULE, SCRAM_MODULE
from .raw_log_ins import send_token, shake_hands

LISTENERS: Final[tuple[str, ...]] = ("USERS", "MECHANISMS", "SESSIONS", "REFUSALS", "TOOL", "RESTART")
UNDER_WAY: Final = b"\0alice\0first"
NODE: Final = f'{PLAIN_MODULE} required username="node" password="first" user_node="first"'
REFUSED: Final = "Authentication failed: Invalid username or password"


def line(**users: str) -> str:
    known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    return f'{PLAIN_MODULE} required username="node" password="first" {known};'


def key(listener: str, of: str = "plain.sasl.jaas.config") -> str:
    return f"listener.name.{listener.lower()}.{of}"


MECHANISMS: Final = "sasl.enabled.mechanisms"
LIFETIME: Final = "connections.max.reauth.ms"


@dataclass(frozen=True, slots=True)
class Scene:
    """One broker. ports: of its SASL listeners."""

    broker: BrokerProcess
    ports: dict[str, int]

    def address(self, listener: str) -> tuple[str, int]:
        return "127.0.0.1", self.ports[listener]

    def set(self, *changes: tuple[str, str], validate_only: bool = False) -> tuple[str, str | None]:
        given = [(name, SET, value) for name, value in changes]
        return alter(self.broker.address, *given, validate_only=validate_only)

    def unset(self, *names: str) -> tuple[str, str | None]:
        return alter(self.broker.address, *((name, DELETE, None) for name in names))

    def log_in(self, listener: str, name: str, password: str) -> bool:
        with Wire(self.address(listener)) as wire:
            shake_hands(wire, "PLAIN")
            return _is_in(send_token(wire, f"\0{name}\0{password}".encode()))

    def offered(self, listener: str) -> list[str]:
        """The mechanisms that a client is told which asks for none of them."""
        with Wire(self.address(listener)) as wire:
            answer = wire.call(SaslHandshakeRequest(mechanism="NONE"), 1)
        assert isinstance(answer, SaslHandshakeResponse)
        return answer.mechanisms

    def lifetime_ms(self, listener: str) -> int:
        with Wire(self.address(listener)) as wire:
            shake_hands(wire, "PLAIN")
            return send_token(wire, UNDER_WAY).session_lifetime_ms


def _is_in(answer: SaslAuthenticateResponse) -> bool:
    if answer.error_code:
        assert answer.error_message == REFUSED
    return not answer.error_code


def properties(broker: BrokerProcess, ports: dict[str, int]) -> dict[str, str]:
    listeners = [f"PLAINTEXT://{broker.bootstrap}", f"CONTROLLER://127.0.0.1:{broker.controller_port}"]
    given = {
        "listeners": ",".join([*listeners, *(f"{name}://127.0.0.1:{port}" for name, port in ports.items())]),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT,"
        + ",".join(f"{name}:SASL_PLAINTEXT" for name in ports),
        MECHANISMS: "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        key("CONTROLLER"): f"{NODE};",
    }
    return given | {key(name): line(alice="first", node="first") for name in ports}


@pytest.fixture(scope="module")
def shared_scene(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    broker = make_broker(kind, tmp_path_factory.mktemp(kind) / "at-run-time", {})
    if not isinstance(broker, BrokerProcess):
        pytest.skip("needs a broker that is a process of this machine")
    ports = dict(zip(LISTENERS, take_ports(len(LISTENERS)), strict=True))
    broker.properties |= properties(broker, ports)
    broker.start()
    yield Scene(broker, ports)
    broker.close()
    assert_all_went_well(broker)


@pytest.fixture
def scene(shared_scene: Scene, request: pytest.FixtureRequest) -> Scene:
    watch_log(request.node, shared_scene.broker)
    return shared_scene


def takes_effect(scene: Scene, condition: Callable[[], bool], what: str) -> bool:
    """Tell whether the broker makes use of what it was told; one of ours must.

    Of Apache Kafka nothing can be waited for, so that the key is seen in its description first.
    """
    if scene.broker.kind == "pykbroker":
        until(condition, what, 20)
    return condition()


def seen(scene: Scene, *names: str) -> None:
    until(lambda: set(names) <= described(scene.broker.address, *names).keys(), "the broker describes what it was told")


def test_users_change_for_log_ins_to_come(scene: Scene, answers: TestAnswers) -> None:
    name = key("USERS")
    with Wire(scene.address("USERS")) as old, Wire(scene.address("USERS")) as begun:
        shake_hands(old, "PLAIN")
        assert _is_in(send_token(old, UNDER_WAY))
        shake_hands(begun, "PLAIN")
        answers.same("changed", scene.set((name, line(alice="second", bob="of-bob"))))
        seen(scene, name)
        ours = scene.broker.kind == "pykbroker"
        answers.expect("bob", takes_effect(scene, lambda: scene.log_in("USERS", "bob", "of-bob"), "bob is known"), ours)
        answers.expect("alice, changed", scene.log_in("USERS", "alice", "second"), ours)
        answers.expect("alice, as before", scene.log_in("USERS", "alice", "first"), not ours)
        answers.same("who had begun before", _is_in(send_token(begun, UNDER_WAY)))
        answers.same("who was in before", type(old.call(MetadataRequest(topics=[]), 9)).__name__)
    answers.same("removed", scene.unset(name))
    until(lambda: scene.log_in("USERS", "alice", "first"), "the line of the properties counts again")
    answers.same("bob is gone", scene.log_in("USERS", "bob", "of-bob"))


def test_mechanisms_change_together_with_their_lines(scene: Scene, answers: TestAnswers) -> None:
    names = key("MECHANISMS", MECHANISMS), key("MECHANISMS", "scram-sha-256.sasl.jaas.config")
    bearer = key("MECHANISMS", "oauthbearer.sasl.jaas.config")
    lines = (f"{SCRAM_MODULE} required;", f"{LOGIN_MODULES['OAUTHBEARER']} required;")
    both = (names[0], "SCRAM-SHA-256,PLAIN,OAUTHBEARER"), (names[1], lines[0]), (bearer, lines[1])
    answers.same("changed", scene.set(*both))
    seen(scene, *names, bearer)
    wanted = ["SCRAM-SHA-256", "PLAIN", "OAUTHBEARER"]
    given = takes_effect(scene, lambda: scene.offered("MECHANISMS") == wanted, "three mechanisms are offered")
    answers.expect("in the order that was given", given, scene.broker.kind == "pykbroker")
    answers.same("removed", scene.unset(*names, bearer))
    until(lambda: scene.offered("MECHANISMS") == ["PLAIN"], "the mechanism of the properties is offered")


def test_sessions_get_another_lifetime(scene: Scene, answers: TestAnswers) -> None:
    name = key("SESSIONS", LIFETIME)
    answers.same("a lifetime", scene.set((name, "5000")))
    seen(scene, name)
    given = takes_effect(scene, lambda: scene.lifetime_ms("SESSIONS") == 5000, "sessions end")
    answers.expect("taken", given, scene.broker.kind == "pykbroker")
    answers.same("a negative one is none", scene.set((name, "-5")))
    until(lambda: scene.lifetime_ms("SESSIONS") == 0, "sessions have no end")
    answers.same("no number", scene.set((name, "soon"))[0])
    answers.same("removed", scene.unset(name))


TAKEN_BY_KAFKA: Final = {
    "no JAAS line": {key("REFUSALS"): "hunter2"},
    "an empty line": {key("REFUSALS"): ""},
    "two modules": {key("REFUSALS"): f"{PLAIN_MODULE} required user_a=hunter2;{PLAIN_MODULE} required;"},
    "the module of another mechanism": {key("REFUSALS"): f"{SCRAM_MODULE} required;"},
    "a line for the listener alone": {key("REFUSALS", "sasl.jaas.config"): line(a="hunter2")},
    "a line for nothing": {"sasl.jaas.config": line(a="hunter2")},
    "a mechanism without a line": {key("REFUSALS", MECHANISMS): "PLAIN,SCRAM-SHA-256"},
    "no mechanism": {key("REFUSALS", MECHANISMS): ""},
    "an unknown mechanism": {key("REFUSALS", MECHANISMS): "FOO"},
    "a listener that nobody has": {key("NOWHERE"): line(a="hunter2")},
    "a listener in upper case": {"listener.name.REFUSALS.plain.sasl.jaas.config": line(a="hunter2")},
    "the mechanism between brokers": {"sasl.mechanism.inter.broker.protocol": "PLAIN"},
    "the mechanism of controllers is not offered": {
        key("CONTROLLER", MECHANISMS): "SCRAM-SHA-256",
        key("CONTROLLER", "scram-sha-256.sasl.jaas.config"): f"{SCRAM_MODULE} required;",
    },
    "the size of a token": {key("REFUSALS", "sasl.server.max.receive.size"): "1000"},
    "an audience": {key("REFUSALS", "oauthbearer.sasl.oauthbearer.expected.audience"): "x"},
    "a window": {"sasl.login.refresh.window.factor": "0.5"},
    "two keys, one of them bad": {key("REFUSALS"): line(bob="of-bob"), key("REFUSALS", MECHANISMS): "FOO"},
}


def test_kafka_takes_what_cannot_be_used_and_pykbroker_refuses_it(scene: Scene, answers: TestAnswers) -> None:
    for case, changes in TAKEN_BY_KAFKA.items():
        error, message = scene.set(*changes.items(), validate_only=True)
        expected = "NONE" if scene.broker.kind != "pykbroker" else error
        answers.expect(case, error, expected)
        if scene.broker.kind == "pykbroker":
            assert error in ("INVALID_CONFIG", "INVALID_REQUEST"), case
            assert message
            assert scene.set(*changes.items()) == (error, message), "not only where it is asked about"
            assert "hunter2" not in message
    if scene.broker.kind == "pykbroker":
        assert not described(scene.broker.address, *(name for each in TAKEN_BY_KAFKA.values() for name in each))[
            key("REFUSALS")
        ].synonyms[1:]
        assert scene.log_in("REFUSALS", "alice", "first")
        assert not scene.log_in("REFUSALS", "bob", "of-bob")
        assert "hunter2" not in scene.broker.log_text()


def test_both_refuse(scene: Scene, answers: TestAnswers) -> None:
    name, address = key("REFUSALS"), scene.broker.address
    value = line(a="hunter2")
    for case, answer in {
        "for all brokers": alter(address, (name, SET, value), broker=""),
        "mechanisms for all brokers": alter(address, (key("REFUSALS", MECHANISMS), SET, "PLAIN"), broker=""),
        "mechanisms of all listeners for all brokers": alter(address, (MECHANISMS, SET, "PLAIN"), broker=""),
        "another broker": alter(address, (name, SET, value), broker="7"),
        "without a value": alter(address, (name, SET, None)),
        "twice": alter(address, (name, SET, value), (name, SET, value)),
        "a lifetime of all listeners": alter(address, (LIFETIME, SET, "5")),
        "a size of all listeners": alter(address, ("sasl.server.max.receive.size", SET, "5")),
        "the class of log-ins": alter(address, ("sasl.login.class", SET, "org.example.Login")),
        "the address of keys": alter(address, ("sasl.oauthbearer.jwks.endpoint.url", SET, "https://x")),
    }.items():
        answers.same(case, answer)
    appended = alter(address, (key("REFUSALS", MECHANISMS), APPEND, "SCRAM-SHA-256"))
    answers.same("appended", appended[0])


def test_what_is_set_is_described_without_secrets(scene: Scene, answers: TestAnswers) -> None:
    names = [key("TOOL"), key("TOOL", MECHANISMS), key("TOOL", LIFETIME)]
    assert scene.set((names[0], line(alice="hunter2")), (names[1], "PLAIN"), (names[2], "7000"))[0] == "NONE"
    seen(scene, *names)
    until(lambda: described(scene.broker.address, names[2])[names[2]].value == "7000", "all of them are there")
    for asked in (names, []):
        found = described(scene.broker.address, *asked)
        for each in names:
            answers.same(f"{each} of {len(asked)}", plain(found[each]))
    assert scene.unset(*names)[0] == "NONE"
    if scene.broker.kind == "pykbroker":
        assert "hunter2" not in scene.broker.log_text()


@pytest.mark.java
def test_the_tool_changes_and_describes_users(scene: Scene, answers: TestAnswers) -> None:
    server = ("--bootstrap-server", scene.broker.bootstrap)
    entity = ("--entity-type", "brokers", "--entity-name", "1")
    name = key("TOOL")
    # A comma in the value would end it, for the tool.
    given = f"[{line(alice='hunter2')}]"
    changed = run_tool(Tool.CONFIGS, *server, *entity, "--alter", "--add-config", f"{name}={given}")
    answers.same("altered", changed.stdout)
    if scene.broker.kind == "pykbroker":
        until(lambda: scene.log_in("TOOL", "alice", "hunter2"), "alice has her new password")
    found = run_tool(Tool.CONFIGS, *server, *entity, "--describe").lines
    answers.same("described", sorted(each.strip() for each in found if name in each))
    assert scene.unset(name)[0] == "NONE"


def test_a_broker_starts_with_what_was_set(scene: Scene, answers: TestAnswers) -> None:
    """Also on the listener of controllers, where a node of one process shows it to itself."""
    second = f'{PLAIN_MODULE} required username="node" password="second" user_node="second";'
    answers.same("users", scene.set((key("RESTART"), line(bob="of-bob")), (key("CONTROLLER"), second)))
    seen(scene, key("RESTART"), key("CONTROLLER"))
    scene.broker.stop()
    scene.broker.start()
    for address in (scene.address("RESTART"), ("127.0.0.1", scene.broker.controller_port)):
        until(partial(answers_api_versions, address), "the listener is there again")
    ours = scene.broker.kind == "pykbroker"
    answers.expect("bob", scene.log_in("RESTART", "bob", "of-bob"), ours)
    answers.expect("alice", scene.log_in("RESTART", "alice", "first"), not ours)
    answers.expect("the line is in the log in clear", _in_the_log(scene.broker, b"of-bob"), True)
    with Wire(("127.0.0.1", scene.broker.controller_port)) as wire:
        shake_hands(wire, "PLAIN")
        answers.expect("a node", _is_in(send_token(wire, b"\0node\0second")), ours)
    assert scene.unset(key("RESTART"), key("CONTROLLER"))[0] == "NONE"
    until(lambda: scene.log_in("RESTART", "alice", "first"), "the line of the properties counts again")


def _in_the_log(broker: BrokerProcess, text: bytes) -> bool:
    return any(text in each.read_bytes() for each in (broker.data_directory / "__cluster_metadata-0").glob("*.log"))
