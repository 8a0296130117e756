"""Stories: what clients do in order, as lists of steps. `making` changes versions and values, omits and repeats steps.

A tree has the fields of all versions; a version takes those that it has. So `name` and `topic_id` stand side by side.
"""

from __future__ import annotations

from typing import Any, Final

from pykbroker.protocol.api_keys import ApiKey

from .field_values import LARGE
from .record_batches import T0
from .sequences import CONTROLLER, Step, Tree, ref, versions_of

A_TOPIC, A_BROKER, A_LOGGER, CLIENT_METRICS, A_GROUP = 2, 4, 8, 16, 32


def step(api: ApiKey, version: int, connection: int = 0, /, **tree: Any) -> Step:
    return Step(int(api), version, tree, connection=connection)


def on_controller(of: Step) -> Step:
    return Step(of.api_key, of.version, of.tree, CONTROLLER)


# --- Topics and records


def creating(name: str, partitions: int = 1, version: int = 7, /, **configs: str) -> Step:
    rows = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": rows}
    return step(ApiKey.CREATE_TOPICS, version, topics=[topic], timeout_ms=10_000)


def deleting(name: str, number: int, version: int = 6) -> Step:
    return step(
        ApiKey.DELETE_TOPICS,
        version,
        topics=[{"name": None, "topic_id": ref("topic id", number)}],
        topic_names=[name],
        timeout_ms=10_000,
    )


def metadata(*names: str, version: int = 12) -> Step:
    return step(ApiKey.METADATA, version, topics=[{"name": each} for each in names], allow_auto_topic_creation=False)


def producing(
    batch: Any,
    version: int = 9,
    partition: int = 0,
    acks: int = -1,
    name: str = "~t1",
    number: int = 1,
    transactional_id: str | None = None,
) -> Step:
    data = [{"index": partition, "records": {"batches": [batch]}}]
    topic = {"name": name, "topic_id": ref("topic id", number), "partition_data": data}
    return step(
        ApiKey.PRODUCE,
        version,
        acks=acks,
        timeout_ms=10_000,
        topic_data=[topic],
        **({} if transactional_id is None else {"transactional_id": transactional_id}),
    )


def fetching(
    offset: int = 0,
    version: int = 12,
    partition: int = 0,
    isolation: int = 0,
    session: Any = 0,
    epoch: int = -1,
    **more: Any,
) -> Step:
    row = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1_000_000} | more
    topic = {"topic": "~t1", "topic_id": ref("topic id"), "partitions": [row]}
    return step(
        ApiKey.FETCH,
        version,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=LARGE,
        isolation_level=isolation,
        session_id=session,
        session_epoch=epoch,
        topics=[topic],
    )


def continuing(epoch: int, version: int = 12, session: Any = None) -> Step:
    return step(
        ApiKey.FETCH,
        version,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=LARGE,
        session_id=ref("session") if session is None else session,
        session_epoch=epoch,
        topics=[],
    )


def list_offsets(timestamp: int, version: int = 7, partition: int = 0, isolation: int = 0) -> Step:
    row = {"partition_index": partition, "timestamp": timestamp, "current_leader_epoch": -1}
    topics = [{"name": "~t1", "partitions": [row]}]
    return step(
        ApiKey.LIST_OFFSETS, version, replica_id=-1, isolation_level=isolation, topics=topics, timeout_ms=10_000
    )


def deleting_records(offset: int, partition: int = 0) -> Step:
    topics = [{"name": "~t1", "partitions": [{"partition_index": partition, "offset": offset}]}]
    return step(ApiKey.DELETE_RECORDS, 2, topics=topics, timeout_ms=10_000)


def epoch_end(leader_epoch: int, current: int = -1) -> Step:
    row = {"partition": 0, "current_leader_epoch": current, "leader_epoch": leader_epoch}
    return step(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, replica_id=-1, topics=[{"topic": "~t1", "partitions": [row]}])


