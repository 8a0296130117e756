"""Filters of `pykbroker consume`: `--key`, `--grep`, `--header`, `--where`. All that are given must hold.

Patterns are RE2's, so that none takes longer than its text, and are found anywhere in a key or value. `--where` is
JMESPath on the value's document; a value that is no document, or has no such field, is left out, and an expression that
takes too much for one value ends the command.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final

from pykbroker.client.fetched import ConsumedRecord

from ..command import CommandFailed
from ..line_reader import InvalidLine
from . import json_text
from .bounded_search import TooMuch, bounded_search
from .codecs import TEXT, Codec, JsonCodec
from .extras import imported

Test = Callable[[ConsumedRecord], bool]
_ANY_JSON: Final = JsonCodec()
_MOST_SPENT: Final = 500_000
"""On one value, and some more for each of its characters: a second or two."""
_SPENT_PER_CHARACTER: Final = 16


def key_matches(pattern: str) -> Test:
    """Raises CommandFailed."""
    search = _search(pattern, "--key")
    return lambda record: record.key is not None and search(record.key)


def value_matches(pattern: str) -> Test:
    """Raises CommandFailed."""
    search = _search(pattern, "--grep")
    return lambda record: record.value is not None and search(record.value)


def has_header(wanted: str) -> Test:
    """Return a test for `name=value`, or for any header of the name alone."""
    name, equals, text = wanted.partition("=")
    value = os.fsencode(text)
    if equals:
        return lambda record: (name, value) in record.headers
    return lambda record: any(each == name for each, _ in record.headers)


def document_fulfils(expression: str, value: Codec) -> Test:
    """Return a test of the value's document. Raises CommandFailed."""
    jmespath = imported("jmespath", extra="jmespath", needed_by="--where")
    try:
        # A path may open with a dot, as in jq.
        compiled = jmespath.compile(expression.strip().removeprefix("."))
    except jmespath.exceptions.JMESPathError as error:
        raise CommandFailed(f"--where: {_first_line(error)}; a number stands in backticks: 'a.b == `3`'") from None
    except RecursionError:
        raise CommandFailed("--where: the expression is nested too deeply") from None
    codec = _ANY_JSON if value is TEXT else value
    search = bounded_search(compiled)

    def test(record: ConsumedRecord) -> bool:
        if record.value is None:
            return False
        try:
            document = codec.document(record.value)
            found = search(json_text.parse(document), _MOST_SPENT + _SPENT_PER_CHARACTER * len(document))
        except TooMuch:
            place = f"{record.topic}-{record.partition}@{record.offset}"
            raise CommandFailed(
                f"--where takes too much for {place}: the expression makes more of it with each step"
            ) from None
        except (InvalidLine, ValueError, RecursionError, jmespath.exceptions.JMESPathError):
            return False
        # JMESPath's own idea of what is true: a number is, 0 included.
        return not (found is None or found is False or found == "" or found == [] or found == {})

    return test


def kept(records: Sequence[ConsumedRecord], tests: Sequence[Test]) -> list[ConsumedRecord]:
    return [record for record in records if all(test(record) for test in tests)]


def _search(pattern: str, flag: str) -> Callable[[bytes], bool]:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise CommandFailed(f"{flag}: '{pattern[:80]}' is no regular expression of RE2: {_message(error)}") from None
    return lambda data: compiled.search(data) is not None


def _message(error: Exception) -> str:
    cause = error.args[0] if error.args else error
    return cause.decode("utf-8", "replace") if isinstance(cause, bytes) else str(error)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
