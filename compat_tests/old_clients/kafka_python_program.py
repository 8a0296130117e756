"""kafka-python 2.0.2 at work: a task as JSON on standard input, its outcome as JSON on standard output.

This program runs in a process of its own, whose `kafka` is the old one; it imports nothing of this repository. Bytes
travel as text of Latin-1.
"""

import json
import sys
import threading
import time

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.errors import KafkaError

DEADLINE_S = 120


def write(bootstrap, topic, rows, codec):
    compression = None if codec == "none" else codec
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", compression_type=compression)
    sent = [
        producer.send(
            topic,
            value=to_bytes(row["value"]),
            key=to_bytes(row["key"]),
            headers=[(name, to_bytes(value)) for name, value in row["headers"]],
            timestamp_ms=row["timestamp"],
            partition=0,
        )
        for row in rows
    ]
    offsets = [each.get(DEADLINE_S).offset for each in sent]
    producer.close()
    return offsets


def read(bootstrap, topic, count, read_committed):
    assert not read_committed, "this client reads everything"
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, consumer_timeout_ms=DEADLINE_S * 1000)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    found = []
    for record in consumer:
        headers = [[name, to_text(value)] for name, value in record.headers]
        row = {"value": to_text(record.value), "key": to_text(record.key), "headers": headers}
        found.append({**row, "timestamp": record.timestamp})
        if len(found) == count:
            break
    middle = found[len(found) // 2]["timestamp"]
    by_time = consumer.offsets_for_times({partition: middle})[partition]
    ends = consumer.beginning_offsets([partition])[partition], consumer.end_offsets([partition])[partition]
    consumer.close()
    return {"rows": found, "by time": [by_time.offset, by_time.timestamp - middle], "ends": list(ends)}


def member(bootstrap, topic, group):
    return KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=5,
    )


def resume(bootstrap, topic, group, count):
    first = member(bootstrap, topic, group)
    found = values_of(first, 1)
    first.commit()
    committed = first.committed(TopicPartition(topic, 0))
    first.close()
    second = member(bootstrap, topic, group)
    rest = values_of(second, count - len(found))
    second.close()
    return {"committed": committed == len(found), "values": found + rest}


def values_of(consumer, count):
    found = []
    deadline = time.monotonic() + DEADLINE_S
    while len(found) < count and time.monotonic() < deadline:
        found += [to_text(record.value) for rows in consumer.poll(500).values() for record in rows]
    return found


def share(bootstrap, topic, group):
    """Each member polls in a thread of its own, since its poll() returns only when all of the group have joined."""
    ended = threading.Event()
    shares = [[], []]

    def take_part(number):
        consumer = member(bootstrap, topic, group)
        while not ended.is_set():
            consumer.poll(100)
            shares[number] = [partition.partition for partition in consumer.assignment()]
        consumer.close()

    threads = [threading.Thread(target=take_part, args=(number,), daemon=True) for number in range(2)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + DEADLINE_S
    while [len(each) for each in shares] != [1, 1] and time.monotonic() < deadline:
        time.sleep(0.02)
    found = sorted(number for each in shares for number in each)
    ended.set()
    for thread in threads:
        thread.join(DEADLINE_S)
    return found


def administer(bootstrap, topic, group):
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    changed = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "12345"})

    def retention():
        (answer,) = admin.describe_configs([resource])
        (found,) = [each[1] for each in answer.resources[0][4] if each[0] == "retention.ms"]
        return found

    answers = {
        "created": outcome(lambda: admin.create_topics([NewTopic(topic, 1, 1)])),
        "created again": outcome(lambda: admin.create_topics([NewTopic(topic, 1, 1)])),
        "a bad name": outcome(lambda: admin.create_topics([NewTopic("a/b", 1, 1)])),
        "altered": outcome(lambda: admin.alter_configs([changed])),
        "retention": outcome(retention),
        "more partitions": outcome(lambda: admin.create_partitions({topic: NewPartitions(3)})),
        "fewer partitions": outcome(lambda: admin.create_partitions({topic: NewPartitions(1)})),
        "listed": outcome(lambda: topic in admin.list_topics()),
        "groups": outcome(lambda: [each for each in admin.list_consumer_groups() if each[0] == group]),
        "group": outcome(lambda: admin.describe_consumer_groups([group])[0].state),
        "offsets": outcome(lambda: sorted(each.offset for each in admin.list_consumer_group_offsets(group).values())),
        "deleted group": outcome(lambda: [each[1].__name__ for each in admin.delete_consumer_groups([group])]),
        "deleted": outcome(lambda: admin.delete_topics([topic])),
        "deleted again": outcome(lambda: admin.delete_topics([topic])),
    }
    admin.close()
    return answers


def outcome(ask):
    """Its result if JSON has it, `done` if not, or the name of the error."""
    try:
        answer = ask()
    except KafkaError as error:
        return type(error).__name__
    return answer if isinstance(answer, (str, int, bool, list)) else "done"


def to_bytes(text):
    return None if text is None else text.encode("latin-1")


def to_text(data):
    return None if data is None else data.decode("latin-1")


TASKS = {"write": write, "read": read, "resume": resume, "share": share, "administer": administer}

if __name__ == "__main__":
    task = json.load(sys.stdin)
    json.dump(TASKS[task.pop("task")](**task), sys.stdout)
