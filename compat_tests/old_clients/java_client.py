"""Kafka's Java client 2.1.1, in one JVM that Py4J drives: the tasks of the programs in Python."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from compat_tests.apache_kafka.java import find_java
from compat_tests.apache_kafka.warm_jvm import py4j_jar
from compat_tests.java_errors import as_py4j_tells
from compat_tests.personalities.releases import jars_of
from compat_tests.waiting import until

from .installed_clients import OLD_JAVA_RELEASE

DEADLINE_S = 120
_SERIALIZER = "org.apache.kafka.common.serialization.ByteArraySerializer"
_DESERIALIZER = "org.apache.kafka.common.serialization.ByteArrayDeserializer"

Rows = list[dict[str, Any]]


class OldJavaClient:
    def __init__(self) -> None:
        from py4j.java_gateway import GatewayParameters, JavaGateway

        path = f"{jars_of(OLD_JAVA_RELEASE).directory()}/*:{py4j_jar()}"
        command = [find_java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", path]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [*command, "py4j.GatewayServer", "--die-on-broken-pipe", "0"],
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        parameters = GatewayParameters(port=int(self._process.stdout.readline()), auto_convert=True)
        self._gateway = JavaGateway(gateway_parameters=parameters)
        self._clients: Any = self._gateway.jvm.org.apache.kafka.clients
        self._common: Any = self._gateway.jvm.org.apache.kafka.common
        self._java: Any = self._gateway.jvm.java

    def close(self) -> None:
        self._gateway.close()
        self._process.kill()
        self._process.communicate()

    def do(self, task: str, **arguments: Any) -> Any:
        work: Callable[..., Any] = getattr(self, task)
        return work(**arguments)

    def write(self, bootstrap: str, topic: str, rows: Rows, codec: str) -> list[int]:
        producer = self._producer(bootstrap, {"compression.type": codec, "enable.idempotence": "true", "acks": "all"})
        sent = [producer.send(self._record(topic, row)) for row in rows]
        offsets = [each.get().offset() for each in sent]
        producer.close()
        return offsets

    def read(self, bootstrap: str, topic: str, count: int, read_committed: bool) -> dict[str, Any]:
        isolation = "read_committed" if read_committed else "read_uncommitted"
        consumer = self._consumer(bootstrap, {"isolation.level": isolation})
        partition = self._common.TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seekToBeginning([partition])
        found = [_row_of(record) for record in self._records(consumer, count)]
        middle = found[len(found) // 2]["timestamp"]
        by_time = consumer.offsetsForTimes({partition: self._java.lang.Long(middle)}).get(partition)
        first = consumer.beginningOffsets([partition]).get(partition)
        ends = first, consumer.endOffsets([partition]).get(partition)
        consumer.close()
        return {"rows": found, "by time": [by_time.offset(), by_time.timestamp() - middle], "ends": list(ends)}

    def resume(self, bootstrap: str, topic: str, group: str, count: int) -> dict[str, Any]:
        first = self._member(bootstrap, topic, group)
        found = [_text(record.value()) for record in self._records(first, 5)]
        first.commitSync()
        committed = first.committed(self._common.TopicPartition(topic, 0)).offset()
        first.close()
        second = self._member(bootstrap, topic, group)
        rest = [_text(record.value()) for record in self._records(second, count - len(found))]
        second.close()
        return {"committed": committed == len(found), "values": found + rest}

    def share(self, bootstrap: str, topic: str, group: str) -> list[int]:
        """A poll of a member waits in JoinGroup until the other one has joined, too: each has a turn at it."""
        members = [self._member(bootstrap, topic, group) for _ in range(2)]
        deadline = time.monotonic() + DEADLINE_S
        while [each.assignment().size() for each in members] != [1, 1] and time.monotonic() < deadline:
            for each in members:
                each.poll(self._java.time.Duration.ofMillis(100))
        shares = sorted(partition.partition() for each in members for partition in each.assignment())
        for each in members:
            each.close()
        return shares

    def transact(self, bootstrap: str, topic: str, group: str, transactional_id: str, source: str) -> dict[str, Any]:
        """Transactions: one that commits what was read of another topic, an aborted one, one after it, a fenced one."""
        producer = self._producer(bootstrap, {"transactional.id": transactional_id})
        producer.initTransactions()
        consumer = self._member(bootstrap, source, group)
        read = self._records(consumer, 3)
        producer.beginTransaction()
        for record in read:
            producer.send(self._clients.producer.ProducerRecord(topic, b"copy of " + bytes(record.value())))
        partition = self._common.TopicPartition(source, 0)
        position = self._clients.consumer.OffsetAndMetadata(consumer.position(partition))
        producer.sendOffsetsToTransaction({partition: position}, group)
        producer.commitTransaction()
        # There once the marker of the transaction is: this client does not ask for that (KIP-447).
        until(lambda: consumer.committed(partition), "the offset of the transaction is committed")
        committed = consumer.committed(partition).offset()
        consumer.close()
        producer.beginTransaction()
        producer.send(self._clients.producer.ProducerRecord(topic, b"aborted")).get()
        producer.abortTransaction()
        producer.beginTransaction()
        producer.send(self._clients.producer.ProducerRecord(topic, b"last"))
        producer.commitTransaction()
        successor = self._producer(bootstrap, {"transactional.id": transactional_id})
        successor.initTransactions()
        producer.beginTransaction()
        sent = producer.send(self._clients.producer.ProducerRecord(topic, b"of a zombie"))
        fenced = self._outcome(sent.get), self._outcome(producer.commitTransaction)
        producer.close()
        successor.close()
        return {"committed": committed, "fenced": list(fenced)}

    def administer(self, bootstrap: str, topic: str, group: str) -> dict[str, Any]:
        admin = self._clients.admin.AdminClient.create(self._properties(bootstrap, {}))
        of_admin = self._clients.admin
        resource = self._common.config.ConfigResource
        this = resource(getattr(resource.Type, "TOPIC"), topic)  # noqa: B009
        changed = of_admin.Config([of_admin.ConfigEntry("retention.ms", "12345")])

        def partitions(count: int) -> Any:
            return admin.createPartitions({topic: of_admin.NewPartitions.increaseTo(count)}).all().get()

        def create(name: str) -> Any:
            return admin.createTopics([of_admin.NewTopic(name, 1, 1)]).all().get()

        answers = {
            "created": self._outcome(lambda: create(topic)),
            "created again": self._outcome(lambda: create(topic)),
            "a bad name": self._outcome(lambda: create("a/b")),
            "altered": self._outcome(lambda: admin.alterConfigs({this: changed}).all().get()),
            "retention": admin.describeConfigs([this]).all().get().get(this).get("retention.ms").value(),
            "more partitions": self._outcome(lambda: partitions(3)),
            "fewer partitions": self._outcome(lambda: partitions(1)),
            "partitions": admin.describeTopics([topic]).all().get().get(topic).partitions().size(),
            "listed": topic in list(admin.listTopics().names().get()),
            "nodes": admin.describeCluster().nodes().get().size(),
            "groups": sum(each.groupId() == group for each in admin.listConsumerGroups().all().get()),
            "group": admin.describeConsumerGroups([group]).all().get().get(group).state().toString(),
            "offsets": sorted(
                each.offset()
                for each in admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().values()
            ),
            "deleted group": self._outcome(lambda: admin.deleteConsumerGroups([group]).all().get()),
            "deleted group again": self._outcome(lambda: admin.deleteConsumerGroups([group]).all().get()),
            "deleted": self._outcome(lambda: admin.deleteTopics([topic]).all().get()),
            "deleted again": self._outcome(lambda: admin.deleteTopics([topic]).all().get()),
        }
        admin.close()
        return answers

    def _properties(self, bootstrap: str, options: dict[str, str]) -> Any:
        properties = self._java.util.Properties()
        for key, value in ({"bootstrap.servers": bootstrap} | options).items():
            properties.setProperty(key, value)
        return properties

    def _producer(self, bootstrap: str, options: dict[str, str]) -> Any:
        serializers = {"key.serializer": _SERIALIZER, "value.serializer": _SERIALIZER}
        return self._clients.producer.KafkaProducer(self._properties(bootstrap, serializers | options))

    def _consumer(self, bootstrap: str, options: dict[str, str]) -> Any:
        """It commits when it is told to: by itself this client commits without a group, too, in that of no name."""
        deserializers = {"key.deserializer": _DESERIALIZER, "value.deserializer": _DESERIALIZER}
        return self._clients.consumer.KafkaConsumer(
            self._properties(bootstrap, {"enable.auto.commit": "false"} | deserializers | options)
        )

    def _member(self, bootstrap: str, topic: str, group: str) -> Any:
        options = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
        consumer = self._consumer(bootstrap, options | {"max.poll.records": "5"})
        consumer.subscribe([topic])
        return consumer

    def _record(self, topic: str, row: dict[str, Any]) -> Any:
        headers = [self._common.header.internals.RecordHeader(name, _bytes(value)) for name, value in row["headers"]]
        partition = self._java.lang.Integer("0")
        timestamp = self._java.lang.Long(str(row["timestamp"]))
        key, value = _bytes(row["key"]), _bytes(row["value"])
        return self._clients.producer.ProducerRecord(topic, partition, timestamp, key, value, headers)

    def _records(self, consumer: Any, count: int) -> list[Any]:
        found: list[Any] = []
        wait = self._java.time.Duration.ofMillis(500)
        deadline = time.monotonic() + DEADLINE_S
        while len(found) < count and time.monotonic() < deadline:
            records = consumer.poll(wait).iterator()
            while records.hasNext():
                found.append(records.next())
        return found

    def _outcome(self, ask: Callable[[], Any]) -> str:
        """`done`, or the name of the exception behind Java's ExecutionException."""
        from py4j.protocol import Py4JJavaError

        try:
            with as_py4j_tells():
                ask()
        except Py4JJavaError as error:
            thrown = error.java_exception
            name = thrown.getClass().getSimpleName()
            return str(thrown.getCause().getClass().getSimpleName() if name == "ExecutionException" else name)
        return "done"


def _row_of(record: Any) -> dict[str, Any]:
    headers: Sequence[Any] = record.headers().toArray()
    return {
        "value": _text(record.value()),
        "key": _text(record.key()),
        "headers": [[each.key(), _text(each.value())] for each in headers],
        "timestamp": record.timestamp(),
    }


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("latin-1")


def _text(data: Any) -> str | None:
    return None if data is None else bytes(data).decode("latin-1")
