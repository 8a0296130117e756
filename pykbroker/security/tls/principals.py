"""The name of a client's principal, from its certificate: `ssl.principal.mapping.rules` over the distinguished name."""

from __future__ import annotations

import re

from .distinguished_names import UnusableName, distinguished_name
from .mapping_rules import parse_rules

__all__ = ["KEY", "NoRuleMatches", "PrincipalMapper", "UnusableName", "distinguished_name"]

KEY = "ssl.principal.mapping.rules"

_SHOWN = 256
_LINE_ENDS = re.compile("[\n\r\x85\u2028\u2029]")
"""None is a `.` in Java, and all but the first are one in RE2."""


class NoRuleMatches(UnusableName):
    """A distinguished name that no rule maps: its client is not authenticated."""


class PrincipalMapper:
    """The rules of one listener, the first that applies wins. Raises ConfigurationError, which names `key`."""

    def __init__(self, rules_text: str, key: str = KEY) -> None:
        self._rules = parse_rules(rules_text, key)
        self._has_patterns = any(rule.pattern is not None for rule in self._rules)

    def name(self, distinguished_name: str) -> str:
        """Return the principal's name. Raises NoRuleMatches, also for a name that Java's patterns take otherwise."""
        if not (self._has_patterns and _LINE_ENDS.search(distinguished_name)):
            for rule in self._rules:
                name = rule.apply(distinguished_name)
                if name is not None:
                    return name
        rules = ", ".join(rule.text for rule in self._rules)
        raise NoRuleMatches(f"No rules apply to {distinguished_name[:_SHOWN]!r}, rules [{rules}]")
