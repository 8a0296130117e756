"""TLS of one listener: which certificate it shows, whom it asks for one, and which principal that makes."""

from __future__ import annotations

from pykbroker.security.tls.contexts import ServerTls
from pykbroker.security.tls.principals import PrincipalMapper, UnusableName, distinguished_name

from .handlers import ANONYMOUS
from .tls_transport import HandshakeFailed, Handshakes, TlsTransport
from .transport import Transport


class ListenerTls:
    """A listener's TLS. `server` may be replaced at run time: connections that are there keep what they began with."""

    def __init__(self, server: ServerTls, mapper: PrincipalMapper, handshakes: Handshakes) -> None:
        self.server = server
        self._mapper = mapper
        self._handshakes = handshakes

    def wrap(self, transport: Transport) -> TlsTransport:
        return TlsTransport(transport, self.server.context, self._handshakes, server_side=True)

    def principal(self, transport: TlsTransport) -> str:
        """The client's principal, such as `User:CN=alice`; a client without a certificate is anonymous.

        Raises HandshakeFailed where no rule of `ssl.principal.mapping.rules` matches the certificate's name.
        """
        certificate = transport.peer_certificate
        if certificate is None:
            return ANONYMOUS
        try:
            return f"User:{self._mapper.name(distinguished_name(certificate))}"
        except UnusableName as error:
            raise HandshakeFailed(str(error)) from None