TOPICS_STORY: Final = (creating("~t1", 2), creating("~t2", 1, cleanup_policy="compact"))
RECORDS: Final = (
    producing({"values": ["a", "b"]}),
    producing({"values": ["c"], "compression": 3}, 11),
    fetching(0),
    fetching(2, 16),
    list_offsets(-1),
    list_offsets(-2, 9),
    list_offsets(-3, 10),
    list_offsets(T0 + 1, 2),
    deleting_records(1),
    fetching(0),
    deleting_records(-1),
    list_offsets(-2),
    epoch_end(0),
)
SESSIONS: Final = (
    producing({"values": ["a"]}),
    fetching(0, epoch=0),
    continuing(1),
    producing({"values": ["b"]}),
    continuing(2),
    fetching(0, partition=1, session=ref("session"), epoch=3),
    continuing(2),
    step(
        ApiKey.FETCH,
        12,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=LARGE,
        session_id=ref("session"),
        session_epoch=4,
        topics=[],
        forgotten_topics_data=[{"topic": "~t1", "topic_id": ref("topic id"), "partitions": [0]}],
    ),
    continuing(5),
    continuing(-1),
)
RECREATED: Final = (
    producing({"values": ["a"]}),
    deleting("~t1", 1),
    metadata("~t1"),
    fetching(0),
    fetching(0, 13),
    creating("~t1", 3),
    metadata("~t1"),
    fetching(0, 13),
    list_offsets(-1),
)
GROWING: Final = (
    step(ApiKey.CREATE_PARTITIONS, 3, topics=[{"name": "~t1", "count": 3, "assignments": None}], timeout_ms=10_000),
    metadata("~t1"),
    producing({"values": ["a"]}, partition=2),
    step(
        ApiKey.CREATE_PARTITIONS,
        3,
        topics=[{"name": "~t1", "count": 4, "assignments": [{"broker_ids": [1]}]}],
        timeout_ms=10_000,
    ),
    step(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, topics=[{"name": "~t1"}], response_partition_limit=2, cursor=None),
    step(ApiKey.DESCRIBE_LOG_DIRS, 4, topics=[{"topic": "~t1", "partitions": [0, 2]}]),
)
IDEMPOTENT: Final = (
    step(
        ApiKey.INIT_PRODUCER_ID,
        4,
        transactional_id=None,
        transaction_timeout_ms=60_000,
        producer_id=-1,
        producer_epoch=-1,
    ),
    producing({"values": ["a", "b"], "producer": ref("producer"), "epoch": 0, "sequence": 0}),
    producing({"values": ["c"], "producer": ref("producer"), "epoch": 0, "sequence": 2}),
    producing({"values": ["a", "b"], "producer": ref("producer"), "epoch": 0, "sequence": 0}),
    producing({"values": ["x"], "producer": ref("producer"), "epoch": 0, "sequence": 5}),
    producing({"values": ["x"], "producer": ref("producer"), "epoch": 1, "sequence": 0}),
    producing({"values": ["x"], "producer": ref("producer"), "epoch": 0, "sequence": 1}),
    step(ApiKey.DESCRIBE_PRODUCERS, 0, topics=[{"name": "~t1", "partition_indexes": [0, 1]}]),
)

# --- Groups


def joining(member: Any = "", connection: int = 0, version: int = 5, instance: str | None = None, **more: Any) -> Step:
    tree: Tree = {
        "group_id": "~g1",
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "member_id": member,
        "group_instance_id": instance,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": "m"}],
    }
    return step(ApiKey.JOIN_GROUP, version, connection, **(tree | more))


def syncing(member: Any, generation: int = 1, connection: int = 0, instance: str | None = None) -> Step:
    return step(
        ApiKey.SYNC_GROUP,
        5,
        connection,
        group_id="~g1",
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[{"member_id": member, "assignment": "assigned"}],
    )


def beating(member: Any, generation: int = 1, connection: int = 0, instance: str | None = None) -> Step:
    return step(
        ApiKey.HEARTBEAT,
        4,
        connection,
        group_id="~g1",
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
    )


def leaving(member: Any, version: int = 4, instance: str | None = None) -> Step:
    return step(
        ApiKey.LEAVE_GROUP,
        version,
        group_id="~g1",
        member_id=member,
        members=[{"member_id": member, "group_instance_id": instance}],
    )


def committing(
    member: Any = "",
    generation: int = -1,
    version: int = 8,
    group: str = "~g1",
    number: int = 1,
    name: str = "~t1",
    **more: Any,
) -> Step:
    row = {"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": -1, "committed_metadata": "m"} | more
    return step(
        ApiKey.OFFSET_COMMIT,
        version,
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=[{"name": name, "topic_id": ref("topic id", number), "partitions": [row]}],
    )


def fetching_offsets(version: int = 8, group: str = "~g1", member: Any = None, epoch: int = -1, **more: Any) -> Step:
    topics = [{"name": "~t1", "partition_indexes": [0, 1]}]
    with_ids = [each | {"topic_id": ref("topic id")} for each in topics]
    of_group = {"group_id": group, "member_id": member, "member_epoch": epoch, "topics": with_ids}
    return step(
        ApiKey.OFFSET_FETCH, version, group_id=group, topics=topics, groups=[of_group], require_stable=True, **more
    )


