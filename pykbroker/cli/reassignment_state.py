"""The state of a plan: of each of its partitions, and of each replica that is to lie in a certain directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import ClientError
from pykbroker.client.reassignments import Reassignment, list_reassignments
from pykbroker.client.replication_throttles import clear_broker_throttles, clear_topic_throttles
from pykbroker.protocol.topic_partition import TopicPartition

from .command import one_line
from .reassignment_plan import Plan
from .reassignment_start import Replicas, all_replicas
from .replica_places import Places, find_places

COMPLETED: Final = "completed"
IN_PROGRESS: Final = "in progress"
NOT_ACTIVE: Final = "not active"


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition of a plan. state: one of the three above."""

    of: TopicPartition
    state: str
    replicas: tuple[int, ...]
    target: tuple[int, ...]

    def __str__(self) -> str:
        if self.state == COMPLETED:
            return f"Reassignment of partition {self.of} is completed."
        if self.state == IN_PROGRESS:
            return f"Reassignment of partition {self.of} is still in progress."
        return (
            f"There is no active reassignment of partition {self.of}, but replica set is {_ids(self.replicas)} rather "
            f"than {_ids(self.target)}."
        )


@dataclass(frozen=True, slots=True)
class DirectoryState:
    """A replica that is to lie in a directory. text: a sentence of Kafka's tool."""

    of: TopicPartition
    broker: int
    state: str
    text: str


@dataclass(frozen=True, slots=True)
class PlanState:
    """The states of all parts of a plan. ongoing: the moves of its partitions that are under way."""

    partitions: list[PartitionState]
    directories: list[DirectoryState]
    ongoing: Mapping[TopicPartition, Reassignment]
    current: Replicas

    @property
    def is_moving(self) -> bool:
        return bool(self.ongoing) or any(each.state == IN_PROGRESS for each in self.directories)

    @property
    def completed(self) -> int:
        partitions = sum(each.state == COMPLETED for each in self.partitions)
        return partitions + sum(each.state == COMPLETED for each in self.directories)

    @property
    def is_completed(self) -> bool:
        return self.completed == len(self.partitions) + len(self.directories)


async def plan_state(cluster: Cluster, plan: Plan) -> PlanState:
    """Ask the controller, and the brokers whose log directories the plan names."""
    ongoing = await list_reassignments(cluster, plan.replicas)
    current = await all_replicas(cluster)
    partitions = [_partition_state(of, target, ongoing, current) for of, target in sorted(plan.replicas.items())]
    directories: list[DirectoryState] = []
    if plan.log_dirs:
        wanted: dict[TopicPartition, set[int]] = {}
        for of, broker in plan.log_dirs:
            wanted.setdefault(of, set()).add(broker)
        directories = list(_directory_states(plan, await find_places(cluster, wanted)))
    return PlanState(partitions, directories, ongoing, current)


def _partition_state(
    of: TopicPartition,
    target: tuple[int, ...],
    ongoing: Mapping[TopicPartition, Reassignment],
    current: Replicas,
) -> PartitionState:
    move = ongoing.get(of)
    if move is not None:
        state = IN_PROGRESS
        return PartitionState(of, state, move.replicas, target)
    replicas = current.get(of, ())
    return PartitionState(of, COMPLETED if replicas == target else NOT_ACTIVE, replicas, target)


def _directory_states(plan: Plan, places: Places) -> Iterator[DirectoryState]:
    for (of, broker), target in sorted(plan.log_dirs.items()):
        name = f"{of}-{broker}"
        found, future = places.current.get((of, broker)), places.future.get((of, broker))
        if found == target and future is None:
            text = f"Reassignment of replica {name} completed successfully."
            yield DirectoryState(of, broker, COMPLETED, text)
        elif future == target:
            yield DirectoryState(of, broker, IN_PROGRESS, f"Reassignment of replica {name} is still in progress.")
        elif future is not None:
            text = f"Partition {of} on broker {broker} is being moved to log dir {future} instead of {target}."
            yield DirectoryState(of, broker, NOT_ACTIVE, text)
        elif found is not None:
            text = f"Partition {of} on broker {broker} is not being moved from log dir {found} to {target}."
            yield DirectoryState(of, broker, NOT_ACTIVE, text)
        elif broker in places.offline:
            text = (
                f"Partition {of} is not found in any live log dir on broker {broker}. There is likely an offline log "
                "directory on the broker."
            )
            yield DirectoryState(of, broker, NOT_ACTIVE, text)
        else:
            text = f"Partition {of} cannot be found in any live log directory on broker {broker}."
            yield DirectoryState(of, broker, NOT_ACTIVE, text)


async def clear_throttles(cluster: Cluster, plan: Plan, current: Replicas, *, as_json: bool = False) -> bool:
    """Take away the throttles of all brokers and of the plan's topics; return whether it failed somewhere.

    While other moves are under way, the throttles stay, for they are theirs, too. as_json: standard output is for a
    document, and lines for people go to standard error.
    """
    if await list_reassignments(cluster):
        return False
    nodes = dict(sorted(cluster.metadata.nodes.items()))
    click.echo(f"Clearing broker-level throttles on broker{_s(nodes)} {_ids(nodes)}", err=as_json)
    failed = await clear_broker_throttles(cluster, list(nodes.values()))
    for broker, error in failed.items():
        click.echo(f"Broker {broker} keeps its throttles: {one_line(error)}", err=True)
    topics = sorted(plan.topics & {of.topic for of in current})
    if not topics:
        return bool(failed)
    click.echo(f"Clearing topic-level throttles on topic{_s(topics)} {','.join(topics)}", err=as_json)
    try:
        await clear_topic_throttles(cluster, topics)
    except ClientError as error:
        click.echo(f"Topics keep their throttles: {one_line(error)}", err=True)
        return True
    return bool(failed)


def _s(things: Mapping[int, object] | list[str]) -> str:
    return "" if len(things) == 1 else "s"


def _ids(brokers: Mapping[int, object] | tuple[int, ...]) -> str:
    return ",".join(str(each) for each in brokers)
