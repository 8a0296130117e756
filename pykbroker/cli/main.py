"""The `pykbroker` command. Each sub-command is a module of its own, imported only when it is called.

`pykbroker start` must be serving within a fraction of a second, so what it does not need is not imported.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from pykbroker import __version__

from .lazy_group import LazyGroup

_COMMANDS = {
    "start": "Start a node: broker, controller or both.",
    "container": "Start a node from environment variables, as the images of Kafka do.",
    "cluster": "Start several nodes on this host, in one command.",
    "format": "Format the log directories of a node.",
    "topics": "Create, list, describe, alter and delete topics.",
    "brokers": "List and describe brokers, and unregister one that is gone.",
    "quorum": "Describe the quorum of the controllers, and change its voters.",
    "log-dirs": "Describe log directories: what lies where, and how large it is.",
    "reassign": "Move partitions to other brokers.",
    "elect-leaders": "Elect leaders of partitions.",
    "features": "Describe, upgrade and downgrade features of a cluster.",
    "offsets": "List offsets of partitions: first, last, by time.",
    "apis": "Show which APIs brokers serve, and in which versions.",
    "produce": "Write records from standard input to a topic.",
    "consume": "Read records of a topic to standard output.",
    "groups": "List, describe, reset and delete consumer groups.",
    "share-groups": "List, describe, reset and delete share groups.",
    "streams-groups": "List, describe, reset and delete groups of Kafka Streams.",
    "wait": "Wait until a topic has records, a group is stable or has caught up.",
    "why": "Say why a group rebalances, a consumer gets nothing, an offset stands, a client is throttled.",
    "transactions": "List, describe and find transactions, and abort those that hang.",
    "delete-records": "Delete the records of partitions up to given offsets.",
    "configs": "Describe and alter configurations.",
    "client-metrics": "List, describe, alter and delete subscriptions to what clients measure.",
    "users": "Describe and alter the users who log in by SCRAM.",
    "acls": "Add, remove and list ACLs: who may do what.",
    "quotas": "Describe and alter quotas of users, clients and addresses.",
    "tokens": "Create, renew, expire and describe delegation tokens.",
    "ctl": "Control a running broker of tests: faults, time, the journal of its requests.",
    "replay": "List the entries of a journal, and rebuild the state of the broker behind any of them.",
    "spark": "Bulk work on topics by Apache Spark: archives, audits.",
    "doctor": "Say what is wrong with a cluster, as a client sees it, and what would work.",
    "top": "Show what a cluster does, live: throughput, lag, replicas, disks, requests.",
    "perf": "Measure a cluster: produce, consume, latency.",
    "dump": "Print segments, indexes, snapshots and checkpoints, and what is wrong with them.",
    "verify": "Check the log directories of a stopped node.",
    "diff": "Run a script on two brokers, and tell what they did differently.",
    "probe": "Write down what a cluster offers, for start --as.",
    "kafka": "Run a tool of Kafka's by its name: kafka-topics.sh.",
    "inspect": "Show what is in frames, segments and the metadata log.",
    "completion": "Print the script that lets a shell complete commands and options.",
}
_EXIT_INTERRUPTED: Final = 130
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Commands(LazyGroup):
    """All commands. A closed pipe (`| head`) is a good end of each of them, and of its help; a full disk is one line.

    Ctrl-C ends them with 130 also where it comes while their modules are imported.
    """

    def main(self, *args: Any, **extra: Any) -> Any:
        try:
            return super().main(*args, **extra)
        finally:
            _forget_full_stderr()

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _ends_shortly():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _ends_shortly():
            return super().invoke(ctx)


def _forget_full_stderr() -> None:
    """Python makes 120 of any exit code where standard error does not take what is left for it, on a full disk."""
    stderr = sys.stderr
    if stderr is None:  # closed before the start
        return
    try:
        stderr.flush()
    except OSError:
        from .command import forget

        forget(stderr)


@contextmanager
def _ends_shortly() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        from .command import forget_stdout

        forget_stdout()
        raise SystemExit(0) from None
    except KeyboardInterrupt:
        raise SystemExit(_EXIT_INTERRUPTED) from None
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        from .command import forget_stdout

        forget_stdout()
        raise click.ClickException(os.strerror(error.errno)) from None


@click.group(
    cls=_Commands,
    modules="pykbroker.cli.",
    summaries=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__)
def main() -> None:
    """A broker that speaks Apache Kafka's protocol, and the commands around it."""
