"""Common parts of the commands of `pykbroker spark`: how Spark is started, their errors, and the line of progress."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .command import EXIT_INTERRUPTED, CommandFailed, bootstrap_options, forget_stdout, key_values, one_line
from .connect import read_client_properties

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from pykbroker.spark.progress import Listener, Progress
    from pykbroker.spark.source import Source

T = TypeVar("T")

EXIT_PROBLEMS = 3
"""Of commands that have done what they were asked, and found something wrong."""

_OPTIONS = (
    click.option(
        "--master",
        default="local[*]",
        show_default=True,
        metavar="URL",
        help="Where Spark runs: local[N], spark://HOST:PORT, yarn, k8s://…",
    ),
    click.option("--jars", metavar="FILE[,…]", help="The jars of Spark's Kafka connector, instead of fetching them."),
    click.option("--driver-memory", default="2g", show_default=True, metavar="SIZE", help="As Spark writes it."),
    click.option(
        "--spark-conf", "spark_confs", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; may be repeated."
    ),
    click.option(
        "--spark-log", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="What Spark logs."
    ),
)


def spark_options(function: Callable[..., None]) -> Callable[..., None]:
    """`--bootstrap-server`, `--command-config` and how Spark is started, as the arguments `source` and `session`."""

    @wraps(function)
    def with_source_and_session(
        bootstrap_server: str,
        command_config: Path | None,
        master: str,
        jars: str | None,
        driver_memory: str,
        spark_confs: tuple[str, ...],
        spark_log: Path | None,
        **options: Any,
    ) -> None:
        from pykbroker.spark.session import SessionOptions

        session = SessionOptions(
            master=master,
            jars=tuple(jar for jar in (jars or "").split(",") if jar),
            driver_memory=driver_memory,
            log=None if spark_log is None else str(spark_log),
            config=key_values(spark_confs, "--spark-conf"),
        )
        function(source=source_of(bootstrap_server, command_config), session=session, **options)

    decorated: Callable[..., None] = with_source_and_session
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return bootstrap_options(decorated)


_COPY_OPTIONS = (
    click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="A topic; may be repeated."),
    click.option("--topics-matching", metavar="REGEX", help="All topics whose whole names match, but internal ones."),
    click.option(
        "--until",
        default="now",
        show_default=True,
        metavar="now|TIME",
        help="Up to which records: those that are there, or older than a time (2026-11-25T12:00:00+00:00).",
    ),
    click.option("--follow", is_flag=True, help="Go on until Ctrl-C, and look for new records every --poll-interval."),
    click.option("--poll-interval", type=click.FloatRange(min=0.1), default=10.0, show_default=True, metavar="SECONDS"),
    click.option(
        "--isolation-level",
        type=click.Choice(["read_committed", "read_uncommitted"]),
        default="read_committed",
        show_default=True,
        help="Whether records of aborted transactions are left out.",
    ),
    click.option(
        "--max-batch-records",
        type=click.IntRange(min=1),
        default=5_000_000,
        show_default=True,
        help="So many offsets are copied and committed at a time.",
    ),
    click.option("--accept-loss", is_flag=True, help="Go on without what a topic deleted before it was read."),
)


def copy_options(function: Callable[..., None]) -> Callable[..., None]:
    """Options of `archive` and `mirror`, as the argument `copied`: which records of which topics are copied."""

    @wraps(function)
    def with_copied(until: str, poll_interval: float, **options: Any) -> None:
        names = ("topics", "topics_matching", "follow", "isolation_level", "max_batch_records", "accept_loss")
        copied = {name: options.pop(name) for name in names}
        copied["until"] = until if until == "now" else milliseconds(until, "--until expects 'now' or")
        copied["poll_interval_s"] = poll_interval
        function(copied=copied, **options)

    decorated: Callable[..., None] = with_copied
    for option in reversed(_COPY_OPTIONS):
        decorated = option(decorated)
    return decorated


producer_property_option = click.option(
    "--producer-property",
    "producer_properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="A property of librdkafka's producer; may be repeated.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Tell what there is to do, and change nothing.")


_SELECTION_OPTIONS = (
    click.option(
        "--offsets",
        "offsets",
        multiple=True,
        metavar="PARTITION:FIRST:END",
        help="Offsets of the archive, without END; may be repeated, once for each partition. All by default.",
    ),
    click.option("--from", "from_time", metavar="TIME", help="Records of this time or later."),
    click.option("--until", "until_time", metavar="TIME", help="Records before this time (2026-11-25T12:00:00+00:00)."),
)


def selection_options(function: Callable[..., None]) -> Callable[..., None]:
    """A part of an archive, as the argument `selection`."""

    @wraps(function)
    def with_selection(offsets: tuple[str, ...], from_time: str | None, until_time: str | None, **options: Any) -> None:
        from pykbroker.spark.archiving.selection import Selection

        selection = Selection(
            None if from_time is None else milliseconds(from_time, "--from expects"),
            None if until_time is None else milliseconds(until_time, "--until expects"),
            _ranges(offsets),
        )
        function(selection=selection, **options)

    decorated: Callable[..., None] = with_selection
    for option in reversed(_SELECTION_OPTIONS):
        decorated = option(decorated)
    return decorated


def _ranges(texts: tuple[str, ...]) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for text in texts:
        numbers = text.split(":")
        if len(numbers) != 3 or not all(each.isascii() and each.isdigit() and len(each) < 20 for each in numbers):
            raise CommandFailed(f"--offsets expects PARTITION:FIRST:END, three numbers, not '{text}'")
        partition, first, end = map(int, numbers)
        if partition in found:
            raise CommandFailed(f"--offsets names partition {partition} twice")
        found[partition] = (first, end)
    return found


def milliseconds(text: str, expected: str) -> int:
    """A time as milliseconds of Unix time, in UTC where it names no other zone. expected: begins the error."""
    from datetime import UTC, datetime

    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise CommandFailed(f"{expected} a time such as 2026-11-25T12:00:00+00:00, not '{text}'") from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def source_of(bootstrap_server: str, command_config: Path | None) -> Source:
    from pykbroker.spark.source import Source

    properties = read_client_properties(command_config)
    return Source(bootstrap_server, properties)


def run_pipeline(work: Callable[[Listener], T]) -> T:
    """Run it with lines and progress on standard error; its errors end the command with one line.

    A termination signal is what Ctrl-C is.
    """
    from pykbroker.spark.errors import Cancelled, PipelineError

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Py4j logs a stack trace of each interrupted call to the root logger.
    logging.disable(logging.CRITICAL)
    try:
        with _listener() as listener:
            return work(listener)
    except (KeyboardInterrupt, Cancelled):
        raise SystemExit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:
        forget_stdout()
        raise SystemExit(0) from None
    except PipelineError as error:
        raise CommandFailed(one_line(error)) from None


@contextmanager
def _listener() -> Iterator[Listener]:
    from pykbroker.spark.progress import Listener

    if not sys.stderr.isatty():
        yield Listener(_say, lambda progress: _say(progress_text(progress)))
        return
    with _bar() as bar:
        task = bar.add_task("", total=None, state="")

        def progress(now: Progress) -> None:
            bar.update(task, completed=now.records, total=now.records + now.left, state=progress_text(now))

        yield Listener(bar.console.print, progress)


def _bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True, highlight=False, markup=False),
        transient=True,
    )


def _say(line: str) -> None:
    click.echo(line, err=True)


def progress_text(progress: Progress) -> str:
    return (
        f"{progress.batches} batches, {progress.records:,} records, {size_text(progress.size_bytes)}; "
        f"{progress.left:,} offsets left"
    )


def size_text(size: int) -> str:
    """`1.5 GB`, in powers of 1,000."""
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
