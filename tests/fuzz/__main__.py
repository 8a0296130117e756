"""`python -m tests.fuzz --minutes N [TARGET …]`: a search with each target, one after another; it writes the corpus.

Exit code 1 where a fault was found; its input is in build/fuzz, with what came of it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import click

from . import corpus
from .seeds import seeds
from .targets import TARGETS

BUILD = Path(__file__).parents[2] / "build" / "fuzz"
LARGEST_INPUT_BYTES = 4096
SET_UP_TIMEOUT_S = 300


@click.command()
@click.option("--minutes", type=float, default=5, show_default=True, help="for all targets together")
@click.option("--seed", type=int, default=None, help="of libFuzzer, for the same search again")
@click.argument("names", nargs=-1, type=click.Choice(sorted(TARGETS)), metavar="[TARGET]...")
def main(minutes: float, seed: int | None, names: tuple[str, ...]) -> None:
    """Search for inputs that break what reads bytes of others."""
    chosen = names or tuple(TARGETS)
    seconds = max(int(minutes * 60 / len(chosen)), 1)
    seed = int(time.time()) if seed is None else seed
    click.echo(f"{len(chosen)} targets, {seconds} s each; the same search again: --seed {seed}")
    failed = [name for name in chosen if not _search(name, seconds, seed)]
    if failed:
        sys.exit(f"faults of {', '.join(failed)}: see {BUILD}")


def _search(name: str, seconds: int, seed: int) -> bool:
    """Search, and keep what was found; return False where there is a fault, and then keep nothing."""
    shutil.rmtree(BUILD / name, ignore_errors=True)
    found = BUILD / name / "found"
    found.mkdir(parents=True)
    for data in (*seeds(name), *corpus.read(name)):
        (found / sha256(data).hexdigest()).write_bytes(data)
    options = [f"-max_total_time={seconds}", f"-max_len={LARGEST_INPUT_BYTES}", f"-seed={seed}"]
    options += [f"-artifact_prefix={BUILD / name}/", "-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1"]
    for arguments in ([str(found), *options], [str(found), "check"]):
        if not _run(name, arguments, seconds + SET_UP_TIMEOUT_S):
            return False
    inputs = [path.read_bytes() for path in found.iterdir()]
    corpus.write(name, inputs)
    click.echo(f"{name}: {len(inputs)} inputs reach something of their own, {sum(map(len, inputs))} bytes")
    return True


def _run(name: str, arguments: list[str], timeout_s: float) -> bool:
    command = [sys.executable, "-m", "tests.fuzz.search", name, *arguments]
    log = BUILD / name / "log"
    with log.open("ab") as output:
        code = subprocess.run(command, stdout=output, stderr=output, timeout=timeout_s, check=False).returncode
    if code:
        click.echo(
            f"{name}: a fault, exit code {code}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-30:])
        )
    return code == 0


if __name__ == "__main__":
    main()
