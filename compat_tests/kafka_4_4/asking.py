"""Requests to one node, each on a connection of its own."""

from __future__ import annotations

from typing import Any

from compat_tests.brokers import BrokerProcess
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.protocol.messages.brokers import FeatureUpdateKey, UpdateFeaturesRequest
from pykbroker.protocol.schema import Message

METADATA_VERSION = "metadata.version"
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3

Address = tuple[str, int]


def listeners_of(node: BrokerProcess) -> dict[str, Address]:
    return {"broker": node.address, "controller": ("127.0.0.1", node.controller_port)}


def call(address: Address, request: Message, version: int) -> Any:
    with Wire(address) as wire:
        return wire.call(request, version)


def api_versions(address: Address, version: int = 5, **fields: Any) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name="compat", client_software_version="1", **fields)
    answer = call(address, request, version)
    assert isinstance(answer, ApiVersionsResponse)
    return answer


def finalized(address: Address, name: str = METADATA_VERSION) -> int | None:
    levels = {each.name: each.max_version_level for each in api_versions(address).finalized_features}
    return levels.get(name)


def until_at(node: BrokerProcess, level: int) -> None:
    """Wait until both listeners tell that level of metadata.version."""
    for address in listeners_of(node).values():
        until(lambda at=address: finalized(at) == level, f"metadata.version is {level}")


def update(
    address: Address, level: int, type_: int = UPGRADE, *, validate_only: bool = False
) -> tuple[int, str | None]:
    change = FeatureUpdateKey(feature=METADATA_VERSION, max_version_level=level, upgrade_type=type_)
    answer = call(address, UpdateFeaturesRequest(feature_updates=[change], validate_only=validate_only), 2)
    return answer.error_code, answer.error_message
