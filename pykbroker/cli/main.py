"""The `pykbroker` command. Each sub-command is a module of its own, imported only when it is called.

`pykbroker start` must be serving within a fraction of a second, so what it does not need is not imported.
"""

from __future__ import annotations

from importlib import import_module

import click

_COMMANDS = {
    "start": "Start a node: broker, controller or both.",
    "cluster": "Start several nodes on this host, in one command.",
    "format": "Format the log directories of a node.",
    "topics": "Create, list, describe, alter and delete topics.",
    "produce": "Write records from standard input to a topic.",
    "consume": "Read records of a topic to standard output.",
    "groups": "List, describe, reset and delete consumer groups.",
    "transactions": "List, describe and find transactions, and abort those that hang.",
    "delete-records": "Delete the records of partitions up to given offsets.",
    "configs": "Describe and alter configurations.",
    "dump": "Print segments, indexes, snapshots and checkpoints, and what is wrong with them.",
    "verify": "Check the log directories of a stopped node.",
    "inspect": "Show what is in frames, segments and the metadata log.",
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = import_module(f"pykbroker.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing them for their help."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pykbroker")
def main() -> None:
    """A broker that speaks Apache Kafka's protocol, and the commands around it."""
