"""ApiVersions 5, on the handler and the codecs: which node a client means to reach (KIP-1242)."""

from pathlib import Path
from typing import Any

import pytest
import trio

import pykbroker.api  # noqa: F401
from pykbroker.api.api_versions import api_versions
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykbroker.server.network.handlers import ConnectionState
from tests.api.api_node import ApiNode, in_virtual_time

CLUSTER_ID = "cluster"


def ask(
    node: ApiNode, connection: ConnectionState | None = None, version: int = 5, **fields: Any
) -> ApiVersionsResponse:
    node.broker.cluster_id = CLUSTER_ID
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1", **fields)

    async def call() -> ApiVersionsResponse:
        answer: ApiVersionsResponse = await node.call(api_versions, request, version, connection=connection)
        return answer

    return in_virtual_time(call)


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "error_code"),
    [
        (None, -1, ErrorCode.NONE),
        (CLUSTER_ID, 1, ErrorCode.NONE),
        (CLUSTER_ID, 2, ErrorCode.REBOOTSTRAP_REQUIRED),
        (CLUSTER_ID, -2, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("other", 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("", 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        (CLUSTER_ID, -1, ErrorCode.INVALID_REQUEST),
        (None, 1, ErrorCode.INVALID_REQUEST),
        (None, -2, ErrorCode.INVALID_REQUEST),
    ],
)
def test_who_has_reached_another_node_starts_again(
    tmp_path: Path, cluster_id: str | None, node_id: int, error_code: ErrorCode
) -> None:
    answer = ask(ApiNode(tmp_path), cluster_id=cluster_id, node_id=node_id)
    assert answer.error_code == error_code
    assert bool(answer.supported_features) == (error_code == ErrorCode.NONE)


def test_nothing_is_told_before_a_client_has_authenticated(tmp_path: Path) -> None:
    node = ApiNode(tmp_path)
    connection = ConnectionState("SASL", "127.0.0.1", authentication=trio.CancelScope(deadline=10))
    assert ask(node, connection, cluster_id="other", node_id=1).error_code == ErrorCode.NONE
    assert ask(node, connection, cluster_id="other").error_code == ErrorCode.INVALID_REQUEST
    connection.authentication = trio.CancelScope()
    assert ask(node, connection, cluster_id="other", node_id=1).error_code == ErrorCode.REBOOTSTRAP_REQUIRED


def test_a_level_is_told_for_what_it_is_whatever_the_cluster_has(tmp_path: Path) -> None:
    answer = ask(ApiNode(tmp_path))
    supported = {each.name: (each.min_version, each.max_version) for each in answer.supported_features}
    assert supported["metadata.version"] == (30, 33)
