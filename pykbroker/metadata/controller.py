"""The controller's rules as one state machine: Kafka's `QuorumController` without its threads and its log.

A request gives records and an answer; the driver appends the records, replays them here at once and answers when they
are committed. What a request may do depends on the records before it, committed or not. One request at a time.

`handle`, `replay` and `expire` do all in one turn; the methods of these names with `_in_turns` are `LongWork`, between
whose pieces others may have the event loop. Deadlines are those of `sessions` and of `election_rounds`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Final

from pykbroker.config import BrokerConfig
from pykbroker.long_work import LongWork, whole
from pykbroker.protocol.errors import ApiError
from pykbroker.protocol.messages.acls import CreateAclsRequest, DeleteAclsRequest
from pykbroker.protocol.messages.brokers import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    UnregisterBrokerRequest,
    UnregisterControllerRequest,
    UpdateFeaturesRequest,
)
from pykbroker.protocol.messages.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from pykbroker.protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from pykbroker.protocol.messages.log_dirs import AssignReplicasToDirsRequest
from pykbroker.protocol.messages.metadata_records import AbortTransactionRecord
from pykbroker.protocol.messages.quotas import AlterClientQuotasRequest, EntityData
from pykbroker.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from pykbroker.protocol.messages.scram_credentials import AlterUserScramCredentialsRequest
from pykbroker.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from pykbroker.protocol.schema import Message
from pykbroker.protocol.uuids import uuid_to_text
from pykbroker.reckoning import Reckoning, by_the_clock
from pykbroker.state_machine import Completion, Result, Token

from . import (
    access_control,
    alter_partition,
    brokers,
    client_quotas,
    configs,
    delegation_tokens,
    directory_assignments,
    elect_leaders,
    feature_updates,
    heartbeats,
    legacy_configs,
    min_isr,
    ongoing_reassignments,
    producer_ids,
    reassignments,
    request_pieces,
    scram_credentials,
    topics,
)
from .controller_state import ControllerState
from .election_rounds import ElectionRounds
from .error_responses import error_response
from .features import bootstrap_transaction, check_feature_levels
from .image import MetadataImage
from .request_context import NO_CONTEXT, ControllerRequestContext

_MOST_NAMED: Final = 500


class Controller:
    """The controller's rules.

    node_id: of its node, whose broker, if it is one, lives as long as the controller does. reckon_tokens: how late it
    is for delegation tokens.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        node_id: int,
        cluster_id: str,
        rng: random.Random,
        reckon_tokens: Reckoning = by_the_clock,
    ) -> None:
        self._state = ControllerState(config, node_id, cluster_id, rng)
        self._rounds = ElectionRounds(self._state)
        self._token_sweep = delegation_tokens.TokenSweep(self._state, reckon_tokens)
        self._now_ms = 0

    @property
    def image(self) -> MetadataImage:
        """The metadata with every record that was replayed here, committed or not."""
        return self._state.image

    def learn_kraft_version(self, level: int) -> None:
        """Learn the level of kraft.version, which raft decides, and against which requests are checked."""
        self._state.kraft_version = level

    def adopt(self, image: MetadataImage) -> None:
        """Begin anew with what the log says; the image belongs to this controller from now on."""
        self._state.adopt(image)

    def prepare(self) -> LongWork[None]:
        """Go through all partitions before `activate`, so that nothing has to later."""
        yield from self._state.index()

    def activate(self, bootstrap: Sequence[Message], now_ms: int, next_offset: int | None = None) -> Result[Message]:
        """This node leads the quorum now and has replayed the log; an empty one begins with the bootstrap records.

        next_offset: the log's end, where it is behind the last metadata record. Raises UnsupportedFeatureLevel.
        """
        state = self._state
        if next_offset is not None:
            state.next_offset = max(state.next_offset, next_offset)
        check_feature_levels(state.image)
        state.active, self._now_ms = True, now_ms
        state.sessions.start([broker.id for broker in state.image.brokers.values() if not broker.fenced], now_ms)
        if state.image.in_transaction:
            return Result([AbortTransactionRecord(reason="The controller changed.")], cause="an unfinished transaction")
        if not state.image.features:
            records = [*bootstrap, *min_isr.when_enabled(state, bootstrap)]
            return Result(bootstrap_transaction(records), cause="a new cluster")
        return Result()

    def deactivate(self) -> None:
        """Another node leads the quorum: what this one knows beside the log is worth nothing any more."""
        self._state.active = False
        self._state.sessions.start([], 0)
        self._rounds.stop()
        self._token_sweep.stop()

    def handle(
        self,
        request: Message,
        token: Token,
        now_ms: int,
        *,
        error: ApiError | None = None,
        context: ControllerRequestContext = NO_CONTEXT,
    ) -> Result[Message]:
        """`handle_in_turns`, all in one."""
        return whole(self.handle_in_turns(request, token, now_ms, error=error, context=context))

    def handle_in_turns(
        self,
        request: Message,
        token: Token,
        now_ms: int,
        *,
        error: ApiError | None = None,
        context: ControllerRequestContext = NO_CONTEXT,
    ) -> LongWork[Result[Message]]:
        """Every request gets a response, be it one with an error code. `now_ms` is monotonic.

        Until the records of the result are replayed, the controller must be asked for nothing else.
        error: why nothing is done of a piece of a larger request (`policy_violation`). context: what a client's request
        is told beside it; all pieces of one have the same.
        """
        self._now_ms = now_ms
        error = error or (yield from self.policy_violation(request))
        if error is not None and not isinstance(request, CreateTopicsRequest):
            response = yield from error_response(request, error)
            return Result([], [Completion(token, response)], "")
        records, response, cause = yield from self._handle(request, now_ms, error, context)
        return Result(records, [Completion(token, response)], cause)

    def policy_violation(self, request: Message) -> LongWork[ApiError | None]:
        """The error of a request that asks for too much at once, be it handled whole or in pieces; else None."""
        return request_pieces.policy_violation(self._state, request)

    def _handle(
        self, request: Message, now_ms: int, error: ApiError | None, context: ControllerRequestContext
    ) -> LongWork[tuple[Sequence[Message], Message, str]]:
        state, changes = self._state, context.partition_changes(now_ms)
        match request:
            case CreateTopicsRequest():
                names = _listed(topic.name for topic in request.topics)
                return *(
                    yield from topics.create_topics(state, request, error, changes, context.policies)
                ), f"CreateTopics {names}"
            case DeleteTopicsRequest():
                names = _listed(chain(request.topic_names, map(_shown, request.topics)))
                return *(yield from topics.delete_topics(state, request, changes)), f"DeleteTopics {names}"
            case CreatePartitionsRequest():
                names = _listed(topic.name for topic in request.topics)
                return *(yield from topics.create_partitions(state, request, changes)), f"CreatePartitions {names}"
            case IncrementalAlterConfigsRequest():
                names = _listed(resource.resource_name or "of all brokers" for resource in request.resources)
                cause = f"IncrementalAlterConfigs {names}"
                return *(yield from configs.incremental_alter_configs(state, request, context.policies)), cause
            case AlterConfigsRequest():
                names = _listed(resource.resource_name or "of all brokers" for resource in request.resources)
                return *(
                    yield from legacy_configs.alter_configs(state, request, context.policies)
                ), f"AlterConfigs {names}"
            case CreateAclsRequest():
                cause = f"CreateAcls, {len(request.creations)} of them"
                return *(yield from access_control.create_acls(state, request)), cause
            case DeleteAclsRequest():
                cause = f"DeleteAcls by {len(request.filters)} filters"
                return *(yield from access_control.delete_acls(state, request)), cause
            case AlterClientQuotasRequest():
                names = _listed("/".join(map(_shown_part, entry.entity)) for entry in request.entries)
                hosts, cause = context.unknown_hosts, f"AlterClientQuotas {names}"
                return *(yield from client_quotas.alter_client_quotas(state, request, hosts)), cause
            case UpdateFeaturesRequest():
                names = ", ".join(f"{each.feature} to {each.max_version_level}" for each in request.feature_updates)
                return *feature_updates.update_features(state, request), f"UpdateFeatures {names}"
            case AlterUserScramCredentialsRequest():
                cause = f"AlterUserScramCredentials {_listed(scram_credentials.altered_users(request))}"
                return *(yield from scram_credentials.alter_user_scram_credentials(state, request)), cause
            case CreateDelegationTokenRequest():
                cause = f"CreateDelegationToken of {context.principal}"
                return *(yield from delegation_tokens.create_delegation_token(state, request, context)), cause
            case RenewDelegationTokenRequest():
                cause = f"RenewDelegationToken of {context.principal}"
                return *delegation_tokens.renew_delegation_token(state, request, context), cause
            case ExpireDelegationTokenRequest():
                cause = f"ExpireDelegationToken of {context.principal}"
                return *delegation_tokens.expire_delegation_token(state, request, context), cause
            case AlterPartitionReassignmentsRequest():
                names = _listed(topic.name for topic in request.topics)
                cause = f"AlterPartitionReassignments {names}"
                return *(yield from reassignments.alter_partition_reassignments(state, request)), cause
            case ElectLeadersRequest():
                return *(yield from elect_leaders.elect_leaders(state, request)), "ElectLeaders"
            case UnregisterBrokerRequest():
                return *(yield from brokers.unregister_broker(state, request)), f"UnregisterBroker {request.broker_id}"
            case UnregisterControllerRequest():
                cause = f"UnregisterController {request.controller_id}"
                return *brokers.unregister_controller(state, request), cause
            case AlterPartitionRequest():
                cause = f"AlterPartition of broker {request.broker_id}"
                return *(yield from alter_partition.alter_partition(state, request)), cause
            case ListPartitionReassignmentsRequest():
                return [], (yield from ongoing_reassignments.list_partition_reassignments(state, request)), ""
            case AllocateProducerIdsRequest():
                cause = f"AllocateProducerIds of broker {request.broker_id}"
                return *producer_ids.allocate_producer_ids(state, request), cause
            case AssignReplicasToDirsRequest():
                cause = f"AssignReplicasToDirs of broker {request.broker_id}"
                return *(yield from directory_assignments.assign_replicas_to_dirs(state, request)), cause
            case BrokerHeartbeatRequest():
                cause = f"heartbeat of broker {request.broker_id}"
                return *(yield from heartbeats.heartbeat(state, request, now_ms)), cause
            case BrokerRegistrationRequest():
                cause = f"registration of broker {request.broker_id}"
                return *(yield from brokers.register_broker(state, request, now_ms)), cause
            case ControllerRegistrationRequest():
                cause = f"registration of controller {request.controller_id}"
                return *brokers.register_controller(state, request), cause
            case _:
                raise TypeError(f"the controller has no rule for {type(request).__name__}")

    def replay(self, record: Message, offset: int) -> None:
        """Apply the next record of the log, be it one of its own or from before its time."""
        whole(self.replay_in_turns([record], offset))

    def replay_in_turns(self, records: Iterable[Message], base_offset: int) -> LongWork[None]:
        """The same for many. They count together: in between nothing else is asked of the controller."""
        for offset, record in enumerate(records, base_offset):
            yield from self._state.replay(record, offset)
            if self._state.active:
                self._rounds.observe(record, self._now_ms)

    def heartbeat_arrived(self, request: BrokerHeartbeatRequest, now_ms: int) -> None:
        """Note a heartbeat that waits for its step: its broker lives. Kafka's `trackBrokerHeartbeat`."""
        broker = self._state.image.brokers.get(request.broker_id) if self._state.active else None
        if broker is not None and broker.epoch == request.broker_epoch:
            self._state.sessions.heartbeat_arrived(broker.id, now_ms)

    def next_deadline_ms(self) -> int | None:
        """Return when `expire` has something to do, on the clock of `now_ms`.

        None for a controller that is not active.
        """
        if not self._state.active:
            return None
        deadlines = (
            self._state.sessions.next_deadline_ms(),
            self._rounds.next_deadline_ms(self._now_ms),
            self._token_sweep.next_deadline_ms(self._now_ms),
        )
        return min((each for each in deadlines if each is not None), default=None)

    def sweep_tokens_next(self) -> None:
        """Look for expired tokens in the next `expire`, whenever the next sweep would be due."""
        self._token_sweep.hurry()

    @property
    def is_sweep_hurried(self) -> bool:
        """Tell whether the sweep that was asked for is not over yet."""
        return self._token_sweep.is_hurried

    def expire(self, now_ms: int, wall_ms: int = 0) -> Result[Message]:
        """`expire_in_turns`, all in one."""
        return whole(self.expire_in_turns(now_ms, wall_ms))

    def expire_in_turns(self, now_ms: int, wall_ms: int) -> LongWork[Result[Message]]:
        """Do what is due: fence a silent broker, elect leaders, remove expired tokens. Call it until nothing is due.

        wall_ms: by the clock on the wall, for tokens.
        """
        self._now_ms = now_ms
        records = yield from heartbeats.fence_silent_broker(self._state, now_ms)
        if records:
            return Result(records, cause="a broker's session has expired")
        elected, cause = yield from self._rounds.run(now_ms)
        if elected:
            return Result(elected, cause=cause)
        expired = yield from self._token_sweep.run(now_ms, wall_ms)
        return Result(expired, cause="delegation tokens have expired")


def _shown(topic: DeleteTopicState) -> str:
    return uuid_to_text(topic.topic_id) if topic.name is None else topic.name


def _shown_part(part: EntityData) -> str:
    return f"{part.entity_type} {'<default>' if part.entity_name is None else part.entity_name}"


def _listed(names: Iterable[str]) -> str:
    """List as many as a line of the log has room for."""
    first = list(islice(names, _MOST_NAMED + 1))
    return ", ".join(first[:_MOST_NAMED]) + (", ..." if len(first) > _MOST_NAMED else "")
