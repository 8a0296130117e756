"""A file system of its own in an image, and its end: the ioctl with which its developers test recovery from power cuts.

`EXT4_IOC_SHUTDOWN`, which is XFS_IOC_GOINGDOWN, ends all writes to the device at once. What was not synced is in no
file when the image is mounted anew; the journal is played there, as after a power cut. Unlike a machine's, the device
here loses nothing that it was given.

A sync that is under way is not ended by the power there, and may return as if all was well: jbd2 forgets the
transaction that it aborts, and who comes to wait for it finds nothing to wait for. So whoever compares lets no thread
go on that was in such a call when the power went.
"""

import fcntl
import os
import shutil
import struct
import subprocess
from enum import IntEnum
from pathlib import Path

_SHUTDOWN = 0x8004587D
_IMAGE_BYTES = 512 << 20
"""Sparse. XFS refuses less than 300 MB."""
_MAKE = {
    "ext4": ("mkfs.ext4", "-q", "-F", "-m", "0", "-J", "size=8"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
}
_MOUNT_OPTIONS = {"ext4": "loop", "xfs": "loop,nouuid"}
"""XFS refuses a copy of what is still mounted elsewhere, by its UUID."""


class Cut(IntEnum):
    """What is still written: everything, the journal as it is in memory, or nothing."""

    EVERYTHING = 0
    JOURNAL = 1
    NOTHING = 2


class CutVolume:
    """A file system that may lose its power. `path` is where it is mounted, until `close`."""

    def __init__(self, directory: Path, file_system: str = "ext4") -> None:
        self.path = directory / "volume"
        self._image = directory / "image"
        self._options = _MOUNT_OPTIONS[file_system]
        self.path.mkdir(parents=True)
        with self._image.open("wb") as image:
            image.truncate(_IMAGE_BYTES)
        _run(*_MAKE[file_system], str(self._image))
        self.mount()

    def mount(self) -> None:
        _run("mount", "-o", self._options, str(self._image), str(self.path))

    def cut(self, cut: Cut) -> None:
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", cut))
        finally:
            os.close(descriptor)

    def unmount(self) -> None:
        """Nobody may have a file of it open. What is mounted next is a copy of the image as it is now.

        A mount namespace that somebody made meanwhile, such as a container's, still has the old mount. The same image
        mounted again would be that very file system, which is cut off.
        """
        _run("umount", str(self.path))
        copy = self._image.with_name("copy of the image")
        _run("cp", "--sparse=always", str(self._image), str(copy))
        self._image.unlink()  # whoever has it mounted keeps the old file
        copy.rename(self._image)

    def close(self) -> None:
        """Leave nothing: no mount, and so no loop device, and no image."""
        while os.path.ismount(self.path):
            _run("umount", "--lazy", str(self.path))
        self._image.unlink(missing_ok=True)


def why_there_is_no(file_system: str) -> str | None:
    """None where it can be made and cut."""
    return None if shutil.which(_MAKE[file_system][0]) else f"needs {_MAKE[file_system][0]}"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=60)
