"""Commands in words, `pykbroker topics list`, and beside them the flags of Kafka's tools, `pykbroker topics --list`.

The flags belong to the group itself, the words are its commands. What tells where the cluster is, and `--json`, may
stand before the word, too: `pykbroker topics --bootstrap-server b:9092 list`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import click
from click.core import ParameterSource

from .command import ClientGroup, CommandFailed

_FROM_COMMAND_LINE: Final = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.PROMPT)


class Words(ClientGroup):
    """A group of words, in the order in which they were added; its options are theirs, given before the word."""

    def __init__(self, *args: Any, callback: Callable[..., Any], **options: Any) -> None:
        options |= {"invoke_without_command": True, "no_args_is_help": False}
        super().__init__(*args, callback=self._before_a_word(callback), **options)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            raise self._nothing_said(ctx)
        return super().parse_args(ctx, args)

    def without_a_word(self, callback: Callable[..., Any], flags: dict[str, Any]) -> Any:
        """Do what the options ask for by themselves. Raises CommandFailed, where they ask for nothing."""
        raise self._nothing_said(click.get_current_context())

    def _nothing_said(self, ctx: click.Context) -> CommandFailed:
        *most, last = self.list_commands(ctx)
        return CommandFailed(f"Say what to do: {', '.join(most)} or {last}; `{ctx.command_path} --help` shows how")

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, first_sentence(each)) for name, each in self.commands.items()])

    def takes(self, parameter: str, word: click.Command) -> bool:
        """Return whether the option of the group is one of the word's, too."""
        return any(each.name == parameter for each in word.params)

    def _before_a_word(self, alone: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(alone)
        def callback(**flags: Any) -> Any:
            context = click.get_current_context()
            if context.invoked_subcommand is None:
                return self.without_a_word(alone, flags)
            self._hand_down(context, context.invoked_subcommand)
            return None

        return callback

    def _hand_down(self, context: click.Context, word: str) -> None:
        """Make the options before a word the defaults of its own. Raises CommandFailed for those that it has not."""
        given = [each for each in self.params if context.get_parameter_source(each.name or "") in _FROM_COMMAND_LINE]
        for parameter in given:
            if not self.takes(parameter.name or "", self.commands[word]):
                raise CommandFailed(
                    f"{parameter.opts[0]} and the word '{word}' are two ways to say what to do: give one"
                )
        context.default_map = {word: {each.name: context.params[each.name] for each in given if each.name}}


class TwoForms(Words):
    """A group; its callback is the form with flags. like: the tool of Kafka whose flags these are."""

    _ALSO_IN_FRONT: Final = ("bootstrap_server", "bootstrap_controller", "command_config", "as_json")

    def __init__(self, *args: Any, like: str, **options: Any) -> None:
        super().__init__(*args, subcommand_metavar="[COMMAND …]", **options)
        self._like = like

    def without_a_word(self, callback: Callable[..., Any], flags: dict[str, Any]) -> Any:
        return callback(**flags)

    def takes(self, parameter: str, word: click.Command) -> bool:
        return parameter in self._ALSO_IN_FRONT and super().takes(parameter, word)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        records = [record for each in self.get_params(ctx) if (record := each.get_help_record(ctx)) is not None]
        with formatter.section(f"Instead of a command, the flags of {self._like}"):
            formatter.write_dl(records)


def first_sentence(command: click.Command) -> str:
    """Return what a command does, in its own words, which a narrow terminal wraps and does not cut."""
    return " ".join((command.help or "").split("\n\n", 1)[0].split())
