"""The catalog of metrics. A name is that of Kafka's MBean as the JMX exporter's rules write it; `pykbroker_` stands
before what Kafka has no MBean for.

Rates are counters here, whose rate Prometheus computes; Kafka's percentiles are histograms.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Kind(Enum):
    """The type of a metric. The samples of a counter end in `_total`, those of a histogram in `_bucket`, `_count` and
    `_sum`, those of a summary in the latter two.
    """

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric. mbean: empty where Kafka has none."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    mbean: str
    meaning: str

    @property
    def shown_name(self) -> str:
        """The name by which a query asks for it."""
        return f"{self.name}_total" if self.kind is Kind.COUNTER else self.name


_TOPIC: Final = ("topic",)
_PARTITION: Final = ("topic", "partition")
_REQUEST: Final = ("request",)
_LISTENER: Final = ("listener",)
_DIRECTORY: Final = ("log_directory",)


def _counter(name: str, labels: tuple[str, ...], mbean: str, meaning: str) -> Metric:
    return Metric(name, Kind.COUNTER, labels, mbean, meaning)


def _gauge(name: str, labels: tuple[str, ...], mbean: str, meaning: str) -> Metric:
    return Metric(name, Kind.GAUGE, labels, mbean, meaning)


def _histogram(name: str, labels: tuple[str, ...], mbean: str, meaning: str) -> Metric:
    return Metric(name, Kind.HISTOGRAM, labels, mbean, meaning)


def _summary(name: str, labels: tuple[str, ...], mbean: str, meaning: str) -> Metric:
    return Metric(name, Kind.SUMMARY, labels, mbean, meaning)


def _of_topics() -> list[Metric]:
    mbean = "kafka.server:type=BrokerTopicMetrics,name={},topic=…"

    def counter(name: str, of_mbean: str, meaning: str) -> Metric:
        return _counter(f"kafka_server_brokertopicmetrics_{name}", _TOPIC, mbean.format(of_mbean), meaning)

    return [
        counter("messagesin", "MessagesInPerSec", "Records appended by this broker as leader"),
        counter("bytesin", "BytesInPerSec", "Bytes appended by this broker as leader"),
        counter("bytesout", "BytesOutPerSec", "Bytes of records sent to consumers"),
        counter("totalproducerequests", "TotalProduceRequestsPerSec", "Appends to partitions, refused ones included"),
        counter("failedproducerequests", "FailedProduceRequestsPerSec", "Appends that failed"),
        counter("failedfetchrequests", "FailedFetchRequestsPerSec", "Reads of partitions that failed"),
        counter("replicationbytesin", "ReplicationBytesInPerSec", "Bytes that followers here took over from leaders"),
        counter("replicationbytesout", "ReplicationBytesOutPerSec", "Bytes of records sent to followers"),
    ]


def _of_requests() -> list[Metric]:
    mbean = "kafka.network:type=RequestMetrics,name={},request=…"
    name = "kafka_network_requestmetrics_{}"

    def times(of_mbean: str, meaning: str) -> Metric:
        return _histogram(name.format(of_mbean.lower()), _REQUEST, mbean.format(of_mbean), meaning)

    return [
        _counter(name.format("requests"), ("request", "version"), mbean.format("RequestsPerSec"), "Requests answered"),
        _counter(
            name.format("errors"),
            ("request", "error"),
            mbean.format("ErrorsPerSec"),
            "Errors in answers, of the first 100 entries of each; NONE is not counted",
        ),
        _counter(name.format("requestbytes"), _REQUEST, mbean.format("RequestBytes"), "Bytes of requests"),
        times("TotalTimeMs", "Time from the whole request until the client took the answer, in ms"),
        times(
            "RequestQueueTimeMs",
            "Time in which a large request waited for room to be unpacked, in ms",
        ),
        times("LocalTimeMs", "Time until the answer was there, without waits, in ms"),
        times("RemoteTimeMs", "Time in which Produce waited for replicas and Fetch for records, in ms"),
        times("ResponseQueueTimeMs", "Time in which a large answer waited between its pieces for others, in ms"),
        times("ResponseSendTimeMs", "Time until the client took the answer, in ms"),
        times("ThrottleTimeMs", "Time for which a client beyond its quota was muted behind the answer, in ms"),
    ]


def _of_replicas() -> list[Metric]:
    mbean = "kafka.server:type=ReplicaManager,name={}"

    def gauge(of_mbean: str, meaning: str) -> Metric:
        return _gauge(f"kafka_server_replicamanager_{of_mbean.lower()}", (), mbean.format(of_mbean), meaning)

    return [
        gauge("PartitionCount", "Partitions with a replica here"),
        gauge("LeaderCount", "Partitions led here"),
        gauge("OfflineReplicaCount", "Replicas here whose log cannot be used"),
        gauge("UnderReplicatedPartitions", "Partitions led here with replicas out of sync"),
        gauge("UnderMinIsrPartitionCount", "Partitions led here with fewer in sync than min.insync.replicas"),
        gauge("AtMinIsrPartitionCount", "Partitions led here with just min.insync.replicas in sync"),
        gauge("ReassigningPartitions", "Partitions led here that are being reassigned"),
        _counter(
            "kafka_server_replicamanager_isrshrinks", (), mbean.format("IsrShrinksPerSec"), "Replicas fell out of sync"
        ),
        _counter(
            "kafka_server_replicamanager_isrexpands", (), mbean.format("IsrExpandsPerSec"), "Replicas came into sync"
        ),
    ]


def _of_partitions() -> list[Metric]:
    of_log, of_cluster = "kafka.log:type=Log,name={},…", "kafka.cluster:type=Partition,name={},…"

    def gauge(of_mbean: str, mbean: str, prefix: str, meaning: str) -> Metric:
        return _gauge(f"{prefix}_{of_mbean.lower()}", _PARTITION, mbean.format(of_mbean), meaning)

    return [
        gauge("Size", of_log, "kafka_log_log", "Bytes of the log here"),
        gauge("LogStartOffset", of_log, "kafka_log_log", "First offset of the log here"),
        gauge("LogEndOffset", of_log, "kafka_log_log", "Offset of the next record of the log here"),
        gauge("NumLogSegments", of_log, "kafka_log_log", "Segments of the log here"),
        gauge("InSyncReplicasCount", of_cluster, "kafka_cluster_partition", "Replicas in sync, told by the leader"),
        gauge("ReplicasCount", of_cluster, "kafka_cluster_partition", "Replicas, told by the leader"),
        gauge("UnderReplicated", of_cluster, "kafka_cluster_partition", "1 where replicas are out of sync"),
        gauge(
            "LastStableOffsetLag",
            of_cluster,
            "kafka_cluster_partition",
            "Offsets between the last stable offset and the high watermark: those of open transactions",
        ),
        _gauge("pykbroker_partition_highwatermark", _PARTITION, "", "High watermark, told by the leader"),
    ]


def _of_logs() -> list[Metric]:
    return [
        _histogram(
            "kafka_log_logflushstats_logflushrateandtimems",
            (),
            "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
            "Time of flushes of logs, in ms",
        ),
        _gauge(
            "kafka_log_logmanager_offlinelogdirectorycount",
            (),
            "kafka.log:type=LogManager,name=OfflineLogDirectoryCount",
            "Log directories that cannot be used",
        ),
        _gauge(
            "kafka_log_logmanager_logdirectoryoffline",
            _DIRECTORY,
            "kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory=…",
            "1 for a log directory that cannot be used",
        ),
        _gauge(
            "pykbroker_log_directory_full", _DIRECTORY, "", "1 for a log directory that takes no writes, as in /readyz"
        ),
        _gauge("pykbroker_log_directory_usable_bytes", _DIRECTORY, "", "Bytes that may still be written to its volume"),
    ]


def _of_groups() -> list[Metric]:
    group = ("group", "topic", "partition")
    return [
        _gauge(
            "kafka_server_group_coordinator_metrics_group_count",
            ("protocol", "state"),
            "kafka.server:type=group-coordinator-metrics,name=group-count",
            "Groups that this broker coordinates",
        ),
        _gauge("pykbroker_group_committed_offset", group, "", "Committed offset, told by the coordinator"),
        _gauge(
            "pykbroker_group_lag", group, "", "Records behind the committed offset, where this broker has the partition"
        ),
        _gauge("pykbroker_group_lag_sum", ("group",), "", "Sum of a group's lag over partitions that this broker has"),
    ]


def _of_rebalances() -> list[Metric]:
    mbean = "kafka.server:type=group-coordinator-metrics,name={}-group-rebalance-count"
    return [
        _counter(
            f"kafka_server_group_coordinator_metrics_{kind}_group_rebalance",
            (),
            mbean.format(kind),
            f"Rebalances of {kind} groups that this broker coordinates: epochs that began",
        )
        for kind in ("consumer", "share", "streams")
    ]


def _of_shares() -> list[Metric]:
    share_partition = ("group", "topic", "partition")
    of_group, of_partition = "kafka.server:type=ShareGroupMetrics,name={}", "kafka.server:type=SharePartitionMetrics,{}"
    of_partition = of_partition.format("name={},group=…,topic=…,partition=…")
    sessions = "kafka.server:type=ShareSessionCache,name={}"
    coordinator = "kafka.server:type=share-coordinator-metrics,name={}"
    return [
        _counter(
            "kafka_server_sharegroupmetrics_recordacknowledgements",
            ("acktype",),
            of_group.format("RecordAcknowledgementsPerSec,ackType=…"),
            "Records that members of share groups have acknowledged, by what they said",
        ),
        _histogram(
            "kafka_server_sharegroupmetrics_partitionloadtimems",
            (),
            of_group.format("PartitionLoadTimeMs"),
            "Time until the state of a share partition was read from its coordinator, in ms",
        ),
        _summary(
            "kafka_server_sharegroupmetrics_requesttopicpartitionsfetchratio",
            ("group",),
            of_group.format("RequestTopicPartitionsFetchRatio,group=…"),
            "ShareFetch requests, with the percentage of their partitions that gave records",
        ),
        _counter(
            "kafka_server_sharegroupmetrics_deadletterqueuerecordcount",
            ("group",),
            of_group.format("DeadLetterQueueRecordCount,group=…"),
            "Dead letters that this broker has written",
        ),
        _counter(
            "kafka_server_sharegroupmetrics_deadletterqueuetotalproducerequests",
            ("group",),
            of_group.format("DeadLetterQueueTotalProduceRequestsPerSec,group=…"),
            "Requests that this broker has written dead letters with",
        ),
        _counter(
            "kafka_server_sharegroupmetrics_deadletterqueuefailedproducerequests",
            ("group",),
            of_group.format("DeadLetterQueueFailedProduceRequestsPerSec,group=…"),
            "Times that this broker has given up dead letters, whose records are archived without one",
        ),
        _counter(
            "kafka_server_sharepartitionmetrics_acquisitionlocktimeout",
            share_partition,
            of_partition.format("AcquisitionLockTimeoutPerSec"),
            "Records that were taken back since their member said nothing in time",
        ),
        _gauge(
            "kafka_server_sharepartitionmetrics_inflightmessagecount",
            share_partition,
            of_partition.format("InFlightMessageCount"),
            "Offsets in flight, from the group's start offset to the last one that was handed out",
        ),
        _gauge(
            "kafka_server_sharepartitionmetrics_inflightbatchcount",
            share_partition,
            of_partition.format("InFlightBatchCount"),
            "Batches in flight",
        ),
        _summary(
            "kafka_server_sharepartitionmetrics_inflightbatchmessagecount",
            share_partition,
            of_partition.format("InFlightBatchMessageCount"),
            "Batches that came into flight, with their offsets",
        ),
        _gauge("pykbroker_share_partition_start_offset", share_partition, "", "Start offset, told by the leader"),
        _gauge(
            "pykbroker_share_partition_lag",
            share_partition,
            "",
            "Records that are not settled yet, told by the leader while the group has members there",
        ),
        _gauge(
            "kafka_server_sharesessioncache_sharesessionscount",
            (),
            sessions.format("ShareSessionsCount"),
            "Share sessions kept",
        ),
        _gauge(
            "kafka_server_sharesessioncache_sharepartitionscount",
            (),
            sessions.format("SharePartitionsCount"),
            "Partitions of all share sessions",
        ),
        _counter(
            "kafka_server_share_coordinator_metrics_write",
            (),
            coordinator.format("write-total"),
            "States of share partitions written at this coordinator",
        ),
        _histogram(
            "kafka_server_share_coordinator_metrics_write_latency_ms",
            (),
            coordinator.format("write-latency-avg"),
            "Time until written states of share partitions were committed, in ms",
        ),
        _gauge(
            "kafka_server_share_coordinator_metrics_last_pruned_offset",
            _PARTITION,
            coordinator.format("last-pruned-offset,topic=…,partition=…"),
            "Offset below which redundant states were deleted last",
        ),
        _gauge("pykbroker_share_states", (), "", "Share partitions whose state this broker coordinates"),
    ]


def _of_network() -> list[Metric]:
    mbean = "kafka.server:type=socket-server-metrics,listener=…,name={}"
    name = "kafka_server_socket_server_metrics_{}"
    return [
        _gauge(name.format("connection_count"), _LISTENER, mbean.format("connection-count"), "Connections open"),
        _counter(
            name.format("connection_creation"), _LISTENER, mbean.format("connection-creation-total"), "Connections made"
        ),
        _counter(
            name.format("connection_close"), _LISTENER, mbean.format("connection-close-total"), "Connections ended"
        ),
        _counter("pykbroker_connections_refused", _LISTENER, "", "Connections beyond a limit, closed at once"),
        _gauge("pykbroker_connections_throttled", _LISTENER, "", "Connections that came too fast, to be closed"),
        _gauge(
            "kafka_server_fetchsessioncache_numincrementalfetchsessions",
            (),
            "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions",
            "Fetch sessions kept",
        ),
    ]


def _of_quotas() -> list[Metric]:
    mbean, labels = "kafka.server:type=…,user=…,client-id=…,name={}", ("resource", "user", "clientid")

    def counter(name: str, of_mbean: str, meaning: str) -> Metric:
        return _counter(f"kafka_server_quota_{name}", labels, mbean.format(of_mbean), meaning)

    return [
        counter("byte", "byte-rate", "Bytes that clients with a quota have produced (Produce) or fetched (Fetch)"),
        counter(
            "request_time_ms",
            "request-time",
            "Time for which requests of clients with a quota held the event loop (Request), in ms",
        ),
        counter(
            "mutation",
            "mutation-rate",
            "Partitions that clients with a quota created and deleted (ControllerMutation), told by the controller",
        ),
        _summary(
            "kafka_server_quota_throttle_time",
            labels,
            mbean.format("throttle-time"),
            "Times that clients were beyond that quota, with the time for which it throttled them, in ms",
        ),
    ]


def _of_cluster() -> list[Metric]:
    controller, raft = "kafka.controller:type=KafkaController,name={}", "kafka.server:type=raft-metrics,name={}"

    def of_controller(of_mbean: str, meaning: str) -> Metric:
        name = f"kafka_controller_kafkacontroller_{of_mbean.lower()}"
        return _gauge(name, (), controller.format(of_mbean), meaning)

    def of_raft(of_mbean: str, meaning: str, labels: tuple[str, ...] = ()) -> Metric:
        return _gauge(f"kafka_server_raft_metrics_{of_mbean.replace('-', '_')}", labels, raft.format(of_mbean), meaning)

    def errors(of: str, meaning: str) -> Metric:
        mbean = f"kafka.server:type=broker-metadata-metrics,name=metadata-{of}-error-count"
        return _gauge(f"kafka_server_broker_metadata_metrics_metadata_{of}_error_count", (), mbean, meaning)

    return [
        of_controller("ActiveControllerCount", "1 on the active controller"),
        of_controller("ActiveBrokerCount", "Brokers that are not fenced; told by controllers"),
        of_controller("FencedBrokerCount", "Brokers that are fenced; told by controllers"),
        of_controller("GlobalTopicCount", "Topics of the cluster; told by controllers"),
        of_controller("GlobalPartitionCount", "Partitions of the cluster; told by controllers"),
        of_controller("OfflinePartitionsCount", "Partitions of the cluster without a leader; told by controllers"),
        of_controller(
            "PreferredReplicaImbalanceCount", "Partitions led by another than the first replica; told by controllers"
        ),
        of_controller("MetadataErrorCount", "Errors of both kinds below; told by controllers"),
        of_raft("current-leader", "Node that leads the metadata quorum; -1 for none"),
        of_raft("current-epoch", "Epoch of the metadata quorum"),
        of_raft("high-watermark", "Offset up to which the metadata are committed, as this node knows"),
        of_raft("log-end-offset", "Offset of the next record of the metadata log here"),
        of_raft("current-state", "1 for the role of this node in the metadata quorum", ("state",)),
        _gauge(
            "kafka_server_broker_metadata_metrics_last_applied_record_offset",
            (),
            "kafka.server:type=broker-metadata-metrics,name=last-applied-record-offset",
            "Offset of the last metadata record that this node follows",
        ),
        errors("load", "Metadata that could not be read or replayed, which ends the node"),
        errors("apply", "Settings (stores, log-ins, limits) that could not be used, so that the former ones stayed"),
        _gauge(
            "kafka_server_kafkaserver_brokerstate",
            (),
            "kafka.server:type=KafkaServer,name=BrokerState",
            "1 while the node starts, 3 while it runs, 6 while it shuts down",
        ),
    ]


def _of_telemetry() -> list[Metric]:
    mbean, name = "kafka.server:type=client-metrics,name={}", "kafka_server_client_metrics_{}"
    return [
        _gauge(name.format("instance_count"), (), mbean.format("instance-count"), "Clients that may push, remembered"),
        _counter(
            name.format("unknown_subscription_request"),
            (),
            mbean.format("unknown-subscription-request-count"),
            "Pushes for subscriptions that have changed",
        ),
        _counter(
            name.format("throttle"),
            (),
            mbean.format("throttle-count,client_instance_id=…"),
            "Requests that came before their time, of all clients",
        ),
        _summary(
            name.format("plugin_export"),
            (),
            mbean.format("plugin-export-count,client_instance_id=…"),
            "Pushes that were read, of all clients, with the time that it took, in ms",
        ),
        _counter(
            name.format("plugin_error"),
            (),
            mbean.format("plugin-error-count,client_instance_id=…"),
            "Pushes that could not be read, of all clients",
        ),
        _gauge("pykbroker_client_series", (), "", "Series that clients have pushed and that are shown"),
        _counter("pykbroker_client_series_left_out", (), "", "Series of pushes for which there was no room"),
    ]


def _of_process() -> list[Metric]:
    memory = ("purpose", "listeners")
    return [
        _histogram(
            "pykbroker_loop_delay_ms",
            (),
            "",
            "Time for which the event loop was busy before it looked at its sockets again, in ms",
        ),
        _counter("pykbroker_loop_holds", (), "", "Steps of a task that held the event loop for longer than 100 ms"),
        _gauge("pykbroker_loop_longest_hold_ms", (), "", "Longest step of a task on the event loop, in ms of CPU"),
        _counter("pykbroker_gc_seconds", (), "", "CPU of the garbage collector on the event loop"),
        _gauge("pykbroker_memory_bytes", memory, "", "Memory in use, by what it is for and by kind of listener"),
        _gauge("pykbroker_memory_limit_bytes", memory, "", "Memory that may be used for that"),
        _gauge("pykbroker_build_info", ("version", "node_id", "cluster_id"), "", "1, with the version of this node"),
        _gauge("pykbroker_left_out", ("what",), "", "Partitions, topics or groups too many to be shown one by one"),
        _gauge("pykbroker_scrape_seconds", (), "", "Time that reading the values of this scrape took"),
    ]


METRICS: Final = {
    each.name: each
    for each in (
        *_of_topics(),
        *_of_requests(),
        *_of_replicas(),
        *_of_partitions(),
        *_of_logs(),
        *_of_groups(),
        *_of_rebalances(),
        *_of_shares(),
        *_of_network(),
        *_of_quotas(),
        *_of_cluster(),
        *_of_telemetry(),
        *_of_process(),
    )
}
"""The metrics by name. Those of prometheus_client come in addition: `process_…`, `python_info` and `python_gc_…`."""
