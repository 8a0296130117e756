"""`pykbroker ctl`: control of a running broker that was started with `--ctl-port`.

Each command is one operation of `control.http.operations`, with its parameters as options.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import click

from pykbroker.control.http.operation import Kind, Operation, Parameter
from pykbroker.control.http.operations import OPERATIONS

from .command import ClientCommand, ClientGroup, CommandFailed, forget_stdout, one_line
from .control_target import ControlTarget
from .examples import examples

DEFAULT_ADDRESS: Final = "127.0.0.1:9644"
_TYPES: Final = {Kind.WHOLE: click.INT, Kind.NUMBER: click.FLOAT, Kind.FILE: click.File("r", encoding="utf-8")}


@click.group(
    "ctl",
    cls=ClientGroup,
    epilog=examples(
        ("Requests of the last minutes", "pykbroker ctl journal requests"),
        ("Another broker", "pykbroker ctl --ctl 127.0.0.1:9700 clients seeking"),
    ),
)
@click.option(
    "--ctl",
    "address",
    default=DEFAULT_ADDRESS,
    show_default=True,
    envvar="PYKBROKER_CTL",
    metavar="HOST:PORT",
    help="The broker's control, which it tells when it is ready; PYKBROKER_CTL says it, too.",
)
@click.option("--token-file", type=click.Path(path_type=Path), metavar="FILE", help="The broker's --ctl-token-file.")
@click.pass_context
def command(context: click.Context, address: str, token_file: Path | None) -> None:
    """Control a running broker: faults, time, the journal of its requests."""
    context.obj = ControlTarget(address, token_file)


def _add(operation: Operation) -> None:
    group: click.Group = command
    *names, last = operation.command.split()
    for name in names:
        inner = group.commands.get(name)
        if not isinstance(inner, click.Group):
            inner = ClientGroup(name, help=f"{name.capitalize()} of a broker.")
            group.add_command(inner)
        group = inner
    options: list[click.Parameter] = [_option(operation, each) for each in operation.parameters]
    if operation.is_stream:
        file = click.Path(path_type=Path, dir_okay=False)
        help_text = "Where the answer goes [standard output]."
        options.append(click.Option(["--output", "output"], type=file, metavar="FILE", help=help_text))
    group.add_command(ClientCommand(last, params=options, help=operation.summary, callback=_callback(operation)))


def _option(operation: Operation, parameter: Parameter) -> click.Parameter:
    if f"{{{parameter.name}}}" in operation.path or parameter.kind is Kind.FILE:
        metavar = "FILE" if parameter.kind is Kind.FILE else parameter.name.upper()
        return click.Argument([parameter.name], type=_TYPES.get(parameter.kind, click.STRING), metavar=metavar)
    flag = f"--{parameter.name.replace('_', '-')}"
    if parameter.kind is Kind.FLAG:
        either = f"{flag}/--no-{flag.removeprefix('--')}"
        return click.Option([either, parameter.name], is_flag=True, default=None, help=parameter.help)
    return click.Option(
        [flag, parameter.name],
        type=_TYPES.get(parameter.kind, click.STRING),
        required=parameter.is_required,
        help=parameter.help,
    )


def _callback(operation: Operation) -> Any:
    @click.pass_context
    def callback(context: click.Context, /, **given: Any) -> None:
        output = given.pop("output", None)
        kinds = {each.name: each.kind for each in operation.parameters}
        arguments = {name: _value(kinds[name], value) for name, value in given.items() if value is not None}
        _run(context.find_object(ControlTarget), operation, arguments, output)

    return callback


def _value(kind: Kind, given: Any) -> Any:
    """Return a flag's value as JSON has it."""
    if kind is Kind.FILE:
        try:
            return given.read()
        except UnicodeDecodeError:
            raise CommandFailed(f"{given.name} is no text in UTF-8") from None
    if kind is Kind.ANY and given.startswith("{"):
        try:
            return json.loads(given)
        except ValueError as error:
            raise CommandFailed(f"{given} is no JSON: {error}") from None
    return given


def _run(target: ControlTarget | None, operation: Operation, arguments: Mapping[str, Any], output: Path | None) -> None:
    from pykbroker.control.http.asking import ControlFailed

    assert target is not None
    try:
        client = target.client()
        if operation.is_stream:
            parts = client.parts(operation, arguments)
            next(parts)  # nothing is made where the operation is refused
            with nullcontext(sys.stdout.buffer) if output is None else _whole_file(output) as file:
                for part in parts:
                    file.write(part)
        else:
            click.echo(_text(client.ask(operation, arguments)))
    except BrokenPipeError:
        forget_stdout()
    except OSError as error:
        raise CommandFailed(f"{output or 'standard output'}: {error.strerror or error}") from None
    except ControlFailed as error:
        raise CommandFailed(one_line(error)) from None


@contextmanager
def _whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that is there as a whole or not at all, for its owner alone: it has what users log in with, or have
    sent. Raises OSError.
    """
    if path.exists() and not path.is_file():  # a pipe, or a device
        with path.open("wb") as file:
            yield file
        return
    target = path.resolve()
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name[:100]}.", delete=False) as temporary:
        try:
            yield cast("BinaryIO", temporary)
            temporary.flush()
            os.replace(temporary.name, target)
        except BaseException:
            os.unlink(temporary.name)
            raise


def _text(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, indent=2, ensure_ascii=False)


for _each in OPERATIONS:
    _add(_each)
