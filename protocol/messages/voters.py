"""Changing the set of voters (KIP-853)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class AddRaftVoterRequest(Message, api_key=80, versions="0-1", flexible="0+", listeners="controller broker"):
    """The request makes a node a voter.

    v1 can answer before the change is committed.
    """

    cluster_id: str | None = field("string", nullable="0+")
    timeout_ms: int = field("int32")
    voter_id: int = field("int32")
    voter_directory_id: bytes = field("uuid")
    listeners: list[Listener] = field("[]struct")
    ack_when_committed: bool = field("bool", "1+", default=True)


class Listener(Struct):
    name: str = field("string", map_key=True)
    host: str = field("string")
    port: int = field("uint16")


class AddRaftVoterResponse(Message, api_key=80, versions="0-1", flexible="0+"):
    """The response says whether the voter was added."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", ignorable=True)


class RemoveRaftVoterRequest(Message, api_key=81, versions="0", flexible="0+", listeners="controller broker"):
    """The request makes a voter an observer."""

    cluster_id: str | None = field("string", nullable="0+")
    voter_id: int = field("int32")
    voter_directory_id: bytes = field("uuid")


class RemoveRaftVoterResponse(Message, api_key=81, versions="0", flexible="0+"):
    """The response says whether the voter was removed."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", ignorable=True)


class UpdateRaftVoterRequest(Message, api_key=82, versions="0", flexible="0+", listeners="controller"):
    """A voter tells its endpoints and which quorum versions it supports."""

    cluster_id: str | None = field("string", nullable="0+")
    current_leader_epoch: int = field("int32")
    voter_id: int = field("int32")
    voter_directory_id: bytes = field("uuid")
    listeners: list[Listener] = field("[]struct")
    kraft_version_feature: KRaftVersionFeature = field("struct")


class KRaftVersionFeature(Struct):
    min_supported_version: int = field("int16")
    max_supported_version: int = field("int16")


class UpdateRaftVoterResponse(Message, api_key=82, versions="0", flexible="0+"):
    """The response says whether the voter was updated, and who leads."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    current_leader: CurrentLeader = field("struct", tag=0, tagged="0+")


class CurrentLeader(Struct):
    leader_id: int = field("int32", default=-1)
    leader_epoch: int = field("int32", default=-1)
    host: str = field("string")
    port: int = field("int32")