DESCRIBING_GROUP: Final = step(ApiKey.DESCRIBE_GROUPS, 6, groups=["~g1"], include_authorized_operations=False)
LISTING_GROUPS: Final = step(ApiKey.LIST_GROUPS, 5, states_filter=[], types_filter=[])
DELETING_GROUP: Final = step(ApiKey.DELETE_GROUPS, 2, groups_names=["~g1"])
DELETING_OFFSETS: Final = step(
    ApiKey.OFFSET_DELETE, 0, group_id="~g1", topics=[{"name": "~t1", "partitions": [{"partition_index": 0}]}]
)
M1, M2 = ref("member"), ref("member", 2)
CLASSIC_GROUP: Final = (
    joining(),
    joining(M1),
    DESCRIBING_GROUP,
    syncing(M1),
    beating(M1),
    committing(M1, 1),
    fetching_offsets(),
    LISTING_GROUPS,
    DESCRIBING_GROUP,
    DELETING_GROUP,
    DELETING_OFFSETS,
    leaving(M1),
    DESCRIBING_GROUP,
    fetching_offsets(7),
    DELETING_OFFSETS,
    DELETING_GROUP,
    DESCRIBING_GROUP,
)
TWO_MEMBERS: Final = (
    joining(),
    joining(M1),
    syncing(M1),
    joining("", 1),
    joining(M2, 1),
    beating(M1),
    syncing(M1),
    joining(M1),
    DESCRIBING_GROUP,
    beating(M1, 2),
    leaving(M2),
    leaving(M1, 2),
)
STATIC_MEMBER: Final = (
    joining("", instance="~i1"),
    syncing(M1, instance="~i1"),
    beating(M1, instance="~i1"),
    joining("", instance="~i1"),
    beating(M1, instance="~i1"),
    syncing(M2, 1, instance="~i1"),
    DESCRIBING_GROUP,
    leaving("", instance="~i1"),
    leaving(M1, instance="~i1"),
)
SIMPLE_OFFSETS: Final = (
    committing(),
    fetching_offsets(1),
    committing(version=2),
    committing(version=10),
    fetching_offsets(10),
    fetching_offsets(5),
    fetching_offsets(9, "~missing"),
    DESCRIBING_GROUP,
    LISTING_GROUPS,
    DELETING_OFFSETS,
    fetching_offsets(),
    DELETING_GROUP,
)


def consumer_beat(member: Any, epoch: int, connection: int = 0, group: str = "~g1", **more: Any) -> Step:
    tree: Tree = {
        "group_id": group,
        "member_id": member,
        "member_epoch": epoch,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": 30_000 if epoch == 0 else -1,
        "subscribed_topic_names": ["~t1"] if epoch == 0 else None,
        "subscribed_topic_regex": None,
        "server_assignor": None,
        "topic_partitions": [] if epoch == 0 else None,
    }
    return step(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, connection, **(tree | more))


DESCRIBING_CONSUMERS: Final = step(
    ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=["~g1", "~missing"], include_authorized_operations=False
)
OWNED: Final = [{"topic_id": ref("topic id"), "partitions": [0, 1]}]
CONSUMER_GROUP: Final = (
    consumer_beat("~m1", 0),
    consumer_beat("~m1", 1, topic_partitions=OWNED),
    DESCRIBING_CONSUMERS,
    LISTING_GROUPS,
    committing("~m1", 1, 9),
    fetching_offsets(9, member="~m1", epoch=1),
    consumer_beat("~m2", 0, 1),
    consumer_beat("~m1", 1),
    consumer_beat("~m1", 1, topic_partitions=[{"topic_id": ref("topic id"), "partitions": [0]}]),
    consumer_beat("~m2", 2, 1),
    DESCRIBING_CONSUMERS,
    joining(),
    DESCRIBING_GROUP,
    DELETING_GROUP,
    consumer_beat("~m2", -1, 1),
    consumer_beat("~m1", -1),
    DESCRIBING_CONSUMERS,
    DELETING_GROUP,
)
STATIC_CONSUMER: Final = (
    consumer_beat("~m1", 0, instance_id="~i1"),
    consumer_beat("~m1", -2, instance_id="~i1"),
    consumer_beat("~m3", 0, instance_id="~i1"),
    consumer_beat("~m1", 1, instance_id="~i1"),
    DESCRIBING_CONSUMERS,
    consumer_beat("~m3", -1, instance_id="~i1"),
)
UPGRADED_GROUP: Final = (
    committing(),
    consumer_beat("~m1", 0),
    committing(),
    committing("~m1", 1),
    fetching_offsets(),
    consumer_beat("~m1", -1),
    joining(),
    joining(ref("member")),
    DESCRIBING_GROUP,
)

# --- Transactions


def init_producer(
    name: str | None = "~x1", version: int = 4, producer: Any = -1, epoch: int = -1, timeout_ms: int = 60_000
) -> Step:
    return step(
        ApiKey.INIT_PRODUCER_ID,
        version,
        transactional_id=name,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer,
        producer_epoch=epoch,
    )


P1 = ref("producer")


