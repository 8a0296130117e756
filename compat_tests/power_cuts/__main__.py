"""`python -m compat_tests.power_cuts --cuts N [--seed S] [--file-system ext4|xfs]`, as root."""

import signal
import tempfile
import time
from pathlib import Path
from types import FrameType

import click

from ..volumes import why_nothing_can_be_mounted
from .run import run_cuts
from .volume import why_there_is_no


@click.command
@click.option("--cuts", default=100, show_default=True)
@click.option("--seed", type=int, help="Another one in every run where none is given.")
@click.option("--file-system", default="ext4", type=click.Choice(["ext4", "xfs"]), show_default=True)
def main(cuts: int, seed: int | None, file_system: str) -> None:
    """Cut the power of a broker under load, N times."""
    missing = why_nothing_can_be_mounted() or why_there_is_no(file_system)
    if missing:
        raise click.ClickException(missing)
    seed = int(time.time()) if seed is None else seed
    signal.signal(signal.SIGTERM, _end)
    click.echo(f"{cuts} power cuts on {file_system}, seed {seed}")
    with tempfile.TemporaryDirectory() as directory:
        run_cuts(Path(directory), cuts, seed, file_system=file_system, say=click.echo)


def _end(number: int, frame: FrameType | None) -> None:
    """End as Ctrl-C does: the file system is unmounted, and the loop device goes with it."""
    raise KeyboardInterrupt


main()
