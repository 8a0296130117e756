"""The cluster's metadata as the committed records of `__cluster_metadata` give it: Kafka's `MetadataImage`.

The same records give the same image on every node. One task replays; whoever reads without waiting in between sees one
state, and whoever must wait takes a `view()`, which stays as it is at no cost but to the next change.
Not here: who may change what (`controller`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from pykbroker.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
)
from pykbroker.protocol.schema import Message
from pykbroker.quotas.entities import ClientQuotaEntity
from pykbroker.security.acls.entry import AccessControlEntry
from pykbroker.security.sasl.scram_credential import ScramCredential
from pykbroker.security.tokens.delegation_token import DelegationToken

from .acl_records import entry_of, record_of
from .client_quota_records import quota_records
from .delegation_token_records import token_of, token_record
from .partition_state import PartitionState
from .registrations import BrokerRegistration, ControllerRegistration
from .scram_records import scram_credential, scram_record

METADATA_VERSION = "metadata.version"

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
BROKER_LOGGER_RESOURCE = 8
CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32

ConfigResource = tuple[int, str]
"""Type and name of what is configured; the broker named "" is every broker."""

_NO_CONFIGS: Mapping[str, str] = {}
_NO_QUOTAS: Mapping[str, float] = {}


class InconsistentMetadata(Exception):
    """A record that makes no sense after those before it: the log is not one that a controller wrote."""


class TopicState:
    """One topic; `partitions` by index."""

    __slots__ = ("_generation", "name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: bytes, partitions: dict[int, PartitionState], generation: int) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: Mapping[int, PartitionState] = partitions
        self._generation = generation

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicState):
            return NotImplemented
        return (self.name, self.topic_id, self.partitions) == (other.name, other.topic_id, other.partitions)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TopicState({self.name!r}, {self.topic_id.hex()}, {dict(self.partitions)!r})"


@dataclass(slots=True)
class ImageChanges:
    """The changes that some records made; the keys keep the order of the records.

    partitions: (topic id, index) of what is new or different, without those of topics that are gone again.
    deleted_topics: as they were at the end. client_quotas: the entities whose quotas are others now. acls: the ids of
    entries that were added, changed or removed, each with what it said before, None where it was not there.
    delegation_tokens: the ids of those that were added, changed or removed.
    """

    partitions: dict[tuple[bytes, int], None] = field(default_factory=dict)
    deleted_topics: dict[bytes, TopicState] = field(default_factory=dict)
    configs: dict[ConfigResource, None] = field(default_factory=dict)
    brokers: dict[int, None] = field(default_factory=dict)
    client_quotas: dict[ClientQuotaEntity, None] = field(default_factory=dict)
    acls: dict[bytes, AccessControlEntry | None] = field(default_factory=dict)
    delegation_tokens: dict[str, None] = field(default_factory=dict)
    others: bool = False
    """Features, producer ids, controllers, SCRAM credentials."""

    def __bool__(self) -> bool:
        return bool(
            self.partitions
            or self.deleted_topics
            or self.configs
            or self.brokers
            or self.client_quotas
            or self.acls
            or self.delegation_tokens
            or self.others
        )

    @property
    def size(self) -> int:
        """Return how many portions of one they would make: partitions, entities that have quotas, ACLs, or tokens."""
        return max(len(self.partitions), len(self.client_quotas), len(self.acls), len(self.delegation_tokens))

    def merge(self, later: ImageChanges) -> None:
        if later.deleted_topics:
            gone = later.deleted_topics
            self.partitions = {key: None for key in self.partitions if key[0] not in gone}
        self.partitions.update(later.partitions)
        self.deleted_topics.update(later.deleted_topics)
        self.configs.update(later.configs)
        self.brokers.update(later.brokers)
        self.client_quotas.update(later.client_quotas)
        self.delegation_tokens.update(later.delegation_tokens)
        for acl_id, before in later.acls.items():
            self.acls.setdefault(acl_id, before)
        self.others = self.others or later.others

    def portions(self, partitions: int) -> Iterator[ImageChanges]:
        """The same changes in the same order, with at most so many partitions, quotas, ACLs and tokens at a time."""
        keys, quotas, acls = list(self.partitions), list(self.client_quotas), iter(self.acls.items())
        tokens = iter(self.delegation_tokens)
        for start in range(0, max(self.size, 1), partitions):
            first, last = start == 0, start + partitions >= self.size
            yield ImageChanges(
                partitions=dict.fromkeys(keys[start : start + partitions]),
                acls=dict(islice(acls, partitions)),
                delegation_tokens=dict.fromkeys(islice(tokens, partitions)),
                deleted_topics=self.deleted_topics if first else {},
                configs=self.configs if last else {},
                brokers=self.brokers if last else {},
                client_quotas=dict.fromkeys(quotas[start : start + partitions]),
                others=last and self.others,
            )


class MetadataImage:
    """The cluster's metadata. offset: of the last record in it, -1 where there is none."""

    def __init__(self) -> None:
        self.offset = -1
        self.revision = 0
        """Grows with every change; with `brokers_revision`, which grows with those of brokers, for who keeps what
        this image gave."""
        self.brokers_revision = 0
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self.controllers: dict[int, ControllerRegistration] = {}
        self.ignored_records: dict[str, int] = {}
        """Records of what is not offered here, by type: they change nothing."""
        self._topics_by_name: dict[str, TopicState] = {}
        self._topics_by_id: dict[bytes, TopicState] = {}
        self._brokers: dict[int, BrokerRegistration] = {}
        self._configs: dict[ConfigResource, dict[str, str]] = {}
        self._client_quotas: dict[ClientQuotaEntity, Mapping[str, float]] = {}
        self._acls: dict[bytes, AccessControlEntry] = {}
        self._scram_credentials: dict[tuple[int, str], ScramCredential] = {}
        self._delegation_tokens: dict[str, DelegationToken] = {}
        self._transaction: list[Message] | None = None
        self._generation = 0
        self._shared = False
        self._is_view = False

    # Reading.

    @property
    def topics(self) -> Mapping[str, TopicState]:
        return self._topics_by_name

    @property
    def brokers(self) -> Mapping[int, BrokerRegistration]:
        return self._brokers

    @property
    def configs(self) -> Mapping[ConfigResource, Mapping[str, str]]:
        return self._configs

    @property
    def client_quotas(self) -> Mapping[ClientQuotaEntity, Mapping[str, float]]:
        """The quotas of each entity that has some, by their keys (KIP-546)."""
        return self._client_quotas

    @property
    def acls(self) -> Mapping[bytes, AccessControlEntry]:
        """The entries of access control lists by their ids (KIP-801)."""
        return self._acls

    @property
    def scram_credentials(self) -> Mapping[tuple[int, str], ScramCredential]:
        """The credentials by the number of their mechanism and the name of their user (KIP-554)."""
        return self._scram_credentials

    @property
    def delegation_tokens(self) -> Mapping[str, DelegationToken]:
        """The tokens by their ids, expired ones that nobody has swept away included (KIP-900)."""
        return self._delegation_tokens

    def topic(self, name: str) -> TopicState | None:
        return self._topics_by_name.get(name)

    def topic_by_id(self, topic_id: bytes) -> TopicState | None:
        return self._topics_by_id.get(topic_id)

    def partition(self, name: str, index: int) -> PartitionState | None:
        topic = self._topics_by_name.get(name)
        return None if topic is None else topic.partitions.get(index)

    def topic_config(self, name: str) -> Mapping[str, str]:
        """The topic's own configuration, without the broker's defaults."""
        return self._configs.get((TOPIC_RESOURCE, name), _NO_CONFIGS)

    def group_config(self, group_id: str) -> Mapping[str, str]:
        """The group's own configuration, without the broker's defaults."""
        return self._configs.get((GROUP_RESOURCE, group_id), _NO_CONFIGS)

    def client_metrics_config(self, name: str) -> Mapping[str, str]:
        """The configuration of a subscription of client metrics, without the defaults (KIP-714)."""
        return self._configs.get((CLIENT_METRICS_RESOURCE, name), _NO_CONFIGS)

    def broker_config(self, broker_id: int) -> dict[str, str]:
        """Return what was set at run time for one broker, over what was set for all of them."""
        default = self._configs.get((BROKER_RESOURCE, ""), _NO_CONFIGS)
        return {**default, **self._configs.get((BROKER_RESOURCE, str(broker_id)), _NO_CONFIGS)}

    def is_alive(self, broker_id: int) -> bool:
        broker = self._brokers.get(broker_id)
        return broker is not None and not broker.fenced

    @property
    def live_brokers(self) -> list[BrokerRegistration]:
        return [broker for _, broker in sorted(self._brokers.items()) if not broker.fenced]

    @property
    def in_transaction(self) -> bool:
        """Tell whether the log ends within a metadata transaction (KIP-868), whose records are not in the image yet."""
        return self._transaction is not None

    def view(self) -> MetadataImage:
        """This state, unchanged for ever. It is cheap: what a later change touches is copied then."""
        if self._is_view:
            return self
        view = self.fork()
        view._is_view = True
        return view

    def fork(self) -> MetadataImage:
        """This state as one that goes its own way; as cheap as a view."""
        self._shared = True
        self._generation += 1
        fork = MetadataImage()
        fork.__dict__.update(self.__dict__)
        fork.features, fork.controllers = dict(self.features), dict(self.controllers)
        fork._is_view = False
        fork.ignored_records = dict(self.ignored_records)
        fork._transaction = None if self._transaction is None else list(self._transaction)
        return fork

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MetadataImage):
            return NotImplemented
        return self._content() == other._content()

    __hash__ = None  # type: ignore[assignment]

    def _content(self) -> tuple[object, ...]:
        return (
            self._topics_by_id,
            self._topics_by_name,
            self._brokers,
            self.controllers,
            self._configs,
            self._client_quotas,
            self._scram_credentials,
            self.features,
            self.next_producer_id,
            self._acls,
            self._delegation_tokens,
        )

    def records(self) -> Iterator[Message]:
        """The records that give this image to an empty one, in the order of Kafka's snapshots."""
        for name in sorted(self.features, key=lambda each: (each != METADATA_VERSION, each)):
            yield FeatureLevelRecord(name=name, feature_level=self.features[name])
        for broker_id in sorted(self._brokers):
            yield self._brokers[broker_id].to_record()
        for controller_id in sorted(self.controllers):
            yield self.controllers[controller_id].to_record()
        for topic in self._topics_by_name.values():
            yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
            for index, partition in topic.partitions.items():
                yield partition.to_record(topic.topic_id, index)
        for (type_, name), configs in self._configs.items():
            for key, value in configs.items():
                yield ConfigRecord(resource_type=type_, resource_name=name, name=key, value=value)
        for entity, quotas in self._client_quotas.items():
            yield from quota_records(entity, quotas)
        if self.next_producer_id:
            yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=self.next_producer_id)
        for acl_id, entry in self._acls.items():
            yield record_of(acl_id, entry)
        for (mechanism, name), credential in self._scram_credentials.items():
            yield scram_record(name, mechanism, credential)
        for token in self._delegation_tokens.values():
            yield token_record(token)

    # Replaying.

    def replay(self, record: Message, offset: int) -> ImageChanges:
        """Apply the next record of the log. Raises InconsistentMetadata.

        The records of a transaction are applied when it ends, and never if it is aborted.
        """
        assert not self._is_view, "a view does not change"
        self.offset = offset
        changes = ImageChanges()
        match record:
            case BeginTransactionRecord():
                self._transaction = []
            case AbortTransactionRecord():
                self._transaction = None
            case EndTransactionRecord():
                records, self._transaction = self._transaction or [], None
                for each in records:
                    self._apply(each, changes)
            case _ if self._transaction is not None:
                self._transaction.append(record)
            case _:
                self._apply(record, changes)
        return changes

    def _apply(self, record: Message, changes: ImageChanges) -> None:
        apply = _APPLY.get(type(record))
        if apply is None:
            name = type(record).__name__
            self.ignored_records[name] = self.ignored_records.get(name, 0) + 1
        else:
            self._own()
            apply(self, record, changes)
            if type(record) is not NoOpRecord:
                self.revision += 1

    def _own(self) -> None:
        """Copy the tables before the first change after a view, to which the old ones are left."""
        if self._shared:
            self._topics_by_name = dict(self._topics_by_name)
            self._topics_by_id = dict(self._topics_by_id)
            self._brokers = dict(self._brokers)
            self._configs = dict(self._configs)
            self._client_quotas = dict(self._client_quotas)
            self._acls = dict(self._acls)
            self._scram_credentials = dict(self._scram_credentials)
            self._delegation_tokens = dict(self._delegation_tokens)
            self._shared = False

    def _topic_to_change(self, topic_id: bytes) -> tuple[TopicState, dict[int, PartitionState]]:
        topic = self._topics_by_id.get(topic_id)
        if topic is None:
            raise InconsistentMetadata(f"record {self.offset}: there is no topic with the id {topic_id.hex()}")
        if topic._generation != self._generation:
            topic = TopicState(topic.name, topic_id, dict(topic.partitions), self._generation)
            self._topics_by_id[topic_id] = self._topics_by_name[topic.name] = topic
        assert isinstance(topic.partitions, dict)
        return topic, topic.partitions

    def _topic(self, record: TopicRecord, changes: ImageChanges) -> None:
        if record.name in self._topics_by_name:
            raise InconsistentMetadata(f"record {self.offset}: the topic {record.name} exists already")
        topic_id = bytes(record.topic_id)
        topic = TopicState(record.name, topic_id, {}, self._generation)
        self._topics_by_name[record.name] = self._topics_by_id[topic_id] = topic
        changes.others = True

    def _partition(self, record: PartitionRecord, changes: ImageChanges) -> None:
        topic, partitions = self._topic_to_change(bytes(record.topic_id))
        partitions[record.partition_id] = PartitionState.from_record(record)
        changes.partitions[topic.topic_id, record.partition_id] = None

    def _partition_change(self, record: PartitionChangeRecord, changes: ImageChanges) -> None:
        topic, partitions = self._topic_to_change(bytes(record.topic_id))
        if record.partition_id not in partitions:
            raise InconsistentMetadata(
                f"record {self.offset}: the topic {topic.name} has no partition {record.partition_id}"
            )
        partitions[record.partition_id] = partitions[record.partition_id].changed_by(record)
        changes.partitions[topic.topic_id, record.partition_id] = None

    def _remove_topic(self, record: RemoveTopicRecord, changes: ImageChanges) -> None:
        topic = self._topics_by_id.pop(bytes(record.topic_id), None)
        if topic is None:
            raise InconsistentMetadata(f"record {self.offset}: there is no topic with the id {record.topic_id.hex()}")
        del self._topics_by_name[topic.name]
        self._configs.pop((TOPIC_RESOURCE, topic.name), None)
        changes.merge(ImageChanges(deleted_topics={topic.topic_id: topic}))

    def _config(self, record: ConfigRecord, changes: ImageChanges) -> None:
        resource = (record.resource_type, record.resource_name)
        configs = dict(self._configs.get(resource, _NO_CONFIGS))
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value
        if configs:
            self._configs[resource] = configs
        else:
            self._configs.pop(resource, None)
        changes.configs[resource] = None

    def _client_quota(self, record: ClientQuotaRecord, changes: ImageChanges) -> None:
        entity = frozenset({each.entity_type: each.entity_name for each in record.entity}.items())
        quotas = dict(self._client_quotas.get(entity, _NO_QUOTAS))
        if record.remove:
            quotas.pop(record.key, None)
        else:
            quotas[record.key] = record.value
        if quotas:
            self._client_quotas[entity] = quotas
        else:
            self._client_quotas.pop(entity, None)
        changes.client_quotas[entity] = None

    def _register_broker(self, record: RegisterBrokerRecord, changes: ImageChanges) -> None:
        self._brokers[record.broker_id] = BrokerRegistration.from_record(record)
        self.brokers_revision += 1
        changes.brokers[record.broker_id] = None

    def _change_broker(self, record: BrokerRegistrationChangeRecord, changes: ImageChanges) -> None:
        broker = self._brokers.get(record.broker_id)
        if broker is None or broker.epoch != record.broker_epoch:
            raise InconsistentMetadata(
                f"record {self.offset}: no broker {record.broker_id} is registered with epoch {record.broker_epoch}"
            )
        self._brokers[record.broker_id] = broker.changed_by(record)
        self.brokers_revision += 1
        changes.brokers[record.broker_id] = None

    def _unregister_broker(self, record: UnregisterBrokerRecord, changes: ImageChanges) -> None:
        self._brokers.pop(record.broker_id, None)
        self.brokers_revision += 1
        changes.brokers[record.broker_id] = None

    def _register_controller(self, record: RegisterControllerRecord, changes: ImageChanges) -> None:
        self.controllers[record.controller_id] = ControllerRegistration.from_record(record)
        changes.others = True

    def _unregister_controller(self, record: UnregisterControllerRecord, changes: ImageChanges) -> None:
        self.controllers.pop(record.controller_id, None)
        changes.others = True

    def _feature_level(self, record: FeatureLevelRecord, changes: ImageChanges) -> None:
        if record.feature_level:
            self.features[record.name] = record.feature_level
        else:
            self.features.pop(record.name, None)
        changes.others = True

    def _producer_ids(self, record: ProducerIdsRecord, changes: ImageChanges) -> None:
        self.next_producer_id = record.next_producer_id
        changes.others = True

    def _clear_elr(self, record: ClearElrRecord, changes: ImageChanges) -> None:
        """Clear the eligible leader replicas of one topic, or of all of them where no name is given."""
        named = self._topics_by_name.get(record.topic_name)
        if record.topic_name and named is None:
            raise InconsistentMetadata(f"record {self.offset}: there is no topic {record.topic_name}")
        for topic in [named] if named is not None else list(self.topics.values()):
            _, partitions = self._topic_to_change(topic.topic_id)
            for index, partition in partitions.items():
                if partition.eligible_leader_replicas or partition.last_known_elr:
                    partitions[index] = replace(partition, eligible_leader_replicas=(), last_known_elr=())
                    changes.partitions[topic.topic_id, index] = None

    def _acl(self, record: AccessControlEntryRecord, changes: ImageChanges) -> None:
        acl_id = bytes(record.id)
        changes.acls.setdefault(acl_id, self._acls.get(acl_id))
        self._acls[acl_id] = entry_of(record)

    def _remove_acl(self, record: RemoveAccessControlEntryRecord, changes: ImageChanges) -> None:
        acl_id = bytes(record.id)
        before = self._acls.pop(acl_id, None)
        if before is None:
            raise InconsistentMetadata(f"record {self.offset}: there is no ACL with the id {acl_id.hex()}")
        changes.acls.setdefault(acl_id, before)

    def _scram_credential(self, record: UserScramCredentialRecord, changes: ImageChanges) -> None:
        self._scram_credentials[record.mechanism, record.name] = scram_credential(record)
        changes.others = True

    def _remove_scram_credential(self, record: RemoveUserScramCredentialRecord, changes: ImageChanges) -> None:
        self._scram_credentials.pop((record.mechanism, record.name), None)
        changes.others = True

    def _delegation_token(self, record: DelegationTokenRecord, changes: ImageChanges) -> None:
        self._delegation_tokens[record.token_id] = token_of(record)
        changes.delegation_tokens[record.token_id] = None

    def _remove_delegation_token(self, record: RemoveDelegationTokenRecord, changes: ImageChanges) -> None:
        self._delegation_tokens.pop(record.token_id, None)
        changes.delegation_tokens[record.token_id] = None

    def _no_op(self, record: NoOpRecord, changes: ImageChanges) -> None:
        """Written so that a quiet log moves on."""


