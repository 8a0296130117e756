"""Requests about tokens, and their answers without what differs from run to run: ids, HMACs, and the time of day."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self, cast

from compat_tests.acls.users import log_in
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.messages.acls import AclCreation, CreateAclsRequest
from pykbroker.protocol.messages.delegation_tokens import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from pykbroker.protocol.schema import Message

from .token_broker import HOUR_MS, Token, TokenBroker

_YEAR_MS = 365 * 24 * HOUR_MS


class Asking:
    """Connections of users to one broker; a context manager. on_controller: at the controller's listener."""

    def __init__(self, tokens: TokenBroker, *, on_controller: bool = False) -> None:
        self._broker_address = tokens.sasl
        self._address = tokens.controller if on_controller else tokens.sasl
        self._wires: dict[str, Wire] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def wire(self, user: str) -> Wire:
        if user not in self._wires:
            self._wires[user] = self._stack.enter_context(Wire(self._address))
            log_in(self._wires[user], user)
        return self._wires[user]

    def ask(self, user: str, request: Message, version: int | None = None) -> Any:
        newest = request.__schema__.stable_versions.high
        return self.wire(user).call(request, newest if version is None else version)

    def create(self, user: str, *renewers: str, **values: Any) -> Token:
        """Return when the broker and the controller know the token: Kafka answers before they do."""
        token = Token.of(self.ask(user, creation(*renewers, **values)))
        self.wait_for(token)
        return token

    def created(self, user: str, *renewers: str, **values: Any) -> CreateDelegationTokenResponse:
        """As `create`, for those who want the whole answer."""
        answer = self.ask(user, creation(*renewers, **values))
        self.wait_for(Token.of(answer))
        return cast(CreateDelegationTokenResponse, answer)

    def wait_for(self, token: Token) -> None:
        """A renewal finds the token as soon as the controller knows it."""
        until(lambda: self.ask("admin", renewal(token.hmac)).error_code != 62, "the controller knows the token")
        until(lambda: token.token_id in self.ids("admin"), "the broker knows the token")

    def ids(self, user: str) -> set[str]:
        """Of all tokens that the user sees; asked on the broker's listener."""
        if self._address == self._broker_address:
            return {each.token_id for each in self.ask(user, description()).tokens}
        with Wire(self._broker_address) as wire:
            log_in(wire, user)
            answer: Any = wire.call(description(), 3)
        return {each.token_id for each in answer.tokens}

    def allow(self, user: str, operation: int, resource_type: int, name: str) -> None:
        """As the super user."""
        entry = AclCreation(
            resource_type=resource_type,
            resource_name=name,
            resource_pattern_type=3,
            principal=f"User:{user}",
            host="*",
            operation=operation,
            permission_type=3,
        )
        answer = self.ask("admin", CreateAclsRequest(creations=[entry]))
        assert not answer.results[0].error_code, answer


def creation(*renewers: str, owner: str | None = None, max_lifetime_ms: int = -1) -> CreateDelegationTokenRequest:
    """renewers, owner: as type, colon and name; an owner without a colon has no type."""
    request = CreateDelegationTokenRequest(
        renewers=[CreatableRenewers(**_principal(each)) for each in renewers], max_lifetime_ms=max_lifetime_ms
    )
    if owner is not None:
        kind, colon, name = owner.rpartition(":")
        request.owner_principal_type, request.owner_principal_name = kind if colon else None, name
    return request


def renewal(hmac: bytes, period_ms: int = -1) -> RenewDelegationTokenRequest:
    return RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)


def expiry(hmac: bytes, period_ms: int = -1) -> ExpireDelegationTokenRequest:
    return ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)


def description(*owners: str) -> DescribeDelegationTokenRequest:
    """Of all tokens, where no owner is named."""
    named = [DescribeDelegationTokenOwner(**_principal(each)) for each in owners]
    return DescribeDelegationTokenRequest(owners=named or None)


def _principal(text: str) -> dict[str, str]:
    kind, name = text.split(":", 1)
    return {"principal_type": kind, "principal_name": name}


def shown_creation(answer: CreateDelegationTokenResponse) -> Any:
    """The answer with its times relative to the issue."""
    issued = answer.issue_timestamp_ms
    return {
        "error_code": answer.error_code,
        "owner": f"{answer.principal_type}:{answer.principal_name}",
        "requester": f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}",
        "issued": "now" if issued > _YEAR_MS else issued,
        "lifetime": answer.max_timestamp_ms - issued,
        "expiry": answer.expiry_timestamp_ms - issued,
        "id": len(answer.token_id),
        "hmac": len(answer.hmac),
    }


def shown_expiry(answer: Any, issued_ms: int) -> Any:
    """The error and in how many hours from the issue the token expires."""
    time = answer.expiry_timestamp_ms
    return [answer.error_code, time if time < _YEAR_MS else f"in {(time - issued_ms) / HOUR_MS:.1f} h"]


def shown_tokens(answer: Any, names: dict[str, str]) -> Any:
    """The tokens in the order of their names, without others. names: by the ids."""
    rows = [
        {
            "name": names[each.token_id],
            "owner": f"{each.principal_type}:{each.principal_name}",
            "requester": f"{each.token_requester_principal_type}:{each.token_requester_principal_name}",
            "renewers": [f"{renewer.principal_type}:{renewer.principal_name}" for renewer in each.renewers],
            "lifetime": f"{(each.max_timestamp - each.issue_timestamp) / HOUR_MS:.1f} h",
            "expiry": f"{(each.expiry_timestamp - each.issue_timestamp) / HOUR_MS:.1f} h",
            "hmac": len(each.hmac),
        }
        for each in answer.tokens
        if each.token_id in names
    ]
    return [answer.error_code, sorted(rows, key=lambda row: row["name"])]
