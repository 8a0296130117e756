"""Messages that tell which APIs a broker serves, and the cluster's features."""

from __future__ import annotations

from ..schema import Message, Struct, field


class ApiVersionsRequest(Message, api_key=18, versions="0-5", flexible="3+", listeners="broker controller"):
    """The first request of a connection: what does the broker serve?

    v3 names the client's software (KIP-511), v4 lets a supported feature begin at version 0, v5 names the node that
    the client means to reach (KIP-1242).
    """

    client_software_name: str = field("string", "3+", ignorable=True)
    client_software_version: str = field("string", "3+", ignorable=True)
    cluster_id: str | None = field("string", "5+", nullable="5+", default=None, ignorable=True)
    node_id: int = field("int32", "5+", default=-1, ignorable=True)


class ApiVersionsResponse(Message, api_key=18, versions="0-5", flexible="3+"):
    """The served APIs with their versions, and the supported and finalized features (KIP-584).

    v1 adds the throttle time, v3 the features as tagged fields, v4 lets a supported feature begin at version 0, v5 may
    answer REBOOTSTRAP_REQUIRED (KIP-1242).
    """

    error_code: int = field("int16")
    api_keys: list[ApiVersion] = field("[]struct")
    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = field("[]struct", "3+", tag=0, tagged="3+", ignorable=True)
    finalized_features_epoch: int = field("int64", "3+", default=-1, tag=1, tagged="3+", ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = field("[]struct", "3+", tag=2, tagged="3+", ignorable=True)
    zk_migration_ready: bool = field("bool", "3+", tag=3, tagged="3+", ignorable=True)


class ApiVersion(Struct):
    api_key: int = field("int16", map_key=True)
    min_version: int = field("int16")
    max_version: int = field("int16")


class SupportedFeatureKey(Struct):
    name: str = field("string", "3+", map_key=True)
    min_version: int = field("int16", "3+")
    max_version: int = field("int16", "3+")


class FinalizedFeatureKey(Struct):
    name: str = field("string", "3+", map_key=True)
    max_version_level: int = field("int16", "3+")
    min_version_level: int = field("int16", "3+")
