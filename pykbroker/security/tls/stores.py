"""The key store and the trust store that settings name: opened, and their errors told with the key that names them.

Java's types JKS and PKCS12 open files of either format, so what the bytes begin with decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..packages import CERTIFICATES, need
from ..secret_files import UnreadableFile, read_file
from . import jks, pem, pkcs12
from .jks import read_jks
from .pkcs12 import read_pkcs12
from .refusals import INVALID_CONFIGURATION, RefusedValue, not_loaded
from .settings import TlsSettings
from .store_contents import PasswordRefused, StoreContents, UnreadableStore

_MOST_BYTES = 16 << 20
_NO_CERTIFICATE = f"{INVALID_CONFIGURATION}: No matching CERTIFICATE entries in PEM file"
_JCEKS = bytes.fromhex("cececece")


def key_store(settings: TlsSettings) -> StoreContents | None:
    """Return what is in the key store; None where no key store is given. Raises ConfigurationError."""
    if settings.keystore_key is not None and settings.keystore_certificate_chain is not None:
        need(CERTIFICATES, settings.name_of("ssl.keystore.key"))
        refusal = not_loaded(None, "PEM")
        with _named(settings, "ssl.keystore.key", refusal):
            key = pem.read_key(settings.keystore_key)
        with _named(settings, "ssl.keystore.certificate.chain", refusal):
            return pem.key_store(key, pem.read_chain(settings.keystore_certificate_chain))
    location, kind = settings.keystore_location, settings.keystore_type
    if location is None:
        return None
    need(CERTIFICATES, settings.name_of("ssl.keystore.location"))
    with _named(settings, "ssl.keystore.location", not_loaded(location, kind), location):
        return _from_file(location, kind, settings.keystore_password, pem.read_key_store, is_secret=True)


def trust_store(settings: TlsSettings) -> StoreContents | None:
    """Return what is in the trust store; None where no trust store is given. Raises ConfigurationError."""
    if settings.truststore_certificates is not None:
        with _named(settings, "ssl.truststore.certificates", _NO_CERTIFICATE):
            return pem.read_trust_store(settings.truststore_certificates)
    location, kind = settings.truststore_location, settings.truststore_type
    if location is None:
        return None
    if kind != "PEM":
        need(CERTIFICATES, settings.name_of("ssl.truststore.location"))
    with _named(settings, "ssl.truststore.location", not_loaded(location, kind), location):
        contents = _from_file(location, kind, settings.truststore_password, pem.read_trust_store, is_secret=False)
        if not contents.anchors:
            raise UnreadableStore("no certificate in it is a trusted one (keytool -importcert makes it one)")
        return contents


@contextmanager
def _named(settings: TlsSettings, key: str, in_kafka: str, shown: str = "[hidden]") -> Iterator[None]:
    """Tell the errors of a store as those of the value that names it."""
    try:
        yield
    except PasswordRefused as error:
        password = settings.name_of(key.replace("location", "password"))
        raise RefusedValue(settings.name_of(key), shown, f"{error}; see {password}", in_kafka) from None
    except UnreadableStore as error:
        raise RefusedValue(settings.name_of(key), shown, str(error), in_kafka) from None


def _from_file(
    path: str, store_type: str, password: str | None, read_pem: Callable[[str], StoreContents], *, is_secret: bool
) -> StoreContents:
    try:
        data = read_file(path, _MOST_BYTES, secret="key store" if is_secret else "")
    except UnreadableFile as error:
        raise UnreadableStore(str(error)) from None
    return read_pem(data.decode("latin-1")) if store_type == "PEM" else _java_store(data, password, store_type)


def _java_store(data: bytes, password: str | None, store_type: str) -> StoreContents:
    if data.startswith(jks.MAGIC):
        return read_jks(data, password)
    if data.startswith(pkcs12.MAGIC):
        return read_pkcs12(data, password)
    if data.startswith(_JCEKS):
        raise UnreadableStore("it is JCEKS, which is not supported (keytool -importkeystore makes PKCS12 of it)")
    if b"-----BEGIN " in data:
        raise UnreadableStore(f"it is PEM, and its type is given as {store_type}")
    raise UnreadableStore("it is neither PKCS12 nor JKS")