def adding(
    epoch: int = 0, version: int = 3, partitions: tuple[int, ...] = (0,), name: str = "~t1", *, verify: bool = False
) -> Step:
    topics = [{"name": name, "partitions": list(partitions)}]
    transaction = {
        "transactional_id": "~x1",
        "producer_id": P1,
        "producer_epoch": epoch,
        "verify_only": verify,
        "topics": topics,
    }
    return step(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        version,
        transactions=[transaction],
        v3_and_below_transactional_id="~x1",
        v3_and_below_producer_id=P1,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=topics,
    )


def adding_group(epoch: int = 0, version: int = 3) -> Step:
    return step(
        ApiKey.ADD_OFFSETS_TO_TXN, version, transactional_id="~x1", producer_id=P1, producer_epoch=epoch, group_id="~g1"
    )


def committing_in_transaction(epoch: int = 0, version: int = 3, member: Any = "", generation: int = -1) -> Step:
    row = {"partition_index": 0, "committed_offset": 3, "committed_leader_epoch": -1, "committed_metadata": "m"}
    return step(
        ApiKey.TXN_OFFSET_COMMIT,
        version,
        transactional_id="~x1",
        group_id="~g1",
        producer_id=P1,
        producer_epoch=epoch,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=[{"name": "~t1", "partitions": [row]}],
    )


def ending(epoch: int = 0, version: int = 3, *, commit: bool = True) -> Step:
    return step(ApiKey.END_TXN, version, transactional_id="~x1", producer_id=P1, producer_epoch=epoch, committed=commit)


def in_transaction(sequence: int, epoch: int = 0, version: int = 9, partition: int = 0, *values: str) -> Step:
    batch = {
        "values": list(values) or ["a", "b"],
        "producer": P1,
        "epoch": epoch,
        "sequence": sequence,
        "transactional": True,
    }
    return producing(batch, version, partition, transactional_id="~x1")


DESCRIBING_TRANSACTION: Final = step(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=["~x1", "~missing"])
LISTING_TRANSACTIONS: Final = step(
    ApiKey.LIST_TRANSACTIONS, 1, state_filters=[], producer_id_filters=[], duration_filter=-1
)
DESCRIBING_PRODUCERS: Final = step(
    ApiKey.DESCRIBE_PRODUCERS, 0, topics=[{"name": "~t1", "partition_indexes": [0, 1, 9]}]
)
TRANSACTION: Final = (
    init_producer(),
    adding(),
    in_transaction(0),
    DESCRIBING_TRANSACTION,
    LISTING_TRANSACTIONS,
    DESCRIBING_PRODUCERS,
    fetching(0, isolation=1),
    list_offsets(-1, isolation=1),
    adding_group(),
    committing_in_transaction(),
    fetching_offsets(),
    ending(),
    fetching(0, isolation=1),
    fetching_offsets(),
    DESCRIBING_TRANSACTION,
    ending(),
    ending(commit=False),
    in_transaction(2),
    init_producer(),
    ending(0),
    DESCRIBING_TRANSACTION,
)
ABORTED: Final = (
    init_producer(),
    adding(0, 3, (0, 1)),
    in_transaction(0),
    in_transaction(0, 0, 9, 1),
    ending(commit=False),
    fetching(0, isolation=1),
    fetching(0, partition=1, isolation=0),
    adding(),
    in_transaction(2),
    init_producer(),
    init_producer(),
    fetching(0, isolation=1),
    DESCRIBING_PRODUCERS,
)
SECOND_VERSION: Final = (
    init_producer(version=5),
    in_transaction(0, 0, 12),
    DESCRIBING_TRANSACTION,
    committing_in_transaction(0, 5),
    ending(0, 5),
    in_transaction(0, 1, 12),
    ending(1, 5, commit=False),
    fetching(0, isolation=1),
    ending(2, 5),
    ending(2, 5, commit=False),
    ending(0, 5),
    init_producer(version=5, producer=P1, epoch=2),
    init_producer(version=5, producer=P1, epoch=0),
    DESCRIBING_TRANSACTION,
    fetching_offsets(),
)
VERIFIED: Final = (
    init_producer(),
    adding(0, 4, verify=True),
    adding(0, 4),
    adding(0, 4, verify=True),
    adding(0, 5, (0, 7)),
    adding(0, 4, (0,), "~missing"),
    step(
        ApiKey.WRITE_TXN_MARKERS,
        1,
        markers=[
            {
                "producer_id": P1,
                "producer_epoch": 0,
                "transaction_result": False,
                "topics": [{"name": "~t1", "partition_indexes": [0, 9]}],
                "coordinator_epoch": 0,
            }
        ],
    ),
    fetching(0, isolation=1),
    in_transaction(0),
    ending(),
)

# --- Administration


