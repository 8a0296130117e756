"""Questions to journals: which requests there were, for the assertions of tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from pykbroker.control.one_line import one_line
from pykbroker.control.pattern import Pattern
from pykbroker.protocol.api_keys import ApiKey, api_name
from pykbroker.protocol.errors import ErrorCode

from .decoding import Names, event_values
from .exchange import Entry, Exchange
from .journal import Journal
from .recorded_request import RecordedRequest, event_line

_LONGEST_NAME: Final = 64
"""What is longer is no name, and to look for one that is close takes as long as it is."""


class UnknownApi(ValueError):
    """There is no API of that name; the message says which one may be meant."""


class UnknownError(ValueError):
    """There is no error code of that name; the message says which one may be meant."""


def api_key_of(name: str) -> int:
    """Return the key of an API, by its name as Kafka has it (`Produce`), in any case. Raises UnknownApi."""
    known = {api_name(key).lower(): int(key) for key in ApiKey}
    name = one_line(str(name)[:_LONGEST_NAME])
    wanted = name.lower().replace("_", "").replace("-", "")
    if wanted in known:
        return known[wanted]
    close = get_close_matches(wanted, known, n=1)
    hint = f"did you mean {api_name(known[close[0]])}?" if close else "such as Produce, Fetch or JoinGroup"
    raise UnknownApi(f"there is no API '{name}'; {hint}")


def error_of(name: str) -> str:
    """Return the name of an error code as Kafka spells it. Raises UnknownError."""
    known = [code.name for code in ErrorCode]
    name = one_line(str(name)[:_LONGEST_NAME])
    wanted = name.upper().replace("-", "_")
    if wanted in known:
        return wanted
    close = get_close_matches(wanted, known, n=1)
    hint = f"did you mean {close[0]}?" if close else "such as UNKNOWN_TOPIC_OR_PARTITION"
    raise UnknownError(f"there is no error code '{name}'; {hint}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The conditions of a question; None for anything. topic: the request or the response names one that fits. error:
    one of the response's error codes has this name.
    """

    api_key: int | None = None
    client_id: Pattern | None = None
    topic: Pattern | None = None
    error: str | None = None

    @classmethod
    def of(
        cls, api: str | None = None, client_id: str | None = None, topic: str | None = None, error: str | None = None
    ) -> Wanted:
        """Raises UnknownApi, UnknownError."""
        return cls(
            None if api is None else api_key_of(api),
            None if client_id is None else Pattern(str(client_id)),
            None if topic is None else Pattern(str(topic)),
            None if error is None else error_of(error),
        )

    def may_be(self, entry: Entry) -> bool:
        """Tell what can be told without decoding."""
        return (
            isinstance(entry, Exchange)
            and self.api_key in (None, entry.api_key)
            and (self.client_id is None or self.is_of(entry.client_id))
        )

    def is_of(self, client_id: str | None) -> bool:
        """Tell by the client id of a request."""
        return self.client_id is None or self.client_id.fits(client_id or "")

    def has_api(self, api: str) -> bool:
        """Tell by the name of an API, as Kafka has it."""
        return self.api_key is None or api == api_name(self.api_key)

    def is_met_by(self, request: RecordedRequest) -> bool:
        if self.topic is not None and not self.topic.fits_any(request.topics):
            return False
        if self.error in (None, "NONE"):
            return self.error is None or (request.has_response and not request.errors)
        return self.error in request.errors


def entries_of(journals: Iterable[Journal], since: int = 0) -> list[tuple[Entry, Journal]]:
    """Return the entries of the journals of one cluster beyond `since`, each with its journal, by their numbers."""
    found = [(entry, journal) for journal in journals for entry in journal.entries(since)]
    return sorted(found, key=lambda pair: pair[0].number)


def select(journals: Iterable[Journal], wanted: Wanted, since: int = 0) -> Iterator[RecordedRequest]:
    """The requests that are wanted, the oldest first."""
    return filter(None, look_through(journals, wanted, since))


def look_through(journals: Iterable[Journal], wanted: Wanted, since: int = 0) -> Iterator[RecordedRequest | None]:
    """The requests that are wanted, the oldest first, and None for each other entry."""
    for entry, journal in entries_of(journals, since):
        request = None
        if wanted.may_be(entry):
            assert isinstance(entry, Exchange)
            request = RecordedRequest.of(entry, journal.topic_names)
        yield request if request is not None and wanted.is_met_by(request) else None


def short_line(entry: Entry, names: Names) -> str:
    """One line for people."""
    if isinstance(entry, Exchange):
        return str(RecordedRequest.of(entry, names))
    return event_line(event_values(entry))


def forgotten(journals: Iterable[Journal], since: int = 0) -> int:
    """Return how many entries have given way; 0 where none of them was beyond `since`."""
    return sum(journal.forgotten for journal in journals if journal.forgotten_to > since)
