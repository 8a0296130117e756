"""Changing a listener's stores while the broker runs, and seeing which certificate it shows from then on."""

from __future__ import annotations

import re
import socket
import ssl
import struct
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cryptography import x509

from compat_tests.broker_configs import DELETE, OF_THIS_BROKER, SET, Change, alter, described
from compat_tests.certificates import Authority, Credential
from compat_tests.key_stores import KEY_PASSWORD, STORE_PASSWORD, write_pem, write_pkcs12, write_pkcs12_trust
from compat_tests.waiting import until

from .listeners import SecuredBroker, prefixed
from .reasons import CLOSED, reason_in

LOCATION, TRUST_LOCATION = "ssl.keystore.location", "ssl.truststore.location"
PASSWORD, KEY_PASSWORD_KEY, TYPE = "ssl.keystore.password", "ssl.key.password", "ssl.keystore.type"

_ASK = struct.pack(">ihhih", 10, 18, 0, 7, -1)
"""ApiVersions of version 0."""
_REASONS = (
    ("its DN is another one", "Keystore DistinguishedName does not match"),
    ("it lacks names of the one before", "Keystore SubjectAltNames do not match"),
    ("it cannot be added", "Cannot add .*trust"),
    ("brokers would not trust each other", "SSLHandshakeException|client SSLEngine"),
    ("it cannot be used", "Validation of dynamic config update of SSLFactory failed"),
    ("only for a listener", "only per-listener using the listener prefix"),
    ("only for one broker", "at default cluster level, broker id must be specified"),
    ("only by a restart", "for existing listener"),
    ("never at run time", "Cannot update these configs dynamically"),
    ("for another broker", "Unexpected broker id"),
)
"""What a message says of a refusal: Apache Kafka's has the names of Java's classes in it."""


class ReloadScene:
    """directory: for the stores that a test writes."""

    def __init__(self, secured: SecuredBroker, directory: Path) -> None:
        self.secured = secured
        self.directory = directory

    def set(self, listener: str, settings: Mapping[str, str], **options: Any) -> str:
        """The answer to a change of these keys, which are told without their prefix."""
        return self.alter(*((prefixed(listener, key), SET, value) for key, value in settings.items()), **options)

    def unset(self, listener: str, *keys: str) -> str:
        return self.alter(*((prefixed(listener, key), DELETE, None) for key in keys))

    def alter(self, *changes: Change, broker: str = "1", validate_only: bool = False) -> str:
        """NONE, or the error's name and what its message says."""
        return _shown(*alter(self.secured.broker.address, *changes, broker=broker, validate_only=validate_only))

    def described(self, *keys: str, broker: str = "1") -> dict[str, Any]:
        """The configurations of the broker by key, with their synonyms. keys: none for all of them."""
        return described(self.secured.broker.address, *keys, broker=broker)

    def dynamic_keys(self) -> set[str]:
        """The keys that were set at run time."""
        return {key for key, config in self.described().items() if config.config_source == OF_THIS_BROKER}

    def pkcs12(self, name: str, credential: Credential, password: str = STORE_PASSWORD, alias: str = "key") -> str:
        return str(write_pkcs12(self.directory / f"{name}.p12", credential, password, alias=alias))

    def pem(self, name: str, credential: Credential) -> str:
        return str(write_pem(self.directory / f"{name}.pem", credential))

    def trust(self, name: str, *authorities: Authority) -> str:
        return str(write_pkcs12_trust(self.directory / f"{name}.p12", *authorities))

    def file(self, name: str, content: bytes) -> str:
        path = self.directory / name
        path.write_bytes(content)
        return str(path)

    def shown_serial(self, listener: str, client: Credential | None = None) -> int | str:
        """The serial number of the certificate that a new connection is shown, or why it is not served."""
        try:
            with self.connected(listener, client) as connection:
                ask(connection)
                shown = connection.getpeercert(binary_form=True)
        except OSError as error:
            return reason_in(str(error)) or CLOSED
        assert shown is not None
        return x509.load_der_x509_certificate(shown).serial_number

    def await_certificate(self, listener: str, credential: Credential, client: Credential | None = None) -> None:
        """Apache Kafka answers a change before it uses the new store."""
        serial = credential.certificate.serial_number
        until(lambda: self.shown_serial(listener, client) == serial, f"{listener} shows the new certificate", 20)

    @contextmanager
    def connected(self, listener: str, client: Credential | None = None) -> Iterator[ssl.SSLSocket]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if client:
            with tempfile.TemporaryDirectory() as directory:
                context.load_cert_chain(write_pem(Path(directory, "client.pem"), client))
        with (
            socket.create_connection(self.secured.address(listener), 30) as plain,
            context.wrap_socket(plain) as secure,
        ):
            yield secure


def _shown(error: str, message: str | None) -> str:
    if message is None:
        return error
    assert not re.search(f"{STORE_PASSWORD}|{KEY_PASSWORD}|PRIVATE", message), message
    return f"{error}: {next((reason for reason, pattern in _REASONS if re.search(pattern, message)), 'refused')}"


def ask(connection: ssl.SSLSocket) -> None:
    """One request and its answer. Raises OSError where the broker closes the connection."""
    connection.sendall(_ASK)
    size = struct.unpack(">i", _exactly(connection, 4))[0]
    _exactly(connection, size)


def _exactly(connection: ssl.SSLSocket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            raise ConnectionResetError("the broker closes the connection")
        received += piece
    return received
