"""A simulated disk that loses power at the n-th operation that changes something."""

from collections.abc import Sequence
from random import Random

from pykbroker.sim.disk import SimulatedDisk, SimulatedFile
from pykbroker.storage.files.disk import Buffer


class PowerCut(Exception):
    pass


class FragileFile(SimulatedFile):
    _disk: "FragileDisk"

    def append(self, parts: Sequence[Buffer]) -> None:
        self._disk.count()
        super().append(parts)

    def truncate(self, size: int) -> None:
        self._disk.count()
        super().truncate(size)

    def preallocate(self, size: int) -> None:
        self._disk.count()
        super().preallocate(size)

    def sync(self) -> None:
        self._disk.count()
        super().sync()


class FragileDisk(SimulatedDisk):
    """`operations_left` None is no end of power."""

    def __init__(self, rng: Random) -> None:
        super().__init__(rng)
        self.operations_left: int | None = None

    def count(self) -> None:
        if self.operations_left is not None:
            if not self.operations_left:
                raise PowerCut
            self.operations_left -= 1

    def crash(self) -> None:
        self.operations_left = None
        super().crash()

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        if create and not self.exists(path):
            self.count()
        return FragileFile(self, path, self._file("open", super().open(path, create=create).path))

    def replace_file(self, path: str, data: bytes, *, sync: bool = True) -> None:
        self.count()
        super().replace_file(path, data, sync=sync)

    def rename(self, source: str, target: str) -> None:
        self.count()
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self.count()
        super().remove(path)

    def sync_directory(self, path: str) -> None:
        self.count()
        super().sync_directory(path)
