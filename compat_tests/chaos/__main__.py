"""`python -m compat_tests.chaos`: a cluster in network namespaces under faults; exit code 1 where the judge objects.

The run is a process in namespaces of its own, for networks and for processes: with the first process of those all of
them end, and their cables and rules with them. Nothing is left behind but the directory that it is told to keep.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import FrameType

import click

from compat_tests.apache_kafka import why_there_is_no_kafka
from compat_tests.clusters.layout import KAFKA, PYKBROKER
from tests.history.check import check_lines

from .journal import recorded_faults
from .network import IN_NEW_NAMESPACES, Network, why_there_are_no_namespaces
from .outcome import Outcome, Told
from .plan import PlannedFault
from .run import Terms, run_chaos

_INSIDE = "PYKBROKER_CHAOS_INSIDE"
_ENDS_WITHIN_S = 30.0
LOG_LIMIT_CHARS = 6_000


@click.command()
@click.option("--minutes", type=float, default=5.0, show_default=True, help="How long faults go on.")
@click.option("--seed", type=int, help="Which faults, in which order, and for how long; a new one by default.")
@click.option(
    "--again",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Play the faults of this journal (faults.jsonl of a run that was kept), each on the node that it hit.",
)
@click.option(
    "--back-within",
    type=float,
    default=60.0,
    show_default=True,
    help="Seconds from the end of a fault until all replicas are to be in sync again, and each node back that no other "
    "fault has hit since.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice([PYKBROKER, KAFKA]),
    help="Of each node; pykbroker, three times.",
)
@click.option("--loopback", is_flag=True, help="No namespaces: nodes are killed and frozen, and never cut off.")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep history, logs and data in this new directory.")
@click.option("--debug", default="", help="librdkafka's debug contexts, such as eos,cgrp; it writes to stderr.")
def main(
    minutes: float,
    seed: int | None,
    again: Path | None,
    back_within: float,
    kinds: tuple[str, ...],
    loopback: bool,
    keep: Path | None,
    debug: str,
) -> None:
    """A cluster under faults, judged by what its clients saw."""
    signal.signal(signal.SIGTERM, _end)
    seed = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    nodes = list(kinds) or [PYKBROKER] * 3
    terms = Terms(seed, minutes * 60, back_within, _faults_of(again), keeps=keep is not None, librdkafka_debug=debug)
    if _INSIDE in os.environ:
        sys.exit(_run(nodes, Path(os.environ[_INSIDE]), terms, Network(len(nodes))))
    if not loopback and (reason := why_there_are_no_namespaces()):
        raise click.ClickException(f"{reason}; --loopback goes without")
    if keep is not None:
        keep.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="pykbroker-chaos-", ignore_cleanup_errors=True) as temporary:
        directory = (keep or Path(temporary)).absolute()
        if loopback:
            sys.exit(_run(nodes, directory, terms, None))
        sys.exit(_run_inside(["--seed", str(seed)], directory))


def _end(number: int, frame: FrameType | None) -> None:
    """As Ctrl-C does: whatever was begun is undone on the way out."""
    raise KeyboardInterrupt


def _run_inside(arguments: list[str], directory: Path) -> int:
    """The same command again, in new namespaces. A session of its own, so that all of it can be told to end."""
    command = [*IN_NEW_NAMESPACES, sys.executable, "-m", "compat_tests.chaos", *sys.argv[1:], *arguments]
    process = subprocess.Popen(command, env=os.environ | {_INSIDE: str(directory)}, start_new_session=True)
    try:
        return process.wait()
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        raise


def _faults_of(journal: Path | None) -> list[PlannedFault]:
    """Raises ClickException."""
    if journal is None:
        return []
    try:
        return list(recorded_faults(journal.read_text(encoding="utf-8").splitlines()))
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{journal}: {error}") from error


def _run(nodes: list[str], directory: Path, terms: Terms, network: Network | None) -> int:
    click.echo(f"seed {terms.seed}, {', '.join(nodes)}, {terms.seconds / 60:g} minutes in {terms.rounds} rounds")
    java_is_missing = why_there_is_no_kafka()
    if java_is_missing:
        click.echo(f"no Java producer: {java_is_missing}")
    try:
        outcome = run_chaos([*nodes], directory, network, replace(terms, has_java=not java_is_missing), say=click.echo)
    except AssertionError as failure:
        _tell_logs(directory)
        _tell_what_was_seen(directory)
        click.echo(f"FAILED with seed {terms.seed}: {failure}")
        return 1
    finally:
        if network is not None:
            network.close()
    Told.of(outcome, nodes, terms.seed, terms.seconds / 60).write(directory)
    if not outcome.is_good:
        _tell_logs(directory)
    _tell(outcome)
    if outcome.is_good:
        return 0
    idle = f": hardly anything was done by the {', the '.join(outcome.idle)}" if outcome.idle else ""
    click.echo("\n".join([*outcome.differences, f"FAILED with seed {terms.seed}{idle}"]))
    return 1


def _tell(outcome: Outcome) -> None:
    for (kind, role), count in sorted(outcome.journal.counts().items()):
        click.echo(f"  {count} × {kind} of a {role}")
    for client, count in sorted(outcome.done.items()):
        click.echo(f"  {count} times something done by the {client}")
    for (client, reason), count in sorted(outcome.given_up.items()):
        click.echo(f"  {count} times another {client} after {reason}")
    returns_s = outcome.journal.returns_s()
    click.echo(
        f"{sum(outcome.journal.counts().values())} faults; the cluster was whole again after {len(returns_s)} of them, "
        f"{max(returns_s, default=0):.1f} s after its end at most; the next one came first after the others"
    )
    click.echo(f"{outcome.journal.nodes_returns()}")
    is_good = all(each.is_good for each in outcome.verdicts)
    click.echo(
        f"{'good' if is_good else 'BAD'}: {outcome.operations} operations, "
        f"{outcome.acknowledged} acknowledged records, {len(outcome.verdicts)} rounds"
    )


def _tell_what_was_seen(directory: Path) -> None:
    """What the clients of the last round saw until then may say why."""
    histories = sorted(directory.glob("round-*/history.jsonl"), key=lambda path: path.stat().st_mtime)
    if histories:
        with histories[-1].open(encoding="utf-8") as lines:
            click.echo(f"{histories[-1].parent.name}: {check_lines(lines)}")


def _tell_logs(directory: Path) -> None:
    """Before the reason of a failure: whoever shows no more than the end of a long output shows the reason."""
    for log in sorted(directory.glob("node-*/broker.log")):
        click.echo(f"--- {log.parent.name}\n{log.read_text(errors='replace')[-LOG_LIMIT_CHARS:]}")


if __name__ == "__main__":
    main()
