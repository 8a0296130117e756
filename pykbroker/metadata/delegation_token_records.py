"""Delegation tokens as records of the metadata log, and back (KIP-900). No record has a token's HMAC."""

from __future__ import annotations

from pykbroker.protocol.messages.metadata_records import DelegationTokenRecord
from pykbroker.security.tokens.delegation_token import DelegationToken


def token_of(record: DelegationTokenRecord) -> DelegationToken:
    """Return the token that the record describes."""
    return DelegationToken(
        record.token_id,
        record.owner,
        record.requester,
        tuple(record.renewers),
        record.issue_timestamp,
        record.max_timestamp,
        record.expiration_timestamp,
    )


def token_record(token: DelegationToken) -> DelegationTokenRecord:
    """Return the record that adds the token, or replaces the one of its id."""
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=token.expiry_timestamp,
        token_id=token.token_id,
    )
