"""Tokens stay with a log directory that changes hands, and are the same on all nodes of a cluster of both kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.apache_kafka.broker import ApacheKafka
from compat_tests.brokers import BrokerProcess, Pykbroker
from compat_tests.conftest import assert_all_went_well, watch_log
from compat_tests.mixed_nodes import together, voter_properties
from compat_tests.waiting import until
from compat_tests.wire import Closed, Wire

from .asking import Asking, creation, description, expiry, renewal
from .test_token_log_in import served
from .token_broker import HOUR_MS, Token, TokenBroker, log_in_by_token, with_tokens

pytestmark = pytest.mark.java

Make = Callable[[Path, Path, int], BrokerProcess]


def ours(directory: Path, data: Path, number: int) -> BrokerProcess:
    return Pykbroker(directory, {"log.dirs": str(data), "node.id": "1"})


def kafkas(directory: Path, data: Path, number: int) -> BrokerProcess:
    return ApacheKafka(directory, {"log.dirs": str(data)}, is_formatted=number > 0)


def opens(tokens: TokenBroker, token: Token) -> bool:
    with Wire(tokens.sasl) as wire:
        return not log_in_by_token(wire, token).error_code and served(wire) == "served"


def times(asking: Asking) -> dict[str, tuple[object, ...]]:
    """What the broker says of all tokens."""
    return {
        each.token_id: (
            each.principal_name,
            each.token_requester_principal_name,
            [renewer.principal_name for renewer in each.renewers],
            each.issue_timestamp,
            each.expiry_timestamp,
            each.max_timestamp,
            bytes(each.hmac),
        )
        for each in asking.ask("admin", description()).tokens
    }


@pytest.mark.parametrize("order", [(ours, kafkas, ours), (kafkas, ours, kafkas)], ids=["ours first", "Kafka first"])
def test_tokens_stay_with_their_directory(
    tmp_path: Path, order: tuple[Make, ...], request: pytest.FixtureRequest
) -> None:
    """Snapshots are frequent, so that each broker reads one of the other's."""
    small = {"metadata.log.max.record.bytes.between.snapshots": "1000"}
    valid: list[Token] = []
    removed: list[Token] = []
    known: dict[str, tuple[object, ...]] = {}
    for number, make in enumerate(order):
        broker = make(tmp_path / f"broker-{number}", tmp_path / "data", number)
        tokens = with_tokens(broker, tmp_path / f"stores-{number}", small)
        watch_log(request.node, broker)
        tokens.start()
        try:
            with Asking(tokens) as asking:
                until(lambda: times(asking) == known, "the broker knows the tokens of the other")  # noqa: B023
                for each in valid:
                    assert opens(tokens, each)
                for each in removed:
                    assert not opens(tokens, each)
                if valid:
                    renewed = asking.ask("bob", renewal(valid[0].hmac, (number + 1) * HOUR_MS))
                    assert not renewed.error_code, renewed
                    gone = valid.pop()
                    assert not asking.ask("alice", expiry(gone.hmac)).error_code
                    removed.append(gone)
                    until(lambda: gone.token_id not in times(asking), "the token is gone")  # noqa: B023
                for _ in range(20):
                    valid.append(asking.create("alice", "User:bob", "User:carol"))
                asking.create("admin", owner="User:eve")
                # The renewal has come everywhere when what followed it has.
                known = times(asking)
                assert {each.token_id for each in valid} <= known.keys()
        finally:
            broker.close()
        assert_all_went_well(broker)


NODES: tuple[type[BrokerProcess], ...] = (Pykbroker, ApacheKafka, Pykbroker)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[TokenBroker]]:
    brokers = [kind(tmp_path / f"node-{number}") for number, kind in enumerate(NODES, 1)]
    made = [
        with_tokens(broker, tmp_path / f"stores-{number}", voter_properties(number, brokers))
        for number, broker in enumerate(brokers, 1)
    ]
    with together(brokers):
        yield made


def test_a_token_of_one_node_opens_the_others(nodes: list[TokenBroker]) -> None:
    """Whichever of the nodes has the active controller, requests are passed on to it."""
    for number, node in enumerate(nodes):
        with Asking(node) as asking:
            until(lambda: _is_created(asking), "the nodes are a cluster")
            token = asking.create("alice", "User:bob")
        for other in nodes:
            until(lambda: opens(other, token), "the other node knows the token")  # noqa: B023
            with Wire(other.sasl) as wire:
                assert not log_in_by_token(wire, token).error_code
                refused = wire.call(renewal(token.hmac), 2)
                assert refused == type(refused)(error_code=64, expiry_timestamp_ms=-1)
        with Asking(nodes[number - 1]) as asking:
            assert not asking.ask("bob", renewal(token.hmac)).error_code
            assert asking.ask("eve", expiry(token.hmac)).error_code == 63
            assert not asking.ask("bob", expiry(token.hmac)).error_code
        for other in nodes:
            until(lambda: not opens(other, token), "the token opens nothing any more")  # noqa: B023


def _is_created(asking: Asking) -> bool:
    try:
        return not asking.ask("alice", creation()).error_code
    except Closed:
        return False
