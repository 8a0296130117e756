"""The controller driver gives the pure rules of the controller the raft log, time, and callers that wait.

Kafka's counterpart is `QuorumController`, whose event queue is one thread; here it is one task. The rules are these:

- The controller is active while this node leads the quorum. It becomes active when the image has everything that
  earlier leaders left in the log: what follows the first record of this epoch only this node can write. From then on
  its state runs ahead of the image by what is not committed.
- One step comes after another: a request, or what is due by time. A step reads the controller's state, has its records
  appended as one atomic batch, and replays them. A long step takes many turns of the event loop, and nobody else asks
  the controller for anything in between.
- What nodes ask of their own accord comes before what clients ask, so that no client keeps a broker from showing that
  it lives; a heartbeat counts from its arrival. A large request is cut into pieces, each of which is one step.
- A request is answered when its records are committed and every listener of this node's image has seen them, so that
  whoever holds an answer sees its effect in every later read; with `until_applied=False` when they are committed.
- Where another node leads, or this node in a later epoch, the controller forgets its state. What is not committed, or
  has not begun, is answered with NOT_CONTROLLER; the records may be committed all the same, and come from the log then.
- A refused append has changed nothing: without room the request fails, and what is due is tried again later. A failed
  disk ends the node, by way of the raft driver.

Not handled here: what a request means (`metadata.controller`), elections and replication (`raft_driver`), the image
(`metadata_publisher`), and the way from other nodes (`controller_channel`).
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import trio

from pykbroker.long_work import LongWork
from pykbroker.metadata.client_quotas import host_names
from pykbroker.metadata.controller import Controller
from pykbroker.metadata.error_responses import error_response
from pykbroker.metadata.feature_updates import KRAFT_VERSION
from pykbroker.metadata.request_context import NO_CONTEXT, ControllerRequestContext
from pykbroker.metadata.request_pieces import merged, pieces_of
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.brokers import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    UpdateFeaturesRequest,
)
from pykbroker.protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from pykbroker.protocol.messages.log_dirs import AssignReplicasToDirsRequest
from pykbroker.protocol.messages.metadata_records import NoOpRecord
from pykbroker.protocol.messages.quorum import DescribeQuorumRequest
from pykbroker.protocol.messages.quotas import AlterClientQuotasRequest
from pykbroker.protocol.messages.topics import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest
from pykbroker.protocol.messages.voters import AddRaftVoterRequest, RemoveRaftVoterRequest
from pykbroker.protocol.schema import Message
from pykbroker.quotas.controller_mutations import ControllerMutationQuota, ControllerMutations
from pykbroker.raft.node import NotLeader
from pykbroker.state_machine import Completion, Result, Token
from pykbroker.storage.files.errors import DiskFailed, NoRoom

from ..network.handlers import RequestContext
from ..network.host_addresses import HostAddresses
from ..runtime.clock import Clock
from ..runtime.deferred_answer import DeferredAnswer
from ..runtime.deferred_event_queue import DeferredEventQueue
from ..runtime.log_lines import printable
from ..runtime.loop_monitor import REQUESTER
from ..runtime.signal import Signal
from ..runtime.turns import LongRequests, Turn
from .encoded_records import EncodedRecords, encode_records
from .metadata_publisher import MetadataPublisher
from .quorum_description import describe_quorum
from .raft_driver import RaftDriver

if TYPE_CHECKING:  # most controllers have no policies
    from pykbroker.metadata.policy_check import PolicyCheck

    from .node_policies import NodePolicies

logger = logging.getLogger(__name__)

_RETRY_MS = 1000
"""After a lack of room, where nobody waits for an answer."""

_OF_NODES = (
    AllocateProducerIdsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
)
"""What nodes ask of their own accord; what people ask for is worth a line in the log."""

_FIRST = (*_OF_NODES, AlterPartitionRequest, AssignReplicasToDirsRequest)
"""What comes before all others."""

_OF_TOKENS = (CreateDelegationTokenRequest, RenewDelegationTokenRequest, ExpireDelegationTokenRequest)
"""Whose rules are told who asks, and the time."""

_STEPS_PER_REQUEST: Final = 200
"""Besides what its work counts."""

_REFUSED_SINCE: Final[dict[type[Message], int]] = {
    CreateTopicsRequest: 6,
    CreatePartitionsRequest: 3,
    DeleteTopicsRequest: 5,
}
"""Since which version a request over its client's quota is refused, and not only throttled (KIP-599)."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of the controller waits for its records: end_offset is the log's end behind them."""

    end_offset: int
    completed: Sequence[Completion]


class ControllerDriver:
    """The driver runs the controller of one node.

    mutations: the quotas of clients that change partitions. hosts: finds the addresses of hosts that have quotas.
    bootstrap: the records that an empty log opens with. max_idle_ms: where other nodes follow the log, it gets a record
    that says nothing whenever it was idle for so long, so that every node knows how far it is; 0 is never.
    """

    def __init__(
        self,
        raft: RaftDriver,
        metadata: MetadataPublisher,
        controller: Controller,
        *,
        clock: Clock,
        bootstrap: Sequence[Message],
        mutations: ControllerMutations,
        hosts: HostAddresses,
        max_idle_ms: int = 0,
        policies: NodePolicies | None = None,
    ) -> None:
        self._raft = raft
        self._metadata = metadata
        self._controller = controller
        self._clock = clock
        self._bootstrap = bootstrap
        self._mutations = mutations
        self._hosts = hosts
        self._max_idle_ms = max_idle_ms
        self._policies = policies
        self._watchers: list[Callable[[], None]] = []
        self._epoch: int | None = None
        """Of raft, while this controller is active."""
        self._uncommitted = DeferredEventQueue[_Step]()
        """Steps of the epoch in which this controller is active; where the epoch ends, all of them fail."""
        self._unapplied = DeferredEventQueue[_Step]()
        self._waiting: dict[Token, _Waiting] = {}
        self._queues: tuple[deque[_Waiting], deque[_Waiting]] = deque(), deque()
        """Requests whose step has not begun; those of `_FIRST`, and the others."""
        self._long = LongRequests()
        """The steps, and the requests that are cut or judged for theirs: one of them has its turn at a time."""
        self._turn = Turn(self._long)
        self._next_token = 0
        self._news = Signal()
        self._did_what_is_due = Signal()
        self._no_expiry_before_ms = 0
        self._written_ms = 0
        raft.watch(self._on_raft_changed)
        metadata.watch(self._on_applied)

    @property
    def is_active(self) -> bool:
        """Tell whether this node's controller is the one that decides."""
        return self._epoch is not None

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` when `is_active` has changed. It must not wait."""
        self._watchers.append(watcher)

    async def submit(
        self, request: Message, *, until_applied: bool = True, client: RequestContext[object] | None = None
    ) -> Any:
        """Return the response to an admin request once what it did is committed and visible in this node's image.

        NOT_CONTROLLER where another controller is the active one, or becomes it before; the effect may come all the
        same. Whoever is cancelled meanwhile loses the answer, not the effect.
        until_applied: False for those who do not look at this node's image; they need not wait for it. client: who has
        asked, if it is not this node itself; quotas hold for clients.
        """
        if self._epoch is None:
            return await Turn(self._long).through(_not_controller(request))
        if isinstance(request, BrokerHeartbeatRequest):
            self._controller.heartbeat_arrived(request, self._clock.monotonic_ms())
        if isinstance(request, DescribeQuorumRequest):
            return describe_quorum(self._raft, self._metadata.image, request, self._clock)
        if isinstance(request, AddRaftVoterRequest | RemoveRaftVoterRequest):
            return await self._ask_raft(request)
        if isinstance(request, UpdateFeaturesRequest):
            self._controller.learn_kraft_version(self._raft.kraft_version)
            if any(each.feature == KRAFT_VERSION for each in request.feature_updates):
                return await self._update_kraft_version(request)
        if isinstance(request, AlterClientQuotasRequest):
            context = ControllerRequestContext(unknown_hosts=await self._unknown_hosts(request))
            return await self._submit(request, context, until_applied=until_applied)
        if isinstance(request, _OF_TOKENS):
            assert client is not None, "tokens are for clients"
            context = ControllerRequestContext(principal=client.principal, wall_ms=self._clock.now_ms())
            return await self._submit(request, context, until_applied=until_applied)
        check = None if self._policies is None else self._policies.check_for(request)
        if check is not None:
            await self._ask_policies(request, check)
        mutations = self._mutation_quota(request, client)
        context = ControllerRequestContext(mutations, policies=check)
        if mutations is None:
            return await self._submit(request, context, until_applied=until_applied)
        response = await self._submit(request, context, until_applied=until_applied)
        response.throttle_time_ms = mutations.throttle_ms(self._clock.monotonic_ms())
        return response

    async def close_policies(self) -> None:
        """Close the policies, which have no say any more."""
        if self._policies is not None:
            await self._policies.close()

    async def _ask_policies(self, request: Message, check: PolicyCheck) -> None:
        """Let policies say what they think of a request, which has no effect yet: see `metadata.policy_check`."""
        assert self._policies is not None
        await self._submit(request, ControllerRequestContext(policies=check), until_applied=False)
        await self._policies.judge(check)

    async def _unknown_hosts(self, request: AlterClientQuotasRequest) -> frozenset[str]:
        named = await Turn(self._long).through(host_names(request))
        return frozenset(named) - (await self._hosts.find(named)).keys() if named else frozenset()

    def _mutation_quota(
        self, request: Message, client: RequestContext[object] | None
    ) -> ControllerMutationQuota | None:
        refused_since = _REFUSED_SINCE.get(type(request))
        if refused_since is None or client is None or not self._mutations.is_set:
            return None
        header = client.header
        return self._mutations.quota_of(
            client.user,
            header.client_id or "",
            self._clock.monotonic_ms(),
            is_strict=header.api_version >= refused_since,
        )

    async def _ask_raft(self, request: Message) -> Any:
        return await self._raft.answer(request, request.__schema__.stable_versions.high, "")

    async def _update_kraft_version(self, request: UpdateFeaturesRequest) -> Any:
        """Update `kraft.version`, which is raft's, with whatever else is to be updated: all of it is checked first."""
        updates, is_dry = request.feature_updates, request.validate_only
        checked = await self._submit(UpdateFeaturesRequest(feature_updates=updates, validate_only=True))
        if checked.error_code != ErrorCode.NONE:
            return checked
        of_raft = [each for each in updates if each.feature == KRAFT_VERSION][:1]
        upgraded = await self._ask_raft(UpdateFeaturesRequest(feature_updates=of_raft, validate_only=is_dry))
        if upgraded.error_code != ErrorCode.NONE:
            return upgraded
        others = [each for each in updates if each.feature != KRAFT_VERSION]
        if is_dry or not others:
            return checked
        answer = await self._submit(UpdateFeaturesRequest(feature_updates=others))
        return checked if answer.error_code == ErrorCode.NONE else answer

    async def _submit(
        self, request: Message, context: ControllerRequestContext = NO_CONTEXT, *, until_applied: bool = True
    ) -> Any:
        """A large request is handled in pieces, each of which is one step; others have theirs in between."""
        turn = Turn(self._long)
        pieces = await turn.through(pieces_of(request))
        error = await turn.through(self._controller.policy_violation(request)) if len(pieces) > 1 else None
        begun: list[_Waiting] = []
        try:
            for piece in pieces:
                self._next_token += 1
                token = Token(self._next_token)
                waiting = _Waiting(piece, error, context, until_applied=until_applied, token=token)
                begun.append(waiting)
                self._begin(waiting)
                await waiting.decided.wait()
                if waiting.answer.error is not None:
                    raise waiting.answer.error
            responses = []
            for waiting in begun:
                answer = await waiting.answer.wait()
                responses.append(await turn.through(answer) if isinstance(answer, Generator) else answer)
        finally:
            for waiting in begun:
                self._waiting.pop(waiting.token, None)
        return merged(request, responses)

    def _begin(self, waiting: _Waiting) -> None:
        """Put the piece in its queue: it gets its step when those before it have had theirs."""
        if self._epoch is None:
            waiting.complete(_not_controller(waiting.request))
            return
        self._waiting[waiting.token] = waiting
        self._queues[not isinstance(waiting.request, _FIRST)].append(waiting)
        self._news.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the controller until the surrounding scope is cancelled; started when a controller is active, and if it
        is this one, what that brought is applied.

        Where there is no room, requests that change something are refused, and a start waits. Where the disk fails
        nothing happens any more: the raft driver takes the node down. Raises UnsupportedFeatureLevel.
        """
        is_starting = True
        while True:
            if self._may_act():
                await self._activate()
            if is_starting and (self._settled() or self._raft.leader_id not in (None, self._raft.node_id)):
                is_starting = False
                task_status.started()
            if self.is_active:
                await self._do_what_is_due()
                self._did_what_is_due.set()
            if any(self._queues):
                await self._handle_next()
            else:
                await self._wait_for_news()

    async def sweep_tokens(self) -> None:
        """Look for expired tokens at once, and return when they are gone from this node's image. Nothing happens where
        another controller is the active one.
        """
        if not self.is_active:
            return
        self._controller.sweep_tokens_next()
        self._news.set()
        while self.is_active and (self._controller.is_sweep_hurried or not self._settled()):
            await self._did_what_is_due.next()

    # Coming and going

    def _may_act(self) -> bool:
        """Tell whether the image has everything in the log: what follows the first record of this epoch only this node
        can write.
        """
        return (
            self._epoch is None and self._raft.leads and self._metadata.applied_offset > self._raft.epoch_start_offset
        )

    def _settled(self) -> bool:
        return self.is_active and not self._uncommitted and not self._unapplied

    async def _activate(self) -> None:
        epoch = self._raft.epoch
        self._controller.adopt(self._metadata.image.fork())
        await self._turn.through(self._controller.prepare())
        now_ms, end_offset = self._clock.monotonic_ms(), self._raft.log_end_offset
        activation = self._controller.activate(self._bootstrap, now_ms, end_offset)
        while self._leads(epoch):
            try:
                await self._take(activation, epoch, logging.DEBUG)
            except NotLeader:
                break
            except NoRoom:
                await trio.sleep(_RETRY_MS / 1000)
            except DiskFailed:
                await trio.sleep_forever()
            else:
                break
        if self._leads(epoch):
            self._epoch = epoch
            logger.info("this controller is active, in epoch %d", epoch)
            self._tell()
        else:
            self._forget_uncommitted()

    def _leads(self, epoch: int | None) -> bool:
        """Tell whether this node has led the quorum all the time since it began to in that epoch."""
        return self._raft.leads and self._raft.epoch == epoch

    def _on_raft_changed(self) -> None:
        if self._epoch is not None and not self._leads(self._epoch):
            self._give_up()
        self._on_committed()

    def _give_up(self) -> None:
        """Forget what is not committed. It may still come, and then from the log."""
        leader = self._raft.leader_id
        logger.info("this controller is not active any more; the leader of epoch %d is %s", self._raft.epoch, leader)
        self._epoch = None
        self._on_committed()
        self._forget_uncommitted()
        self._tell()

    def _forget_uncommitted(self) -> None:
        """Answer those whose records are not committed, or whose step has not begun: their requests are for another
        controller.
        """
        tokens = [completion.token for step in self._uncommitted.take_all() for completion in step.completed]
        tokens += [waiting.token for queue in self._queues for waiting in queue]
        for token in tokens:
            waiting = self._waiting.get(token)
            if waiting is not None:
                waiting.complete(_not_controller(waiting.request))
        for queue in self._queues:
            queue.clear()
        self._controller.deactivate()

    def _tell(self) -> None:
        for watcher in self._watchers:
            watcher()

    # Steps

    async def _handle_next(self) -> None:
        """Take the step of the next request. What nothing can be done about is answered at once."""
        waiting = next(queue for queue in self._queues if queue).popleft()
        if waiting.token not in self._waiting:
            return  # Whoever asked has gone before it was decided.
        request, epoch, now_ms = waiting.request, self._epoch, self._clock.monotonic_ms()
        REQUESTER.set(waiting.requester)
        work = self._controller.handle_in_turns(
            request, waiting.token, now_ms, error=waiting.error, context=waiting.context
        )
        try:
            result = await self._turn.through(work)
        except Exception as fault:  # of the rules, which have recorded nothing: whoever asked is told, the others go on
            waiting.fail(fault)
            REQUESTER.set(None)
            return
        try:
            await self._take(result, epoch, logging.DEBUG if isinstance(request, _OF_NODES) else logging.INFO)
        except NotLeader:
            waiting.complete(_not_controller(request))
        except NoRoom as no_room:
            waiting.complete(error_response(request, ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(no_room))))
        except DiskFailed:
            await trio.sleep_forever()
        waiting.decided.set()
        await self._turn.took(_STEPS_PER_REQUEST)
        REQUESTER.set(None)

    async def _do_what_is_due(self) -> None:
        epoch, now_ms = self._epoch, self._clock.monotonic_ms()
        try:
            await self._take(
                await self._turn.through(self._controller.expire_in_turns(now_ms, self._clock.now_ms())), epoch
            )
            if self._idle_deadline_ms() <= now_ms:
                await self._take(Result([NoOpRecord()], cause="nothing else to say"), epoch, logging.DEBUG)
        except NoRoom:
            self._no_expiry_before_ms = now_ms + _RETRY_MS
        except NotLeader:
            pass  # the raft driver is about to say so
        except DiskFailed:
            await trio.sleep_forever()

    def _idle_deadline_ms(self) -> float:
        if not self._max_idle_ms or not self._raft.has_peers:
            return math.inf
        return self._written_ms + self._max_idle_ms

    async def _take(self, result: Result[Message], epoch: int | None, level: int = logging.INFO) -> None:
        """Propose what a step of the controller wants recorded, and have it answered once that is committed.

        epoch: in which the step began. Raises NotLeader, NoRoom, and nothing has happened; DiskFailed.
        """
        if not result.records and not result.completed:
            return
        encoded = await self._turn.through(encode_records(result.records, self._clock.now_ms()))
        if not self._leads(epoch):
            raise NotLeader(self._raft.leader_id)
        if result.records:
            await self._record(result, encoded, level)
        else:
            self._uncommitted.add(_Step(self._raft.log_end_offset, result.completed))
        self._on_committed()

    async def _record(self, result: Result[Message], encoded: EncodedRecords, level: int) -> None:
        base_offset = self._raft.propose(encoded)
        end_offset = base_offset + len(result.records)
        self._uncommitted.add(_Step(end_offset, result.completed))
        self._written_ms = self._clock.monotonic_ms()
        logger.log(level, "metadata records %d..%d: %s", base_offset, end_offset - 1, printable(result.cause))
        await self._turn.through(self._controller.replay_in_turns(result.records, base_offset))

    # Answers

    def _on_committed(self) -> None:
        for step in self._uncommitted.take_while(lambda step: step.end_offset <= self._raft.high_watermark):
            self._answer(step, is_applied=False)
            self._unapplied.add(step)
        self._on_applied()

    def _on_applied(self) -> None:
        """Answer those whose records every listener of the image has seen."""
        for step in self._unapplied.take_while(lambda step: step.end_offset <= self._metadata.applied_offset):
            self._answer(step, is_applied=True)
        self._news.set()

    def _answer(self, step: _Step, *, is_applied: bool) -> None:
        for completion in step.completed:
            waiting = self._waiting.get(completion.token)
            if waiting is not None and waiting.until_applied is is_applied:
                waiting.complete(completion.response)

    async def _wait_for_news(self) -> None:
        wait_s = math.inf
        if self.is_active:
            expiry_ms = self._controller.next_deadline_ms()
            deadline_ms = min(math.inf if expiry_ms is None else expiry_ms, self._idle_deadline_ms())
            deadline_ms = max(deadline_ms, self._no_expiry_before_ms)
            wait_s = max(deadline_ms - self._clock.monotonic_ms(), 0) / 1000
        await self._news.wait(wait_s)


def _not_controller(request: Message) -> LongWork[Message]:
    return error_response(request, ApiError(ErrorCode.NOT_CONTROLLER))


class _Waiting:
    """A piece of a request waits for its step, and then for its answer.

    error: why nothing is done of the request that this is a piece of. context: the same for all of its pieces.
    decided: its step is over. answer: the response, or what makes it, in turns of the caller; its error is what the
    rules raised.
    """

    __slots__ = ("answer", "context", "decided", "error", "request", "requester", "token", "until_applied")

    def __init__(
        self,
        request: Message,
        error: ApiError | None,
        context: ControllerRequestContext,
        *,
        until_applied: bool,
        token: Token,
    ) -> None:
        self.token = token
        self.decided = trio.Event()
        self.answer = DeferredAnswer[object | LongWork[Message]]()
        self.request = request
        self.error = error
        self.context = context
        self.requester = REQUESTER.get()
        self.until_applied = until_applied

    def complete(self, answer: object | LongWork[Message]) -> None:
        self.answer.complete(answer)
        self.decided.set()

    def fail(self, fault: Exception) -> None:
        self.answer.fail(fault)
        self.decided.set()
