"""`pykbroker perf`: measure a cluster with one producer or consumer. Each sub-command is a module of its own."""

from __future__ import annotations

import click

from .command import ClientGroup
from .examples import examples
from .lazy_group import LazyGroup

_COMMANDS = {
    "produce": "Write records as fast as the cluster takes them, or at a steady rate; say how long each one took.",
    "consume": "Read records as fast as the cluster gives them.",
    "share-consume": "Read records as fast as a share group gives them.",
    "latency": "Send records one by one, and say how long each one took to a consumer.",
}


class PerfGroup(LazyGroup, ClientGroup):
    """A group whose commands are imported when they are called, and whose errors are one line."""


@click.group(
    "perf",
    cls=PerfGroup,
    modules="pykbroker.cli.perf_",
    summaries=_COMMANDS,
    epilog=examples(
        ("Write a million records", "pykbroker perf produce --topic t --num-records 1000000 --record-size 100"),
        ("Read them", "pykbroker perf consume --topic t --messages 1000000"),
        ("How long one takes to a consumer", "pykbroker perf latency --topic t --num-records 10000"),
    ),
)
def command() -> None:
    """Measure a cluster, with the flags and lines of Kafka's kafka-*-perf-test tools.

    The figures are those of the cluster and of this client together: one process, in Python, on one core. A broker
    that is faster than this client is measured by several of them at once, or by a client in another language.
    """
