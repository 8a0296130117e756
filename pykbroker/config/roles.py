"""Rules that `process.roles` sets for the other keys, as Kafka's `KafkaConfig.validateValues` does.

There is one exception: a node that is both and names no quorum at all is a quorum of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .keys import InvalidValue

_VOTERS, _BOOTSTRAP = "controller.quorum.voters", "controller.quorum.bootstrap.servers"
_NAMES = "controller.listener.names"
BOTH = frozenset({"broker", "controller"})


def check_roles(
    roles: Collection[str],
    node_id: int,
    *,
    given: Mapping[str, str],
    voters: Collection[int],
    bootstrap_servers: Collection[object],
) -> None:
    """Check the keys that the roles need or forbid. given: the given keys, as text. Raises InvalidValue."""
    if frozenset(roles) != BOTH:
        if not voters and not bootstrap_servers:
            raise InvalidValue(
                _BOOTSTRAP,
                given.get(_BOOTSTRAP, ""),
                f"a node with process.roles={','.join(roles)} finds the controllers by this key or by {_VOTERS}",
            )
        if "broker" in roles and not given.get(_NAMES, "").strip():
            raise InvalidValue(
                _NAMES, given.get(_NAMES, ""), "process.roles=broker needs the name of a controller listener"
            )
    if voters and "controller" in roles and node_id not in voters:
        raise InvalidValue(
            _VOTERS,
            given.get(_VOTERS),
            f"a node with the controller role is a voter, and node {node_id} is not among them",
        )
    if "controller" not in roles and node_id in voters:
        raise InvalidValue(
            _VOTERS, given.get(_VOTERS), f"node {node_id} is a voter, which takes the controller role in process.roles"
        )