def altering(
    kind: int, name: str, key: str, value: str | None, operation: int = 0, version: int = 1, *, validate: bool = False
) -> Step:
    config = {"name": key, "config_operation": operation, "value": value}
    return step(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        version,
        resources=[{"resource_type": kind, "resource_name": name, "configs": [config]}],
        validate_only=validate,
    )


def replacing(kind: int, name: str, validate: bool = False, /, **configs: str | None) -> Step:
    rows = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return step(
        ApiKey.ALTER_CONFIGS,
        2,
        resources=[{"resource_type": kind, "resource_name": name, "configs": rows}],
        validate_only=validate,
    )


def describing(kind: int, name: str, keys: list[str] | None, version: int = 4, *, synonyms: bool = True) -> Step:
    return step(
        ApiKey.DESCRIBE_CONFIGS,
        version,
        resources=[{"resource_type": kind, "resource_name": name, "configuration_keys": keys}],
        include_synonyms=synonyms,
        include_documentation=False,
    )


CONFIGS: Final = (
    altering(A_TOPIC, "~t1", "retention.ms", "1000000000"),
    describing(A_TOPIC, "~t1", ["retention.ms", "cleanup.policy"]),
    altering(A_TOPIC, "~t1", "cleanup.policy", "compact", 2),
    altering(A_TOPIC, "~t1", "retention.ms", None, 1),
    altering(A_TOPIC, "~t1", "cleanup.policy", "delete", 3),
    altering(A_TOPIC, "~t1", "retention.ms", "x"),
    altering(A_TOPIC, "~missing", "retention.ms", "1"),
    altering(A_TOPIC, "~t1", "no.such.key", "1", validate=True),
    altering(A_TOPIC, "~t1", "min.insync.replicas", "1", 2),
    altering(A_GROUP, "~g1", "consumer.session.timeout.ms", "50000"),
    altering(A_GROUP, "~g1", "consumer.session.timeout.ms", "1"),
    altering(A_GROUP, "", "consumer.session.timeout.ms", "50000"),
    describing(A_GROUP, "~g1", ["consumer.session.timeout.ms"]),
    altering(A_BROKER, "1", "log.cleaner.threads", "x"),
    altering(A_BROKER, "1", "no.such.key", "1", validate=True),
    altering(A_BROKER, "7", "log.cleaner.threads", "1", validate=True),
    altering(A_BROKER, "x", "log.cleaner.threads", "1"),
    altering(0, "x", "log.cleaner.threads", "1"),
    altering(77, "x", "log.cleaner.threads", "1"),
    altering(A_TOPIC, "", "retention.ms", "1"),
    replacing(A_TOPIC, "~t1", retention_bytes="1000000"),
    replacing(A_TOPIC, "~t1", retention_bytes=None),
    replacing(A_TOPIC, "~t1", no_such="1"),
    describing(A_TOPIC, "~t1", None, synonyms=False),
)
MORE_CONFIGS: Final = (
    replacing(A_TOPIC, "~missing", retention_bytes="1"),
    replacing(A_TOPIC, "~t1", True, cleanup_policy="x"),
    altering(CLIENT_METRICS, "~c1", "interval.ms", "1000"),
    altering(CLIENT_METRICS, "~c1", "interval.ms", "1"),
    altering(CLIENT_METRICS, "~c1", "match", "nonsense"),
    altering(CLIENT_METRICS, "", "interval.ms", "1000"),
    describing(CLIENT_METRICS, "~c1", None),
    step(ApiKey.LIST_CONFIG_RESOURCES, 1, resource_types=[16, 32, 2]),
    step(ApiKey.LIST_CONFIG_RESOURCES, 0),
    altering(CLIENT_METRICS, "~c1", "interval.ms", None, 1),
    describing(A_BROKER, "1", ["log.retention.ms", "num.partitions", "log.dirs", "no.such.key"]),
    describing(A_BROKER, "", ["log.retention.ms"]),
    describing(A_BROKER, "7", ["log.retention.ms"]),
    describing(A_BROKER, "x", ["log.retention.ms"]),
    describing(A_LOGGER, "7", []),
    describing(A_LOGGER, "x", []),
    describing(0, "x", None),
    describing(A_TOPIC, "a b", None),
    altering(A_LOGGER, "1", "nobody.has.this.logger", "INFO"),
    altering(A_LOGGER, "1", "root", "NOLEVEL"),
)


def quota(
    entity: list[tuple[str, str | None]], key: str, value: float, *, remove: bool = False, validate: bool = False
) -> Step:
    return step(
        ApiKey.ALTER_CLIENT_QUOTAS,
        1,
        entries=[
            {
                "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
                "ops": [{"key": key, "value": value, "remove": remove}],
            }
        ],
        validate_only=validate,
    )


