"""The file system of this machine without a single sync, for data that need not outlive the machine's next crash.

A sync waits for a device, a millisecond or many, and a start and a stop have two dozen. A process that dies loses
nothing: what was written is in the page cache. A machine that loses its power loses everything, so only directories
that go with their process, or that a test made, lie on such a disk.
"""

from typing import ClassVar

from .disk import OsDisk, OsDiskFile

__all__ = ["UnsyncedDisk", "UnsyncedFile"]


class UnsyncedFile(OsDiskFile):
    """A file whose bytes come to the device whenever the system likes."""

    __slots__ = ()

    def sync(self) -> None:
        """Return at once, unless the file is closed."""
        self.size()

    @staticmethod
    def _sync(descriptor: int) -> None:
        """Return at once."""

    def check_written(self) -> None:
        """Return at once, unless the file is closed: nobody has asked for the bytes to be durable."""
        self.size()


class UnsyncedDisk(OsDisk):
    """A disk that makes nothing durable."""

    _file_type: ClassVar[type[OsDiskFile]] = UnsyncedFile

    def replace_file(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Replace the file; a crash of the machine may leave it empty, whatever `sync` says."""
        super().replace_file(path, data, sync=False)

    def sync_directory(self, path: str) -> None:
        """Return at once, unless there is no such directory."""
        self.space(path or ".")

    def sync_volume(self, path: str) -> bool:
        """Tell that all is done that this disk would do."""
        self.space(path)
        return True
