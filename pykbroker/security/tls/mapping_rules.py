"""`ssl.principal.mapping.rules`: how rules are written, and what one does to a name (Kafka's `SslPrincipalMapper`).

Rules are separated by commas. `DEFAULT` takes a name as it is; `RULE:pattern/replacement/`, with `L` or `U` behind it,
makes another of it. Patterns are Java's as far as RE2 has them: nothing that could take more than linear time.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pykbroker.config import ConfigurationError

_RULE = re.compile(r"(?:RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)|([^,]*?))\s*(?:,\s*|\Z)", re.DOTALL)
_REFERENCE = re.compile(r"\\(.)|\$([0-9]+)|\$\{([a-zA-Z][a-zA-Z0-9]*)\}|(\$)", re.DOTALL)
_MOST_PROGRAM_BYTES = 1 << 20
_MOST_REPLACEMENTS = 64
"""One is usual. A pattern that is found again and again in one name would take the square of the name's length."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. pattern: None for DEFAULT. replacement: texts, and numbers of groups between them."""

    text: str
    pattern: Any = None
    replacement: tuple[str | int, ...] = ()
    case: str = ""

    def apply(self, name: str) -> str | None:
        """Return the name that the rule makes of a distinguished name; None where it does not apply."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        # As Kafka does, every place is replaced: `(.*)` is found once more, empty, at the end.
        found = list(itertools.islice(self.pattern.finditer(name), _MOST_REPLACEMENTS + 1))
        if len(found) > _MOST_REPLACEMENTS:
            return None
        mapped = self._replaced(name, found)
        return mapped.lower() if self.case == "L" else mapped.upper() if self.case == "U" else mapped

    def _replaced(self, name: str, matches: Iterable[Any]) -> str:
        pieces, at = [], 0
        for match in matches:
            pieces.append(name[at : match.start()])
            pieces += [part if isinstance(part, str) else match.group(part) or "" for part in self.replacement]
            at = match.end()
        return "".join((*pieces, name[at:]))


def parse_rules(text: str, key: str) -> tuple[Rule, ...]:
    """Return the rules in their order. Raises ConfigurationError, which names `key`."""
    rules, at, text = [], 0, text.strip()
    while at < len(text):
        found = _RULE.match(text, at)
        assert found is not None, "the expression matches up to the next comma at least"
        if found[1] is not None:
            rules.append(_rule(found[0].rstrip().rstrip(",").rstrip(), found[1], found[2], found[3], key))
        elif found[4] == "DEFAULT":
            rules.append(Rule("DEFAULT"))
        elif found[4]:
            allowed = "DEFAULT or RULE:pattern/replacement/, with L or U behind it or nothing"
            raise ConfigurationError(f"Invalid rule '{found[4]}' in configuration {key}: a rule is {allowed}")
        at = found.end()
    return tuple(rules)


def _rule(text: str, pattern: str, replacement: str, case: str, key: str) -> Rule:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_PROGRAM_BYTES
    try:
        compiled = re2.compile(pattern, options)
        return Rule(text, compiled, _replacement(replacement, compiled.groups, compiled.groupindex), case)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        hint = (
            "a pattern is a regular expression of RE2, which has no look-around, back references or possessive repeats"
        )
    except ValueError as error:
        reason, hint = str(error), "$1 stands for the first group, \\$ for the character"
    raise ConfigurationError(f"Invalid rule '{text}' in configuration {key}: {reason}; {hint}")


def _replacement(text: str, groups: int, names: dict[str, int]) -> tuple[str | int, ...]:
    """Read a replacement as Java's `Matcher` does, and numbers of groups that are not there as text, as Kafka does.

    Raises ValueError.
    """
    parts: list[str | int] = []
    at = 0
    for found in _REFERENCE.finditer(text):
        parts.append(text[at : found.start()])
        literal, number, name, _ = found.groups()
        if literal is not None:
            parts.append(literal)
        elif number is not None:
            parts += _numbered(number, groups)
        elif name in names:
            parts.append(names[name])
        else:
            raise ValueError(f"there is no group {name}" if name else "a $ without the number of a group")
        at = found.end()
    return (*filter(lambda part: part != "", parts), text[at:])


def _numbered(digits: str, groups: int) -> list[str | int]:
    """Take as many digits as there is a group for; the others are text."""
    if int(digits[0]) > groups:
        if not groups:
            raise ValueError(f"there is no group {digits[0]}")
        return [f"${digits}"]
    end = 1
    while end < len(digits) and int(digits[: end + 1]) <= groups:
        end += 1
    return [int(digits[:end]), digits[end:]]
