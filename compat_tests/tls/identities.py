"""Who takes part in the TLS scenarios, and the files that clients have of them: PEM, which all clients read."""

from __future__ import annotations

from pathlib import Path

from compat_tests.certificates import EXPIRED, NOT_YET_VALID, Authority, Credential, self_signed
from compat_tests.key_stores import write_pem, write_pem_trust

CLIENTS = (
    "alice",
    "alice of an intermediate authority",
    "alice of another authority",
    "alice who is expired",
    "alice who is not yet valid",
    "alice by her own word",
    "Bob Smith",
)
"""Bob is the one whose name the mapping rules do not know."""
AUTHORITIES = ("the authority", "another authority")


class Identities:
    """The authorities of a run and their clients, each of them the same for both brokers."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority.root()
        self.other_authority = Authority.root("CN=Another authority,O=Example")
        self.intermediate = self.authority.intermediate()
        self._trust = {name: directory / f"authority-{number}.pem" for number, name in enumerate(AUTHORITIES)}
        self._certificates = {name: directory / f"client-{number}.pem" for number, name in enumerate(CLIENTS)}
        for name, authority in zip(AUTHORITIES, (self.authority, self.other_authority), strict=True):
            write_pem_trust(self._trust[name], authority)
        for name in CLIENTS:
            write_pem(self._certificates[name], self._client(name))

    def trust(self, name: str) -> Path:
        """The file with the certificate of one of AUTHORITIES."""
        return self._trust[name]

    def certificate(self, name: str) -> Path:
        """The file with key and certificate chain of one of CLIENTS."""
        return self._certificates[name]

    def _client(self, name: str) -> Credential:
        match name:
            case "alice of an intermediate authority":
                return self.intermediate.client()
            case "alice of another authority":
                return self.other_authority.client()
            case "alice who is expired":
                return self.authority.client(lifetime=EXPIRED)
            case "alice who is not yet valid":
                return self.authority.client(lifetime=NOT_YET_VALID)
            case "alice by her own word":
                return self_signed("CN=alice,O=Example")
            case "Bob Smith":
                return self.authority.client("CN=Bob Smith,O=Example")
        return self.authority.client()
