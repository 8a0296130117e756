"""Entries of access control lists as records of the metadata log, and back."""

from __future__ import annotations

from pykbroker.protocol.messages.metadata_records import AccessControlEntryRecord
from pykbroker.security.acls.entry import AccessControlEntry


def entry_of(record: AccessControlEntryRecord) -> AccessControlEntry:
    """Return what the record says, without its id."""
    return AccessControlEntry(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def record_of(acl_id: bytes, entry: AccessControlEntry) -> AccessControlEntryRecord:
    """Return the record that adds the entry under this id."""
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )
