"""librdkafka 1.9.2 at work: a task as JSON on standard input, its outcome as JSON on standard output.

This program runs in a process of its own, whose `confluent_kafka` is the old one; it imports nothing of this
repository. Bytes travel as text of Latin-1.
"""

import json
import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

DEADLINE_S = 120


def write(bootstrap, topic, rows, codec, **options):
    settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True, **options}
    return sent(Producer(settings), topic, rows)


def sent(producer, topic, rows):
    offsets = {}

    def delivered(number):
        def report(error, message):
            offsets[number] = message.offset() if error is None else error.name()

        return report

    for number, row in enumerate(rows):
        producer.produce(
            topic,
            value=to_bytes(row["value"]),
            key=to_bytes(row["key"]),
            headers=[(name, to_bytes(value)) for name, value in row["headers"]],
            timestamp=row["timestamp"],
            partition=0,
            on_delivery=delivered(number),
        )
    assert producer.flush(DEADLINE_S) == 0
    return [offsets[number] for number in range(len(rows))]


def read(bootstrap, topic, count, read_committed):
    isolation = "read_committed" if read_committed else "read_uncommitted"
    settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "isolation.level": isolation}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found = [row_of(message) for message in messages_of(consumer, count)]
    middle = found[len(found) // 2]["timestamp"]
    (by_time,) = consumer.offsets_for_times([TopicPartition(topic, 0, middle)], DEADLINE_S)
    ends = consumer.get_watermark_offsets(TopicPartition(topic, 0), DEADLINE_S)
    consumer.close()
    return {"rows": found, "by time": by_time.offset, "ends": list(ends)}


def row_of(message):
    headers = [[name, to_text(value)] for name, value in message.headers() or []]
    return {
        "value": to_text(message.value()),
        "key": to_text(message.key()),
        "headers": headers,
        "timestamp": message.timestamp()[1],
    }


def messages_of(consumer, count):
    found = []
    deadline = time.monotonic() + DEADLINE_S
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None:
            assert message.error() is None, message.error()
            found.append(message)
    return found


def member(bootstrap, topic, group, **options):
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False, **options})
    consumer.subscribe([topic])
    return consumer


def resume(bootstrap, topic, group, count):
    first = member(bootstrap, topic, group)
    found = [to_text(message.value()) for message in messages_of(first, 5)]
    first.commit(asynchronous=False)
    (committed,) = first.committed([TopicPartition(topic, 0)], DEADLINE_S)
    first.close()
    second = member(bootstrap, topic, group)
    rest = [to_text(message.value()) for message in messages_of(second, count - len(found))]
    second.close()
    return {"committed": committed.offset == len(found), "values": found + rest}


def share(bootstrap, topic, group):
    """Two members, first of the eager, then of the cooperative protocol."""
    shares = []
    for strategy in ("range", "cooperative-sticky"):
        options = {"partition.assignment.strategy": strategy}
        members = [member(bootstrap, topic, f"{group}-{strategy}", **options) for _ in range(2)]
        deadline = time.monotonic() + DEADLINE_S
        while [len(each.assignment()) for each in members] != [1, 1] and time.monotonic() < deadline:
            for each in members:
                each.poll(0.1)
        shares.append(sorted(partition.partition for each in members for partition in each.assignment()))
        for each in members:
            each.close()
    return shares


def transact(bootstrap, topic, group, transactional_id, source):
    """Commit what was read of another topic, abort, commit again, and commit as a producer that is fenced."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(DEADLINE_S)
    consumer = member(bootstrap, source, group)
    read_of_source = messages_of(consumer, 3)
    producer.begin_transaction()
    for message in read_of_source:
        producer.produce(topic, b"copy of " + message.value())
    positions = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), DEADLINE_S)
    producer.commit_transaction(DEADLINE_S)
    (committed,) = consumer.committed([TopicPartition(source, 0)], DEADLINE_S)
    consumer.close()
    producer.begin_transaction()
    producer.produce(topic, b"aborted")
    assert producer.flush(DEADLINE_S) == 0
    producer.abort_transaction(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(topic, b"last")
    producer.commit_transaction(DEADLINE_S)
    successor = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    successor.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(topic, b"of a zombie")
    return {
        "committed": committed.offset,
        "fenced": outcome(lambda: producer.commit_transaction(DEADLINE_S)),
    }


def administer(bootstrap, topic, group):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    options = {"request_timeout": DEADLINE_S}

    def all_done(futures):
        return [future.result(DEADLINE_S) for future in futures.values()]

    def retention():
        (found,) = all_done(admin.describe_configs([ConfigResource("topic", topic)], **options))
        return found["retention.ms"].value

    changed = ConfigResource("topic", topic, {"retention.ms": "12345"})
    return {
        "created": outcome(lambda: all_done(admin.create_topics([NewTopic(topic, 1, 1)], **options))),
        "created again": outcome(lambda: all_done(admin.create_topics([NewTopic(topic, 1, 1)], **options))),
        "a bad name": outcome(lambda: all_done(admin.create_topics([NewTopic("a/b", 1, 1)], **options))),
        "altered": outcome(lambda: all_done(admin.alter_configs([changed], **options))),
        "retention": outcome(retention),
        "more partitions": outcome(lambda: all_done(admin.create_partitions([NewPartitions(topic, 3)], **options))),
        "fewer partitions": outcome(lambda: all_done(admin.create_partitions([NewPartitions(topic, 1)], **options))),
        "listed": outcome(lambda: topic in admin.list_topics(timeout=DEADLINE_S).topics),
        "groups": outcome(lambda: [each.state for each in admin.list_groups(group, timeout=DEADLINE_S)]),
        "deleted": outcome(lambda: all_done(admin.delete_topics([topic], **options))),
        "deleted again": outcome(lambda: all_done(admin.delete_topics([topic], **options))),
    }


def outcome(ask):
    """Its result if JSON has it, `done` if not, or the name of the error."""
    try:
        answer = ask()
    except KafkaException as error:
        return error.args[0].name()
    if isinstance(answer, list) and not all(isinstance(each, str) for each in answer):
        return "done"
    return answer if isinstance(answer, (str, int, bool, list)) else "done"


def to_bytes(text):
    return None if text is None else text.encode("latin-1")


def to_text(data):
    return None if data is None else data.decode("latin-1")


TASKS = {
    "write": write,
    "read": read,
    "resume": resume,
    "share": share,
    "transact": transact,
    "administer": administer,
}

if __name__ == "__main__":
    task = json.load(sys.stdin)
    json.dump(TASKS[task.pop("task")](**task), sys.stdout)
