"""Users that log in by SCRAM: `/api/users`. A password is salted and hashed here, and neither kept, logged nor told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.client.errors import BadInput
from pykbroker.client.scram_users import (
    ask_scram_users,
    delete_scram_credential,
    scram_users_of,
    set_scram_password,
)
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.security.sasl.scram_credential import MAX_ITERATIONS, MECHANISMS, MIN_ITERATIONS

from .pages import Page, PageAsked, page_of

_LONGEST_NAME: Final = 1024
_LONGEST_PASSWORD: Final = 1024


@dataclass(frozen=True, slots=True)
class CredentialRow:
    """A credential of a user: one for each mechanism."""

    user: str
    mechanism: str
    iterations: int


async def users(asking: Asking, given: Arguments) -> Page[CredentialRow]:
    """Return a page. Raises BadInput, KafkaError, ClientError."""
    asked, text = PageAsked.of(given), given.text("filter", "", longest=_LONGEST_NAME).lower()
    described = await ask_scram_users(asking.cluster)

    def page() -> Page[CredentialRow]:
        rows: Sequence[CredentialRow] = [
            CredentialRow(user, mechanism, iterations)
            for user, of_user in scram_users_of(described).items()
            if text in user.lower()
            for mechanism, iterations in sorted(of_user.items())
        ]
        return page_of(rows, asked)

    return await asking.threads.run(page)


async def set_password(asking: Asking, given: Arguments) -> None:
    """Set a user's password, of a new user too. Raises BadInput, KafkaError, ClientError."""
    user, mechanism = _user(given), given.one_of("mechanism", list(MECHANISMS))
    password = given.text("password", longest=_LONGEST_PASSWORD)
    if not password or not password.isprintable():
        raise BadInput("'password' is one line, and not empty")
    iterations = given.whole("iterations", MIN_ITERATIONS, least=MIN_ITERATIONS, most=MAX_ITERATIONS)
    await set_scram_password(asking.cluster, user, mechanism, password, iterations)


async def delete(asking: Asking, given: Arguments) -> None:
    """Delete a user's credential of one mechanism. Raises BadInput, KafkaError, ClientError."""
    user, mechanism = _user(given), given.one_of("mechanism", list(MECHANISMS))
    if given.text("confirm", "", longest=_LONGEST_NAME) != user:
        raise BadInput("'confirm' is the user's name once more")
    await delete_scram_credential(asking.cluster, user, mechanism)


def _user(given: Arguments) -> str:
    user = given.text("user", longest=_LONGEST_NAME)
    if not user:
        raise BadInput("'user' is empty")
    return user
