"""Faults as people write them: what is right is read, and what is wrong is one line that says what is right."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pykbroker.api import HANDLERS
from pykbroker.control.faults.condition import Happened, Released
from pykbroker.control.faults.disk_faults import read_disk_fault
from pykbroker.control.faults.errors import BadFault
from pykbroker.control.faults.options import OPTIONS, read_fault
from pykbroker.control.faults.rule import Held, When
from pykbroker.protocol.api_keys import ApiKey, api_name, request_type
from pykbroker.protocol.errors import ErrorCode


def test_a_fault_is_read() -> None:
    fault = read_fault(
        {
            "api": "produce",
            "client_id": "app-*",
            "topic": "orders",
            "nth": 3,
            "error": "not_leader_or_follower",
            "when": "after",
            "delay": "250ms",
            "hold": 1.5,
            "name": "the third",
        }
    )
    assert fault.match.api_key == ApiKey.PRODUCE
    assert (str(fault.match.client_id), str(fault.match.topic)) == ("'app-*'", "'orders'")
    assert fault.pick.nth == 3
    assert (fault.action.error, fault.action.when) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, When.AFTER)
    assert (fault.action.delay_ms, fault.action.hold_ms) == (250, 1500)
    assert fault.name == "the third"


@pytest.mark.parametrize("api", ["JoinGroup", "joingroup", "JOIN_GROUP", "join-group"])
def test_an_api_is_named_in_any_spelling(api: str) -> None:
    assert read_fault({"api": api, "cut": True}).match.api_key == ApiKey.JOIN_GROUP


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1ms", 1),
        ("2s", 2000),
        ("1.5 s", 1500),
        ("1m", 60_000),
        (0.25, 250),
        (3, 3000),
        ("2", 2000),
        (timedelta(seconds=2), 2000),
    ],
)
def test_a_time_is_text_or_seconds(text: object, ms: float) -> None:
    assert read_fault({"delay": text}).action.delay_ms == ms


def test_what_is_waited_for_is_a_name_or_another_request() -> None:
    released = read_fault({"api": "Produce", "until": "go"}).action
    assert isinstance(released.until, Released)
    assert (released.held, released.timeout_ms) == (Held.ANSWER, 30_000)
    happened = read_fault(
        {"api": "Fetch", "until": {"answered": {"api": "Metadata", "times": 2}}, "held": "request", "timeout": "1m"}
    ).action
    assert isinstance(happened.until, Happened)
    assert str(happened.until) == "Metadata is answered 2 times"
    assert (happened.held, happened.timeout_ms) == (Held.REQUEST, 60_000)


@pytest.mark.parametrize(
    "options",
    [
        {"api": "Fetch", "until": {"seen": {"api": "Fetch"}}},
        {"api": "Fetch", "nth": 1, "until": {"answered": {"api": "Fetch"}}},
        {"api": "Fetch", "client_id": "a", "until": {"answered": {"api": "Fetch", "client_id": "b"}}},
        {"api": "Fetch", "client_id": "a", "until": {"answered": {"api": "Fetch"}}},
        {"api": "Fetch", "topic": "t", "until": {"answered": {"api": "Fetch"}}},
        {"api": "Fetch", "until": {"answered": {"api": "Fetch", "client_id": "broker-1"}}},
        {"api": "Fetch", "until": {"answered": {"api": "Fetch", "client_id": "broker-*"}}},
        {"api": "Fetch", "until": {"answered": {"client_id": "a"}}},
    ],
)
def test_a_hold_may_wait_for_answers_that_it_does_not_hold(options: dict[str, Any]) -> None:
    assert read_fault(options).action.until is not None


def test_none_is_as_if_nothing_was_said() -> None:
    assert read_fault({"cut": True} | dict.fromkeys(set(OPTIONS) - {"cut"})) == read_fault({"cut": True})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"api": "Produse", "cut": True}, r"there is no API 'Produse' \(did you mean Produce\?\)"),
        ({"api": "xyz", "cut": True}, r"there is no API 'xyz' \(there are Produce, Fetch"),
        ({"api": "Vote", "cut": True}, "clients of a broker do not send Vote"),
        ({"api": "SaslHandshake", "cut": True}, "no fault reaches SaslHandshake"),
        ({"api": 3, "cut": True}, "'api' is a text, not 3"),
        ({"api": "Produce", "error": "NOT_LEADER_OR_FOLOWER"}, r"did you mean NOT_LEADER_OR_FOLLOWER\?"),
        ({"api": "Produce", "error": "NONE"}, "'NONE' is no error"),
        ({"api": "Produce", "error": 9999}, "Kafka has no error 9999"),
        ({"api": "Produce", "error": True}, "'error' is the name of one of Kafka's errors, not True"),
        ({"api": "Produce", "error": "ILLEGAL_GENERATION"}, "Kafka answers Produce never with ILLEGAL_GENERATION"),
        ({"api": "Heartbeat", "error": "OFFSET_OUT_OF_RANGE"}, "which is of Fetch, ListOffsets"),
        ({"api": "Fetch", "error": "SHARE_SESSION_NOT_FOUND"}, "which is of ShareFetch, ShareAcknowledge"),
        ({"api": "ShareAcknowledge", "error": "SHARE_SESSION_LIMIT_REACHED"}, "which is of ShareFetch"),
        ({"api": "ShareGroupHeartbeat", "error": "STREAMS_INVALID_TOPOLOGY"}, "which is of StreamsGroupHeartbeat"),
        ({"error": "NOT_COORDINATOR"}, "an 'error' needs the 'api'"),
        ({"api": "Produce"}, "a fault does something"),
        ({"api": "Produce", "eror": "X"}, r"a fault has no 'eror' \(did you mean error\?\)"),
        ({"cut": True, "drop": "before"}, "'drop' and 'cut' exclude each other"),
        ({"api": "Produce", "error": "NOT_COORDINATOR", "drop": "after"}, "'error' and 'drop' exclude each other"),
        ({"drop": "now"}, "'drop' is \"before\" or \"after\", not 'now'"),
        ({"drop": "before", "hold": 1}, "has no answer to hold"),
        ({"drop": "before", "until": "x"}, "has no answer to hold; hold the 'request'"),
        ({"drop": "before", "when": "after"}, "'when' goes with 'error'"),
        ({"cut": "yes"}, "'cut' is true or false, not 'yes'"),
        ({"delay": "2 weeks"}, "'delay' is a time like 500ms"),
        ({"delay": 0}, "'delay' is a time"),
        ({"delay": -1}, "'delay' is a time"),
        ({"delay": float("nan")}, "'delay' is"),
        ({"delay": float("inf")}, "'delay' is an hour at most"),
        ({"delay": "61m"}, "'delay' is an hour at most"),
        ({"delay": timedelta(minutes=61)}, "'delay' is an hour at most"),
        ({"delay": timedelta()}, "'delay' is a time"),
        ({"delay": True}, "'delay' is a time"),
        ({"delay": "9" * 5000 + "s"}, "'delay' is a time"),
        ({"delay": 10**400}, "'delay' is an hour at most"),
        ({"cut": True, "nth": 0}, "'nth' is a whole number from 1 on, not 0"),
        ({"cut": True, "nth": 1.0}, "'nth' is a whole number"),
        ({"cut": True, "nth": True}, "'nth' is a whole number"),
        ({"cut": True, "nth": 1, "times": 1}, "'nth' is one request, and goes not with 'times'"),
        ({"cut": True, "chance": 0}, "'chance' is a number above 0"),
        ({"cut": True, "chance": 1.1}, "'chance' is a number above 0"),
        ({"cut": True, "name": ""}, "'name' is a text"),
        ({"cut": True, "topic": "x" * 251}, "'topic' has more than 250 characters"),
        ({"until": {"sen": {"api": "Fetch"}}}, "'until' is a name to be released, or what another request does"),
        ({"until": {"seen": {}}}, "'until': say which request is waited for"),
        ({"until": {"seen": {"apy": "Fetch"}}}, r"'until': a fault has no 'apy' \(did you mean api\?\)"),
        ({"until": {"seen": {"api": "Fetsch"}}}, r"'until': there is no API 'Fetsch' \(did you mean Fetch\?\)"),
        ({"until": {"seen": {"api": "Fetch", "times": 0}}}, "'until': 'times' is a whole number"),
        ({"until": {"answered": {"api": "JoinGroup", "topic": "x"}}}, "'until': no JoinGroup names a topic"),
        ({"api": "Heartbeat", "topic": "orders", "cut": True}, "no Heartbeat names a topic"),
        ({"until": {"answered": {"api": "Fetch"}}}, "'until' waits for answers that the fault itself holds"),
        ({"topic": "t", "until": {"answered": {"api": "Fetch", "topic": "t"}}}, "the fault itself holds"),
        ({"client_id": "a", "until": {"answered": {"api": "Fetch", "client_id": "a"}}}, "the fault itself holds"),
        ({"until": 7}, "'until' is a name"),
        ({"cut": True, "held": "request"}, "'held' goes with 'until'"),
        ({"cut": True, "timeout": 1}, "'timeout' goes with 'until'"),
        ({"until": "x", "held": "both"}, '\'held\' is "request" or "answer"'),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadFault, match=message) as raised:
        read_fault(options)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


def test_every_api_that_is_served_is_known_and_no_other() -> None:
    served = {handler.api_key for handler in HANDLERS.broker}
    refused = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
    of_brokers = {key for key in ApiKey if "broker" in request_type(key).__schema__.listeners}
    assert of_brokers == served
    assert {
        read_fault({"api": api_name(key), "cut": True}).match.api_key for key in served - refused
    } == served - refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "a fault of the disk needs an 'error': ENOSPC"),
        ({"error": "ENOSPACE"}, r"did you mean ENOSPC\?"),
        ({"error": "EIO", "op": "wriet"}, r"did you mean write\?"),
        ({"error": "ENOSPC", "op": "read"}, "a read does not fail with ENOSPC, but a write does"),
        ({"error": "ENOSPC", "op": "sync"}, "a sync does not fail with ENOSPC"),
        ({"error": "EROFS", "op": "read"}, "a read does not fail with EROFS"),
        ({"error": "EIO", "api": "Fetch"}, "a fault has no 'api'"),
        ({"error": "EIO", "nth": 0}, "'nth' is a whole number"),
    ],
)
def test_what_a_disk_does_not_do_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadFault, match=message):
        read_disk_fault(options)
