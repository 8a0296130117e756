"""Filters of DescribeClientQuotas find entities by their parts (KIP-546): Kafka's `ClientQuotasImage.describe`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.quotas import ComponentData

from .entities import CLIENT_ID, ENTITY_TYPES, IP, USER, ClientQuotaEntity

EXACT: Final = 0
DEFAULT: Final = 1
SPECIFIED: Final = 2

_Parts: TypeAlias = dict[str, str | None]


class ClientQuotaFilter:
    """A filter names types, each with a name, as the default, or with any of them.

    strict: an entity of more types than the filter's does not match. Raises ApiError where the filter makes no sense.
    """

    def __init__(self, components: Iterable[ComponentData], *, strict: bool) -> None:
        self._strict = strict
        self._exact: _Parts = {}
        self._types: set[str] = set()
        for component in components:
            self._add(component)
        named = self._exact.keys() | self._types
        if IP in named and named & {USER, CLIENT_ID}:
            raise _invalid(
                "Invalid entity filter component combination. IP filter component should not be used with user or "
                "clientId filter component."
            )

    def matches(self, entity: ClientQuotaEntity) -> bool:
        parts = dict(entity)
        if self._strict and len(parts) != len(self._exact) + len(self._types):
            return False
        return self._types <= parts.keys() and all(
            kind in parts and parts[kind] == name for kind, name in self._exact.items()
        )

    def _add(self, component: ComponentData) -> None:
        kind = component.entity_type
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in self._exact or kind in self._types:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in ENTITY_TYPES:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        match component.match_type:
            case 0:
                if component.match is None:
                    raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
                self._exact[kind] = component.match
            case 1:
                _check_no_name(component, "MATCH_TYPE_DEFAULT")
                self._exact[kind] = None
            case 2:
                _check_no_name(component, "MATCH_TYPE_SPECIFIED")
                self._types.add(kind)
            case other:
                raise _invalid(f"Unknown match type {other}")


def _check_no_name(component: ComponentData, match_type: str) -> None:
    if component.match is not None:
        raise _invalid(f"Request specified {match_type}, but also specified a match string.")


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, reason)
