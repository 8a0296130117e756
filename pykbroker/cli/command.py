"""Shared parts of the client commands: one-line errors, the options that all of them take, and their Trio run.

A command ends with 0, with 1 after one line on stderr, or with 130 after Ctrl-C. A closed pipe (`| head`) is a good
end. Kafka's tools print their usage and a stack trace instead; scripts see the same exit code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, ParamSpec, TextIO, TypeVar

import click

from pykbroker.error_groups import first_of

from .printable import printable
from .suggestions import SuggestingGroup

if TYPE_CHECKING:
    from pykbroker.client.errors import ClientError

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_BOOTSTRAP_SERVER = "127.0.0.1:9092"
EXIT_INTERRUPTED = 130
HELP_OPTIONS: Final = {"help_option_names": ["-h", "--help"]}
_HELP: Final[Any] = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""Of a group that is asked for nothing; before click 8.2 that is no error."""


class CommandFailed(click.ClickException):
    """Printed as `Error: …` on stderr; the exit code is 1."""


class ClientCommand(click.Command):
    """A command whose bad flags are one line and exit code 1, as every other error of it. failure: that error."""

    failure: ClassVar[type[CommandFailed]] = CommandFailed

    def __init__(
        self, name: str | None, context_settings: MutableMapping[str, Any] | None = None, **options: Any
    ) -> None:
        # Click keeps the option with the names that it had first: those are always the same, whoever calls the command.
        super().__init__(name, context_settings={**HELP_OPTIONS, **(context_settings or {})}, **options)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            raise self.failure(_told(error)) from None


class ClientGroup(SuggestingGroup):
    """A group of commands whose bad flags and unknown commands are one line and exit code 1, as with a command."""

    command_class = ClientCommand

    def __init__(self, *args: Any, context_settings: MutableMapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(*args, context_settings={**HELP_OPTIONS, **(context_settings or {})}, **options)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except _HELP:
            raise
        except click.UsageError as error:
            raise CommandFailed(_told(error)) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except _HELP:
            raise
        except click.UsageError as error:
            raise CommandFailed(_told(error)) from None


def _told(error: click.UsageError) -> str:
    """Return an error of click's in one line; a number that is none is no question of its range."""
    return " ".join(error.format_message().split()).replace("is not a valid integer range", "is not a valid integer")


def bootstrap_options(function: Callable[P, T]) -> Callable[P, T]:
    """`--bootstrap-server` and `--command-config`, with Kafka's names."""
    function = click.option(
        "--command-config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Properties file with client settings (client.id, security.protocol).",
    )(function)
    return click.option(
        "--bootstrap-server",
        default=DEFAULT_BOOTSTRAP_SERVER,
        show_default=True,
        metavar="HOST:PORT[,…]",
        help="The brokers to ask first.",
    )(function)


def exactly_one(actions: Mapping[str, object]) -> str:
    """The one flag that was given; fails with Kafka's words when it is not one."""
    given = [flag for flag, value in actions.items() if value]
    if len(given) != 1:
        *most, last = actions
        raise CommandFailed(f"Command must include exactly one action: {', '.join(most)} or {last}")
    return given[0]


def reject(given: Mapping[str, object], reason: str) -> None:
    """Fail when one of these flags was used; `reason` ends the sentence "--x …"."""
    for flag, value in given.items():
        if value is not None and value is not False and value != ():
            raise CommandFailed(f"{flag} {reason}")


def key_values(texts: Sequence[str], flag: str) -> dict[str, str]:
    """`k=v` texts as a mapping; the last of two wins."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise CommandFailed(f"{flag} expects key=value, not '{text}'")
        pairs[key.strip()] = value
    return pairs


def run(work: Callable[..., Awaitable[T]], *args: object) -> T:
    """`trio.run`, with every expected failure turned into the command's end."""
    import trio

    from pykbroker.client.errors import ClientError

    failure: ClientError | click.ClickException | None = None
    exit_code = 0
    try:
        return trio.run(work, *args)
    except* KeyboardInterrupt:
        exit_code = EXIT_INTERRUPTED
    except* BrokenPipeError:
        forget_stdout()
    except* OSError as group:
        # What goes wrong with sockets is a ClientError: this is standard input or output, a full disk for example.
        forget_stdout()
        failure = CommandFailed(os.strerror(first_of(group).errno))
    except* (ClientError, click.ClickException) as group:
        failure = first_of(group)
    if failure is not None:
        raise CommandFailed(one_line(failure))
    raise SystemExit(exit_code)


def one_line(error: BaseException) -> str:
    """Return an error's text in one line, in which nothing of a peer controls the terminal."""
    text = error.format_message() if isinstance(error, click.ClickException) else str(error)
    return printable(" ".join(text.split()))


def forget_stdout() -> None:
    """Let standard output go nowhere: nobody reads it, and what Python flushes at its exit must not fail again."""
    forget(sys.stdout)


def forget(stream: TextIO) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
