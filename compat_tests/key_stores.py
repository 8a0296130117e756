"""Key stores and trust stores in each format that Kafka reads: PEM, PKCS12 and JKS."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

from .apache_kafka.java import find_java
from .certificates import Authority, Credential

STORE_PASSWORD = "store-password"
KEY_PASSWORD = "key-password"
ALIAS = "key"

_KEYTOOL_OPTIONS = ("-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1")


def pem_key(credential: Credential, password: str | None = None) -> str:
    """Return the private key as PKCS#8, encrypted where there is a password: `ssl.keystore.key`."""
    return credential.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, _encryption(password)).decode()


def pem_certificates(certificates: Iterable[x509.Certificate]) -> str:
    """Return them one after another: `ssl.keystore.certificate.chain`, `ssl.truststore.certificates`."""
    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)


def one_line(pem: str) -> str:
    r"""Return a PEM text as the value of a line in a properties file, its line ends as `\n`."""
    return pem.replace("\n", "\\n")


def write_pem(path: Path, credential: Credential, password: str | None = None) -> Path:
    """Write key and chain in one file: `ssl.keystore.location` with `ssl.keystore.type=PEM`."""
    return _write(path, (pem_key(credential, password) + pem_certificates(credential.chain)).encode())


def write_pem_key(path: Path, credential: Credential, password: str | None = None) -> Path:
    """Write the key alone, as clients of librdkafka and Python want it."""
    return _write(path, pem_key(credential, password).encode())


def write_pem_chain(path: Path, credential: Credential) -> Path:
    """Write the chain alone, the certificate first."""
    return _write(path, pem_certificates(credential.chain).encode())


def write_pkcs12(path: Path, credential: Credential, password: str = STORE_PASSWORD, *, alias: str = ALIAS) -> Path:
    """Write key and chain; the key has the store's password, as Java has it in this format."""
    issuers = credential.issuers or None
    key, encryption = credential.key, BestAvailableEncryption(password.encode())
    data = pkcs12.serialize_key_and_certificates(alias.encode(), key, credential.certificate, issuers, encryption)
    return _write(path, data)


def write_jks(
    path: Path,
    credential: Credential,
    password: str = STORE_PASSWORD,
    *,
    key_password: str | None = None,
    alias: str = ALIAS,
) -> Path:
    """Write Java's older format, with keytool. key_password: the store's where it is None. Raises JavaMissing."""
    path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        source = write_pkcs12(Path(directory, "source.p12"), credential, password, alias=alias)
        _keytool(
            *("-importkeystore", "-noprompt", "-srcalias", alias),
            *("-srckeystore", str(source), "-srcstoretype", "PKCS12", "-srcstorepass", password),
            *("-destkeystore", str(path), "-deststoretype", "JKS", "-deststorepass", password),
            *("-destkeypass", key_password or password),
        )
    return path


def write_pem_trust(path: Path, *authorities: Authority) -> Path:
    """Write a trust store of the authorities' certificates."""
    return _write(path, pem_certificates(each.certificate for each in authorities).encode())


def write_pkcs12_trust(path: Path, *authorities: Authority, password: str = STORE_PASSWORD) -> Path:
    """As write_pem_trust. The entries have the attribute without which Java does not trust them."""
    entries = [
        pkcs12.PKCS12Certificate(each.certificate, f"authority-{number}".encode())
        for number, each in enumerate(authorities)
    ]
    return _write(path, pkcs12.serialize_java_truststore(entries, BestAvailableEncryption(password.encode())))


def write_jks_trust(path: Path, *authorities: Authority, password: str = STORE_PASSWORD) -> Path:
    """As write_pem_trust, with keytool. Raises JavaMissing."""
    path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        source = write_pkcs12_trust(Path(directory, "source.p12"), *authorities, password=password)
        _keytool(
            *("-importkeystore", "-noprompt"),
            *("-srckeystore", str(source), "-srcstoretype", "PKCS12", "-srcstorepass", password),
            *("-destkeystore", str(path), "-deststoretype", "JKS", "-deststorepass", password),
        )
    return path


def _encryption(password: str | None) -> KeySerializationEncryption:
    return BestAvailableEncryption(password.encode()) if password else NoEncryption()


def _write(path: Path, data: bytes) -> Path:
    """Keys are not for every user of the machine: the mode is that of a file with secrets."""
    path.touch(mode=0o600)
    path.write_bytes(data)
    return path


def _keytool(*arguments: str) -> None:
    command = [str(Path(find_java()).resolve().with_name("keytool")), *_KEYTOOL_OPTIONS, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{' '.join(arguments)}: {done.stdout}{done.stderr}"
