"""A broker's replicas are its partitions, the work on their logs, and the fetchers from other leaders."""

from __future__ import annotations

from collections.abc import Sequence

from pykbroker.config import BrokerConfig
from pykbroker.replication.partition import IsrRules
from pykbroker.storage.directories.log_dirs import LogDirectory

from ...logs.cleaning_process import ThisThread
from ...logs.full_directories import FullDirectories
from ...logs.hosted_logs import HostedLogs
from ...logs.log_cleaner import LogCleaner, NewWorkplace
from ...logs.log_flushes import LogFlushes
from ...logs.log_loading import LogLoading, OnLoading
from ...logs.log_truncations import LogTruncations
from ...logs.log_upkeep import LogUpkeep
from ...logs.record_checks import RecordChecks
from ...network.inter_broker import BrokerRequests
from ...replicas.alter_partition import IsrChanges
from ...replicas.hosted_partitions import HostedPartitions
from ...replicas.image_brokers import ImageBrokers
from ...replicas.node_replication import NodeReplication
from ...replicas.record_appends import RecordAppends
from ...replicas.replica_fetcher import ReplicaFetchers
from ...replicas.replica_manager import OnPlacement, ReplicaManager
from ...replicas.replication_quotas import ReplicationQuotas
from ...replicas.storage_failures import StorageFailures
from ...runtime.clock import Clock
from ...runtime.threads import Threads
from ...runtime.time_scopes import BY_THE_CLOCK, TimeScopes


def replica_manager(
    config: BrokerConfig,
    directories: Sequence[LogDirectory],
    *,
    incarnation_id: bytes | None = None,
    clock: Clock,
    threads: Threads,
    new_workplace: NewWorkplace = ThisThread,
    on_loading: OnLoading | None = None,
    on_placement: OnPlacement | None = None,
    time: TimeScopes = BY_THE_CLOCK,
) -> ReplicaManager:
    """The replica manager of these log directories. No partition is hosted before the first image is applied.

    incarnation_id: with which the broker registers, and leads nothing before; None where it leads at once.
    """
    hosted = HostedPartitions()
    logs = HostedLogs(directories, clock=clock, producer_id_expiration_ms=config.int("producer.id.expiration.ms"))
    full = FullDirectories(clock)
    failures = StorageFailures(hosted, logs, full, metadata_log_dir=config.metadata_log_dir)
    loading = LogLoading(
        logs,
        clock=clock,
        threads=threads,
        threads_per_directory=config.int("num.recovery.threads.per.data.dir"),
        on_loading=on_loading,
    )
    flushes = LogFlushes(threads, failures.in_log, hosted.flushed)
    upkeep = LogUpkeep(
        config,
        logs,
        clock=clock,
        threads=threads,
        flushes=flushes,
        full=full,
        high_watermarks=hosted.high_watermarks,
        on_failure=failures.in_directory,
        on_new_start=hosted.begins_later,
        time=time,
    )
    cleaner = LogCleaner(
        config,
        logs,
        clock=clock,
        threads=threads,
        last_stable_offset=hosted.last_stable_offset,
        on_failure=failures.in_directory,
        on_damage=failures.quarantine_log,
        new_workplace=new_workplace,
        reckon=time.tombstones,
    )
    isr_changes = IsrChanges(config.node_id)
    incarnation = None if incarnation_id is None else (config.node_id, incarnation_id)
    brokers = ImageBrokers(lambda: hosted.image, incarnation)
    isr_rules = IsrRules(brokers, config.int("replica.lag.time.max.ms"), isr_changes.propose)
    record_checks = RecordChecks(threads)
    return ReplicaManager(
        config,
        hosted,
        logs,
        clock=clock,
        threads=threads,
        loading=loading,
        upkeep=upkeep,
        cleaner=cleaner,
        flushes=flushes,
        truncations=LogTruncations(threads, failures.quarantine),
        failures=failures,
        appends=RecordAppends(failures, upkeep, full),
        record_checks=record_checks,
        # Lookups that wait for a busy disk hold up no check.
        timestamp_lookups=RecordChecks(threads, beside=record_checks),
        isr_changes=isr_changes,
        brokers=brokers,
        isr_rules=isr_rules,
        quotas=ReplicationQuotas(config, lambda: hosted.image),
        on_placement=on_placement,
    )


def node_replication(
    config: BrokerConfig, replicas: ReplicaManager, brokers: BrokerRequests, clock: Clock
) -> NodeReplication:
    """The replication of this broker as a follower and as a leader. brokers: the way to leaders on other nodes."""
    fetchers = ReplicaFetchers(
        config,
        brokers,
        flush=replicas.flush,
        truncate=replicas.truncations.run,
        clock=clock,
        on_disk_failure=lambda partition, failure: replicas.failures.in_log(partition.log, failure),
        throttle=replicas.quotas.follower,
    )
    replicas.replicate_with(fetchers)
    return NodeReplication(replicas, fetchers, config.int("replica.lag.time.max.ms"), clock)
