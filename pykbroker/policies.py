"""Policies of one's own: what topics may be created, and how configurations may be altered (KIP-108, KIP-133).

A policy is a class of yours, named by `create.topic.policy.class.name` or `alter.config.policy.class.name` of
controllers: `module:Class`, or the name of an entry point of the group `pykbroker.policies`. `docs/administration.md`
has an example. The models are `CreateTopicPolicy` and `AlterConfigPolicy` of Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

__all__ = [
    "AlterConfigPolicy",
    "AlterConfigRequest",
    "CreateTopicPolicy",
    "CreateTopicRequest",
    "PolicyViolation",
    "ResourceType",
]


ResourceType: TypeAlias = Literal["TOPIC", "BROKER", "CLIENT_METRICS", "GROUP"]


class PolicyViolation(Exception):
    """A policy raises it where a request is not to be carried out: its client gets POLICY_VIOLATION with the text."""


@dataclass(frozen=True, slots=True)
class CreateTopicRequest:
    """One topic that is to be created: Kafka's `CreateTopicPolicy.RequestMetadata`.

    num_partitions, replication_factor: None where the client assigns replicas. replicas_assignments: the ids of brokers
    by partition; None where it does not. configs: those of the request, without the broker's defaults.
    """

    topic: str
    num_partitions: int | None
    replication_factor: int | None
    replicas_assignments: Mapping[int, Sequence[int]] | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlterConfigRequest:
    """Keys of one resource that are to be altered: Kafka's `AlterConfigPolicy.RequestMetadata`.

    configs: the new value of each key that changes, with what is appended to lists; None where it is deleted. What
    AlterConfigs deletes by not naming it is not among them, as in Kafka.
    """

    resource_type: ResourceType
    resource_name: str
    configs: Mapping[str, str | None]


class CreateTopicPolicy(Protocol):
    """A policy for new topics. One instance of the class is made, without arguments, when a controller starts.

    It may have two more methods: `configure(configs: Mapping[str, str])`, called once with the broker's properties, and
    `close()`, called when the node stops.
    """

    def validate(self, request: CreateTopicRequest) -> None:
        """Raise PolicyViolation where the topic is not to be created. Called in a thread, one call at a time."""


class AlterConfigPolicy(Protocol):
    """A policy for altered configurations; `CreateTopicPolicy` says how it is made."""

    def validate(self, request: AlterConfigRequest) -> None:
        """Raise PolicyViolation where the keys are not to be altered. Called in a thread, one call at a time."""
