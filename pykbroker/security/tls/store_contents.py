"""Contents of a key store or trust store of any format: private keys with their chains, and trusted certificates.

Certificates are DER: OpenSSL is the judge of what is in them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes


class UnreadableStore(Exception):
    """A store that cannot be used. The text is a reason without the name of the file, and without a secret."""


class PasswordRefused(UnreadableStore):
    """A store that its password does not open, or that has none where one belongs."""


class KeyPasswordRefused(UnreadableStore):
    """A private key that its password does not open, or that has none where one belongs."""


WRONG_PASSWORD = "its password is wrong, or the file is damaged"  # noqa: S105 - no password
WRONG_KEY_PASSWORD = "its key cannot be opened with its password, or is damaged"  # noqa: S105 - no password


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key and its certificates, its own first. open_key: with the key's password; raises UnreadableStore."""

    alias: str
    chain: tuple[bytes, ...]
    open_key: Callable[[str | None], PrivateKeyTypes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class TrustedEntry:
    """A certificate that is trusted, of an authority or of one peer."""

    alias: str
    certificate: bytes


@dataclass(frozen=True, slots=True)
class StoreContents:
    """All entries of a store, in the order of their aliases."""

    keys: tuple[KeyEntry, ...] = ()
    trusted: tuple[TrustedEntry, ...] = ()

    @property
    def anchors(self) -> tuple[bytes, ...]:
        """The certificates that Java takes for trusted: those entries, and the own certificate of each key."""
        return (*(each.certificate for each in self.trusted), *(each.chain[0] for each in self.keys if each.chain))


def load_pkcs8(der: bytes, password: str | None) -> PrivateKeyTypes:
    """Return the key of a PKCS#8 structure, which is encrypted if there is a password. Raises UnreadableStore."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    try:
        return load_der_private_key(der, None if password is None else password.encode())
    except TypeError:
        reason = "its key is encrypted" if password is None else "its key has a password and is not encrypted"
        raise KeyPasswordRefused(reason) from None
    except UnsupportedAlgorithm as error:
        raise UnreadableStore(f"its key cannot be read: {error}") from None
    except ValueError:
        if password is None:
            raise UnreadableStore("its key is no PKCS#8, or is damaged") from None
        raise KeyPasswordRefused(WRONG_KEY_PASSWORD) from None
