"""The entries of access control lists that are there already, so that nobody creates one twice."""

from __future__ import annotations

from collections.abc import Iterable

from pykbroker.long_work import LongWork, portions
from pykbroker.security.acls.entry import AccessControlEntry

from .image import ImageChanges, MetadataImage


class KnownAcls:
    """The entries of an image. An entry that the log has twice, under two ids, stays known until both are gone."""

    def __init__(self) -> None:
        self._times: dict[AccessControlEntry, int] = {}

    @staticmethod
    def of(image: MetadataImage) -> LongWork[KnownAcls]:
        """Return the entries of the image, which must not change meanwhile."""
        known = KnownAcls()
        for portion in portions(image.acls.values()):
            known._add(portion)
            yield len(portion) // 4
        return known

    def __contains__(self, entry: AccessControlEntry) -> bool:
        return entry in self._times

    def follow(self, image: MetadataImage, changes: ImageChanges) -> None:
        """Note what has changed; the image has the changes already."""
        for acl_id, before in changes.acls.items():
            if before is not None:
                self._remove(before)
            now = image.acls.get(acl_id)
            if now is not None:
                self._add((now,))

    def _add(self, entries: Iterable[AccessControlEntry]) -> None:
        for entry in entries:
            self._times[entry] = self._times.get(entry, 0) + 1

    def _remove(self, entry: AccessControlEntry) -> None:
        self._times[entry] -= 1
        if not self._times[entry]:
            del self._times[entry]
