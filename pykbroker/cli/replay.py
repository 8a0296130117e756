"""`pykbroker replay`: the entries of a journal's file, and the broker's state behind any of them.

The state comes from a savepoint that was taken later: the journal has where the logs ended, not what was in them.
"""

from __future__ import annotations

import json
from datetime import datetime
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .command import ClientCommand, CommandFailed, forget_stdout, one_line
from .examples import examples
from .listing import print_line
from .progress import BESIDE_SHARE, in_portions, progress, stages

if TYPE_CHECKING:
    from pykbroker.control.journal.json_lines import ReadJournal

_PATH = click.Path(path_type=Path)


@click.command(
    "replay",
    cls=ClientCommand,
    epilog=examples(
        ("What happened", "pykbroker replay journal.jsonl"),
        ("The requests of one client, for a program", "pykbroker replay journal.jsonl --client-id billing --json"),
        (
            "The broker behind request 42",
            "pykbroker replay journal.jsonl --savepoint later --until 42 --data-dir then",
        ),
    ),
)
@click.argument("journal", type=_PATH, metavar="JOURNAL")
@click.option("--api", help="List the requests of this API alone: Produce, Fetch, …")
@click.option("--client-id", help="List those of this client alone.")
@click.option("--topic", help="List those that name this topic alone.")
@click.option("--json", "as_json", is_flag=True, help="List them as JSON, an object a line, as the journal has them.")
@click.option("--savepoint", type=_PATH, help="A savepoint of the same broker, taken later.")
@click.option("--until", type=int, metavar="N", help="The state behind the entry with this number.")
@click.option("--at", "at_time", metavar="TIME", help="… behind the last request that had ended by then.")
@click.option("--data-dir", type=_PATH, help="Write it to this directory, for pykbroker start --data-dir.")
@click.option("--output", type=_PATH, help="Write it to this savepoint, for pykbroker start --savepoint.")
def command(
    journal: Path,
    api: str | None,
    client_id: str | None,
    topic: str | None,
    as_json: bool,
    savepoint: Path | None,
    until: int | None,
    at_time: str | None,
    data_dir: Path | None,
    output: Path | None,
) -> None:
    """List the entries of JOURNAL, a file of JSON lines; or rebuild the state that the broker had when one had ended.

    The number of an entry is in front of its line. `--savepoint FILE --until N` takes what is in the logs from FILE,
    and cuts it back to where they ended then. A TIME is such as 2026-01-31T12:00:00.5, here or with a time zone.
    """
    from pykbroker.control.savepoints.errors import SavepointError

    filters = (api, client_id, topic)
    wants_state = (savepoint, until, at_time, data_dir, output) != (None,) * 5
    if wants_state and (as_json or filters != (None,) * 3):
        raise CommandFailed("--api, --client-id, --topic and --json are for lists, and the rest is for a state")
    read, cut = _read(journal)
    if not wants_state:
        _list(read, *filters, as_json=as_json)
    if cut is not None:
        raise CommandFailed(cut)
    if not wants_state:
        return
    if savepoint is None:
        raise CommandFailed("a state needs --savepoint FILE, which has what was in the logs")
    if (until is None) == (at_time is None):
        raise CommandFailed("a state needs either --until N or --at TIME")
    if (data_dir is None) == (output is None):
        raise CommandFailed("a state is written either to --data-dir DIR or to --output FILE")
    if output is not None and realpath(output) in map(realpath, (journal, savepoint)):
        raise CommandFailed(f"--output {output} would take the place of what the state is made of")
    from pykbroker.control.replay import journal_file

    try:
        number = until if until is not None else journal_file.number_at(read, _milliseconds(at_time or ""))
        with stages(1) as under_way:
            under_way.begin("Writing the state")
            if data_dir is not None:
                journal_file.replay_into(data_dir, read, number, savepoint)
            elif output is not None:
                journal_file.replay_to_savepoint(output, read, number, savepoint)
    except SavepointError as error:
        raise CommandFailed(one_line(error)) from None
    print_line(f"{data_dir or output} has the state behind #{number}")


def _read(path: Path) -> tuple[ReadJournal, str | None]:
    """Return the journal, or what there is of it and how it was cut."""
    from pykbroker.control.journal.json_lines import JournalCut, JournalFileError, read_journal

    try:
        with progress("Reading", path.stat().st_size, BESIDE_SHARE) as advance:
            return read_journal(path, in_portions(advance)), None
    except JournalCut as error:
        return error.journal, one_line(error)
    except JournalFileError as error:
        raise CommandFailed(one_line(error)) from None
    except OSError as error:
        raise CommandFailed(f"{path}: {error.strerror or error}") from None


def _milliseconds(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp() * 1000
    except (ValueError, OverflowError, OSError):
        raise CommandFailed(f"--at {text}: a time is such as 2026-01-31T12:00:00.5, here or with a time zone") from None


def _list(journal: ReadJournal, api: str | None, client_id: str | None, topic: str | None, *, as_json: bool) -> None:
    from pykbroker.control.journal.query import UnknownApi
    from pykbroker.control.journal.recorded_request import event_line

    try:
        requests = {each.number: each for each in journal.requests(api, client_id=client_id, topic=topic)}
    except UnknownApi as error:
        raise CommandFailed(one_line(error)) from None
    is_all = (api, client_id, topic) == (None,) * 3
    try:
        for line in journal.lines:
            is_event = line["kind"] == "event"
            if (is_event and not is_all) or (not is_event and line["number"] not in requests):
                continue
            if as_json:
                click.echo(json.dumps(line))
            else:
                print_line(event_line(line) if is_event else str(requests[line["number"]]))
    except BrokenPipeError:
        forget_stdout()
