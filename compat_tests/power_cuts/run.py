"""One cut after another: a broker under load loses its power, starts on what is left, and has kept every promise."""

import json
import random
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from pykbroker.storage.directories.shutdown_marks import BOOT_ID_FILE

from ..brokers import Pykbroker
from ..waiting import DEADLINE_S, until
from .load import PARTITIONS, Client, IdempotentProducer, OffsetCommitter, TransactionalProducer
from .volume import Cut, CutVolume

PROPERTIES = {
    "log.flush.interval.messages": "1",
    "log.flush.offset.checkpoint.interval.ms": "300",
    "log.flush.start.offset.checkpoint.interval.ms": "300",
    "replica.high.watermark.checkpoint.interval.ms": "300",
    "log.segment.bytes": "1048576",
    "log.segment.delete.delay.ms": "100",
    "log.retention.check.interval.ms": "500",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "metadata.log.max.record.bytes.between.snapshots": "3000",
}
TOPIC_CONFIGS: list[dict[str, str]] = [
    {},
    {"preallocate": "true", "segment.bytes": "1048576"},
    {"segment.ms": "100", "index.interval.bytes": "64"},
]
_BAD = re.compile(r"^.*(ERROR|Traceback|damaged|is offline|quarantin).*$", re.MULTILINE)
_LONGEST_LOAD_S = 1.5


@dataclass(slots=True)
class Outcome:
    """What was seen so far. given_up: why producers went no further, in librdkafka's words."""

    cuts: int = 0
    promises: int = 0
    given_up: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        text = f"{self.cuts} power cuts, {self.promises} promises kept"
        return f"{text}, {len(self.given_up)} producers gave up: {self.given_up[-1]}" if self.given_up else text


class PowerCuts:
    """`cut` is one of them; everything stays where it is for the next one."""

    def __init__(self, directory: Path, seed: int, *, file_system: str = "ext4") -> None:
        self.outcome = Outcome()
        self._seed = seed
        self._volume = CutVolume(directory, file_system)
        self.broker = Pykbroker(directory / "broker", PROPERTIES | {"log.dirs": str(self._volume.path / "data")})
        self._log_read = 0
        self._topics: set[str] = set()

    def close(self) -> None:
        self.broker.kill()
        self._volume.close()

    def __enter__(self) -> "PowerCuts":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def cut(self, number: int) -> None:
        """The cut of this number, which the seed and the number decide, but for the machine's speed."""
        rng = random.Random(f"{self._seed}/{number}")
        if self.broker.process is None:
            self._start()
        clients = self._clients(number, rng)
        for client in clients:
            client.start()
        self._wait_for_load(clients, rng)
        epoch = self._leader_epoch()
        self._cut_power(rng)
        self._volume.unmount()
        self._volume.mount()
        self._boot_anew()
        self._start()
        for client in clients:
            client.end()
        assert self._leader_epoch() > epoch, "a vote is forgotten"
        self.outcome.promises += sum(client.check() for client in clients)
        self._check_topics()
        for client in clients:
            if isinstance(client, IdempotentProducer):
                self.outcome.given_up += client.fatal
        self.outcome.cuts += 1

    def _cut_power(self, rng: random.Random) -> None:
        """Nobody is told of a sync that was under way: see `volume.py`."""
        kind = rng.choice((Cut.NOTHING, Cut.NOTHING, Cut.JOURNAL, Cut.EVERYTHING))
        lives_on = rng.random() < 0.5
        self.broker.pause()
        if lives_on:
            until(self._stands_still, "each call of the broker has returned")
        self._volume.cut(kind)
        if lives_on:  # a little, without its disk, and it may acknowledge nothing
            self.broker.resume()
            time.sleep(rng.uniform(0, 0.2))
        self.broker.kill()

    def _stands_still(self) -> bool:
        """Whether each thread is stopped; one in a call that waits for the disk is not, nor is one that just ends."""
        try:
            stats = [stat.read_text() for stat in Path(f"/proc/{self.broker.pid}/task").glob("*/stat")]
        except (FileNotFoundError, ProcessLookupError):
            return False
        return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)

    def _boot_anew(self) -> None:
        """The machine under the broker is as old as before: what it wrote down of its start has to be another's."""
        noted = self._volume.path / "data" / BOOT_ID_FILE
        if noted.exists():
            noted.write_text(str(uuid.uuid4()))

    def _start(self) -> None:
        self._log_read = len(self.broker.log_text())
        self.broker.start()

    def _clients(self, number: int, rng: random.Random) -> list[Client]:
        """Clients with new topics; those of the cut before are deleted meanwhile."""
        bootstrap = self.broker.bootstrap
        admin = AdminClient({"bootstrap.servers": bootstrap})
        names = [f"{kind}-{number}" for kind in ("records", "transactions", "offsets")]
        new = [NewTopic(name, PARTITIONS, 1, config=rng.choice(TOPIC_CONFIGS)) for name in names]
        for future in admin.create_topics(new).values():
            future.result(DEADLINE_S)
        old = sorted(self._topics)
        self._topics = set(names)
        if old:
            admin.delete_topics(old)  # nobody waits for it
        kinds = (IdempotentProducer, TransactionalProducer, OffsetCommitter)
        return [kind(bootstrap, name) for kind, name in zip(kinds, names, strict=True)]

    def _wait_for_load(self, clients: list[Client], rng: random.Random) -> None:
        producer = clients[0]
        assert isinstance(producer, IdempotentProducer)
        until(lambda: producer.acknowledgements or producer.failure, "something is acknowledged")
        time.sleep(rng.uniform(0, _LONGEST_LOAD_S))

    def _leader_epoch(self) -> int:
        state = self._volume.path / "data" / "__cluster_metadata-0" / "quorum-state"
        return int(json.loads(state.read_bytes())["leaderEpoch"])

    def _check_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        found = admin.list_topics(timeout=DEADLINE_S).topics
        assert self._topics <= found.keys(), f"topics are gone: {self._topics - found.keys()}"
        bad = _BAD.search(self.broker.log_text()[self._log_read :])
        assert bad is None, f"the broker has found what no power cut leaves: {bad[0]}"


def run_cuts(directory: Path, cuts: int, seed: int, *, file_system: str = "ext4", say: Callable[[str], object]) -> None:
    """Raises an exception whose note says how to run the same cuts again."""
    with PowerCuts(directory, seed, file_system=file_system) as power:
        for number in range(cuts):
            try:
                power.cut(number)
            except BaseException as failure:
                command = f"python -m compat_tests.power_cuts --cuts {number + 1} --seed {seed}"
                failure.add_note(f"cut {number}; again: {command} --file-system {file_system}")
                failure.add_note(power.broker.log_tail())
                raise
            say(f"{power.outcome}")
        power.broker.stop()
