"""The four messages of a SCRAM exchange (RFC 5802, section 7), as Kafka's `ScramMessages` reads and writes them.

Each message keeps its text, since both sides sign what was sent and not what they understood. The channel binding flag
is `n`: Kafka has no channel binding.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Final

from .mechanism import AuthenticationFailed

_NAME: Final = r"(?:[\x01-\x2B\x2D-\x3C\x3E-\x7F]|=2C|=3D)+"
_VALUE: Final = r"[\x01-\x2B\x2D-\x7F]+"
_PRINTABLE: Final = r"[\x21-\x2B\x2D-\x7E]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS: Final = f"(?:,[A-Za-z]+={_VALUE})*"
_RESERVED: Final = f"(?:m={_VALUE},)?"

_CLIENT_FIRST: Final = re.compile(
    f"(?P<header>n,(?:a=(?P<authorization>{_NAME}))?,)"
    f"(?P<bare>{_RESERVED}n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_SERVER_FIRST: Final = re.compile(
    f"{_RESERVED}r=(?P<nonce>{_PRINTABLE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,10}}){_EXTENSIONS}"
)
_CLIENT_FINAL: Final = re.compile(
    f"(?P<bare>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL: Final = re.compile(f"(?:e=(?P<error>{_VALUE})|v=(?P<signature>{_BASE64})){_EXTENSIONS}")

LARGEST_MESSAGE_BYTES: Final = 16 * 1024
"""Kafka takes what `sasl.server.max.receive.size` lets in. Nobody's name is that long, and to look at it takes time."""

NO_CHANNEL_BINDING: Final = "n,,"


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """`n,[a=authorization],n=name,r=nonce[,extensions]`. bare: all of it behind the two commas."""

    bare: str
    name: str
    nonce: str
    authorization_id: str = ""
    extensions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, nonce: str, extensions: dict[str, str]) -> ClientFirst:
        bare = "".join([f"n={_saslname(name)},r={nonce}", *(f",{key}={value}" for key, value in extensions.items())])
        return cls(bare, name, nonce, "", extensions)

    @classmethod
    def read(cls, data: bytes) -> ClientFirst:
        """Raises AuthenticationFailed."""
        match = _matched(_CLIENT_FIRST, data, "first message of the client")
        pairs = (part.partition("=") for part in match["extensions"].split(",")[1:])
        extensions = {key: value for key, _, value in pairs}
        return cls(match["bare"], _plain_name(match["name"]), match["nonce"], match["authorization"] or "", extensions)

    def to_bytes(self) -> bytes:
        return f"{NO_CHANNEL_BINDING}{self.bare}".encode()


@dataclass(frozen=True, slots=True)
class ServerFirst:
    """`r=nonce,s=salt,i=iterations`; the nonce is the client's and then the server's."""

    text: str
    nonce: str
    salt: bytes
    iterations: int

    @classmethod
    def of(cls, nonce: str, salt: bytes, iterations: int) -> ServerFirst:
        return cls(f"r={nonce},s={b64encode(salt).decode()},i={iterations}", nonce, salt, iterations)

    @classmethod
    def read(cls, data: bytes) -> ServerFirst:
        """Raises AuthenticationFailed."""
        match = _matched(_SERVER_FIRST, data, "first message of the server")
        return cls(match[0], match["nonce"], b64decode(match["salt"]), int(match["iterations"]))


@dataclass(frozen=True, slots=True)
class ClientFinal:
    """`c=channel,r=nonce,p=proof`. bare: all of it in front of the proof."""

    bare: str
    nonce: str
    proof: bytes = field(default=b"", repr=False)

    @classmethod
    def of(cls, nonce: str) -> ClientFinal:
        return cls(f"c={b64encode(NO_CHANNEL_BINDING.encode()).decode()},r={nonce}", nonce)

    @classmethod
    def read(cls, data: bytes) -> ClientFinal:
        """Raises AuthenticationFailed. As in Kafka, the channel binding is covered by the proof, and not compared."""
        match = _matched(_CLIENT_FINAL, data, "final message of the client")
        return cls(match["bare"], match["nonce"], b64decode(match["proof"]))

    def to_bytes(self, proof: bytes) -> bytes:
        return f"{self.bare},p={b64encode(proof).decode()}".encode()


def server_final(signature: bytes) -> bytes:
    """`v=signature`."""
    return b"v=" + b64encode(signature)


def read_server_final(data: bytes) -> bytes:
    """The server's signature. Raises AuthenticationFailed, also for the error that a server may send in its place."""
    match = _matched(_SERVER_FINAL, data, "final message of the server")
    if match["error"] is not None:
        raise AuthenticationFailed(f"the server ended the exchange with the error {match['error'][:100]}")
    return b64decode(match["signature"])


def auth_message(client_first: ClientFirst, server_first: ServerFirst, client_final: ClientFinal) -> bytes:
    """The bytes that both sides sign."""
    return f"{client_first.bare},{server_first.text},{client_final.bare}".encode()


def _matched(pattern: re.Pattern[str], data: bytes, what: str) -> re.Match[str]:
    """The text is not shown: it holds a name, and a proof from which a weak password could be guessed."""
    is_short = len(data) <= LARGEST_MESSAGE_BYTES
    match = pattern.fullmatch(data.decode("utf-8", "replace")) if is_short else None
    if match is None:
        raise AuthenticationFailed(f"the {what} is not in the format of SCRAM")
    return match


def _saslname(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _plain_name(saslname: str) -> str:
    return saslname.replace("=2C", ",").replace("=3D", "=")
