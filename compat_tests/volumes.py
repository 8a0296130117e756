"""Small file systems for tests that fill or break them. Mounting them takes root."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def why_nothing_can_be_mounted() -> str | None:
    with tempfile.TemporaryDirectory() as directory:
        try:
            with tmpfs(Path(directory), "64k"):
                return None
        except (OSError, subprocess.CalledProcessError):
            return "needs root and mount, for small file systems"


@contextmanager
def tmpfs(path: Path, size: str) -> Iterator[Path]:
    """A disk of that size, until the end of the block."""
    path.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={size}", "pykbroker-test", str(path))
    try:
        yield path
    finally:
        _run("umount", "--lazy", str(path))


class FailingDisk:
    """An ext4 that believes to be larger than the tmpfs its image lies in: what does not fit there is an I/O error when
    it is synced, not a lack of room when it is written.
    """

    def __init__(self, path: Path, *, claimed_mb: int, real_mb: int) -> None:
        self.path = path / "disk"
        self._backing = path / "backing"
        self._image = self._backing / "image"
        self.path.mkdir(parents=True)
        self._backing.mkdir()
        _run("mount", "-t", "tmpfs", "-o", f"size={real_mb}m", "pykbroker-test", str(self._backing))
        try:
            with self._image.open("wb") as image:
                image.truncate(claimed_mb << 20)
            _run("mkfs.ext4", "-q", "-F", "-m", "0", "-J", "size=4", str(self._image))
            self.attach()
        except BaseException:
            self.close()
            raise

    def attach(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.path))

    def detach(self) -> None:
        _run("umount", str(self.path))

    def repair(self, real_mb: int) -> None:
        """Give it the blocks that it lacks. It must be detached."""
        _run("mount", "-o", f"remount,size={real_mb}m", str(self._backing))
        subprocess.run(["fsck.ext4", "-p", str(self._image)], capture_output=True, check=False)

    def close(self) -> None:
        for path in (self.path, self._backing):
            subprocess.run(["umount", "--lazy", str(path)], capture_output=True, check=False)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=60)
