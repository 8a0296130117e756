"""The names of a log's files, and of its directory, that a power cut may still take back.

A file is durable only together with the directory entry that names it (`LocalLog.flush` syncs the directory, too).
"""

import posixpath

from ..files.disk import Disk


class LogNames:
    """The names of one log. are_durable: as far as anybody knows at the start."""

    def __init__(self, disk: Disk, directory: str, *, are_durable: bool) -> None:
        self._disk = disk
        self._directory = directory
        self._synced_changes = 1 if are_durable else 0
        self._is_parent_synced = are_durable
        self.changes = 1
        """How many there were: whoever is about to write and then to sync looks first."""

    def note_change(self) -> int:
        """Return the number of the change, for `is_durable`."""
        self.changes += 1
        return self.changes

    def is_durable(self, change: int) -> bool:
        """Tell whether a power cut takes this change back no more."""
        return change <= self._synced_changes

    @property
    def are_durable(self) -> bool:
        """Tell whether a power cut takes none of the changes back."""
        return self.changes == self._synced_changes

    def move_to(self, directory: str) -> None:
        """The directory has another name now, which is one of those to be made durable."""
        self._directory = directory
        self._is_parent_synced = False
        self.changes += 1

    def sync(self) -> None:
        """Make the names of the files durable, and not the directory's."""
        self._disk.sync_directory(self._directory)

    def sync_changes(self, changes: int) -> None:
        """Make so many names durable, and once that of the directory, which may be new."""
        if changes == self._synced_changes:
            return
        self.sync_with_directory()
        self._synced_changes = changes

    def sync_with_directory(self) -> None:
        """Make the names of the files durable, and once that of the directory, which may be new."""
        self.sync()
        if not self._is_parent_synced:
            self._disk.sync_directory(posixpath.dirname(self._directory))
            self._is_parent_synced = True
