"""A cluster of real processes on this machine: started, stopped, killed and paused node by node.

    with Cluster(tmp_path, [KAFKA] * 3) as cluster:
        cluster.start()
        cluster.kill(cluster.leader("topic", 0))

Node ids count from 1. Ports are free ones of the loopback interface, unless `places` says where each node runs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from compat_tests.brokers import Place, loopback_place
from compat_tests.waiting import DEADLINE_S, until
from pykbroker.protocol.uuids import random_uuid, uuid_to_text

from .layout import Member, NodeSpec, node_properties
from .nodes import NODE_KINDS, Formatting, Node
from .view import ClusterView, NoAnswer, PartitionView, QuorumView, ask_cluster, ask_quorum

BROKER_START_DEADLINE_S = 120.0
T = TypeVar("T")


class Cluster:
    """A context manager, whose end kills what still runs."""

    def __init__(
        self,
        directory: Path,
        nodes: Sequence[NodeSpec | str],
        *,
        properties: Mapping[str, str] | None = None,
        is_dynamic: bool = False,
        places: Sequence[Place] | None = None,
        node_kinds: Mapping[str, type[Node]] = NODE_KINDS,
    ) -> None:
        """nodes: a kind alone is a node of both roles. properties: of every node; its own win over them."""
        specs = [NodeSpec(each) if isinstance(each, str) else each for each in nodes]
        where = places or [loopback_place() for _ in specs]
        self.directory = directory
        self.cluster_id = _new_id()
        self.is_dynamic = is_dynamic
        self.properties = dict(properties or {})
        self._node_kinds = node_kinds
        self.members = [
            Member(number, spec, place) for number, (spec, place) in enumerate(zip(specs, where, strict=True), 1)
        ]
        initial = [f"{each.node_id}@{each.controller_endpoint}:{_new_id()}" for each in self._controllers()]
        self._formatting = Formatting(self.cluster_id, initial if is_dynamic else None)
        self.nodes: dict[int, Node] = {member.node_id: self._node(member) for member in self.members}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """kill -9 for all: a quorum that stops at once leaves its last nodes waiting for the others."""
        for node in self.nodes.values():
            node.kill()

    # Starting and ending nodes

    def start(self, *node_ids: int) -> None:
        """These, or all that do not run, at once. Returns when they answer and no broker of the cluster is fenced."""
        chosen = [self.nodes[each] for each in node_ids] or [
            each for each in self.nodes.values() if not each.is_running
        ]
        self.set_up(chosen)
        for node in chosen:
            node.launch()
        for node in chosen:
            node.wait_until_it_answers()
        self.wait_until_unfenced()

    def set_up(self, nodes: Iterable[Node] | None = None) -> None:
        """Writes properties and formats directories where that is still to do; several nodes at a time."""
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(Node.set_up, self.nodes.values() if nodes is None else nodes))

    def stop(self, *node_ids: int) -> None:
        """SIGTERM, one after another; all of them: brokers before controllers."""
        chosen = node_ids or [each.node_id for each in sorted(self.members, key=lambda each: each.spec.is_controller)]
        for node_id in chosen:
            self.nodes[node_id].stop()

    def kill(self, *node_ids: int) -> None:
        """SIGKILL."""
        for node_id in node_ids or self.nodes:
            self.nodes[node_id].kill()

    def pause(self, node_id: int) -> None:
        """SIGSTOP."""
        self.nodes[node_id].pause()

    def resume(self, node_id: int) -> None:
        self.nodes[node_id].resume()

    def add(self, spec: NodeSpec | str, place: Place | None = None) -> int:
        """A further node, not started yet: an observer of the quorum, until somebody makes a controller its voter."""
        spec = NodeSpec(spec) if isinstance(spec, str) else spec
        member = Member(len(self.members) + 1, spec, place or loopback_place())
        self.members.append(member)
        self.nodes[member.node_id] = self._node(member)
        return member.node_id

    def change_kind(self, node_id: int, kind: str) -> None:
        """The same directory and properties with the other program, from its next start on. It must not run."""
        old = self.nodes[node_id]
        assert not old.is_running, f"node {node_id} runs"
        member = Member(node_id, NodeSpec(kind, old.member.spec.roles, old.member.spec.properties), old.place)
        self.members[self.members.index(old.member)] = member
        self.nodes[node_id] = self._node(member)

    # Who they are

    @property
    def bootstrap(self) -> str:
        """Of all brokers, whether they run or not."""
        return ",".join(node.bootstrap for node in self.brokers())

    def brokers(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.member.spec.is_broker]

    def log_text(self, node_id: int) -> str:
        return self.nodes[node_id].log_text()

    # What they say

    def view(self, *topics: str, of: int | None = None) -> ClusterView:
        """As node `of` sees it, or as the first broker that answers. Raises NoAnswer."""
        if of is not None:
            return ask_cluster(self.nodes[of].address, *topics)
        return self._first_answer(self.brokers(), lambda node: ask_cluster(node.address, *topics))

    def quorum(self) -> QuorumView:
        """Raises NoAnswer where nobody knows of a leader."""
        return self._first_answer(self.nodes.values(), lambda node: ask_quorum(node.address))

    def partition(self, topic: str, partition: int = 0) -> PartitionView:
        """As soon as all tell the same of it."""
        return self.wait_for(topic, partition, lambda view: True, "is known")

    def leader(self, topic: str, partition: int = 0) -> int:
        """As soon as there is one that answers."""
        return self.wait_for(topic, partition, lambda view: view.leader in self._answering(), "has a leader").leader

    def active_controller(self) -> int:
        """As soon as there is one that answers."""
        leaders: list[int] = []

        def is_led() -> bool:
            try:
                leader = self.quorum().leader
            except NoAnswer:
                return False
            leaders.append(leader)
            return leader in self._answering()

        until(is_led, "the quorum has a leader")
        return leaders[-1]

    # Waiting for conditions

    def wait_for(
        self,
        topic: str,
        partition: int,
        condition: Callable[[PartitionView], bool],
        what: str,
        deadline_s: float = DEADLINE_S,
    ) -> PartitionView:
        """A partition's state of which that holds, and that every broker that answers tells alike."""
        told: dict[int, PartitionView | None] = {}

        def holds() -> bool:
            told.clear()
            for node in self.brokers():
                if node.answers:
                    told[node.node_id] = self._partition_of(node, topic, partition)
            views = set(told.values())
            return len(views) == 1 and None not in views and all(view and condition(view) for view in views)

        try:
            until(holds, f"{topic}-{partition} {what}", deadline_s)
        except AssertionError as late:
            raise AssertionError(f"{late}; told by each broker: {told}") from None
        found = next(iter(told.values()))
        assert found is not None
        return found

    def wait_until_in_sync(self, topic: str, partition: int = 0, *replicas: int) -> PartitionView:
        """These are in the ISR, or all of its replicas."""
        return self.wait_for(
            topic,
            partition,
            lambda view: view.isr >= set(replicas or view.replicas),
            f"has {replicas or 'all'} in sync",
        )

    def wait_until_unfenced(self, deadline_s: float = BROKER_START_DEADLINE_S) -> None:
        """Each broker that answers knows of each that was started."""
        started = {node.node_id for node in self.brokers() if node.is_running}
        told: dict[int, frozenset[int]] = {}

        def all_know_all() -> bool:
            for node in self.brokers():
                if node.answers:
                    self._fail_if_ended(node)
                    told[node.node_id] = self._brokers_of(node)
            return all(brokers >= started for brokers in told.values())

        try:
            until(all_know_all, f"brokers {sorted(started)} are not fenced", deadline_s)
        except AssertionError as late:
            raise AssertionError(f"{late}; each broker knows: {told}") from None

    def wait_until_fenced(self, node_id: int, deadline_s: float = DEADLINE_S) -> None:
        """No broker that answers tells of this one any more."""
        others = [node for node in self.brokers() if node.answers and node.node_id != node_id]

        def is_gone() -> bool:
            views = [self._brokers_of(node) for node in others]
            return all(views) and all(node_id not in brokers for brokers in views)

        until(is_gone, f"broker {node_id} is fenced", deadline_s)

    def _node(self, member: Member) -> Node:
        properties = node_properties(member, self.members, is_dynamic=self.is_dynamic)
        properties |= self.properties | dict(member.spec.properties)
        directory = self.directory / f"node-{member.node_id}"
        return self._node_kinds[member.spec.kind](directory, member, properties, self._formatting)

    def _controllers(self) -> list[Member]:
        return [member for member in self.members if member.spec.is_controller]

    def _answering(self) -> set[int]:
        return {node.node_id for node in self.nodes.values() if node.answers}

    def _first_answer(self, nodes: Iterable[Node], ask: Callable[[Node], T]) -> T:
        refusals = []
        for node in nodes:
            if node.answers:
                try:
                    return ask(node)
                except NoAnswer as refusal:
                    refusals.append(str(refusal))
        raise NoAnswer("; ".join(refusals) or "no node runs")

    @staticmethod
    def _partition_of(node: Node, topic: str, partition: int) -> PartitionView | None:
        try:
            return ask_cluster(node.address, topic).topics[topic][partition]
        except (NoAnswer, KeyError):
            return None

    @staticmethod
    def _brokers_of(node: Node) -> frozenset[int]:
        try:
            return ask_cluster(node.address).brokers
        except NoAnswer:
            return frozenset()

    @staticmethod
    def _fail_if_ended(node: Node) -> None:
        assert node.process is not None
        code = node.process.poll()
        assert code is None, f"node {node.node_id} ended with exit code {code}\n{node.log_tail()}"


def _new_id() -> str:
    return uuid_to_text(random_uuid(random.SystemRandom()))