def quotas_of(kind: str, match_type: int, match: str | None, *, strict: bool = False) -> Step:
    return step(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        1,
        components=[{"entity_type": kind, "match_type": match_type, "match": match}],
        strict=strict,
    )


QUOTAS: Final = (
    quota([("user", "~u1")], "producer_byte_rate", 1000.0),
    quota([("user", "~u1"), ("client-id", "~c1")], "consumer_byte_rate", 2000.0),
    quotas_of("user", 0, "~u1"),
    quotas_of("user", 0, "~u1", strict=True),
    quotas_of("user", 2, None),
    quotas_of("client-id", 0, "~c1"),
    quota([("user", "~u1")], "nonsense", 1.0),
    quota([("user", "~u1")], "producer_byte_rate", -1.0),
    quota([("user", "~u1")], "producer_byte_rate", 0.5),
    quota([("ip", "~not.an.ip")], "connection_creation_rate", 1.0),
    quota([("ip", "127.0.0.9")], "producer_byte_rate", 1.0),
    quota([("ip", "127.0.0.9")], "connection_creation_rate", 5.0),
    quotas_of("ip", 0, "127.0.0.9"),
    quota([("ip", "127.0.0.9")], "connection_creation_rate", 0.0, remove=True),
    quota([("ip", "127.0.0.9"), ("user", "~u1")], "connection_creation_rate", 5.0),
    quota([("nonsense", "x")], "producer_byte_rate", 5.0),
    quota([], "producer_byte_rate", 5.0),
    quota([("user", "~u1")], "producer_byte_rate", 0.0, remove=True),
    quota([("user", "~u1"), ("client-id", "~c1")], "consumer_byte_rate", 0.0, remove=True),
    quotas_of("user", 0, "~u1"),
    quotas_of("nonsense", 0, "x"),
    quotas_of("", 0, "x"),
    quotas_of("user", 7, "x"),
    quotas_of("user", 0, None),
)


def scram(name: str, mechanism: int = 1, iterations: int = 4096, **deleted: Any) -> Step:
    row = {
        "name": name,
        "mechanism": mechanism,
        "iterations": iterations,
        "salt": "salt",
        "salted_password": "password",
    }
    return step(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=[], upsertions=[row], **deleted)


def without_scram(name: str, mechanism: int = 1) -> Step:
    return step(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=[{"name": name, "mechanism": mechanism}], upsertions=[]
    )


def described_scram(*names: str) -> Step:
    return step(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=[{"name": each} for each in names])


SCRAM: Final = (
    scram("~u1"),
    scram("~u1", 2, 8192),
    described_scram("~u1"),
    described_scram("~u1", "~u1"),
    described_scram("~missing"),
    described_scram(""),
    scram("~u1", 1, 4095),
    scram("~u1", 1, 16385),
    scram("~u1", 0),
    scram("~u1", 3),
    scram(""),
    without_scram("~u1", 1),
    without_scram("~u1", 1),
    without_scram("~u1", 9),
    without_scram(""),
    without_scram("~u1", 2),
    described_scram("~u1"),
)
TOKENS: Final = (
    step(
        ApiKey.CREATE_DELEGATION_TOKEN,
        3,
        owner_principal_type=None,
        owner_principal_name=None,
        renewers=[],
        max_lifetime_ms=-1,
    ),
    step(ApiKey.RENEW_DELEGATION_TOKEN, 2, hmac="nonsense", renew_period_ms=-1),
    step(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, hmac="nonsense", expiry_time_period_ms=-1),
    step(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=None),
)


def reassigning(
    replicas: list[int] | None, partition: int = 0, name: str = "~t1", version: int = 1, *, change: bool = True
) -> Step:
    rows = [{"name": name, "partitions": [{"partition_index": partition, "replicas": replicas}]}]
    return step(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        version,
        timeout_ms=10_000,
        allow_replication_factor_change=change,
        topics=rows,
    )


def electing(kind: int, *partitions: int, name: str = "~t1") -> Step:
    rows = [{"topic": name, "partitions": list(partitions)}]
    return step(ApiKey.ELECT_LEADERS, 2, election_type=kind, topic_partitions=rows, timeout_ms=10_000)


