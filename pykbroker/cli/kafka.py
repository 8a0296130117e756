"""`pykbroker kafka kafka-topics.sh --list`: a tool of Kafka's by its name, done by the command that does the same.

The image has a file of each tool's name on its path, which calls this.
"""

from __future__ import annotations

import click

from pykbroker import __version__

from .command import ClientCommand, CommandFailed
from .examples import examples


@click.command(
    "kafka",
    cls=ClientCommand,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=examples(
        ("The names of the tools", "pykbroker kafka"),
        ("One of them", "pykbroker kafka kafka-topics.sh --bootstrap-server localhost:9092 --list"),
    ),
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="TOOL [FLAG]...")
@click.pass_context
def command(context: click.Context, arguments: tuple[str, ...]) -> None:
    """Run a tool of Kafka's by its name, with Kafka's flags: kafka-topics.sh --list.

    Without a tool, print their names.
    """
    from pykbroker.container.tools import TOOLS, UnknownTool, command_of

    tool, *flags = arguments or ("",)
    if not tool:
        click.echo("\n".join(TOOLS))
        return
    if flags == ["--version"]:
        click.echo(f"pykbroker {__version__}")
        return
    try:
        name, *told = command_of(tool, flags)
    except UnknownTool as error:
        raise CommandFailed(str(error)) from None
    group = context.find_root().command
    assert isinstance(group, click.Group)
    inner = group.get_command(context, name)
    assert inner is not None, f"{tool} has no command"
    with inner.make_context(tool, told) as of_tool:
        inner.invoke(of_tool)
