"""The options of `pykbroker users`, and the changes of credentials that they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pykbroker.quotas.entities import USER
from pykbroker.security.sasl.scram_credential import MECHANISMS

from .client_entities import ClientChange, ClientEntity, change_of
from .command import CommandFailed
from .config_options import ConfigChanges
from .new_password import new_password
from .scram_password import has_password, with_password


@dataclass(frozen=True, slots=True)
class UserOptions:
    """The options of an action. mechanisms: those to delete; all without one."""

    bootstrap_server: str
    command_config: Path | None
    names: tuple[str, ...] = ()
    change: ClientChange | None = None
    mechanisms: tuple[str, ...] = ()
    if_exists: bool = False
    as_json: bool = False
    yes: bool = False


def change_of_flags(user: str, changes: ConfigChanges, password_file: Path | None) -> ClientChange:
    """Return what `--add-config` and `--delete-config` ask for. Raises CommandFailed."""
    to_set = changes.to_set()
    foreign = [key for key in (*to_set, *changes.to_delete()) if key not in MECHANISMS]
    if foreign:
        raise CommandFailed(f"'{foreign[0][:40]}' is no mechanism of SCRAM; {', '.join(MECHANISMS)} are")
    if not all(map(has_password, to_set.values())):
        password = new_password(user, password_file)
        to_set = {key: with_password(value, password) for key, value in to_set.items()}
    elif password_file is not None:
        raise CommandFailed("--password-file is for mechanisms that --add-config gives no password")
    return change_of(ClientEntity({USER: user}), to_set, changes.to_delete())


def change_of_word(
    user: str, mechanisms: tuple[str, ...], iterations: int | None, password_file: Path | None
) -> ClientChange:
    """Return the change that gives the user one password for these mechanisms. Raises CommandFailed."""
    if not user:
        raise CommandFailed("A user has a name")
    before = "" if iterations is None else f"iterations={iterations}"
    password = new_password(user, password_file)
    to_set = {each: with_password(before, password) for each in mechanisms}
    return change_of(ClientEntity({USER: user}), to_set, ())