PLACEMENT: Final = (
    reassigning([1]),
    reassigning(None),
    reassigning([2]),
    reassigning([]),
    reassigning([1, 1]),
    reassigning([-1]),
    reassigning([1], 9),
    reassigning([1], name="~missing"),
    reassigning([1, 2], change=False),
    step(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, timeout_ms=10_000, topics=[{"name": "~t1", "partition_indexes": [0]}]),
    step(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, timeout_ms=10_000, topics=None),
    electing(0, 0, 1),
    electing(1, 0),
    electing(0, 9),
    electing(0, 0, name="~missing"),
    electing(7, 0),
    step(ApiKey.DESCRIBE_LOG_DIRS, 5, topics=[{"topic": "~t1", "partitions": [0, 9]}]),
    step(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, dirs=[{"path": "/nowhere", "topics": [{"name": "~t1", "partitions": [0]}]}]),
    step(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        2,
        dirs=[{"path": ref("directory"), "topics": [{"name": "~t1", "partitions": [0]}]}],
    ),
    step(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        1,
        dirs=[{"path": ref("directory"), "topics": [{"name": "~t1", "partitions": [9]}]}],
    ),
    step(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        1,
        dirs=[{"path": "relative", "topics": [{"name": "~missing", "partitions": [0]}]}],
    ),
)


def acl(
    principal: str = "User:~u1",
    operation: int = 3,
    permission: int = 3,
    kind: int = 2,
    name: str = "~t1",
    pattern: int = 3,
    host: str = "*",
) -> Step:
    return step(
        ApiKey.CREATE_ACLS,
        3,
        creations=[
            {
                "resource_type": kind,
                "resource_name": name,
                "resource_pattern_type": pattern,
                "principal": principal,
                "host": host,
                "operation": operation,
                "permission_type": permission,
            }
        ],
    )


def acl_filter(
    kind: int = 2,
    name: str | None = "~t1",
    pattern: int = 3,
    principal: str | None = None,
    operation: int = 1,
    permission: int = 1,
) -> Tree:
    return {
        "resource_type_filter": kind,
        "resource_name_filter": name,
        "pattern_type_filter": pattern,
        "principal_filter": principal,
        "host_filter": None,
        "operation": operation,
        "permission_type": permission,
    }


def acls_of(**fields: Any) -> Step:
    return step(ApiKey.DESCRIBE_ACLS, 3, **acl_filter(**fields))


def without_acls(**fields: Any) -> Step:
    return step(ApiKey.DELETE_ACLS, 3, filters=[acl_filter(**fields)])


