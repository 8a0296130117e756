"""Where a row's processor time goes: recordings of pykbroker's processes in a round that is not measured.

While a measure runs, each process of pykbroker that it or the run has started gets py-spy, which samples the stacks of
Python and of the compiled code below it. On Linux where `perf` may record, it does so beside py-spy, since py-spy does
not see into the kernel; its report is a list of the functions of the kernel, of libraries and of the interpreter.
Samples of py-spy in which a thread waits, for work, a lock, a socket or a time, are left out: a share is one of the
samples in which something ran.

What is kept of a row is bounded: the first `MOST_S` seconds of at most `MOST_PROCESSES` processes, of each the
`MOST_STACKS` most frequent stacks, the others counted as one, and the first `MOST_PERF_LINES` lines of perf's report.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import psutil

from benchmarks.results import HotFunction, ProfileResult

MOST_S = 60
MOST_PROCESSES = 6
MOST_STACKS = 4_000
MOST_PERF_LINES = 120
MOST_FUNCTIONS = 10
RARE = "(rare stacks)"
_EVERYWHERE = 0.9
"""A function that is in so many samples tells nothing: the interpreter's start, `main`, the event loop."""
_RATE_HZ = 250
_PERF_HZ = 199
_LOOK_S = 0.1
_MOST_TRIALS = 20
_DEEPEST_WAIT = 5
"""So many frames may a wait have in it."""
_END_S = 60
_LINE = re.compile(r":\d+(?=\)$)")
_ADDRESS = re.compile(r"0x[0-9a-f]+ \((?P<library>[^()]+)\)")
_WAITS = re.compile(
    r"(lock_PyThread_acquire_lock|PyThread_acquire_lock_timed|take_gil|drop_gil|(p?select|epoll|kqueue)_\w*poll\w*"
    r"|epoll_p?wait2?|kevent|p?poll|time_sleep|pysleep|clock_nanosleep|sigtimedwait) \(.*"
)

Stacks = Mapping[tuple[str, ...], int]
"""Samples by stack, the outermost frame first."""


class ProfileMalformed(ValueError):
    """A file of stacks has a line that is none."""


class NoProfiler(RuntimeError):
    """py-spy is not there."""


def parse_stacks(lines: Iterable[str]) -> Counter[tuple[str, ...]]:
    """Stacks of a file of lines as `outer;inner 12`, without those in which a thread waits. A function is one frame,
    whatever its line of code, and so is what a library does between two functions whose names are known.

    Raises ProfileMalformed. The most frequent `MOST_STACKS` are kept, with the others' samples in a stack of their own.
    """
    stacks: Counter[tuple[str, ...]] = Counter()
    for number, line in enumerate(lines, 1):
        if not (text := line.strip()):
            continue
        names, _, count = text.rpartition(" ")
        if not names or not (count.isascii() and count.isdigit()):
            raise ProfileMalformed(f"line {number} is no stack with a count: {text[:80]!r}")
        frames = [_frame(name) for name in names.split(";")]
        if not any(_WAITS.fullmatch(frame) for frame in frames[-_DEEPEST_WAIT:]):
            stacks[tuple(name for place, name in enumerate(frames) if not place or name != frames[place - 1])] += int(
                count
            )
    kept = Counter(dict(stacks.most_common(MOST_STACKS)))
    if rare := stacks.total() - kept.total():
        kept[(RARE,)] += rare
    return kept


def _frame(name: str) -> str:
    """A frame without its line; an address that has no name goes by its library."""
    return _ADDRESS.sub(r"(\g<library>)", _LINE.sub("", name.strip()))


def format_stacks(stacks: Stacks) -> str:
    """The lines that `parse_stacks` reads, the most frequent first."""
    ordered = sorted(stacks.items(), key=lambda item: (-item[1], item[0]))
    return "".join(f"{';'.join(names)} {count}\n" for names, count in ordered)


def hot_functions(stacks: Stacks, most: int = MOST_FUNCTIONS) -> tuple[HotFunction, ...]:
    """The functions with the largest own shares and those with the largest totals, `most` of each, by their own share.

    A function that is several times in a stack counts once. Totals leave out what is nearly everywhere.
    """
    samples = sum(stacks.values())
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for names, count in stacks.items():
        own[names[-1]] += count
        for name in set(names):
            total[name] += count
    inner = {name: count for name, count in total.items() if count < _EVERYWHERE * samples}
    wanted = {name for counts in (own, Counter(inner)) for name, _ in _first(counts, most)}
    return tuple(
        HotFunction(name, own[name] / samples, total[name] / samples)
        for name in sorted(wanted - {RARE}, key=lambda name: (-own[name], -total[name], name))
    )


def _first(counts: Mapping[str, int], most: int) -> list[tuple[str, int]]:
    return sorted(((name, count) for name, count in counts.items() if count), key=lambda item: (-item[1], item[0]))[
        :most
    ]


@dataclass(slots=True)
class Profiler:
    """Records what `recording` surrounds. directory: gets a folder for each measure.

    Raises NoProfiler where py-spy is not there.
    """

    directory: Path
    py_spy: str = field(default_factory=lambda: _py_spy())
    perf: str | None = field(default_factory=lambda: _perf())

    @contextmanager
    def recording(self, measure: str, into: list[ProfileResult], beside: Path) -> Iterator[None]:
        """Record pykbroker's processes meanwhile. into: gets what was recorded; beside: the folder to which the files'
        names in it are relative. A measure that fails leaves no profile.
        """
        folder = self.directory / folder_name(measure)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with _Watch(folder, self.py_spy, self.perf) as watch:
            yield
        into.extend(profile for each in watch.recordings if (profile := each.keep(beside)) is not None)


