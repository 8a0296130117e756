"""`pykbroker why`: why a group rebalances, a consumer gets nothing, a last stable offset stands, a client is throttled.

What is printed is the JSON of `pykbroker.control.why`, as lines or as it is. `--ctl` asks the control of a broker,
which knows the causes; `--bootstrap-server` any broker by Kafka's own protocol, which tells states and offsets alone.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click
from click.core import ParameterSource

from .command import CommandFailed, bootstrap_options, one_line
from .connect import run_on_cluster
from .control_target import ControlTarget
from .examples import examples
from .two_forms import Words

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

_GIVEN: Final = (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)
"""Sources of an option behind the word, or in front of it."""

Ask: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Asks a question by its name, with its arguments, and returns the answer as JSON. Raises ValueError."""


@dataclass(frozen=True, slots=True)
class _Where:
    """The broker that is asked, and how the answer is printed."""

    bootstrap_server: str
    command_config: Path | None
    control: ControlTarget | None
    is_json: bool


@dataclass(frozen=True, slots=True)
class _Question:
    """A question with its arguments, for `run_on_cluster`."""

    bootstrap_server: str
    command_config: Path | None
    is_json: bool
    name: str
    arguments: Mapping[str, Any]


def _asking(function: Callable[..., None]) -> Callable[..., None]:
    """Options that say which broker is asked, and how the answer is printed; they come as the argument `where`."""

    @wraps(function)
    def with_where(
        bootstrap_server: str,
        command_config: Path | None,
        ctl: str | None,
        token_file: Path | None,
        is_json: bool,
        **given: Any,
    ) -> None:
        context = click.get_current_context()
        if ctl is not None and context.get_parameter_source("bootstrap_server") in _GIVEN:
            if context.get_parameter_source("ctl") in _GIVEN:
                raise CommandFailed("--ctl and --bootstrap-server exclude each other")
            ctl = None  # a flag wins over the environment
        control = None if ctl is None else ControlTarget(ctl, token_file)
        function(where=_Where(bootstrap_server, command_config, control, is_json), **given)

    return _where_options(with_where)


def _where_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--json", "is_json", is_flag=True, help="Print the answer as JSON."),
        click.option(
            "--token-file", type=click.Path(path_type=Path), metavar="FILE", help="The broker's --ctl-token-file."
        ),
        click.option(
            "--ctl",
            envvar="PYKBROKER_CTL",
            metavar="HOST:PORT",
            help="Ask the control of a broker that was started with --ctl-port: it knows the causes.",
        ),
        bootstrap_options,
    ):
        function = option(function)
    return function


@click.group(
    "why",
    cls=Words,
    epilog=examples(
        ("Why a group does not come to rest", "pykbroker why group readers"),
        ("Why a consumer gets nothing", "pykbroker why consumer readers --topic orders"),
    ),
)
@_where_options
def command(**_given: Any) -> None:
    """Say why a group, a consumer, a last stable offset or a throttle is as it is."""


async def print_answer(ask: Ask, name: str, arguments: Mapping[str, Any], *, is_json: bool) -> None:
    """Ask, and print the answer. Raises CommandFailed where the question was a bad one."""
    try:
        answer = await ask(name, {key: value for key, value in arguments.items() if value is not None})
    except ValueError as error:
        raise CommandFailed(str(error)) from None
    _print(answer, is_json=is_json)


def _print(answer: Mapping[str, Any], *, is_json: bool) -> None:
    from pykbroker.control.why import text

    click.echo(json.dumps(answer, indent=2) if is_json else text.of_answer(answer))


async def _ask_by_protocol(cluster: Cluster, question: _Question) -> None:
    from pykbroker.control.why import by_protocol

    async def ask(name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return await by_protocol.ask(cluster, name, arguments)

    await print_answer(ask, question.name, question.arguments, is_json=question.is_json)


def _ask_control(target: ControlTarget, name: str, arguments: Mapping[str, Any], *, is_json: bool) -> None:
    from pykbroker.control.http.asking import ControlFailed
    from pykbroker.control.http.operations import operation

    given = {key: value for key, value in arguments.items() if value is not None}
    try:
        answer = target.client().ask(operation(f"why {name}"), given)
    except ControlFailed as error:
        raise CommandFailed(one_line(error)) from None
    _print(answer, is_json=is_json)


def _run(where: _Where, name: str, **arguments: Any) -> None:
    if where.control is not None:
        _ask_control(where.control, name, arguments, is_json=where.is_json)
        return
    question = _Question(where.bootstrap_server, where.command_config, where.is_json, name, arguments)
    run_on_cluster(_ask_by_protocol, question, client_id="why")


@command.command(
    "group",
    epilog=examples(
        ("By Kafka's protocol", "pykbroker why group readers"),
        ("With the causes, which the broker's control knows", "pykbroker why group readers --ctl 127.0.0.1:9644"),
    ),
)
@click.argument("group", metavar="GROUP")
@_asking
def group_(where: _Where, group: str) -> None:
    """Say why a group rebalances, waits or is empty."""
    _run(where, "group", group=group)


@command.command(
    "consumer",
    epilog=examples(
        ("The clients of a group", "pykbroker why consumer readers"),
        ("One partition, for a program", "pykbroker why consumer readers --topic orders --partition 0 --json"),
    ),
)
@click.argument("group", metavar="[GROUP]", required=False)
@click.option("--client-id", metavar="ID", help="The client of a group, or one without a group.")
@click.option("--topic", metavar="NAME")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="With --topic.")
@_asking
def consumer(where: _Where, **flags: Any) -> None:
    """Say why a consumer gets nothing, or no more."""
    _run(where, "consumer", **flags)


@command.command(
    "lso",
    epilog=examples(
        ("What read_committed waits for", "pykbroker why lso orders 0"),
        ("For a program", "pykbroker why lso orders 0 --json"),
    ),
)
@click.argument("topic", metavar="TOPIC")
@click.argument("partition", type=click.IntRange(min=0), metavar="PARTITION")
@_asking
def lso(where: _Where, topic: str, partition: int) -> None:
    """Say what holds the last stable offset of a partition."""
    _run(where, "lso", topic=topic, partition=partition)


@command.command(
    "throttle",
    epilog=examples(
        ("The quotas of a client", "pykbroker why throttle billing"),
        ("… of a user", "pykbroker why throttle billing --user alice"),
    ),
)
@click.argument("client_id", metavar="[CLIENT_ID]", required=False, default="")
@click.option("--user", default="ANONYMOUS", show_default=True, metavar="NAME", help="A principal's name.")
@_asking
def throttle(where: _Where, client_id: str, user: str) -> None:
    """Say which quotas apply to a client."""
    _run(where, "throttle", client_id=client_id, user=user)
