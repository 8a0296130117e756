"""The core alone, as `pip install pykbroker` brings it: small, whole, and clear about what an extra brings."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from kafka import KafkaConsumer, KafkaProducer

from compat_tests.certificates import Authority

from .environment import TIMEOUT_S, CleanEnvironment, size_bytes

CORE = {
    *("trio", "attrs", "idna", "outcome", "sniffio", "sortedcontainers"),
    *("rich", "markdown-it-py", "mdurl", "pygments"),
    *("click", "construct", "cramjam", "crc32c", "google-re2", "javaproperties", "xxhash"),
}
"""The core's dependencies, and theirs. What is added here is added to every install."""
MOST_MB = 20
"""The files of all of them, as they come out of their wheels."""

IMPORTS = """
import importlib, json, pkgutil, sys
import pykbroker

missing = {}
for each in pkgutil.walk_packages(pykbroker.__path__, "pykbroker.", onerror=lambda name: None):
    if each.name.rpartition(".")[2] != "__main__":
        try:
            importlib.import_module(each.name)
        except ModuleNotFoundError as error:
            missing[each.name] = error.name
print(json.dumps(missing))
"""
NEED_MORE = {
    "pykbroker.cli.secure": {"cryptography"},
    "pykbroker.console": {"starlette"},
    "pykbroker.control.http": {"starlette"},
    "pykbroker.metrics": {"prometheus_client"},
    "pykbroker.sim": {"greenlet"},
    "pykbroker.spark": {"numpy"},
    "pykbroker.testing.pytest_plugin": {"pytest"},
    "pykbroker.web": {"h11"},
}
"""Packages with modules that an extra is for, and the packages of others that these import. `sim` is for our tests."""

OAUTH = """\
listeners=SASL_PLAINTEXT://127.0.0.1:0
sasl.enabled.mechanisms=OAUTHBEARER
listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config=\
  org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required ;
sasl.oauthbearer.jwks.endpoint.url=file:///keys.json
sasl.oauthbearer.expected.audience=us
sasl.oauthbearer.expected.issuer=them
"""


@dataclass(frozen=True, slots=True)
class CoreBroker:
    """A broker of the core. log: what it said until it was ready, and behind that."""

    bootstrap: str
    log: Path


@pytest.fixture(scope="module")
def broker(core: CleanEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoreBroker]:
    directory = tmp_path_factory.mktemp("broker")
    log = directory / "log"
    command = [core.python, "-m", "pykbroker", "start", "--ephemeral", "--port", "0"]
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            command, cwd=directory, env=core.variables, stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            ready = process.stdout.readline()
            assert ready.startswith("pykbroker ready: "), log.read_text()
            yield CoreBroker(ready.split()[2].removeprefix("PLAINTEXT://"), log)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT_S) == 0


def test_the_core_is_small(core: CleanEnvironment) -> None:
    assert set(core.distributions) == CORE
    assert sum(map(size_bytes, core.distributions.values())) < MOST_MB * 1_000_000


def test_all_modules_can_be_imported_but_those_of_extras(core: CleanEnvironment, tmp_path: Path) -> None:
    done = core.run("-c", IMPORTS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    missing: dict[str, set[str]] = {}
    for module, package in json.loads(done.stdout.splitlines()[-1]).items():
        owner = next((each for each in NEED_MORE if f"{module}.".startswith(f"{each}.")), module)
        missing.setdefault(owner, set()).add(package)
    assert missing == NEED_MORE


def test_stock_clients_are_served(broker: CoreBroker) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    try:
        producer.send("orders", b"one").get(timeout=60)
    finally:
        producer.close()
    consumer = KafkaConsumer("orders", bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
    try:
        assert next(consumer).value == b"one"
    finally:
        consumer.close()


def test_the_start_says_in_one_line_how_to_get_the_console(broker: CoreBroker) -> None:
    told = [line for line in broker.log.read_text().splitlines() if "pip install" in line]
    assert len(told) == 1
    assert "no console and no metrics over HTTP" in told[0]
    assert told[0].endswith("pip install 'pykbroker[console,metrics]'")


def test_commands_need_nothing_more(core: CleanEnvironment, broker: CoreBroker, tmp_path: Path) -> None:
    def call(*arguments: str, stdin: str = "") -> str:
        done = core.run(
            *("-m", "pykbroker", *arguments, "--bootstrap-server", broker.bootstrap), cwd=tmp_path, stdin=stdin
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    call("produce", "--topic", "by-command", stdin="hello\n")
    assert call("consume", "--topic", "by-command", "--from", "earliest", "-e") == "hello\n"
    assert "by-command" in call("topics", "list")


@pytest.mark.parametrize(
    ("arguments", "needs", "extra"),
    [
        ("start --ephemeral --secure secure", "--secure needs cryptography", "tls"),
        (
            "start --ephemeral --override listeners=SSL://127.0.0.1:0 --override ssl.keystore.type=PEM"
            " --override ssl.keystore.location=keys.pem",
            "ssl.keystore.location needs cryptography",
            "tls",
        ),
        (
            "start --ephemeral oauth.properties",
            "sasl.oauthbearer.jwks.endpoint.url needs joserfc",
            "tls",
        ),
        ("start --ephemeral --ctl-port 0", "--ctl-port needs ", "control"),
        ("start --ephemeral --override console.listener=127.0.0.1:0", "console.listener needs ", "console,metrics"),
        ("start --ephemeral --override metrics.listener=127.0.0.1:0", "metrics.listener needs ", "console,metrics"),
        ("consume --topic t --where a", "--where needs ", "jmespath"),
        ("consume --topic t --value-schema t.avsc", "--value-schema", "avro"),
        ("spark audit --topic t --archive .", "is not installed", "spark"),
    ],
)
def test_what_an_extra_is_for_says_so_in_one_line(
    core: CleanEnvironment, tmp_path: Path, arguments: str, needs: str, extra: str
) -> None:
    (tmp_path / "t.avsc").write_text('"string"')
    (tmp_path / "oauth.properties").write_text(OAUTH)
    done = core.run("-m", "pykbroker", *arguments.split(), cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert needs in done.stderr
    assert done.stderr.endswith(f"pip install 'pykbroker[{extra}]'\n")


def test_a_client_that_trusts_a_pem_file_needs_no_more_than_the_core(core: CleanEnvironment, tmp_path: Path) -> None:
    script = """
from pykbroker.security.tls.contexts import client_context
from pykbroker.security.tls.settings import TlsSettings
import sys
client_context(TlsSettings.of({"ssl.truststore.type": "PEM", "ssl.truststore.location": sys.argv[1]}))
assert "cryptography" not in sys.modules
"""
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(Authority.root().certificate.public_bytes(Encoding.PEM))
    done = core.run("-c", script, trusted, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