def folder_name(measure: str) -> str:
    """A measure's name as that of a folder."""
    return re.sub(r"[^a-z0-9.=]+", "-", measure.lower()).strip("-.") or "measure"


@dataclass(slots=True)
class _Recording:
    """py-spy and perf on one process."""

    name: str
    folder: Path
    process: psutil.Process
    commands: list[list[str]] = field(default_factory=list)
    programs: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _trials: int = 0

    @property
    def raw(self) -> Path:
        return self.folder / f"{self.name}.raw"

    @property
    def perf_data(self) -> Path:
        return self.folder / f"{self.name}.perf-data"

    def begin(self, py_spy: str, perf: str | None) -> None:
        rate, pid = str(_RATE_HZ), str(self.process.pid)
        spy = [py_spy, "record", "--native", "--format", "raw", "--rate", rate, "--nolineno", "--duration", str(MOST_S)]
        self.commands = [[*spy, "--output", str(self.raw), "--pid", pid]]
        if perf is not None:
            record = [perf, "record", "--quiet", "-e", "cpu-clock", "-F", str(_PERF_HZ), "-p", pid]
            self.commands.append([*record, "--output", str(self.perf_data), "--", "sleep", str(MOST_S)])
        self.programs = [_spawn(command) for command in self.commands]

    def begin_again(self) -> None:
        """py-spy refuses a process whose interpreter is not up yet: it is asked again while that process lives."""
        is_refused = self.programs[0].poll() not in (None, 0) and self._trials < _MOST_TRIALS
        if is_refused and self.process.is_running():
            self._trials += 1
            self.programs[0] = _spawn(self.commands[0])

    def end(self) -> None:
        """Have them write what they have. One that does not end within a minute is killed."""
        for program in self.programs:
            with suppress(ProcessLookupError):
                program.send_signal(signal.SIGINT)
        for program in self.programs:
            try:
                program.wait(_END_S)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()

    def keep(self, beside: Path) -> ProfileResult | None:
        """Cut the files to their bounds; None where nothing was sampled, as of a process that did not live long."""
        perf = self._keep_perf()
        stacks = Counter[tuple[str, ...]]()
        with suppress(FileNotFoundError):
            with self.raw.open(encoding="utf-8", errors="replace") as lines:
                stacks = parse_stacks(lines)
            self.raw.unlink()
        if not stacks:
            return None
        kept = self.folder / f"{self.name}.stacks"
        kept.write_text(format_stacks(stacks), encoding="utf-8")
        return ProfileResult(
            self.name, stacks.total(), _relative(kept, beside), _relative(perf, beside) if perf else None,
            hot_functions(stacks),
        )  # fmt: skip

    def _keep_perf(self) -> Path | None:
        if not self.perf_data.exists():
            return None
        report = ["perf", "report", "--stdio", "--no-children", "--call-graph", "none", "--sort", "symbol,dso"]
        done = subprocess.run(
            [*report, "--input", str(self.perf_data)], capture_output=True, text=True, timeout=_END_S, check=False
        )
        self.perf_data.unlink()
        lines = [line.rstrip() for line in done.stdout.splitlines() if line.strip() and not line.startswith("#")]
        if done.returncode or not lines:
            return None
        kept = self.folder / f"{self.name}.perf.txt"
        kept.write_text("\n".join(lines[:MOST_PERF_LINES]) + "\n", encoding="utf-8")
        return kept


class _Watch:
    """Looks for processes of pykbroker among this one's descendants, and begins a recording of each that is new."""

    def __init__(self, folder: Path, py_spy: str, perf: str | None) -> None:
        self.recordings: list[_Recording] = []
        self._folder = folder
        self._py_spy = py_spy
        self._perf = perf
        self._is_over = threading.Event()
        self._seen: set[tuple[int, float]] = set()
        self._thread = threading.Thread(target=self._look_until_it_is_over, name="profiler", daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()
        for recording in self.recordings:
            recording.end()

    def _look_until_it_is_over(self) -> None:
        while True:
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                    self._record_if_new(process)
            for recording in self.recordings:
                recording.begin_again()
            if self._is_over.wait(_LOOK_S):
                return

    def _record_if_new(self, process: psutil.Process) -> None:
        identity = (process.pid, process.create_time())
        if identity in self._seen or len(self.recordings) >= MOST_PROCESSES or not _is_broker(process.cmdline()):
            return
        self._seen.add(identity)
        recording = _Recording(f"pykbroker-{len(self.recordings) + 1}", self._folder, process)
        self.recordings.append(recording)
        recording.begin(self._py_spy, self._perf)


def _is_broker(command: list[str]) -> bool:
    return command[1:4] == ["-m", "pykbroker", "start"]


def _spawn(command: list[str]) -> subprocess.Popen[bytes]:
    """In a session of its own: Ctrl-C at the terminal ends the run, and that ends what it has started."""
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def _relative(path: Path, to: Path) -> str:
    return Path(os.path.relpath(path, to)).as_posix()


def _py_spy() -> str:
    beside_python = shutil.which("py-spy", path=sysconfig.get_path("scripts"))
    if (found := beside_python or shutil.which("py-spy")) is None:
        raise NoProfiler("profiles need py-spy: pip install 'pykbroker[bench]'")
    return found


def _perf() -> str | None:
    """perf, where it is there and may record."""
    if not sys.platform.startswith("linux") or (perf := shutil.which("perf")) is None:
        return None
    trial = [perf, "record", "--quiet", "-e", "cpu-clock", "--output", "/dev/null", "--", "true"]
    try:
        done = subprocess.run(trial, capture_output=True, timeout=_END_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return perf if done.returncode == 0 else None
