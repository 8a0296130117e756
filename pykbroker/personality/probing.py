"""Probing asks a cluster for its personality, and changes nothing there.

Versions, features and configurations are those of the broker that answers first. `questions` that need a coordinator
are asked where `__consumer_offsets` exists: elsewhere the search for one would create it, which `thorough` allows.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.configs import Resource, ResourceType, describe_configs
from pykbroker.client.connection import Connection
from pykbroker.client.errors import ClientError, ConnectionLost, KafkaError, NoBrokerReachable, TimedOut, code_of
from pykbroker.client.metadata import Node
from pykbroker.protocol.api_keys import ApiKey, api_name, response_type
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import ErrorCode, MalformedMessage
from pykbroker.protocol.framing import decode_response_header
from pykbroker.protocol.messages.api_versions import ApiVersionsResponse
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from pykbroker.protocol.schema import Versions
from pykbroker.protocol.topic_partition import TopicPartition

from .kept_settings import kept_limits, kept_of_brokers, kept_of_topics
from .personality import Answer, Personality
from .questions import LONGEST_TIMEOUT_MS, NOWHERE, OFFSETS_TOPIC, QUESTIONS, Question

_NO_VERSION: Final = 32767
"""No API will have so many."""
_NO_API: Final = 32767
_NUMBER: Final = re.compile("[0-9]{1,19}", re.ASCII)
_AUTHORIZER: Final = {
    ErrorCode.SECURITY_DISABLED: False,
    ErrorCode.NONE: True,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: True,
}
"""What the answer to DescribeAcls says of it."""
_FOR_A_MOMENT: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.LEADER_NOT_AVAILABLE,
)
"""A coordinator or leader that has just been made says so."""
_TIMEOUT_OF_TRANSACTIONS: Final = "transaction.max.timeout.ms"
_PROTOCOL_VERSION: Final = "inter.broker.protocol.version"
_METADATA_VERSION: Final = "metadata.version"


@dataclass(frozen=True, slots=True)
class Probed:
    """The outcome. remarks: lines that say what could not be asked, and why."""

    personality: Personality
    remarks: list[str]


async def probe(
    cluster: Cluster, *, software: str = "", thorough: bool = False, on_answer: Callable[[], None] | None = None
) -> Probed:
    """Raises ClientError where the cluster cannot be reached. on_answer: called behind each of `QUESTIONS`."""
    return await _Probe(cluster, software, thorough).run(on_answer or (lambda: None))


class _Probe:
    def __init__(self, cluster: Cluster, software: str, thorough: bool) -> None:
        self._cluster = cluster
        self._software = software
        self._thorough = thorough
        self._remarks: list[str] = []
        self._not_asked: dict[str, list[str]] = {}
        self._answers: dict[str, Answer] = {}

    async def run(self, on_answer: Callable[[], None]) -> Probed:
        connection = await self._cluster.any_connection()
        versions = dict(connection.versions)
        told = await connection.ask_versions()
        metadata = await self._cluster.refresh([OFFSETS_TOPIC])
        described = await self._described(min(metadata.nodes, default=None))
        topic = await self._topic_defaults(versions)
        await self._ask_broken(connection)
        for question in QUESTIONS:
            await self._ask(question, versions, described)
            on_answer()
        supported = {each.name: Versions(each.min_version, each.max_version) for each in told.supported_features}
        personality = Personality(
            versions=versions,
            software=self._software,
            told=_told(described, supported),
            brokers=len(metadata.nodes),
            authorizer=self._authorizer(),
            supported_features=supported,
            finalized_features={each.name: each.max_version_level for each in told.finalized_features},
            limits=kept_limits(described),
            broker=kept_of_brokers(described),
            topic=kept_of_topics(topic),
            answers=self._answers,
        )
        not_asked = (f"not asked, since {reason}: {', '.join(names)}" for reason, names in self._not_asked.items())
        return Probed(personality, [*self._remarks, *not_asked])

    # ---- configurations

    async def _described(self, node_id: int | None) -> dict[str, str]:
        try:
            if node_id is None:
                raise NoBrokerReachable("the cluster names no broker", retriable=False)
            rows = await describe_configs(self._cluster, Resource(ResourceType.BROKER, str(node_id)))
        except ClientError as error:
            self._remarks.append(f"the broker's configurations are not known: {error}")
            return {}
        return {row.name: row.value or "" for row in rows if not row.is_sensitive}

    async def _topic_defaults(self, versions: Mapping[int, Versions]) -> dict[str, str]:
        """The configurations of a topic that is checked and not created (KIP-525)."""
        version = _newest(versions, ApiKey.CREATE_TOPICS, Versions(5, _NO_VERSION))
        if version is None:
            return {}
        topic = CreatableTopic(name=NOWHERE, num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], validate_only=True)
        try:
            response = await self._cluster.controller_request(request, CreateTopicsResponse)
            row = response.topics[0]
            if row.error_code or row.topic_config_error_code:
                raise KafkaError(code_of(row.error_code or row.topic_config_error_code))
        except ClientError as error:
            self._remarks.append(f"a topic's default configurations are not known: {error}")
            return {}
        return {each.name: each.value or "" for each in row.configs or () if not each.is_sensitive}

    # ---- questions

    async def _ask(self, question: Question, versions: Mapping[int, Versions], described: Mapping[str, str]) -> None:
        request_type = type(question.request(0))
        api_key = request_type.__schema__.api_key
        assert api_key is not None
        version = _newest(versions, api_key, question.versions)
        if version is None:
            return
        if question.name == "init-producer-id-long-timeout" and not _is_below(
            described.get(_TIMEOUT_OF_TRANSACTIONS), LONGEST_TIMEOUT_MS
        ):
            self._not_asked.setdefault("a timeout that is too long is not known", []).append(question.name)
            return
        node = await self._node(question)
        if isinstance(node, str):
            self._not_asked.setdefault(node, []).append(question.name)
            return
        asked = f"{api_name(api_key)} {version}"

        async def attempt() -> str:
            connection = await (self._cluster.any_connection() if node is None else self._cluster.node_connection(node))
            try:
                response = await connection.request(question.request(version), response_type(api_key), version=version)
                code = question.code(response)
            except ConnectionLost:
                return "closes the connection"
            except TimedOut:
                return "does not answer"
            except IndexError:
                return "says nothing of it"
            if code in _FOR_A_MOMENT:
                raise KafkaError(code_of(code))
            return _name(code)

        try:
            outcome = await self._cluster.retrying(attempt)
        except KafkaError as error:
            outcome = error.error_code.name
        self._answers[question.name] = Answer(outcome, asked)

    async def _node(self, question: Question) -> Node | str | None:
        """Whom to ask, None for anybody; or why nobody can be asked."""
        if question.to == "any":
            return None
        exists = OFFSETS_TOPIC in self._cluster.metadata.topics
        if not exists and not self._thorough:
            return f"{OFFSETS_TOPIC} does not exist, or may not be seen, and would be created (--thorough)"
        try:
            coordinator = await self._cluster.retrying(partial(self._cluster.coordinator, NOWHERE))
            if question.to == "leader":
                first = TopicPartition(OFFSETS_TOPIC, 0)
                return await self._cluster.retrying(partial(self._cluster.leader, first))
            return coordinator
        except ClientError as error:
            return str(error)

    async def _ask_broken(self, negotiated: Connection) -> None:
        """Ask in versions that nobody has; the requests are no more than their headers."""
        for name, api_key in (
            ("api-versions-unknown-version", ApiKey.API_VERSIONS),
            ("metadata-unknown-version", ApiKey.METADATA),
            ("unknown-api", _NO_API),
        ):
            connection = await self._cluster.connection_of_its_own()
            try:
                with trio.fail_after(connection.request_timeout_s):
                    await connection.send_raw(_header_alone(api_key))
                    frame = await connection.receive_frame()
                outcome = _outcome_of_versions(frame)
            except ConnectionLost:
                outcome = "closes the connection"
            except trio.TooSlowError:
                outcome = "does not answer"
            finally:
                await connection.aclose()
            self._answers[name] = Answer(outcome)

    def _authorizer(self) -> bool | None:
        answer = self._answers.get("describe-acls")
        known = {code.name: has_one for code, has_one in _AUTHORIZER.items()}
        return None if answer is None else known.get(answer.outcome)


def _newest(versions: Mapping[int, Versions], api_key: int, wanted: Versions) -> int | None:
    """The newest version of the API that the broker, this client and the question have."""
    served = versions.get(api_key)
    if served is None:
        return None
    known = response_type(api_key).__schema__.versions
    high = min(served.high, known.high, wanted.high)
    return high if high >= max(served.low, known.low, wanted.low) else None


def _is_below(text: str | None, bound: int) -> bool:
    return text is not None and _NUMBER.fullmatch(text) is not None and int(text) < bound


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


def _told(described: Mapping[str, str], supported: Mapping[str, Versions]) -> str:
    if _METADATA_VERSION in supported:
        return f"{_METADATA_VERSION} up to {supported[_METADATA_VERSION].high}"
    if described.get(_PROTOCOL_VERSION):
        return f"{_PROTOCOL_VERSION} {described[_PROTOCOL_VERSION]}"
    return ""


def _header_alone(api_key: int) -> bytes:
    """A request of header version 2, without client id and tagged fields, and without a body."""
    return struct.pack(">ihhihb", 11, api_key, _NO_VERSION, 1, -1, 0)


def _outcome_of_versions(frame: bytes | bytearray) -> str:
    """The only answer that may come is that of ApiVersions 0."""
    try:
        _, start = decode_response_header(frame, ApiKey.API_VERSIONS, 0)
        response, _ = decode(ApiVersionsResponse, 0, frame, start)
    except MalformedMessage:
        return "answers what cannot be read"
    keys = ", ".join(f"{api_name(each.api_key)} {each.min_version}-{each.max_version}" for each in response.api_keys)
    return f"{_name(response.error_code)}, names {keys or 'no API'}"
