"""The file `quorum-state` beside the metadata log. It is JSON, in the shape of this schema."""

from __future__ import annotations

from ..schema import Message, Struct, field


class QuorumStateData(Message, versions="0-1", flexible="0+"):
    """Epoch, leader and vote of this node.

    v1 drops the set of voters and adds the directory id that was voted for (KIP-853).
    """

    cluster_id: str = field("string", "0")
    leader_id: int = field("int32", default=-1)
    leader_epoch: int = field("int32", default=-1)
    voted_id: int = field("int32", default=-1)
    voted_directory_id: bytes = field("uuid", "1+")
    applied_offset: int = field("int64", "0")
    current_voters: list[Voter] | None = field("[]struct", "0", nullable="0")


class Voter(Struct):
    voter_id: int = field("int32", "0")
