"""`pykbroker doctor`: what is wrong with a cluster, as a client sees it, and what would work.

It ends with 0 where nothing is wrong, with 2 where there are warnings alone, and with 1 where there is an error, or
where it cannot work at all. It looks, and changes nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .command import DEFAULT_BOOTSTRAP_SERVER, ClientCommand, CommandFailed, run
from .connect import read_client_properties
from .control_target import ControlTarget
from .examples import examples
from .progress import stages


@click.command(
    "doctor",
    cls=ClientCommand,
    epilog=examples(
        ("The broker on this machine", "pykbroker doctor"),
        (
            "A cluster with log-in",
            "pykbroker doctor kafka:9093 --command-config client.properties --json",
        ),
        ("At once, without a look at groups", "pykbroker doctor localhost:9092 --watch 0"),
    ),
)
@click.argument("address", default=DEFAULT_BOOTSTRAP_SERVER, metavar="[HOST:PORT[,…]]")
@click.option(
    "--command-config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Properties file with client settings (security.protocol, ssl.…, sasl.…).",
)
@click.option(
    "--ctl",
    envvar="PYKBROKER_CTL",
    metavar="HOST:PORT",
    help="The broker's control, if it was started with --ctl-port: it knows of clients that never came.",
)
@click.option("--token-file", type=click.Path(path_type=Path), metavar="FILE", help="The broker's --ctl-token-file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--watch",
    type=click.FloatRange(0, 3600),
    default=6.0,
    show_default=True,
    metavar="SECONDS",
    help="The time between the two looks at groups; with 0 groups are not looked at.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(1, 7200),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="The time for all.",
)
@click.option("--max-topics", type=click.IntRange(0), default=1000, show_default=True, help="Topics to look at.")
@click.option("--max-groups", type=click.IntRange(0), default=200, show_default=True, help="Groups to look at.")
def command(
    address: str,
    command_config: Path | None,
    ctl: str | None,
    token_file: Path | None,
    as_json: bool,
    watch: float,
    timeout: float,
    max_topics: int,
    max_groups: int,
) -> None:
    """Say what is wrong with a cluster, and what would work."""
    from pykbroker.client.cluster import parse_bootstrap_servers
    from pykbroker.client.errors import BadInput
    from pykbroker.config.keys import ConfigurationError
    from pykbroker.doctor.access import Access
    from pykbroker.doctor.diagnosis import MOST_LOOKS, Bounds, diagnose
    from pykbroker.doctor.findings import exit_code
    from pykbroker.doctor.report import document_of, lines_of
    from pykbroker.doctor.rules.clients import clients_that_never_came

    try:
        servers = parse_bootstrap_servers(address)
        access = Access.of(read_client_properties(command_config))
    except (BadInput, ConfigurationError) as error:
        raise CommandFailed(str(error)) from None
    seeking = [] if ctl is None else _seeking(ControlTarget(ctl, token_file))
    bounds = Bounds(timeout, watch, max_topics, max_groups)
    with stages(MOST_LOOKS) as under_way:
        diagnosis = run(diagnose, servers, access, bounds, lambda what: under_way.begin(f"Looking at {what}"))
    diagnosis.findings.extend(clients_that_never_came(seeking))
    if as_json:
        click.echo(document_of(diagnosis, address))
    else:
        for line in lines_of(diagnosis, address):
            click.echo(line)
    raise SystemExit(exit_code(diagnosis.findings))


def _seeking(target: ControlTarget) -> list[dict[str, Any]]:
    """Raises CommandFailed where no control answers."""
    from pykbroker.control.http.asking import ControlFailed
    from pykbroker.control.http.operations import operation

    try:
        seeking: list[dict[str, Any]] = target.client().ask(operation("clients seeking"), {})
    except ControlFailed as error:
        raise CommandFailed(str(error)) from None
    return seeking
