"""The topic of `consume` and `produce` without a flag, `pykbroker consume orders`, beside Kafka's `--topic orders`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from .command import CommandFailed

_NAME: Final = "topic_name"

topic_argument: Final = click.argument(_NAME, required=False, metavar="[TOPIC]")


def with_one_topic(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a command, with the argument as its topic. Raises CommandFailed where both are given."""
    others = dict(given)
    name = others.pop(_NAME)
    if name is not None:
        if others["topic"] is not None:
            raise CommandFailed(f"Two topics: '{name[:250]}' and --topic '{others['topic'][:250]}'; give one")
        others["topic"] = name
    return others