_APPLY: dict[type[Message], Callable[[MetadataImage, Any, ImageChanges], None]] = {
    TopicRecord: MetadataImage._topic,
    PartitionRecord: MetadataImage._partition,
    PartitionChangeRecord: MetadataImage._partition_change,
    RemoveTopicRecord: MetadataImage._remove_topic,
    ConfigRecord: MetadataImage._config,
    ClientQuotaRecord: MetadataImage._client_quota,
    RegisterBrokerRecord: MetadataImage._register_broker,
    BrokerRegistrationChangeRecord: MetadataImage._change_broker,
    UnregisterBrokerRecord: MetadataImage._unregister_broker,
    RegisterControllerRecord: MetadataImage._register_controller,
    UnregisterControllerRecord: MetadataImage._unregister_controller,
    AccessControlEntryRecord: MetadataImage._acl,
    RemoveAccessControlEntryRecord: MetadataImage._remove_acl,
    FeatureLevelRecord: MetadataImage._feature_level,
    ProducerIdsRecord: MetadataImage._producer_ids,
    ClearElrRecord: MetadataImage._clear_elr,
    UserScramCredentialRecord: MetadataImage._scram_credential,
    RemoveUserScramCredentialRecord: MetadataImage._remove_scram_credential,
    DelegationTokenRecord: MetadataImage._delegation_token,
    RemoveDelegationTokenRecord: MetadataImage._remove_delegation_token,
    NoOpRecord: MetadataImage._no_op,
}
