"""The settings of `--command-config`, ready for use: how clients reach the cluster."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from pykbroker.client.from_properties import read_credentials, security_protocol
from pykbroker.security.sasl.credentials import Credentials


@dataclass(frozen=True, slots=True)
class Access:
    """The access of a client. context: None without TLS. credentials: None without SASL."""

    security_protocol: str
    context: ssl.SSLContext | None
    credentials: Credentials | None

    @staticmethod
    def of(properties: Mapping[str, str]) -> Access:
        """Raises ConfigurationError."""
        protocol = security_protocol(properties)
        context = None
        if protocol.endswith("SSL"):
            from pykbroker.security.tls.contexts import client_context
            from pykbroker.security.tls.settings import TlsSettings

            context = client_context(TlsSettings.of(properties))
        credentials = read_credentials(properties) if protocol.startswith("SASL_") else None
        return Access(protocol, context, credentials)
