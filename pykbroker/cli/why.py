"""`pykbroker why`: why a group rebalances, a consumer gets nothing, a last stable offset stands, a client is throttled.

What is printed is the JSON of `pykbroker.control.why`, as lines or as it is. `--ctl` asks the control of a broker,
which knows the causes; `--bootstrap-server` any broker by Kafka's own protocol, which tells states and offsets alone.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from .command import ClientGroup, CommandFailed, bootstrap_options, one_line
from .connect import run_on_cluster
from .control_target import ControlTarget

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

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


@click.group("why", cls=ClientGroup)
@bootstrap_options
@click.option(
    "--ctl",
    envvar="PYKBROKER_CTL",
    metavar="HOST:PORT",
    help="Ask the control of a broker that was started with --ctl-port: it knows the causes.",
)
@click.option("--token-file", type=click.Path(path_type=Path), metavar="FILE", help="The broker's --ctl-token-file.")
@click.option("--json", "is_json", is_flag=True, help="Print the answer as JSON.")
@click.pass_context
def command(
    context: click.Context,
    bootstrap_server: str,
    command_config: Path | None,
    ctl: str | None,
    token_file: Path | None,
    is_json: bool,
) -> None:
    """Say why a group, a consumer, a last stable offset or a throttle is as it is."""
    given = click.core.ParameterSource.COMMANDLINE
    if ctl is not None and context.get_parameter_source("bootstrap_server") is given:
        if context.get_parameter_source("ctl") is given:
            raise CommandFailed("--ctl and --bootstrap-server exclude each other")
        ctl = None  # a flag wins over the environment
    control = None if ctl is None else ControlTarget(ctl, token_file)
    context.obj = _Where(bootstrap_server, command_config, control, is_json)


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


@command.command("group")
@click.argument("group", metavar="GROUP")
@click.pass_obj
def group_(where: _Where, /, group: str) -> None:
    """Say why a group rebalances, waits or is empty."""
    _run(where, "group", group=group)


@command.command("consumer")
@click.argument("group", metavar="[GROUP]", required=False)
@click.option("--client-id", metavar="ID", help="The client of a group, or one without a group.")
@click.option("--topic", metavar="NAME")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="With --topic.")
@click.pass_obj
def consumer(where: _Where, /, **flags: Any) -> None:
    """Say why a consumer gets nothing, or no more."""
    _run(where, "consumer", **flags)


@command.command("lso")
@click.argument("topic", metavar="TOPIC")
@click.argument("partition", type=click.IntRange(min=0), metavar="PARTITION")
@click.pass_obj
def lso(where: _Where, /, topic: str, partition: int) -> None:
    """Say what holds the last stable offset of a partition."""
    _run(where, "lso", topic=topic, partition=partition)


@command.command("throttle")
@click.argument("client_id", metavar="[CLIENT_ID]", required=False, default="")
@click.option("--user", default="ANONYMOUS", show_default=True, metavar="NAME", help="A principal's name.")
@click.pass_obj
def throttle(where: _Where, /, client_id: str, user: str) -> None:
    """Say which quotas apply to a client."""
    _run(where, "throttle", client_id=client_id, user=user)
