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
        ("For ~/.local/share/bash-completion/completions/pykbroker", "pykbroker completion bash"),
        ("For a directory of zsh's $fpath, as _pykbroker", "pykbroker completion zsh"),
        ("For ~/.config/fish/completions/pykbroker.fish", "pykbroker completion fish"),
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the script that lets a shell complete commands, words and options.

    In a bash that runs: eval "$(pykbroker completion bash)". For every shell to come the script goes into a file.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    # The class of bash runs bash first, to look at its version; the script says itself what it needs.
    click.echo(ShellComplete.source(kind(root, {}, PROGRAM, VARIABLE)))
