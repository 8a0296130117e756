"""Java's clients, all in one JVM that Py4J drives: each call says which exceptions it ended with."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from compat_tests.apache_kafka.jars import class_path
from compat_tests.apache_kafka.tools import JVM_OPTIONS, LOGGING, find_java
from compat_tests.sasl.modules import PLAIN_MODULE, SCRAM_MODULE
from compat_tests.waiting import DEADLINE_S

from .reasons import SERVED, reason_in
from .tls_clients import Connection, NoReason

_READ_AT_ONCE_MS = 500
SERIALIZER = "org.apache.kafka.common.serialization.ByteArraySerializer"
DESERIALIZER = "org.apache.kafka.common.serialization.ByteArrayDeserializer"


class JavaClients:
    def __init__(self) -> None:
        """Skips the test where Py4J is not installed."""
        py4j = pytest.importorskip("py4j.java_gateway", reason="Py4J, which comes with pyspark, drives Java's clients")
        from compat_tests.apache_kafka.warm_jvm import py4j_jar

        command = [find_java(), *JVM_OPTIONS, LOGGING, "-cp", f"{class_path()}:{py4j_jar()}"]
        command += ["py4j.GatewayServer", "--die-on-broken-pipe", "0"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        assert self._process.stdout is not None
        parameters = py4j.GatewayParameters(port=int(self._process.stdout.readline()), auto_convert=True)
        self._gateway = py4j.JavaGateway(gateway_parameters=parameters)
        self._kafka: Any = self._gateway.jvm.org.apache.kafka

    def close(self) -> None:
        self._gateway.close()
        self._process.kill()
        self._process.communicate()

    def attempt(self, connection: Connection) -> str:
        """An outcome, as in `tls_clients`: the exceptions from the outermost one inwards, and the reason."""
        from py4j.protocol import Py4JJavaError

        timeout_ms = str(int(connection.patience_s * 1000))
        timeouts = {"default.api.timeout.ms": timeout_ms, "request.timeout.ms": timeout_ms}
        admin = self._kafka.clients.admin.Admin.create(self._properties(connection, timeouts))
        try:
            admin.listTopics().names().get()
            return SERVED
        except Py4JJavaError as error:
            return _outcome(list(_causes(error.java_exception)))
        finally:
            admin.close(self._gateway.jvm.java.time.Duration.ZERO)

    def write(self, connection: Connection, topic: str, values: Sequence[bytes], codec: str) -> None:
        options = {"key.serializer": SERIALIZER, "value.serializer": SERIALIZER, "max.request.size": str(8 << 20)}
        clients = self._kafka.clients.producer
        producer = clients.KafkaProducer(self._properties(connection, options | {"compression.type": codec}))
        try:
            sent = [producer.send(clients.ProducerRecord(topic, value)) for value in values]
            for future in sent:
                future.get()
        finally:
            producer.close()

    def read(self, connection: Connection, topic: str, count: int) -> list[bytes]:
        """The first records of partition 0."""
        options = {"key.deserializer": DESERIALIZER, "value.deserializer": DESERIALIZER}
        consumer = self._kafka.clients.consumer.KafkaConsumer(self._properties(connection, options))
        try:
            partitions = [self._kafka.common.TopicPartition(topic, 0)]
            consumer.assign(partitions)
            consumer.seekToBeginning(partitions)
            found: list[bytes] = []
            wait = self._gateway.jvm.java.time.Duration.ofMillis(_READ_AT_ONCE_MS)
            deadline = time.monotonic() + DEADLINE_S
            while len(found) < count and time.monotonic() < deadline:
                found += _values(consumer.poll(wait).iterator())
            return found
        finally:
            consumer.close()

    def _properties(self, connection: Connection, options: dict[str, str]) -> Any:
        properties = self._gateway.jvm.java.util.Properties()
        for key, value in (java_options(connection) | options).items():
            properties.setProperty(key, value)
        return properties


def java_options(connection: Connection) -> dict[str, str]:
    options = {"bootstrap.servers": connection.bootstrap, "security.protocol": connection.protocol}
    if connection.trust:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(connection.trust)}
    if user := connection.user:
        module = PLAIN_MODULE if user.mechanism == "PLAIN" else SCRAM_MODULE
        options["sasl.mechanism"] = user.mechanism
        options["sasl.jaas.config"] = f'{module} required username="{user.name}" password="{user.password}";'
    if connection.certificate:
        options |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(connection.certificate)}
    if connection.version:
        options |= {"ssl.enabled.protocols": connection.version, "ssl.protocol": connection.version}
    return options


def _values(records: Any) -> Iterator[bytes]:
    """Of Java's iterator over records."""
    while records.hasNext():
        yield bytes(records.next().value())


def _causes(exception: Any) -> Iterator[tuple[str, str]]:
    """Class and message of an exception and its causes."""
    while exception is not None:
        yield exception.getClass().getName(), str(exception.getMessage())
        exception = exception.getCause()


def _outcome(causes: list[tuple[str, str]]) -> str:
    reason = next(filter(None, (reason_in(message) for _, message in causes)), None)
    if reason is None:
        raise NoReason(str(causes))
    of_clients = [name.rpartition(".")[2] for name, _ in causes if name.startswith(("org.apache.kafka", "javax.net"))]
    return f"{', '.join(of_clients)}: {reason}"
