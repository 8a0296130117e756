"""Faults as people write them: options by name, the same in Python, in a script and over HTTP.

`api="Produce", topic="orders", nth=3, error="NOT_LEADER_OR_FOLLOWER"` is such a fault. What is unknown, of the wrong
type, or goes not with another option is refused in one line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, Final, TypeVar

from pykbroker.control.pattern import Pattern
from pykbroker.protocol.api_keys import ApiKey, api_name, request_type
from pykbroker.protocol.errors import ErrorCode

from .condition import Condition, Happened, Happening, Released
from .error_answers import has_place_for_errors
from .errors import BadFault, suggestion
from .kafkas_use import apis_of_error
from .match import Match
from .rule import Action, Held, Pick, When
from .topics import can_name_topics

ChoiceT = TypeVar("ChoiceT", When, Held)

MOST_WAIT_MS: Final = 3_600_000.0
_MOST_COUNT: Final = 2**31 - 1
_LONGEST_NAME: Final = 250
_TIMEOUT: Final = "30s"
_MATCH: Final = ("api", "client_id", "topic")
_PICK: Final = ("nth", "skip", "first", "times", "every", "chance")
_ACTION: Final = ("error", "when", "delay", "hold", "drop", "cut", "until", "held", "timeout")
OPTIONS: Final = (*_MATCH, *_PICK, *_ACTION, "name")
_WAITED_FOR: Final = (*_MATCH, "times")
_DURATION: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*(ms|s|m|h|)", re.ASCII)
_MS: Final = {"": 1_000.0, "ms": 1.0, "s": 1_000.0, "m": 60_000.0, "h": 3_600_000.0}


@dataclass(frozen=True, slots=True)
class FaultOptions:
    """The options of one fault, checked. name: "" where it is given one."""

    match: Match
    pick: Pick
    action: Action
    name: str = ""


def read_fault(given: Mapping[str, Any]) -> FaultOptions:
    """Return a fault from what was given for it; None stands for what was not. Raises BadFault."""
    options = known_options(given, OPTIONS)
    if not options.keys() & {"error", "delay", "hold", "drop", "cut", "until"}:
        raise BadFault("a fault does something: error, delay, hold, drop, cut or until")
    match = read_match(options)
    action = _action(options)
    if action.error is not None:
        _check_error(match.api_key, action.error)
    pick = pick_of(options)
    if pick == Pick() and _holds_what_it_waits_for(match, action.until):
        raise BadFault("'until' waits for answers that the fault itself holds", "until")
    return FaultOptions(match, pick, action, _name(options))


def _holds_what_it_waits_for(match: Match, until: Condition | None) -> bool:
    return isinstance(until, Happened) and until.happening is Happening.ANSWERED and match.includes(until.match)


def known_options(given: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """Return the options that are given. Raises BadFault for one that is unknown."""
    for name in given:
        if name not in known:
            hint = suggestion(str(name), known) or (f" (there is {', '.join(known)})" if known else "")
            raise BadFault(f"a fault has no '{name}'{hint}", str(name))
    return {name: value for name, value in given.items() if value is not None}


def read_match(options: Mapping[str, Any]) -> Match:
    """Return which requests are meant. Raises BadFault."""
    api_key = None if "api" not in options else _api_key(text_of(options, "api"))
    if api_key is not None and "topic" in options and not can_name_topics(request_type(api_key)):
        raise BadFault(f"no {api_name(api_key)} names a topic", "topic")
    return Match(
        api_key,
        None if "client_id" not in options else Pattern(text_of(options, "client_id")),
        None if "topic" not in options else Pattern(text_of(options, "topic")),
    )


def text_of(options: Mapping[str, Any], name: str) -> str:
    """Return a text. Raises BadFault."""
    value = options[name]
    if not isinstance(value, str) or not value:
        raise BadFault(f"'{name}' is a text, not {shown(value)}", name)
    if len(value) > _LONGEST_NAME:
        raise BadFault(f"'{name}' has more than {_LONGEST_NAME} characters", name)
    return str(value)


def count_of(options: Mapping[str, Any], name: str, least: int = 1) -> int:
    """Return a whole number. Raises BadFault."""
    value = options[name]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST_COUNT:
        raise BadFault(f"'{name}' is a whole number from {least} on, not {shown(value)}", name)
    return int(value)


def chance_of(options: Mapping[str, Any]) -> float:
    value = options["chance"]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise BadFault(f"'chance' is a number above 0, and 1 at most, not {shown(value)}", "chance")
    return float(value)


def duration_ms(value: object, name: str) -> float:
    """Return a duration in milliseconds: a text like 500ms, seconds as a number or text, or a timedelta. Raises
    BadFault.
    """
    found = math.nan
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        found = float(value) * 1000 if abs(value) <= MOST_WAIT_MS else math.inf
    elif isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())):
        found = float(match[1]) * _MS[match[2]]
    if math.isnan(found) or found <= 0:
        raise BadFault(f"'{name}' is a time like 500ms, 2s or 5m, or seconds, not {shown(value)}", name)
    if found > MOST_WAIT_MS:
        raise BadFault(f"'{name}' is an hour at most, not {shown(value)}", name)
    return found


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _name(options: Mapping[str, Any]) -> str:
    return text_of(options, "name") if "name" in options else ""


@cache
def _apis() -> Mapping[str, int]:
    """The APIs that brokers' listeners have, by name."""
    return {api_name(key): int(key) for key in ApiKey if "broker" in request_type(key).__schema__.listeners}


