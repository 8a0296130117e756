"""What the tests ask Kafka, and how they wait for it."""

import asyncio
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment


async def read_records(bootstrap_servers, topic, count, timeout=30):
    """Read a topic from its beginning until there are so many records, or the time is over."""
    records = []
    deadline = time.monotonic() + timeout
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest", enable_auto_commit=False
    )
    await consumer.start()
    try:
        while len(records) < count and time.monotonic() < deadline:
            for batch in (await consumer.getmany(timeout_ms=500)).values():
                records.extend(batch)
    finally:
        await consumer.stop()
    return records


async def produce(bootstrap_servers, topic, *values, partition):
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers)
    await producer.start()
    try:
        for value in values:
            await producer.send_and_wait(topic, value, partition=partition)
    finally:
        await producer.stop()


async def lag_of(bootstrap_servers, group, topic, partitions=3):
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap_servers, group_id=group, enable_auto_commit=False)
    await consumer.start()
    try:
        of_topic = [TopicPartition(topic, partition) for partition in range(partitions)]
        consumer.assign(of_topic)
        ends = await consumer.end_offsets(of_topic)
        return sum([ends[each] - (await consumer.committed(each) or 0) for each in of_topic])
    finally:
        await consumer.stop()


async def wait_for_lag(bootstrap_servers, group, topic, timeout=60):
    deadline = time.monotonic() + timeout
    while await lag_of(bootstrap_servers, group, topic):
        assert time.monotonic() < deadline, f"{group} still lags"
        await asyncio.sleep(0.5)


async def members_of(bootstrap_servers, group):
    """Return the numbers of partitions of each member, or nothing while the group rebalances."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        (answer,) = await admin.describe_consumer_groups([group])
    finally:
        await admin.close()
    _, _, state, _, _, members, *_ = answer.groups[0]
    if state != "Stable":
        return []
    assignments = [ConsumerProtocolMemberAssignment.decode(member[-1]).assignment for member in members]
    return [sum(len(partitions) for _, partitions in assignment) for assignment in assignments]


async def wait_for_members(bootstrap_servers, group, count, timeout=60):
    deadline = time.monotonic() + timeout
    while len(await members_of(bootstrap_servers, group)) != count:
        assert time.monotonic() < deadline, f"{group} has not {count} members"
        await asyncio.sleep(0.5)


async def commit_offsets(bootstrap_servers, group, topic, offsets):
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap_servers, group_id=group, enable_auto_commit=False)
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, partition) for partition in offsets])
        await consumer.commit({TopicPartition(topic, partition): offset for partition, offset in offsets.items()})
    finally:
        await consumer.stop()
