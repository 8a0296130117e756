"""Whatever a request names, it holds the loop for a moment only: each API that lists something, and a huge request.

The processor time of the longest turn is some milliseconds, and a pass of the garbage collector some ten; the bound is
far above both, and far below what the request takes as a whole in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import trio

import pykbroker.api
from pykbroker.config.authorizer import AuthorizerConfig
from pykbroker.server.network.handlers import MOST_ENTRIES
from pykbroker.server.node.node_authorizer import NodeAuthorizer
from pykbroker.server.replicas.log_moves import LogMoves
from pykbroker.server.runtime.turns import STEPS_PER_TURN

from .api_node import ApiNode, in_virtual_time
from .huge_requests import HUGE, KNOWN, KNOWN_ID
from .turns_taken import LONGEST_TURN_S, handle

COUNT = 20_000

Numbers = Callable[[], Sequence[int]]
"""Of the entries: all of them others, or always the one that is there."""

ASKED: dict[str, Numbers] = {"different": lambda: range(1, COUNT + 1), "repeated": lambda: [0] * COUNT}


@pytest.fixture
def crowded(tmp_path: Path) -> ApiNode:
    node = ApiNode(tmp_path)
    node.create_topic(KNOWN)
    node.add_topic("wide", KNOWN_ID, COUNT + 1, [2], 2)
    node.create_topic("__consumer_offsets", 3)
    node.create_topic("__transaction_state", 3)
    node.create_topic("__share_group_state", 3)
    node.broker.log_moves = LogMoves(
        node.replicas, cast(Any, None), most_at_once=2, clock=node.clock, threads=node.threads
    )
    return node


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("api", HUGE)
def test_a_huge_request_shares_the_loop(crowded: ApiNode, api: str, asked: str) -> None:
    huge = HUGE[api]
    request = huge.build(ASKED[asked]())
    api_key = request.__schema__.api_key
    assert api_key is not None
    handler = pykbroker.api.HANDLERS.broker.by_api_key[api_key].function

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crowded.groups.run)
            nursery.start_soon(crowded.transactions.coordinator.run)
            nursery.start_soon(crowded.sharing.run)
            await trio.sleep(1)
            response, turns = await handle(crowded.broker, handler, request, huge.version)
            nursery.cancel_scope.cancel()
        assert response is not None
        assert turns.longest_s < LONGEST_TURN_S

    in_virtual_time(run)


@pytest.mark.parametrize("api", HUGE)
def test_a_huge_request_that_is_denied_shares_the_loop(crowded: ApiNode, api: str) -> None:
    crowded.broker.authorizer = NodeAuthorizer(AuthorizerConfig(frozenset(), False, frozenset()), crowded.clock)
    crowded.broker.authorizer.note_applied()
    test_a_huge_request_shares_the_loop(crowded, api, "different")


def test_every_api_that_lists_something_is_asked() -> None:
    """The controller answers some, coordinators others (`test_streams_groups`), and what carries records has bounds of
    its own. Tokens are for clients that have authenticated: `test_delegation_tokens`.
    """
    elsewhere = {
        "AddRaftVoterRequest",
        "AlterUserScramCredentialsRequest",
        "CreateDelegationTokenRequest",
        "DescribeDelegationTokenRequest",
        "UpdateFeaturesRequest",
        "ConsumerGroupHeartbeatRequest",
        "ShareGroupHeartbeatRequest",
        "StreamsGroupHeartbeatRequest",
        "WriteTxnMarkersRequest",
    }
    asked = {type(huge.build(range(1))).__name__ for huge in HUGE.values()}
    bounded = {
        each.request_type.__name__
        for each in pykbroker.api.HANDLERS.broker.by_api_key.values()
        if each.most_entries == MOST_ENTRIES and any(field.is_array for field in each.request_type.__schema__.fields)
    }
    assert bounded - asked - elsewhere == set()
    assert STEPS_PER_TURN < MOST_ENTRIES
