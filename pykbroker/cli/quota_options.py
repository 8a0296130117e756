"""The options of `pykbroker quotas`, and the entity that its flags name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .client_entities import QUOTA_TYPES, ClientChange, ClientEntity, entity_of
from .command import CommandFailed
from .config_options import ClientEntityFlags


@dataclass(frozen=True, slots=True)
class QuotaOptions:
    """The options of an action. keys: those to delete; all without one. in_text: show them as Kafka's tool does."""

    bootstrap_server: str
    command_config: Path | None
    entity: ClientEntity
    change: ClientChange | None = None
    keys: tuple[str, ...] = ()
    in_text: bool = False
    as_json: bool = False
    yes: bool = False


def entity_of_flags(clients: ClientEntityFlags) -> ClientEntity:
    """Return the entity that the flags name; one without types is any. Raises CommandFailed."""
    named = clients.named
    return entity_of([QUOTA_TYPES[type_] for type_, _ in named], [name for _, name in named])


def named_entity(clients: ClientEntityFlags) -> ClientEntity:
    """Return the entity that the flags name. Raises CommandFailed where they name none."""
    entity = entity_of_flags(clients)
    if not entity.names:
        raise CommandFailed("Say whose quotas: --user, --client or --ip, or the defaults of one")
    return entity


def quotas_alone(change: ClientChange) -> ClientChange:
    """Return the change. Raises CommandFailed where it is one of passwords."""
    if change.passwords or change.removed_mechanisms:
        raise CommandFailed("SCRAM credentials are no quotas: `pykbroker users` has them")
    return change
