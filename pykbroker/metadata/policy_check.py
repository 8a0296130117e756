"""A request that policies have a say in: the controller's rules ask, and the answers are found outside of them.

A policy is somebody else's code, which may take its time, and the rules are pure and never wait. So a request with a
policy is handled twice. First nothing passes, and each question is noted (`is_asking`). Then the policies answer, in a
thread, while the controller does other things; and then the request is handled with their verdicts.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, TypeAlias

from pykbroker.policies import AlterConfigRequest, CreateTopicRequest, ResourceType
from pykbroker.protocol.errors import ApiError, ErrorCode

Question: TypeAlias = CreateTopicRequest | AlterConfigRequest

RESOURCE_TYPES: Final[dict[int, ResourceType]] = {2: "TOPIC", 4: "BROKER", 16: "CLIENT_METRICS", 32: "GROUP"}


class PolicyCheck:
    """The questions and verdicts of one request.

    creates, alters: whether there is a policy for new topics, and for configurations. verdicts: None is a yes.
    """

    def __init__(self, *, creates: bool, alters: bool) -> None:
        self.creates = creates
        self.alters = alters
        self.is_asking = True
        self.questions: dict[Hashable, Question] = {}
        self.verdicts: dict[Hashable, ApiError | None] = {}

    def check(self, question: Question) -> None:
        """Raises ApiError where the policy refuses, or where it has not been asked this yet."""
        if not (self.creates if isinstance(question, CreateTopicRequest) else self.alters):
            return
        key = _key(question)
        if self.is_asking:
            self.questions[key] = question
            raise ApiError(ErrorCode.POLICY_VIOLATION, "The policy is yet to be asked.")
        if key not in self.verdicts:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "The configuration was altered while the policy looked at it.")
        error = self.verdicts[key]
        if error is not None:
            raise error


def _key(question: Question) -> Hashable:
    if isinstance(question, AlterConfigRequest):
        return question.resource_type, question.resource_name, tuple(sorted(question.configs.items(), key=_by_name))
    assigned = question.replicas_assignments
    replicas = None if assigned is None else tuple((index, tuple(ids)) for index, ids in assigned.items())
    configs = tuple(sorted(question.configs.items()))
    return question.topic, question.num_partitions, question.replication_factor, replicas, configs


def _by_name(entry: tuple[str, str | None]) -> str:
    return entry[0]
