"""The commits of an archive in its directory: reading the state, committing, and bringing files to their places.

A commit is the moment at which records count. Its files are written and checked before, in the commit's own staging
directory, and moved into the tree behind it; a run that ends in between leaves the moves to the next one (`settle`),
and whatever was staged for a number that somebody else committed is thrown away. So whoever lists the tree sees each
record once at most, and each of them once the last commit is settled.

    topic=orders/date=2026-11-25/part-….parquet    the records
    _pykbroker/commits/00000000000000000012.json   what the archive holds (manifest.py)
    _pykbroker/snapshots/00000000000000000100.json
    _pykbroker/staging/00000000000000000013-…/     files on their way; readers skip names that begin with `_`
"""

from __future__ import annotations

from collections.abc import Iterable

from ..directories import HadoopDirectory
from ..errors import ArchiveBusy, ArchiveDamaged
from .manifest import (
    SNAPSHOT_EVERY,
    ArchivedFile,
    ArchiveState,
    Commit,
    commit_text,
    parse_commit,
    parse_state,
    state_text,
)

ROOT = "_pykbroker"
_COMMITS, _SNAPSHOTS, _STAGING = f"{ROOT}/commits", f"{ROOT}/snapshots", f"{ROOT}/staging"
_KEPT_SNAPSHOTS = 2


class ArchiveStore:
    def __init__(self, directory: HadoopDirectory) -> None:
        self.directory = directory
        self._last: Commit | None = None

    def load(self) -> ArchiveState:
        """Raises ArchiveDamaged."""
        state = self._snapshot()
        if state.number:
            self._last = self._read(state.number)
        while (commit := self._read(state.number + 1)) is not None:
            state = state.after(commit)
            self._last = commit
        if state.number == 0 and self._foreign():
            raise ArchiveDamaged(f"{self.directory.root} has files, and no manifest of an archive")
        return state

    def places(self, files: Iterable[ArchivedFile]) -> list[str]:
        """The paths where the files are now: those of the last commit may still be on their way."""
        last = self._last
        moving = {file.path for file in last.added} if last is not None else set()

        def place(path: str) -> str:
            if last is None or path not in moving or self.directory.exists(path):
                return path
            return f"{last.staging}/{path}"

        return [place(file.path) for file in files]

    def staging(self, state: ArchiveState, run_id: str) -> str:
        """The directory for the files of the next commit."""
        return f"{_STAGING}/{state.number + 1:020d}-{run_id}"

    def commit(self, state: ArchiveState, commit: Commit) -> ArchiveState:
        """The state behind it, with the files in their places. Raises ArchiveBusy where the number is taken."""
        after = state.after(commit)
        if not self.directory.create_text(_commit_path(commit.number), commit_text(commit)):
            raise self._busy()
        self._last = commit
        self.settle()
        if commit.number % SNAPSHOT_EVERY == 0:
            self._write_snapshot(after)
        return after

    def check_alone(self, number: int) -> None:
        """Raises ArchiveBusy where the commit behind that number is there: its run throws away what others stage."""
        if self.directory.exists(_commit_path(number + 1)):
            raise self._busy()

    def _busy(self) -> ArchiveBusy:
        return ArchiveBusy(f"Another run has added to {self.directory.root} meanwhile: run this one again")

    def settle(self) -> None:
        """Bring the files of the last commit to their places, take away what it removed, and what is left of others."""
        commit = self._last
        if commit is None:
            return
        for path in commit.removed:  # first, so that nobody sees a record twice
            self.directory.delete(path)
        for file in commit.added:
            staged = f"{commit.staging}/{file.path}"
            if not self.directory.move(staged, file.path) and not self.directory.exists(file.path):
                self.check_alone(commit.number)
                raise ArchiveDamaged(f"{file.path} of commit {commit.number} is neither staged nor in its place")
        self.directory.sync([file.path for file in commit.added])  # before what a power cut would need goes
        for name in self.directory.names(_STAGING):
            number = name.partition("-")[0]
            if number.isdigit() and int(number) <= commit.number:
                self.directory.delete(f"{_STAGING}/{name}")

    def _read(self, number: int) -> Commit | None:
        path = _commit_path(number)
        return parse_commit(self.directory.read_text(path), path) if self.directory.exists(path) else None

    def _snapshot(self) -> ArchiveState:
        names = [name for name in self.directory.names(_SNAPSHOTS) if name.endswith(".json")]
        if not names:
            return ArchiveState()
        path = f"{_SNAPSHOTS}/{names[-1]}"
        return parse_state(self.directory.read_text(path), path)

    def _write_snapshot(self, state: ArchiveState) -> None:
        self.directory.create_text(f"{_SNAPSHOTS}/{state.number:020d}.json", state_text(state))
        for name in self.directory.names(_SNAPSHOTS)[:-_KEPT_SNAPSHOTS]:
            self.directory.delete(f"{_SNAPSHOTS}/{name}")

    def _foreign(self) -> bool:
        return any(name != ROOT for name in self.directory.names())


def _commit_path(number: int) -> str:
    return f"{_COMMITS}/{number:020d}.json"
