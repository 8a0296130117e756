"""`pykbroker probe`: what a cluster offers to its clients, as a TOML file that `pykbroker start --as` reads."""

from __future__ import annotations

from pathlib import Path

import click

from .command import ClientCommand, CommandFailed, run
from .connect import open_cluster, read_client_properties
from .examples import examples
from .output import warn
from .progress import progress

_TIMEOUT_S = 60
_TIMEOUTS = {"request.timeout.ms": "10000", "default.api.timeout.ms": "15000"}


@click.command(
    "probe",
    cls=ClientCommand,
    epilog=examples(
        ("Write down what a cluster offers", "pykbroker probe kafka:9092 -o theirs.toml"),
        ("… coordinators, too", "pykbroker probe kafka:9092 --thorough --software 'Apache Kafka 2.8.2'"),
    ),
)
@click.argument("bootstrap_server", metavar="HOST:PORT[,…]")
@click.option(
    "--command-config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Properties file with client settings (client.id, security.protocol).",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write there, not to the screen.")
@click.option(
    "--software", default="", metavar="TEXT", help='What is probed ("Apache Kafka 2.8.2"): brokers do not tell.'
)
@click.option("--thorough", is_flag=True, help="Look for coordinators, also where that creates __consumer_offsets.")
@click.option("--timeout", type=click.IntRange(1, 3600), default=_TIMEOUT_S, show_default=True, metavar="SECONDS")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs; a file of --output is TOML.")
def command(
    bootstrap_server: str,
    command_config: Path | None,
    output: Path | None,
    software: str,
    thorough: bool,
    timeout: int,
    as_json: bool,
) -> None:
    """Write down what a cluster offers: versions, features, limits, configurations and some error codes.

    Nothing in the cluster is changed: see docs/personalities.md for the requests.
    """
    import trio

    from pykbroker.personality.probing import Probed, probe
    from pykbroker.personality.questions import QUESTIONS
    from pykbroker.personality.toml_text import to_toml

    properties = {**_TIMEOUTS, **read_client_properties(command_config)}

    async def work() -> Probed:
        with trio.move_on_after(timeout):
            async with open_cluster(bootstrap_server, properties, client_id="probe") as cluster:
                return await probe(cluster, software=software, thorough=thorough, on_answer=advance)
        raise CommandFailed(f"the cluster did not answer all questions within {timeout} s")

    with progress("Asking", len(QUESTIONS)) as advance:
        probed = run(work)
    for remark in probed.remarks:
        warn(remark)
    text = to_toml(probed.personality)
    if output is not None:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandFailed(f"{output}: {error.strerror or error}") from None
    if as_json:
        click.echo(_as_json(text))
    elif output is None:
        click.echo(text, nl=False)


def _as_json(text: str) -> str:
    import json
    import tomllib

    return json.dumps(tomllib.loads(text))
