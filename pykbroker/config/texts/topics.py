"""The keys of one topic, one group and one subscription of client metrics, one sentence each."""

from __future__ import annotations

from typing import Final

TOPICS: Final = {
    "cleanup.policy": "What happens to the topic's old records: delete by time and size, compact by key, or both.",
    "compression.gzip.level": "The level at which the broker compresses the topic with gzip.",
    "compression.lz4.level": "The level at which the broker compresses the topic with lz4.",
    "compression.type": "How records are stored: as the producer compressed them, or with one codec for all.",
    "compression.zstd.level": "The level at which the broker compresses the topic with zstd.",
    "delete.retention.ms": "How long the compacted topic keeps tombstones.",
    "errors.deadletterqueue.group.enable": "Whether share groups may use the topic as their dead letter queue.",
    "file.delete.delay.ms": "How long files stay on the disk after they are deleted.",
    "flush.messages": "After so many records a partition is flushed to its disk.",
    "flush.ms": "After so long a partition is flushed to its disk.",
    "follower.replication.throttled.replicas": "Replicas whose fetching is throttled, as partition:broker; * for all.",
    "index.interval.bytes": "After so many bytes an offset index gets another entry.",
    "internal.segment.bytes": "The size of a segment without a lower bound, for tests.",
    "leader.replication.throttled.replicas": "Replicas whose leaders are throttled, as partition:broker; * for all.",
    "local.retention.bytes": "How much of a tiered partition stays on the broker; topics are not tiered here.",
    "local.retention.ms": "How long records of a tiered topic stay on the broker; topics are not tiered here.",
    "max.decompressed.message.bytes": "The largest record of a compressed batch that the topic takes, decompressed.",
    "max.compaction.lag.ms": "The longest that a record stays out of compaction.",
    "max.message.bytes": "The largest batch of records that the topic takes, compressed.",
    "message.timestamp.after.max.ms": "How far a record's time may be ahead of the broker's.",
    "message.timestamp.before.max.ms": "How far a record's time may be behind the broker's.",
    "message.timestamp.type": "Whether a record has the time of its creation or that of its arrival.",
    "min.cleanable.dirty.ratio": "The share of a log that is not compacted yet, at which it is compacted again.",
    "min.compaction.lag.ms": "How long a record stays as it is before it may be compacted away.",
    "min.insync.replicas": "How many replicas must have a record before a producer with acks=all is answered.",
    "preallocate": "Whether a new segment takes its full size on the disk at once.",
    "remote.log.copy.disable": "Whether a tiered topic is no longer copied; topics are not tiered here.",
    "remote.log.delete.on.disable": "Whether copies go with the tiering; topics are not tiered here.",
    "remote.storage.enable": "Whether the topic is tiered, which is not served.",
    "retention.bytes": "How much of a partition is kept; -1 for all.",
    "retention.ms": "How long records are kept; -1 for ever.",
    "segment.bytes": "The size at which a partition begins another segment.",
    "segment.index.bytes": "The largest index file of a segment.",
    "segment.jitter.ms": "By how much the age of segments differs at random, so that not all end at once.",
    "segment.ms": "The age at which a partition begins another segment.",
    "unclean.leader.election.enable": "Whether a replica that is not in sync may lead, at the price of lost records.",
}

GROUPS: Final = {
    "consumer.session.timeout.ms": "After so long without a heartbeat a member of the group is gone.",
    "consumer.heartbeat.interval.ms": "How often a member of the group sends a heartbeat.",
    "consumer.assignment.interval.ms": "How often the assignment of the group may change.",
    "errors.deadletterqueue.copy.record.enable": "Whether dead letters of the group have key and value of the record.",
    "errors.deadletterqueue.topic.name": "The topic that gets the dead letters of the share group; empty for none.",
    "share.assignment.interval.ms": "How often the assignment of the share group may change.",
    "share.auto.offset.reset": "Where the share group begins in a partition: earliest, latest, by_duration:PT1H30M.",
    "share.delivery.count.limit": "How often a record is delivered to the share group at most.",
    "share.heartbeat.interval.ms": "How often a member of the share group sends a heartbeat.",
    "share.isolation.level": "Whether the share group sees records of transactions that are not committed.",
    "share.partition.max.record.locks": "How many records of a partition the share group may hold at a time.",
    "share.record.lock.duration.ms": "How long a member of the share group holds a record without acknowledging it.",
    "share.renew.acknowledge.enable": "Whether a member of the share group may hold a record for longer, by renewing.",
    "share.session.timeout.ms": "After so long without a heartbeat a member of the share group is gone.",
    "streams.assignment.interval.ms": "How often the assignment of the streams group may change.",
    "streams.heartbeat.interval.ms": "How often a member of the streams group sends a heartbeat.",
    "streams.initial.rebalance.delay.ms": "How long the first member of the streams group waits for others.",
    "streams.num.standby.replicas": "How many standby replicas each task of the streams group has.",
    "streams.session.timeout.ms": "After so long without a heartbeat a member of the streams group is gone.",
}

CLIENT_METRICS: Final = {
    "interval.ms": "How often clients push their metrics.",
    "match": "Which clients push: a list of NAME=PATTERN, all of which must match; empty stands for every client.",
    "metrics": "What they push: prefixes of metrics' names; * stands for all.",
}