ACLS: Final = (
    acl(),
    acl(kind=3, name="~g1"),
    acl(pattern=4, name="~"),
    acls_of(),
    acls_of(pattern=2),
    acls_of(kind=0),
    acls_of(name=None, principal="User:~u1"),
    acl("nonsense"),
    acl(""),
    acl(operation=1),
    acl(operation=0),
    acl(permission=1),
    acl(permission=0),
    acl(pattern=1),
    acl(pattern=2),
    acl(kind=1),
    acl(kind=0),
    acl(name=""),
    acl(kind=4, name="other"),
    acl(host=""),
    without_acls(operation=3),
    without_acls(kind=0),
    without_acls(kind=1, name=None, principal="User:~u1"),
    acls_of(),
)
CLUSTER: Final = (
    step(ApiKey.DESCRIBE_CLUSTER, 1, include_cluster_authorized_operations=True, endpoint_type=1),
    step(ApiKey.DESCRIBE_CLUSTER, 2, include_cluster_authorized_operations=False, endpoint_type=2),
    step(
        ApiKey.DESCRIBE_QUORUM, 2, topics=[{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    ),
    step(ApiKey.DESCRIBE_QUORUM, 1, topics=[{"topic_name": "~t1", "partitions": [{"partition_index": 0}]}]),
    step(
        ApiKey.DESCRIBE_QUORUM, 0, topics=[{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 1}]}]
    ),
    step(ApiKey.DESCRIBE_QUORUM, 0, topics=[]),
    step(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["~g1"]),
    step(ApiKey.FIND_COORDINATOR, 3, key_type=1, key="~x1"),
    step(ApiKey.FIND_COORDINATOR, 4, key_type=7, coordinator_keys=["~g1"]),
    step(ApiKey.FIND_COORDINATOR, 6, key_type=0, coordinator_keys=[""]),
    step(
        ApiKey.UPDATE_FEATURES,
        1,
        timeout_ms=10_000,
        feature_updates=[{"feature": "nonsense", "max_version_level": 1, "upgrade_type": 1}],
        validate_only=True,
    ),
    step(
        ApiKey.UPDATE_FEATURES,
        1,
        timeout_ms=10_000,
        feature_updates=[{"feature": "metadata.version", "max_version_level": 99, "upgrade_type": 1}],
        validate_only=True,
    ),
    step(
        ApiKey.UPDATE_FEATURES,
        2,
        timeout_ms=10_000,
        feature_updates=[{"feature": "group.version", "max_version_level": 1, "upgrade_type": 7}],
        validate_only=True,
    ),
    step(ApiKey.UPDATE_FEATURES, 0, timeout_ms=10_000, feature_updates=[], validate_only=True),
    step(ApiKey.UNREGISTER_BROKER, 0, broker_id=77),
    step(ApiKey.UNREGISTER_BROKER, 0, broker_id=-1),
    step(
        ApiKey.ADD_RAFT_VOTER,
        0,
        cluster_id="other",
        timeout_ms=1000,
        voter_id=7,
        voter_directory_id={"uuid": "unknown"},
        listeners=[{"name": "CONTROLLER", "host": "127.0.0.1", "port": 1}],
    ),
    step(ApiKey.REMOVE_RAFT_VOTER, 0, cluster_id="other", voter_id=7, voter_directory_id={"uuid": "unknown"}),
    step(ApiKey.API_VERSIONS, 3, client_software_name="a b", client_software_version="1"),
    step(ApiKey.API_VERSIONS, 4, client_software_name="", client_software_version=""),
    step(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN"),
)

CONTROLLERS: Final = tuple(
    on_controller(each)
    for each in (
        step(ApiKey.API_VERSIONS, 3, client_software_name="differential", client_software_version="1"),
        *CLUSTER[1:6],
        creating("~t3", 2),
        creating("~t3", 2),
        creating("a b", 1),
        describing(A_TOPIC, "~t3", ["retention.ms"]),
        altering(A_TOPIC, "~t3", "retention.ms", "5000000"),
        altering(A_TOPIC, "~missing", "retention.ms", "5000000"),
        replacing(A_TOPIC, "~t3", retention_bytes="1000000"),
        step(ApiKey.CREATE_PARTITIONS, 3, topics=[{"name": "~t3", "count": 3, "assignments": None}], timeout_ms=10_000),
        step(ApiKey.CREATE_PARTITIONS, 3, topics=[{"name": "~t3", "count": 1, "assignments": None}], timeout_ms=10_000),
        reassigning([7], name="~t3"),
        electing(0, 0, name="~t3"),
        step(ApiKey.DELETE_TOPICS, 6, topics=[{"name": "~t3"}], timeout_ms=10_000),
        step(ApiKey.DELETE_TOPICS, 6, topics=[{"name": "~missing"}], timeout_ms=10_000),
    )
)
MORE_CONTROLLERS: Final = tuple(
    on_controller(each)
    for each in (
        *QUOTAS[:1],
        *QUOTAS[6:8],
        QUOTAS[17],
        *SCRAM[:3],
        SCRAM[11],
        *ACLS[:4],
        *CLUSTER[10:18],
        step(ApiKey.BROKER_HEARTBEAT, 1, broker_id=77, broker_epoch=1, current_metadata_offset=1, want_fence=True),
        step(ApiKey.BROKER_HEARTBEAT, 1, broker_id=1, broker_epoch=-5, current_metadata_offset=1, want_fence=False),
        step(ApiKey.ALLOCATE_PRODUCER_IDS, 0, broker_id=77, broker_epoch=1),
        step(ApiKey.ALLOCATE_PRODUCER_IDS, 0, broker_id=1, broker_epoch=-5),
        step(ApiKey.ALTER_PARTITION, 3, broker_id=77, broker_epoch=1, topics=[]),
        step(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, broker_id=1, broker_epoch=-5, directories=[]),
        step(
            ApiKey.BROKER_REGISTRATION,
            4,
            broker_id=77,
            cluster_id="other",
            incarnation_id={"uuid": "unknown"},
            listeners=[],
            features=[],
            rack=None,
            log_dirs=[],
            previous_broker_epoch=-1,
        ),
        step(ApiKey.METADATA, 12, topics=[]),
    )
)

STORIES: Final[tuple[tuple[Step, ...], ...]] = (
    RECORDS,
    RECORDS,
    SESSIONS,
    RECREATED,
    GROWING,
    IDEMPOTENT,
    CLASSIC_GROUP,
    TWO_MEMBERS,
    STATIC_MEMBER,
    SIMPLE_OFFSETS,
    CONSUMER_GROUP,
    CONSUMER_GROUP,
    STATIC_CONSUMER,
    UPGRADED_GROUP,
    TRANSACTION,
    TRANSACTION,
    ABORTED,
    SECOND_VERSION,
    VERIFIED,
    CONFIGS,
    MORE_CONFIGS,
    QUOTAS,
    SCRAM,
    TOKENS,
    PLACEMENT,
    ACLS,
    CLUSTER,
    CONTROLLERS,
    MORE_CONTROLLERS,
)


def on_every_version(story: tuple[Step, ...]) -> list[tuple[Step, ...]]:
    """Return the story once for each version: the first has all requests in their oldest versions."""
    ranges = [versions_of(each.api_key) for each in story]
    return [
        tuple(
            Step(each.api_key, versions[turn % len(versions)], each.tree, each.listener, each.connection)
            for each, versions in zip(story, ranges, strict=True)
        )
        for turn in range(max(map(len, ranges)))
    ]
