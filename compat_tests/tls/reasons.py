"""Why a client was not served, out of what it says: TLS libraries, and versions of one, have many words for a thing."""

from __future__ import annotations

import re

SERVED = "served"

OTHER_HOST = "the broker's certificate is for another host"
BROKER_EXPIRED = "the broker's certificate has expired"
UNKNOWN_AUTHORITY = "the broker's certificate is of an unknown authority"
NOT_VERIFIED = "the broker's certificate cannot be verified"
REFUSED = "the broker refuses the certificate"
NO_COMMON_VERSION = "the broker refuses the protocol version"
NOT_TLS = "the broker ends the handshake without a word"
CLOSED = "the broker closes the connection"
NO_BROKER = "no broker is left"
NO_ANSWER = "no answer in time"

WRONG_CREDENTIALS = "the broker refuses the user or the password"

_CERTIFICATE_ALERTS = (
    "bad_certificate",
    "unsupported_certificate",
    "certificate_revoked",
    "certificate_expired",
    "certificate_unknown",
    "unknown_ca",
    "certificate_required",
    "handshake_failure",
)
"""Java and OpenSSL tell the client of the same mistake by different ones of these; the last one is OpenSSL's where no
certificate came by TLS 1.2.
"""

_PATTERNS = (
    (WRONG_CREDENTIALS, r"Authentication failed(:| during) .*(credentials|username)"),
    (OTHER_HOST, r"IP address mismatch|Hostname mismatch|No subject alternative names matching"),
    (BROKER_EXPIRED, r"certificate has expired|validity check failed"),
    (UNKNOWN_AUTHORITY, r"unable to get local issuer certificate|self.signed certificate|PKIX path building failed"),
    (NOT_VERIFIED, r"certificate.verify.failed"),
    (REFUSED, rf"alert.*({'|'.join(_CERTIFICATE_ALERTS)})".replace("_", ".")),
    (NO_COMMON_VERSION, r"alert.*protocol.version"),
    (NOT_TLS, r"PLAINTEXT broker listener|Disconnected.*SSL_HANDSHAKE|handshake.*(unexpected.eof|EOF|reset by peer)"),
    (NO_BROKER, r"\d+/\d+ brokers are down"),
    (
        CLOSED,
        r"reset by peer|Disconnected|socket disconnected|Connection at .* closed|Unable connect to [^:]*:\d+\": $",
    ),
    (CLOSED, r"Invalid frame length: 352518912"),  # Apache Kafka sends a plaintext client an alert of TLS first
    (NO_ANSWER, r"Timed out waiting for a node assignment|The AdminClient thread has exited"),
)


def reason_in(text: str) -> str | None:
    """The first that is found in what a client said; None where it is of no help."""
    return next((reason for reason, pattern in _PATTERNS if re.search(pattern, text, re.IGNORECASE)), None)
