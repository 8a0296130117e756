"""`pykbroker completion`: the script that lets a shell complete commands, words and options."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import ShellComplete, get_completion_class

from .command import ClientCommand
from .examples import examples

PROGRAM: Final = "pykbroker"
VARIABLE: Final = "_PYKBROKER_COMPLETE"
SHELLS: Final = ("bash", "zsh", "fish")


@click.command(
    "completion",
    cls=ClientCommand,
    epilog=examples(
        ("In the bash that runs", 'eval "$(pykbroker completion bash)"'),
        ("In every bash", "pykbroker completion bash > ~/.local/share/bash-completion/completions/pykbroker"),
        ("In every zsh", 'pykbroker completion zsh > "${fpath[1]}/_pykbroker"'),
        ("In every fish", "pykbroker completion fish > ~/.config/fish/completions/pykbroker.fish"),
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the script that lets a shell complete commands, words and options."""
    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    # The class of bash runs bash first, to look at its version; the script says itself what it needs.
    click.echo(ShellComplete.source(kind(root, {}, PROGRAM, VARIABLE)))
