"""The stock clients of Python and C behind one shape: whether a broker serves them, and if not, what they say.

An outcome is SERVED, or the client's class of error and the reason. Java's client is in `java_clients`.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import logging
import multiprocessing
import multiprocessing.pool
import os
import re
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.errors import KafkaError as PythonKafkaError

from compat_tests.waiting import DEADLINE_S

from .reasons import SERVED, reason_in

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_ATTEMPT_MS = 300
"""How long a client tries that says why it fails only when it gives up. Without a reason by then it tries again."""


@dataclass(frozen=True, slots=True)
class User:
    """Who a client says to be, by which mechanism of SASL."""

    mechanism: str
    name: str
    password: str


@dataclass(frozen=True, slots=True)
class Connection:
    """What a client is told of a broker.

    trust: the authorities, and None for a plaintext client. certificate: its own. version: the only one that it speaks.
    user: of a listener with SASL. patience_s: of a client that tries again and again without saying why.
    """

    bootstrap: str
    trust: Path | None = None
    certificate: Path | None = None
    version: str | None = None
    patience_s: float = DEADLINE_S
    user: User | None = None

    @property
    def protocol(self) -> str:
        return ("SASL_" if self.user else "") + ("SSL" if self.trust else "PLAINTEXT")


class TlsClient(Protocol):
    def attempt(self, connection: Connection) -> str:
        """The outcome of one attempt to list the topics."""


class NoReason(AssertionError):
    """The client was not served, and has not said why; the text is what it did say."""


class Librdkafka:
    """By confluent-kafka. It has no option for the protocol's version."""

    def attempt(self, connection: Connection) -> str:
        errors: list[KafkaError] = []
        logger = logging.getLogger("compat_tests.librdkafka")
        logger.propagate = False
        admin = AdminClient(librdkafka_options(connection) | {"error_cb": errors.append}, logger=logger)
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            try:
                admin.list_topics(timeout=0.2)
                return SERVED
            except KafkaException:
                admin.poll(0)
            if errors:
                return _outcome(_class_of(errors[0]), [errors[0].str()])
        raise NoReason("librdkafka reports no error")


def _class_of(error: KafkaError) -> str:
    """What OpenSSL finds in a handshake is _SSL. librdkafka 2 calls the same _TRANSPORT where its first call of
    SSL_connect finds it, because the broker has answered already.
    """
    in_handshake = re.search(r"error:[0-9A-F]+:SSL routines:.* in state SSL_HANDSHAKE\)", error.str())
    return "_SSL" if in_handshake else str(error.name())


class InItsOwnProcess:
    """kafka-python 3.0 and aiokafka 0.14 leave threads and sockets behind where they were not served."""

    def __init__(self, attempt: Callable[[Connection], str]) -> None:
        self._attempt = attempt

    def attempt(self, connection: Connection) -> str:
        return _python_process().apply(self._attempt, (connection,))


@functools.cache
def _python_process() -> multiprocessing.pool.Pool:
    pool = multiprocessing.get_context("spawn").Pool(1)
    atexit.register(pool.terminate)
    return pool


def attempt_with_kafka_python(connection: Connection) -> str:
    deadline = time.monotonic() + DEADLINE_S
    with _logged("kafka") as said:
        while True:
            try:
                KafkaAdminClient(bootstrap_timeout_ms=_ATTEMPT_MS, **python_options(connection)).close()
                return SERVED
            except PythonKafkaError as error:
                if any(map(reason_in, said)) or time.monotonic() > deadline:
                    return _outcome(type(error).__name__, said)


def attempt_with_aiokafka(connection: Connection) -> str:
    async def attempt() -> str:
        producer = AIOKafkaProducer(**python_options(connection))
        with _logged("aiokafka") as said:
            try:
                await producer.start()
                return SERVED
            except AioKafkaError as error:
                return _outcome(type(error).__name__, said)
            finally:
                await producer.stop()

    return asyncio.run(attempt())


class Kcat:
    """Debian's, with OpenSSL's own configuration for the protocol's version."""

    def attempt(self, connection: Connection) -> str:
        options = librdkafka_options(connection)
        options["metadata.broker.list"] = options.pop("bootstrap.servers")
        settings = [word for key, value in options.items() for word in ("-X", f"{key}={value}")]
        command = ["kcat", "-L", "-m", str(int(DEADLINE_S)), *settings]
        with tempfile.NamedTemporaryFile("w", suffix=".cnf") as configuration:
            if connection.version:
                configuration.write(_openssl_configuration(connection.version))
                configuration.flush()
            environment = os.environ | ({"OPENSSL_CONF": configuration.name} if connection.version else {})
            return self._listen(subprocess.Popen(command, stdout=-3, stderr=-1, text=True, env=environment))

    def _listen(self, process: subprocess.Popen[str]) -> str:
        """It would go on until the deadline after it has said what is wrong."""
        said = []
        assert process.stderr is not None
        with process:
            for line in process.stderr:
                said.append(line)
                if reason_in(line):
                    process.kill()
        return SERVED if process.returncode == 0 else _outcome("FAIL", said)


CLIENTS: dict[str, TlsClient] = {
    "librdkafka": Librdkafka(),
    "kafka-python": InItsOwnProcess(attempt_with_kafka_python),
    "aiokafka": InItsOwnProcess(attempt_with_aiokafka),
    "kcat": Kcat(),
}


def librdkafka_options(connection: Connection) -> dict[str, Any]:
    options = {"bootstrap.servers": connection.bootstrap, "security.protocol": connection.protocol}
    if connection.trust:
        options["ssl.ca.location"] = str(connection.trust)
    if user := connection.user:
        options |= {"sasl.mechanism": user.mechanism, "sasl.username": user.name, "sasl.password": user.password}
    if connection.certificate:
        file = str(connection.certificate)
        options |= {"ssl.certificate.location": file, "ssl.key.location": file}
    return options


def python_options(connection: Connection) -> dict[str, Any]:
    """Of kafka-python and aiokafka, which have the same names."""
    options: dict[str, Any] = {"bootstrap_servers": connection.bootstrap, "security_protocol": connection.protocol}
    if connection.trust:
        context = ssl.create_default_context(cafile=connection.trust)
        if connection.certificate:
            context.load_cert_chain(connection.certificate)
        if connection.version:
            context.minimum_version = context.maximum_version = _VERSIONS[connection.version]
        options["ssl_context"] = context
    if user := connection.user:
        options["sasl_mechanism"] = user.mechanism
        options |= {"sasl_plain_username": user.name, "sasl_plain_password": user.password}
    return options


def _outcome(error: str, said: list[str]) -> str:
    reason = next(filter(None, map(reason_in, said)), None)
    if reason is None:
        raise NoReason(f"{error}: {said}")
    return f"{error}: {reason}"


def _openssl_configuration(version: str) -> str:
    sections = "openssl_conf=all\n[all]\nssl_conf=ssl\n[ssl]\nsystem_default=only\n[only]\n"
    return f"{sections}MinProtocol={version}\nMaxProtocol={version}\n"


@contextmanager
def _logged(name: str) -> Iterator[list[str]]:
    """The warnings and errors of a client's logger: these clients raise no reason."""

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    messages: list[str] = []
    handler, logger = Keep(logging.WARNING), logging.getLogger(name)
    logger.addHandler(handler)
    try:
        yield messages
    finally:
        logger.removeHandler(handler)
