"""The broker whose stores are replaced: a listener for each scenario, which may leave it with other stores."""

from __future__ import annotations

from pathlib import Path

from compat_tests.certificates import Authority
from compat_tests.key_stores import write_pem, write_pem_trust, write_pkcs12, write_pkcs12_trust

from .listeners import REQUESTED, REQUIRED, Settings, inline, inline_trust, pem, pem_trust, pkcs12, pkcs12_trust

ELSEWHERE = "CN=elsewhere,O=Example"
"""Another DN than that of FIRST."""
AUTHORITY = Authority.root()
UNTRUSTED = Authority.root("CN=Another authority,O=Example")
FIRST = {
    name: AUTHORITY.server() for name in ("KEYS", "SAME", "NAMES", "DN", "SAN", "BAD", "TOOL", "KINDS", "PEM", "INLINE")
}
"""The certificates that the listeners have at first."""
TRUSTING = AUTHORITY.server()
"""That of the listeners whose trust stores are replaced, or that are only described."""


def reload_listeners(directory: Path) -> dict[str, Settings]:
    """directory: for their stores, each named after its listener."""
    p12 = {name: pkcs12(write_pkcs12(directory / f"{name}.p12", credential)) for name, credential in FIRST.items()}
    trust_p12 = pkcs12_trust(write_pkcs12_trust(directory / "trusted.p12", AUTHORITY))
    trust_pem = pem_trust(write_pem_trust(directory / "trusted.pem", AUTHORITY))
    return {
        **p12,
        "DN": {**p12["DN"], "ssl.allow.dn.changes": "true"},
        "SAN": {**p12["SAN"], "ssl.allow.san.changes": "true"},
        "PEM": pem(write_pem(directory / "PEM.pem", FIRST["PEM"])),
        "INLINE": {**inline(FIRST["INLINE"]), **inline_trust(AUTHORITY), **REQUESTED},
        "TRUST": {**pkcs12(write_pkcs12(directory / "TRUST.p12", TRUSTING)), **trust_p12, **REQUIRED},
        "SHOWN": {**pkcs12(write_pkcs12(directory / "SHOWN.p12", TRUSTING)), **trust_p12, **REQUIRED},
        "SHOWNINLINE": {**inline(TRUSTING), **inline_trust(AUTHORITY)},
        "PEMTRUST": {**pem(write_pem(directory / "PEMTRUST.pem", TRUSTING)), **trust_pem, **REQUIRED},
    }