def _api_key(name: str) -> int:
    wanted = _plain(name)
    for known, key in _apis().items():
        if _plain(known) == wanted:
            if key in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE):
                raise BadFault(f"no fault reaches {known}: it comes before a client is known", "api")
            return key
    if wanted in {_plain(api_name(key)) for key in ApiKey}:
        raise BadFault(f"clients of a broker do not send {name}: it is of controllers", "api")
    hint = suggestion(name, _apis()) or " (there are Produce, Fetch, JoinGroup and others)"
    raise BadFault(f"there is no API '{name}'{hint}", "api")


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def pick_of(options: Mapping[str, Any]) -> Pick:
    """Return which of what fits are picked. Raises BadFault."""
    if "nth" in options:
        for name in _PICK:
            if name != "nth" and name in options:
                raise BadFault(f"'nth' is one request, and goes not with '{name}'", name)
        return Pick(nth=count_of(options, "nth"))
    return Pick(
        skip=count_of(options, "skip", 0) if "skip" in options else 0,
        first=count_of(options, "first") if "first" in options else None,
        times=count_of(options, "times") if "times" in options else None,
        every=count_of(options, "every") if "every" in options else 1,
        chance=chance_of(options) if "chance" in options else 1.0,
    )


def _action(options: Mapping[str, Any]) -> Action:
    cuts = options.get("cut", False)
    if not isinstance(cuts, bool):
        raise BadFault(f"'cut' is true or false, not {shown(cuts)}", "cut")
    drop = None if "drop" not in options else _choice(options, "drop", When)
    deciding = [name for name, is_there in (("error", "error" in options), ("drop", drop), ("cut", cuts)) if is_there]
    if len(deciding) > 1:
        raise BadFault(f"'{deciding[0]}' and '{deciding[1]}' exclude each other", deciding[1])
    if "when" in options and "error" not in options:
        raise BadFault("'when' goes with 'error'", "when")
    if drop is When.BEFORE and "hold" in options:
        raise BadFault("what is dropped before it is carried out has no answer to hold; 'delay' it", "hold")
    for name in ("held", "timeout"):
        if name in options and "until" not in options:
            raise BadFault(f"'{name}' goes with 'until'", name)
    held = _choice(options, "held", Held) if "held" in options else Held.ANSWER
    if "until" in options and held is Held.ANSWER and drop is When.BEFORE:
        raise BadFault("what is dropped before it is carried out has no answer to hold; hold the 'request'", "until")
    until = None if "until" not in options else _condition(options["until"])
    return Action(
        delay_ms=duration_ms(options["delay"], "delay") if "delay" in options else 0.0,
        hold_ms=duration_ms(options["hold"], "hold") if "hold" in options else 0.0,
        error=_error(options["error"]) if "error" in options else None,
        when=_choice(options, "when", When) if "when" in options else When.BEFORE,
        drop=drop,
        cuts=cuts,
        until=until,
        held=held,
        timeout_ms=0.0 if until is None else duration_ms(options.get("timeout", _TIMEOUT), "timeout"),
    )


def _choice(options: Mapping[str, Any], name: str, kind: type[ChoiceT]) -> ChoiceT:
    value = options[name]
    try:
        return kind(value)
    except ValueError:
        choices = " or ".join(f'"{each.value}"' for each in kind)
        raise BadFault(f"'{name}' is {choices}, not {shown(value)}", name) from None


def _condition(until: object) -> Condition:
    if isinstance(until, str) and until:
        return Released(text_of({"until": until}, "until"))
    if isinstance(until, Mapping) and len(until) == 1:
        ((happening, what),) = until.items()
        if happening in tuple(Happening) and isinstance(what, Mapping):
            try:
                return _happened(what, Happening(happening))
            except BadFault as error:
                raise BadFault(f"'until': {error}", "until") from None
    raise BadFault(
        "'until' is a name to be released, or what another request does: "
        f'{{"seen": {{"api": …}}}} or {{"answered": {{"api": …}}}}, not {shown(until)}',
        "until",
    )


def _happened(what: Mapping[str, Any], happening: Happening) -> Happened:
    options = known_options(what, _WAITED_FOR)
    if not options.keys() & {"api", "client_id", "topic"}:
        raise BadFault("say which request is waited for: its api, client_id or topic")
    return Happened(read_match(options), happening, count_of(options, "times") if "times" in options else 1)


def _error(value: object) -> ErrorCode:
    if isinstance(value, str):
        name = value.strip().upper()
        if name in ErrorCode.__members__:
            value = ErrorCode[name]
        else:
            hint = suggestion(value, ErrorCode.__members__)
            raise BadFault(f"there is no error {shown(value)}{hint}", "error")
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadFault(f"'error' is the name of one of Kafka's errors, not {shown(value)}", "error")
    try:
        error = ErrorCode(value)
    except ValueError:
        raise BadFault(f"Kafka has no error {value}", "error") from None
    if error is ErrorCode.NONE:
        raise BadFault("'NONE' is no error", "error")
    return error


def _check_error(api_key: int | None, error: ErrorCode) -> None:
    """Raises BadFault where Kafka has no such answer."""
    if api_key is None:
        raise BadFault("an 'error' needs the 'api' whose answer it is", "api")
    if not has_place_for_errors(api_key):
        raise BadFault(f"an answer to {api_name(api_key)} has no place for errors", "error")
    apis = apis_of_error(error)
    if apis is not None and api_key not in apis:
        names = ", ".join(api_name(each) for each in sorted(apis)[:4])
        raise BadFault(f"Kafka answers {api_name(api_key)} never with {error.name}, which is of {names}", "error")
