"""Cipher suites: the names that Java and Kafka's configuration have for them, and OpenSSL's.

Those of TLS 1.3 cannot be chosen one by one, since Python 3.11 hands OpenSSL no list for them: all three are named, or
none. Suites that Java has switched off (NULL, anonymous, RC4, DES) are unknown here.
"""

from __future__ import annotations

TLS_1_3_SUITES = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
"""What OpenSSL offers, in its order."""

SIGNALLING = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"
"""A name in lists that Java prints. OpenSSL always sends it."""

_KEY_EXCHANGES = {
    "ECDHE_ECDSA": "ECDHE-ECDSA-",
    "ECDHE_RSA": "ECDHE-RSA-",
    "DHE_RSA": "DHE-RSA-",
    "RSA": "",
}
_CIPHERS = {
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA": "AES128-SHA",
}
_NOT_WITH = {
    "AES_256_CBC_SHA384": {"DHE_RSA", "RSA"},
    "AES_256_CBC_SHA256": {"ECDHE_ECDSA", "ECDHE_RSA"},
    "CHACHA20_POLY1305_SHA256": {"RSA"},
}

OPENSSL_NAMES: dict[str, str] = {
    f"TLS_{exchange}_WITH_{cipher}": prefix + suffix
    for exchange, prefix in _KEY_EXCHANGES.items()
    for cipher, suffix in _CIPHERS.items()
    if exchange not in _NOT_WITH.get(cipher, ())
}
"""The suites of TLS 1.2 that Java 17 offers, but for those of DSA keys, by their names in RFCs."""


def is_known(suite: str) -> bool:
    return suite in TLS_1_3_SUITES or suite in OPENSSL_NAMES or suite == SIGNALLING
