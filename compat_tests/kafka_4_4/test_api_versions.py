"""What nodes of the release 4.4 offer, and whom they take for clients of another node (KIP-1242)."""

from __future__ import annotations

import pytest

from compat_tests.acls.users import ADMIN, Listeners, log_in
from compat_tests.answers import TestAnswers
from compat_tests.apache_kafka.broker import CLUSTER_ID
from compat_tests.referee_versions import NEW_IN_4_4
from compat_tests.wire import Wire
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

from .asking import api_versions, listeners_of
from .conftest import FreshNode
from .nodes import NEWEST, OLDEST

NODE_ID = 1
TOLD = {
    "nothing": (None, -1),
    "both": (CLUSTER_ID, NODE_ID),
    "another node": (CLUSTER_ID, 2),
    "a negative node": (CLUSTER_ID, -2),
    "another cluster": ("another", NODE_ID),
    "an empty cluster": ("", NODE_ID),
    "the cluster alone": (CLUSTER_ID, -1),
    "the node alone": (None, NODE_ID),
    "a negative node alone": (None, -2),
}


def shown(answer: ApiVersionsResponse) -> list[object]:
    """The error, and whether there are keys and features."""
    return [answer.error_code, bool(answer.api_keys), bool(answer.supported_features), bool(answer.finalized_features)]


@pytest.mark.parametrize("release", [OLDEST, NEWEST])
def test_versions_are_those_of_the_software_whatever_the_level(
    fresh_node: FreshNode, answers: TestAnswers, release: str
) -> None:
    node = fresh_node(release=release)
    for name, address in listeners_of(node).items():
        versions = {each.api_key: (each.min_version, each.max_version) for each in api_versions(address).api_keys}
        new = {ApiKey(key).name: versions[key] for key in NEW_IN_4_4 if key in versions}
        answers.same(f"new versions at the {name}'s listener", new)
        levels = {each.name: each.max_version for each in api_versions(address).supported_features}
        answers.same(f"newest metadata.version at the {name}'s listener", levels["metadata.version"])
        again = {each.name: each.max_version_level for each in api_versions(address).finalized_features}
        answers.same(f"metadata.version at the {name}'s listener", again["metadata.version"])


def test_who_means_another_node_starts_again(fresh_node: FreshNode, answers: TestAnswers) -> None:
    node = fresh_node()
    for name, address in listeners_of(node).items():
        for told, (cluster_id, node_id) in TOLD.items():
            answer = api_versions(address, cluster_id=cluster_id, node_id=node_id)
            answers.same(f"{told}, at the {name}'s listener", shown(answer))


def test_nobody_is_sent_away_before_the_log_in(fresh_node: FreshNode, answers: TestAnswers) -> None:
    node = fresh_node.make()
    listeners = Listeners(node.port, node.controller_port)
    node.properties |= listeners.properties()
    node.start()
    request = ApiVersionsRequest(
        client_software_name="compat", client_software_version="1", cluster_id="another", node_id=NODE_ID
    )
    with Wire(listeners.address(ADMIN)) as wire:
        before = wire.call(request, 5)
        assert isinstance(before, ApiVersionsResponse)
        answers.same("before", shown(before))
        log_in(wire, ADMIN)
        after = wire.call(request, 5)
        assert isinstance(after, ApiVersionsResponse)
        answers.same("after", shown(after))
