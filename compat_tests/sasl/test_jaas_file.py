"""A JAAS file in the place of JAAS lines, as brokers and clients are given it by Java's system property."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.apache_kafka.tools import Tool, tool_command
from compat_tests.brokers import BrokerFailed, BrokerProcess, pykbroker_command
from compat_tests.conftest import assert_all_went_well, make_broker, watch_log
from compat_tests.ports import take_ports
from compat_tests.wire import Closed, Wire

from .modules import PLAIN_MODULE, SCRAM_MODULE
from .raw_log_ins import send_token, shake_hands
from .secured import PASSWORDS, add_scram_users

PROPERTY: Final = "java.security.auth.login.config"
VARIABLES: Final = ("KAFKA_OPTS", "JAVA_TOOL_OPTIONS")
LISTENERS: Final[tuple[str, ...]] = ("GLOBAL", "OWN", "UPPER", "LINE")
NAMES: Final = ("alice", "bob", "carol", "dora")


def entry(module: str, **options: str) -> str:
    return " ".join([f"{module} required", *(f'{name}="{text}"' for name, text in options.items())]) + ";"


def user(name: str) -> dict[str, str]:
    return {f"user_{name}": f"{name}-secret"}


SCRAM: Final = entry(SCRAM_MODULE)
FILE: Final = f"""
// Users of all listeners, in two entries of one module.
KafkaServer {{
    {entry(PLAIN_MODULE, username="node", password="node-secret", **user("alice"), **user("node"), user_dora="one")}
    {entry(PLAIN_MODULE, **user("dora"), user_alice="another")}
    {SCRAM}
}};
own.KafkaServer {{ {entry(PLAIN_MODULE, **user("bob"))} {SCRAM} }};
UPPER.KafkaServer {{ {entry(PLAIN_MODULE, **user("bob"))} {SCRAM} }};
line.KafkaServer {{ {entry(PLAIN_MODULE, **user("bob"))} {SCRAM} }};
controller.KafkaServer {{ {entry(PLAIN_MODULE, username="node", password="node-secret", **user("node"))} }};
"""


@dataclass(frozen=True, slots=True)
class Scene:
    broker: BrokerProcess
    ports: dict[str, int]

    def address(self, listener: str) -> tuple[str, int]:
        return "127.0.0.1", self.ports[listener]


def give(broker: BrokerProcess, text: str) -> Scene:
    """Give a broker that has not been started its listeners and its file."""
    broker.directory.mkdir(parents=True, exist_ok=True)
    path = broker.directory / "jaas.conf"
    path.write_text(text)
    path.chmod(0o600)
    broker.place = replace(broker.place, enter=("env", *(f"{name}=-D{PROPERTY}={path}" for name in VARIABLES)))
    ports = dict(zip(LISTENERS, take_ports(len(LISTENERS)), strict=True))
    listeners = [f"PLAINTEXT://{broker.bootstrap}", f"CONTROLLER://127.0.0.1:{broker.controller_port}"]
    broker.properties |= {
        "listeners": ",".join([*listeners, *(f"{name}://127.0.0.1:{port}" for name, port in ports.items())]),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT,"
        + ",".join(f"{name}:SASL_PLAINTEXT" for name in ports),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.line.plain.sasl.jaas.config": entry(PLAIN_MODULE, **user("carol")),
    }
    return Scene(broker, ports)


@pytest.fixture(scope="module")
def shared_scene(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    broker = make_broker(kind, tmp_path_factory.mktemp(kind) / "jaas-file", {})
    if not isinstance(broker, BrokerProcess):
        pytest.skip("needs a broker that is a process of this machine")
    found = give(broker, FILE)
    broker.start()
    add_scram_users(broker)
    yield found
    broker.close()
    assert_all_went_well(broker)


@pytest.fixture
def scene(shared_scene: Scene, request: pytest.FixtureRequest) -> Scene:
    watch_log(request.node, shared_scene.broker)
    return shared_scene


def log_in(address: tuple[str, int], name: str) -> Any:
    """The error and its text, or where the connection is closed."""
    try:
        with Wire(address) as wire:
            shake_hands(wire, "PLAIN")
            answer = send_token(wire, f"\0{name}\0{name}-secret".encode())
            return answer.error_code, answer.error_message
    except Closed:
        return "closed"


def test_each_listener_has_the_users_of_its_section(scene: Scene, answers: TestAnswers) -> None:
    for listener in LISTENERS:
        for name in NAMES:
            answers.same(f"{name} at {listener}", log_in(scene.address(listener), name))
    assert log_in(scene.address("GLOBAL"), "alice") == (0, "")
    assert log_in(scene.address("OWN"), "bob") == (0, "")
    answers.same("a node at the controller", log_in(("127.0.0.1", scene.broker.controller_port), "node"))


CLIENTS: Final = {
    "PLAIN": ("PLAIN", entry(PLAIN_MODULE, username="alice", password="alice-secret")),
    "SCRAM": ("SCRAM-SHA-256", entry(SCRAM_MODULE, username="alice", password=PASSWORDS["alice"])),
    "a wrong password": ("PLAIN", entry(PLAIN_MODULE, username="alice", password="hunter2")),
    "the entry of the mechanism comes second": (
        "PLAIN",
        SCRAM + entry(PLAIN_MODULE, username="alice", password="alice-secret"),
    ),
    "another entry has name and password": (
        "PLAIN",
        entry(SCRAM_MODULE, username="alice", password="alice-secret") + entry(PLAIN_MODULE),
    ),
    "no section": ("PLAIN", None),
}


@pytest.mark.java
def test_clients_have_a_section_of_their_own(scene: Scene, answers: TestAnswers, tmp_path: Path) -> None:
    """Kafka's tool and this broker's command, each with the same file."""
    host, port = scene.address("GLOBAL")
    for case, (mechanism, entries) in CLIENTS.items():
        path, properties = tmp_path / "client.conf", tmp_path / "client.properties"
        path.write_text(f"KafkaServer {{ {SCRAM} }};\n" + (f"KafkaClient {{ {entries} }};\n" if entries else ""))
        path.chmod(0o600)
        properties.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n")
        arguments = ("--bootstrap-server", f"{host}:{port}", "--list", "--command-config", str(properties))
        environment = ("env", *(f"{name}=-D{PROPERTY}={path}" for name in VARIABLES))
        found = {}
        for what, command in {
            "Kafka's tool": tool_command(Tool.TOPICS, *arguments),
            "this broker's command": pykbroker_command("topics", *arguments),
        }.items():
            done = subprocess.run([*environment, *command], capture_output=True, text=True, timeout=120, check=False)
            found[what] = done.returncode == 0
            assert "hunter2" not in done.stdout + done.stderr
            answers.same(f"{case}: {what}", found[what])
        assert len(set(found.values())) == 1, f"{case}: {found}"


PLAIN_ENTRY: Final = entry(PLAIN_MODULE, username="node", password="node-secret", **user("node"), **user("alice"))
BOTH: Final = f"{PLAIN_ENTRY} {SCRAM}"
STARTS: Final = {
    "numbers in quotes, a property, flags in capitals": (
        f'KafkaServer {{ {PLAIN_MODULE} REQUIRED username="node" password="node-secret" user_node="node-secret" '
        f'user_alice="alice-secret" user_bob="${{{PROPERTY}}}"; {SCRAM} }};'
    ),
    "escapes and comments": (
        f'/* one */ "KafkaServer" {{ {PLAIN_MODULE} required username=node password=node-secret / two\n'
        rf'user_node=node-secret "user_alice"="alice\055secret"; {SCRAM} }}; // three'
    ),
    "no section": f"Kafka {{ {BOTH} }};",
    "an empty section": "KafkaServer { };",
    "the last semicolon is missing": f"KafkaServer {{ {BOTH} }}",
    "the semicolon of an entry is missing": f"KafkaServer {{ {BOTH[:-1]} }};",
    "a number": f"KafkaServer {{ {PLAIN_ENTRY[:-1]} user_bob=1234; {SCRAM} }};",
    "single quotes": f"KafkaServer {{ {PLAIN_ENTRY[:-1]} user_bob='bob-secret'; {SCRAM} }};",
    "a sign that is in no word": f"KafkaServer {{ {PLAIN_ENTRY[:-1]} user_bob=b@b; {SCRAM} }};",
    "a section twice": f"KafkaServer {{ {BOTH} }}; KafkaServer {{ {BOTH} }};",
    "an unknown flag": f"KafkaServer {{ {BOTH.replace('required', 'needed')} }};",
    "a property that nobody has given": f'KafkaServer {{ {PLAIN_ENTRY[:-1]} user_bob="${{no.such}}"; {SCRAM} }};',
    "another comment": f"# comment\nKafkaServer {{ {BOTH} }};",
    "without the module of SCRAM": f"KafkaServer {{ {PLAIN_ENTRY} }};",
}
OURS_DOES_NOT_START: Final = {"without the module of SCRAM"}
"""Kafka starts, and closes each connection that asks for a mechanism whose module it was not told of."""


@pytest.mark.parametrize("case", STARTS)
def test_files_are_read_or_end_the_start(kind: str, case: str, answers: TestAnswers, tmp_path: Path) -> None:
    broker = make_broker(kind, tmp_path / "broker", {})
    if not isinstance(broker, BrokerProcess):
        pytest.skip("needs a broker that is a process of this machine")
    scene = give(broker, STARTS[case])
    try:
        broker.start()
        outcome: Any = log_in(scene.address("GLOBAL"), "alice")
    except BrokerFailed:
        outcome = "does not start"
    finally:
        broker.kill()
    ours = kind == "pykbroker"
    if case in OURS_DOES_NOT_START:
        answers.expect("outcome", outcome, "does not start" if ours else (0, ""))
    else:
        answers.same("outcome", outcome)
    if ours and outcome == "does not start":
        (line,) = [each for each in broker.log_text().splitlines() if each.startswith("Error: ")]
        assert str(broker.directory / "jaas.conf") in line
        assert not re.search("secret|1234|b@b", line), line
