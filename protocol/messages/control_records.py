"""Keys and values of control records: transaction markers, and what the quorum writes into its own log."""

from __future__ import annotations

from ..schema import Message, Struct, field


class ControlRecordTypeSchema(Message, versions="0", flexible="none"):
    """The key of every control record: which kind it is."""

    type: int = field("int16")


class EndTxnMarker(Message, versions="0", flexible="none"):
    """The value of a transaction's commit or abort marker."""

    coordinator_epoch: int = field("int32")


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    """The first record of each leader of the quorum.

    v1 names voters by directory id (KIP-853).
    """

    version: int = field("int16")
    leader_id: int = field("int32")
    voters: list[LeaderChangeMessageVoter] = field("[]struct")
    granting_voters: list[LeaderChangeMessageVoter] = field("[]struct")


class LeaderChangeMessageVoter(Struct):
    voter_id: int = field("int32")
    voter_directory_id: bytes = field("uuid", "1+")


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    """The first record of a snapshot."""

    version: int = field("int16")
    last_contained_log_timestamp: int = field("int64")


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    """The last record of a snapshot: without it the snapshot is incomplete."""

    version: int = field("int16")


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    """The level of `kraft.version` (KIP-853)."""

    version: int = field("int16")
    kraft_version: int = field("int16")


class VotersRecord(Message, versions="0", flexible="0+"):
    """The set of voters with their endpoints (KIP-853)."""

    version: int = field("int16")
    voters: list[VotersRecordVoter] = field("[]struct")


class VotersRecordVoter(Struct):
    voter_id: int = field("int32")
    voter_directory_id: bytes = field("uuid")
    endpoints: list[Endpoint] = field("[]struct")
    kraft_version_feature: KRaftVersionFeature = field("struct")


class Endpoint(Struct):
    name: str = field("string", map_key=True)
    host: str = field("string")
    port: int = field("uint16")


class KRaftVersionFeature(Struct):
    min_supported_version: int = field("int16")
    max_supported_version: int = field("int16")
