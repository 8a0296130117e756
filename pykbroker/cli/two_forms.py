"""Commands in two grammars: words, `pykbroker topics list`, and the flags of Kafka's tools, `pykbroker topics --list`.

The flags belong to the group itself, the words are its commands. What tells where the cluster is may stand before the
word, too: `pykbroker topics --bootstrap-server b:9092 list`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import click
from click.core import ParameterSource

from .command import ClientGroup, CommandFailed

_HANDED_DOWN: Final = ("bootstrap_server", "bootstrap_controller", "command_config")


class TwoForms(ClientGroup):
    """A group; its callback is the form with flags. like: the tool of Kafka whose flags these are."""

    def __init__(self, *args: Any, callback: Callable[..., Any], like: str, **options: Any) -> None:
        options |= {"invoke_without_command": True, "no_args_is_help": False, "subcommand_metavar": "[COMMAND …]"}
        super().__init__(*args, callback=_either(callback), **options)
        self._like = like

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            *most, last = self.list_commands(ctx)
            raise CommandFailed(f"Say what to do: {', '.join(most)} or {last}; `{ctx.command_path} --help` shows how")
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, first_sentence(each)) for name, each in self.commands.items()])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        records = [record for each in self.get_params(ctx) if (record := each.get_help_record(ctx)) is not None]
        with formatter.section(f"Instead of a command, the flags of {self._like}"):
            formatter.write_dl(records)


def first_sentence(command: click.Command) -> str:
    """Return what a command does, in its own words, which a narrow terminal wraps and does not cut."""
    return " ".join((command.help or "").split("\n\n", 1)[0].split())


def _either(form_with_flags: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(form_with_flags)
    def callback(**flags: Any) -> Any:
        context = click.get_current_context()
        if context.invoked_subcommand is None:
            return form_with_flags(**flags)
        _hand_down(context, context.invoked_subcommand)
        return None

    return callback


def _hand_down(context: click.Context, word: str) -> None:
    """Make the options before a word the defaults of its own. Raises CommandFailed for those that it has not."""
    given = [
        each for each in context.command.params if context.get_parameter_source(each.name or "") in _FROM_COMMAND_LINE
    ]
    for parameter in given:
        if parameter.name not in _HANDED_DOWN:
            raise CommandFailed(f"{parameter.opts[0]} and the word '{word}' are two ways to say what to do: give one")
    context.default_map = {word: {each.name: context.params[each.name] for each in given if each.name}}


_FROM_COMMAND_LINE: Final = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.PROMPT)
