"""A search by JMESPath that ends: an expression may double its result with each step, and would never be done.

JMESPath's own interpreter shares what it doubles, so that nothing is large before it is compared, written out or
flattened, which Python does in one go. So each value that a step makes has a weight, that of all that is reached from
it, and each step costs; what a record costs has a bound. jmespath offers none, but lets its interpreter be extended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

_CHARACTERS: Final = 16
"""Of a string, for one more unit of weight."""


class TooMuch(Exception):
    """The search is ended: it costs too much."""


def bounded_search(expression: Any) -> Callable[[object, int], Any]:
    """Return a search of a document, whose steps cost so much at most. Raises TooMuch, jmespath's errors.

    expression: compiled by jmespath.
    """
    from jmespath.functions import Functions  # type: ignore[import-untyped]
    from jmespath.visitor import TreeInterpreter  # type: ignore[import-untyped]

    account = _Account()

    class Interpreter(TreeInterpreter):  # type: ignore[misc]
        """Charges for each step, and before something works on values as a whole."""

        COMPARATOR_FUNC: ClassVar[Any] = {
            name: _charged(compare, account) for name, compare in TreeInterpreter.COMPARATOR_FUNC.items()
        }

        def __init__(self) -> None:
            super().__init__()
            self._functions = _Functions(Functions(), account)

        def visit(self, node: Any, *arguments: Any, **more: Any) -> Any:
            account.charge(1)
            result = super().visit(node, *arguments, **more)
            if type(result) in _CONTAINERS:
                account.charge(len(result))
                account.weigh(result)
            return result

    interpreter = Interpreter()

    def search(document: object, most: int) -> Any:
        account.open(most)
        return interpreter.visit(expression.parsed, document)

    return search


_CONTAINERS: Final = frozenset((list, dict))


class _Account:
    """An account of what may still be spent on one document."""

    def __init__(self) -> None:
        self._most = self._left = 0
        self._weighed: dict[int, tuple[Any, int]] = {}
        """By identity, with the value itself, so that no other one gets its place."""

    def open(self, most: int) -> None:
        """Begin with a document. most: the weight that no value may exceed, too."""
        self._most = self._left = most
        self._weighed.clear()

    def charge(self, units: int) -> None:
        self._left -= units
        if self._left < 0:
            raise TooMuch

    def weigh(self, value: Any) -> int:
        """Return the weight of a value. Raises TooMuch, RecursionError."""
        if type(value) is str:
            return 1 + len(value) // _CHARACTERS
        if type(value) not in _CONTAINERS:
            return 1
        known = self._weighed.get(id(value))
        if known is not None:
            return known[1]
        weight = 1 + sum(map(self.weigh, value.values() if type(value) is dict else value))
        if weight > self._most:
            raise TooMuch
        self._weighed[id(value)] = value, weight
        return weight


class _Functions:
    """JMESPath's functions, which work on all of their arguments."""

    def __init__(self, functions: Any, account: _Account) -> None:
        self._functions = functions
        self._account = account

    def call_function(self, name: str, arguments: list[Any]) -> Any:
        for each in arguments:
            self._account.charge(self._account.weigh(each))
        return self._functions.call_function(name, arguments)


def _charged(compare: Callable[[Any, Any], Any], account: _Account) -> Callable[[Any, Any], Any]:
    def charged(one: Any, other: Any) -> Any:
        account.charge(min(account.weigh(one), account.weigh(other)))
        return compare(one, other)

    return charged
