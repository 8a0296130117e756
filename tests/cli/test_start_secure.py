"""`pykbroker start --secure DIR`: the clients' configurations that it writes, and what a second start finds."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer

from compat_tests.secure_start import client_configuration, secure_broker
from pykbroker.cli.main import main
from pykbroker.cli.secure.authority import Certified, broker_certificate
from pykbroker.cli.secure.directory import open_directory
from pykbroker.cli.secure.stores import broker_files
from pykbroker.config import ConfigurationError
from pykbroker.config.properties import read_properties
from pykbroker.security.tls.jks import read_jks
from pykbroker.security.tls.jks_writing import write_jks
from pykbroker.security.tls.store_contents import KeyPasswordRefused, PasswordRefused

from .test_start import TIMEOUT_S, run_process

StartSecure = Callable[[Path], str]


@pytest.fixture
def start_secure(tmp_path: Path) -> Iterator[StartSecure]:
    """Start a broker with this directory, and return where it serves; one that runs is stopped before."""
    with ExitStack() as running:

        def start(directory: Path) -> str:
            running.close()
            return running.enter_context(secure_broker(directory, tmp_path / "data"))

        yield start


def ours(directory: Path, user: str, line: str) -> tuple[int, str]:
    """One of our commands with a user's configuration: its exit code, and what it prints."""
    name, *flags = line.split()
    config = directory / "clients" / f"{user}.properties"
    server = read_properties(config)["bootstrap.servers"]
    result = CliRunner().invoke(main, [name, "--bootstrap-server", server, "--command-config", str(config), *flags])
    return result.exit_code, result.output


def test_each_client_is_served_with_the_configuration_that_is_written_for_it(
    start_secure: StartSecure, tmp_path: Path
) -> None:
    directory = tmp_path / "secure"
    bootstrap = start_secure(directory)
    of_librdkafka = client_configuration(directory, "librdkafka.properties")
    assert of_librdkafka["bootstrap.servers"] == bootstrap
    assert ours(directory, "java", "topics --create --topic greetings") == (0, "Created topic greetings.\n")

    producer = Producer(of_librdkafka | {"transactional.id": "tx"})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("greetings", b"from librdkafka")
    producer.commit_transaction(TIMEOUT_S)
    scram = of_librdkafka | {"sasl.mechanism": "SCRAM-SHA-256"}
    consumer = Consumer(scram | {"group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["greetings"])
    message = consumer.poll(TIMEOUT_S)
    assert message is not None
    assert message.value() == b"from librdkafka"
    consumer.close()

    of_kafka_python = client_configuration(directory, "kafka-python.json")
    with closing(KafkaProducer(**of_kafka_python)) as own:
        own.send("greetings", b"from kafka-python").get(TIMEOUT_S)
    with closing(KafkaConsumer("greetings", auto_offset_reset="earliest", **of_kafka_python)) as reader:
        assert next(reader).value == b"from librdkafka"


def test_an_application_may_do_less_than_the_administrator(start_secure: StartSecure, tmp_path: Path) -> None:
    directory = tmp_path / "secure"
    start_secure(directory)
    assert ours(directory, "java", "acls --list") == (1, "Error: This needs DESCRIBE on the cluster.\n")
    code, listed = ours(directory, "admin", "acls --list --topic *")
    assert (code, "User:app" in listed) == (0, True)
    wrong = AdminClient(client_configuration(directory, "librdkafka.properties") | {"sasl.password": "wrong"})
    with pytest.raises(KafkaException):
        wrong.list_topics(timeout=5)


def test_a_second_start_keeps_certificates_passwords_and_what_was_changed(
    start_secure: StartSecure, tmp_path: Path
) -> None:
    directory = tmp_path / "secure"
    start_secure(directory)
    files = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    assert ours(directory, "admin", "acls --remove --force --topic *") == (0, "")
    assert ours(directory, "admin", "users --alter --user app --delete-config SCRAM-SHA-256")[0] == 0
    bootstrap = start_secure(directory)
    assert {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()} == files
    assert ours(directory, "admin", "acls --list --topic *") == (0, "")
    assert "SCRAM-SHA-256" not in ours(directory, "admin", "users --describe --user app")[1]
    assert client_configuration(directory, "java.properties")["bootstrap.servers"] == bootstrap


def test_nobody_else_may_read_the_directory(tmp_path: Path) -> None:
    directory = open_directory(tmp_path / "new" / "secure")
    directory.write_client_files("127.0.0.1:9092")
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in directory.path.rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700
    assert not any(user.password in repr(directory) for user in directory.users.values())


def test_a_certificate_that_ends_soon_is_made_anew_with_its_names(tmp_path: Path) -> None:
    path = tmp_path / "secure"
    open_directory(path)
    before = path.joinpath("server.pem").read_bytes()
    open_directory(path)
    assert path.joinpath("server.pem").read_bytes() == before
    authority = Certified.read(path.joinpath("ca-key.pem").read_bytes(), path.joinpath("ca.pem").read_bytes())
    long_ago = datetime.now(UTC) - timedelta(days=380)
    old = broker_certificate(authority, ["broker.example.org", "10.1.2.3"], long_ago)
    password = path.joinpath("store-password").read_text()
    for name, content in broker_files(old, authority, password).items():
        path.joinpath(name).write_bytes(content)
    open_directory(path)
    renewed = path.joinpath("server.pem").read_bytes()
    made = Certified.read(renewed, renewed)
    assert made.hosts == ["broker.example.org", "10.1.2.3"]
    assert not made.ends_soon(datetime.now(UTC))
    [key] = read_jks(path.joinpath("server.jks").read_bytes(), password).keys
    assert key.open_key(password) is not None


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"is no directory of --secure: server\.properties is not"):
        open_directory(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
    with pytest.raises(ConfigurationError, match="Cannot write"):
        open_directory(tmp_path / "notes" / "secure")


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda path: path.joinpath("users.properties").write_text("admin=x\n"), "has no password of app"),
        (lambda path: path.joinpath("server.pem").write_text("nothing"), "The keys in .* cannot be read"),
        (lambda path: path.joinpath("server.pem").unlink(), "Cannot read .*server.pem: No such file"),
    ],
)
def test_a_directory_that_was_spoiled_is_one_line(tmp_path: Path, spoil: Callable[[Path], Any], complaint: str) -> None:
    path = tmp_path / "secure"
    open_directory(path)
    spoil(path)
    with pytest.raises(ConfigurationError, match=complaint):
        open_directory(path)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["server.properties", "--secure", "secure"], "--secure has a server.properties of its own"),
        (["--secure", "secure", "--override", "listeners=PLAINTEXT://127.0.0.1:0"], "SASL_SSL"),
    ],
)
def test_flags_that_do_not_fit_are_one_line(tmp_path: Path, flags: list[str], complaint: str) -> None:
    process = run_process("start", *flags, cwd=tmp_path)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out) == (1, "")
    last = err.strip().splitlines()[-1]
    assert last.startswith("Error: "), err
    assert complaint in last


def test_a_jks_store_opens_with_its_password_alone() -> None:
    store = write_jks("right", 0, trusted=[("ca", b"certificate")])
    assert read_jks(store, "right").trusted[0].certificate == b"certificate"
    with pytest.raises(PasswordRefused):
        read_jks(store, "wrong")
    with_key = read_jks(write_jks("right", 0, keys=[("key", b"no key", [b"certificate"])]), None)
    with pytest.raises(KeyPasswordRefused):
        with_key.keys[0].open_key("wrong")
