"""Values, types and times of configuration keys, in English."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pykbroker.config import ConfigKey

MADE: Final = "<!-- Made of the code by `make reference`; changes are lost. -->"
"""The first line of a page."""

CHANGES: Final = {
    "static": "read-only: counts from the next start on",
    "broker": "changes at run time, of one broker (per-broker)",
    "cluster": "changes at run time, of one broker or of all (cluster-wide)",
    "internal": "read-only: counts from the next start on; described only where it is set",
}
"""By `ConfigKey.update`; a key of anything else than a broker changes at run time."""
OF_A_STORE: Final = "changes at run time, of one broker and for one listener (`listener.name.NAME.…`) (per-broker)"
OF_OTHER_TLS: Final = (
    "may be set at run time for one listener (`listener.name.NAME.…`), and counts from the next start on"
)
REFUSED_AT_RUN_TIME: Final = "read-only: counts from the next start on; a change at run time is refused"


def code(text: str) -> str:
    return f"`{text}`"


def listed(texts: Sequence[str], word: str = "or") -> str:
    """Return `a, b or c`."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {word} {texts[-1]}"


def default_of(text: str | None) -> str:
    """Return a default in words."""
    return "no default" if text is None else "empty by default" if text == "" else f"default {code(text)}"


def valid_of(key: ConfigKey) -> str:
    """Return what the key allows, in the notation of `ConfigKey`, in words; empty where its type says it all."""
    valid = key.valid
    if not valid:
        return ""
    if valid == "nonempty":
        return "not empty"
    if valid == "throttled-replicas":
        return "`*`, or `partition:broker,…`"
    if ".." in valid:
        return _range(valid)
    is_list = key.type == "list"
    names = listed([code(each) for each in valid.lstrip("~").split("|")], "and" if is_list else "or")
    return f"{'some of ' if is_list else ''}{names}{' in any case' if valid.startswith('~') else ''}"


def _range(valid: str) -> str:
    bounds, _, other = valid.partition("|")
    low, _, high = bounds.partition("..")
    words = f"{low} to {high}" if high else f"at least {low}"
    return f"{words}, or {other}" if other else words


def anchor(heading: str) -> str:
    """Return the anchor that a heading gets, on the site as on a forge."""
    kept = "".join(each for each in heading.lower() if each.isalnum() or each in " -_")
    return kept.replace(" ", "-")
