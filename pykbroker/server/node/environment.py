"""A node runs on the disk, network, clock, threads and chance of its process, or on those of the simulated world."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from pykbroker.security.sasl.process_options import NO_OPTIONS, ProcessOptions
from pykbroker.storage.files.disk import Disk

from ..logs.cleaning_process import ThisThread
from ..logs.log_cleaner import NewWorkplace
from ..logs.log_loading import OnLoading
from ..network.offer import Offer
from ..network.tap import Tap
from ..network.transport import Network
from ..runtime.clock import Clock
from ..runtime.threads import Threads
from ..runtime.time_scopes import BY_THE_CLOCK, TimeScopes


@dataclass(frozen=True, slots=True)
class Environment:
    """All that a node does not make itself.

    new_workplace: where a log is cleaned; another process has to see the same disk. on_loading: is told how many logs
    are opened, where that takes a while. process_options: what those say of SASL who start the process. offer: None
    where clients are offered all that is served. tap: is in the way of what comes by brokers' listeners.
    when_stopping: is called when a clean shutdown begins. time: for what the node is ahead of the clock. notes_fetches:
    consumers' fetches are noted, for who asks why one of them gets nothing. flush_threads: where the
    metadata log is flushed; None for `threads`. takes_telemetry: clients are asked for metrics (KIP-714), and somebody
    shows them.
    """

    disk: Disk
    network: Network
    clock: Clock
    threads: Threads
    rng: random.Random
    new_workplace: NewWorkplace = ThisThread
    on_loading: OnLoading | None = None
    process_options: ProcessOptions = NO_OPTIONS
    offer: Offer | None = None
    tap: Tap | None = None
    when_stopping: Callable[[], None] | None = None
    time: TimeScopes = BY_THE_CLOCK
    notes_fetches: bool = False
    flush_threads: Threads | None = None
    takes_telemetry: bool = False

    def fork_rng(self) -> random.Random:
        """A generator for one part, which draws the same numbers whatever the other parts draw."""
        return random.Random(self.rng.getrandbits(64))  # noqa: S311 - nothing secret is drawn
