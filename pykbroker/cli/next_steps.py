"""The next steps of somebody at a terminal, told once when a node serves: where it is, a first record, how to stop.

Programs get the one ready line on standard output and nothing of this, also where only their output is no terminal.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

import click

from .command import DEFAULT_BOOTSTRAP_SERVER

if TYPE_CHECKING:
    from pykbroker.server.node.bound_listeners import BoundListener
    from pykbroker.server.node.node import NodeReady

    from .secure.directory import SecureDirectory
    from .start_node import Start


def tell_next_steps(start: Start, ready: NodeReady, console: str = "") -> None:
    """Write to the terminal, if there is one. console: the address of the console, where there is one."""
    stream = _terminal()
    if stream is None:
        return
    rows = list(next_steps(start, ready, console))
    width = max(len(label) for label, _ in rows)
    lines = [f"  {label.ljust(width)}  {text}" for label, text in rows]
    try:
        click.echo("\n" + "\n".join(lines) + "\n", file=stream)
    except OSError:  # the terminal is gone
        pass


def next_steps(start: Start, ready: NodeReady, console: str = "") -> Iterator[tuple[str, str]]:
    """Yield labels and texts."""
    listener = _listener(start, ready)
    if listener is not None:
        yield "bootstrap", listener.address
    if console:
        yield "console", console
    directories = _printable(", ".join(ready.log_directories))
    yield "data", f"{directories} (removed at the end)" if start.is_ephemeral else directories
    if listener is not None:
        yield from zip(("to try it", "", ""), _examples(_flags(start.secure, listener)), strict=True)
    yield "to stop", "Ctrl-C"


def _examples(flags: str) -> Sequence[str]:
    return (
        f"pykbroker topics create orders{flags}",
        f"echo hello | pykbroker produce --topic orders{flags}",
        f"pykbroker consume --topic orders --from-beginning{flags}",
    )


def _listener(start: Start, ready: NodeReady) -> BoundListener | None:
    """The first listener that clients here can use; None of a node that serves no clients."""
    clients = {each.name for each in start.config.listeners.client}
    for each in ready.listeners:
        if each.name in clients and (start.secure is None or each.security_protocol == "SASL_SSL"):
            return each
    return None


def _flags(secure: SecureDirectory | None, listener: BoundListener) -> str:
    is_default = listener.address in (DEFAULT_BOOTSTRAP_SERVER, "localhost:9092")
    flags = "" if is_default else f" --bootstrap-server {listener.address}"
    if secure is not None:
        flags += f" --command-config {shlex.quote(str(secure.admin_properties))}"
    elif listener.security_protocol != "PLAINTEXT":
        flags += " --command-config FILE"
    return flags


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text)


def _terminal() -> TextIO | None:
    """The terminal beside the ready line: standard error, or else standard output."""
    return next((each for each in (sys.stderr, sys.stdout) if each is not None and each.isatty()), None)
