"""SCRAM credentials and their records (KIP-554, KIP-900)."""

from __future__ import annotations

from pykbroker.protocol.messages.metadata_records import UserScramCredentialRecord
from pykbroker.security.sasl.scram_credential import ScramCredential


def scram_record(name: str, mechanism: int, credential: ScramCredential) -> UserScramCredentialRecord:
    """The record of a user's credential. mechanism: the number of its type."""
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


def scram_credential(record: UserScramCredentialRecord) -> ScramCredential:
    """The credential that the record describes."""
    return ScramCredential(bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations)
