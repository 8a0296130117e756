"""Records of all sizes over each TLS listener; consumer groups and transactions over one of them."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer

from compat_tests.topics import create_topic
from compat_tests.waiting import DEADLINE_S

from .carriers import LARGEST_REQUEST, READERS, WRITERS, Read, Write
from .identities import Identities
from .listeners import SecuredBroker
from .tls_clients import Connection, librdkafka_options

MIB = 1 << 20
TLS_RECORD = 16_384
"""The most that one record of TLS carries."""
RANDOM = random.Random(1)
SIZES = (1, 100, TLS_RECORD - 1, TLS_RECORD, TLS_RECORD + 1, 300_000, MIB, 3 * MIB)
VALUES = [*map(RANDOM.randbytes, SIZES), bytes(3 * MIB), *(b"%d" % number for number in range(500))]

JAVA = (pytest.mark.java, pytest.mark.spark)


@pytest.mark.parametrize(
    ("listener", "writer", "codec", "reader"),
    [
        ("TLS", "librdkafka", "none", "kafka-python"),
        ("INLINE", "kafka-python", "gzip", "aiokafka"),
        ("TLS12", "aiokafka", "lz4", "librdkafka"),
        ("TLS13", "librdkafka", "zstd", "aiokafka"),
        ("REQUESTED", "aiokafka", "none", "kafka-python"),
        ("REQUIRED", "librdkafka", "snappy", "librdkafka"),
        ("REQUIRED12", "kafka-python", "none", "librdkafka"),
        ("MAPPED", "kafka-python", "zstd", "kafka-python"),
        pytest.param("TLS", "java", "none", "java", marks=JAVA),
        pytest.param("REQUIRED12", "java", "zstd", "librdkafka", marks=JAVA),
        pytest.param("JKS", "librdkafka", "lz4", "java", marks=JAVA),
    ],
)
def test_records_of_all_sizes_come_through(
    listener: str,
    writer: str,
    codec: str,
    reader: str,
    secured: SecuredBroker,
    identities: Identities,
    topic: str,
    carrier_called: Callable[[str], tuple[Write, Read]],
) -> None:
    create_topic(secured.broker, topic, configs={"max.message.bytes": str(LARGEST_REQUEST)})
    connection = connection_of_alice(listener, secured, identities)
    write, _ = carrier_called(writer)
    _, read = carrier_called(reader)
    write(connection, topic, VALUES, codec)
    assert read(connection, topic, len(VALUES)) == VALUES


@pytest.fixture
def carrier_called(request: pytest.FixtureRequest) -> Callable[[str], tuple[Write, Read]]:
    def called(name: str) -> tuple[Write, Read]:
        if name == "java":
            java = request.getfixturevalue("java_clients")
            return java.write, java.read
        return WRITERS[name], READERS[name]

    return called


def test_a_group_member_passes_records_on_in_transactions(
    secured: SecuredBroker, identities: Identities, topic: str, unique: Callable[[str], str]
) -> None:
    passed_on = unique("topic")
    for name in (topic, passed_on):
        create_topic(secured.broker, name)
    connection = connection_of_alice("REQUIRED", secured, identities)
    WRITERS["librdkafka"](connection, topic, [b"%d" % number for number in range(20)], "none")
    options = librdkafka_options(connection)
    group = {"group.id": unique("group"), "auto.offset.reset": "earliest", "enable.auto.commit": False}
    member = Consumer(options | group)
    producer = Producer(options | {"transactional.id": unique("id")})
    producer.init_transactions(DEADLINE_S)
    member.subscribe([topic])
    passed = 0
    while passed < 20:
        records = member.consume(5, timeout=1)
        producer.begin_transaction()
        for record in records:
            producer.produce(passed_on, record.value(), partition=0)
        producer.send_offsets_to_transaction(
            member.position(member.assignment()), member.consumer_group_metadata(), DEADLINE_S
        )
        producer.commit_transaction(DEADLINE_S)
        passed += len(records)
    producer.begin_transaction()
    producer.produce(passed_on, b"aborted", partition=0)
    producer.flush(DEADLINE_S)
    producer.abort_transaction(DEADLINE_S)
    (committed,) = member.committed(member.assignment(), DEADLINE_S)
    member.close()
    assert committed.offset == 20
    assert READERS["librdkafka"](connection, passed_on, 20) == [b"%d" % number for number in range(20)]


def connection_of_alice(listener: str, secured: SecuredBroker, identities: Identities) -> Connection:
    return Connection(
        secured.bootstrap(listener),
        trust=identities.trust("the authority"),
        certificate=identities.certificate("alice"),
    )
