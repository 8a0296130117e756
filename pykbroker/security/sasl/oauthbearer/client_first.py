"""The client's first message (RFC 7628, section 3.1), as Kafka's `OAuthBearerClientInitialResponse` takes it.

`n,a=authzid,` CTRL-A `auth=Bearer token` CTRL-A `name=value` CTRL-A … CTRL-A. Whatever stands there beside `auth` is an
extension (KIP-342), whose name is of letters alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ..mechanism import AuthenticationFailed
from .compact_token import MAX_TOKEN_CHARS

SEPARATOR: Final = "\x01"
AUTH: Final = "auth"
MAX_MESSAGE_BYTES: Final = MAX_TOKEN_CHARS + 16_384
"""Room for the longest token, and for extensions."""

_KEY: Final = r"[A-Za-z]+"
_VALUE: Final = r"[\x21-\x7e \t\r\n]+"
_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_MESSAGE: Final = re.compile(f"n,(?:a=({_NAME}))?,{SEPARATOR}((?:{_KEY}={_VALUE}{SEPARATOR})*){SEPARATOR}", re.ASCII)
_AUTH: Final = re.compile(r"(\w+) +([-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_EXTENSION_NAME: Final = re.compile(_KEY, re.ASCII)
_EXTENSION_VALUE: Final = re.compile(_VALUE, re.ASCII)
_TOKEN: Final = re.compile(r"[-_~+/.a-zA-Z0-9]+=*", re.ASCII)


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """The message. authorization_id: empty where the client asks to be who its token says."""

    token: str = field(repr=False)
    authorization_id: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, data: bytes) -> ClientFirst:
        """Raises AuthenticationFailed."""
        if len(data) > MAX_MESSAGE_BYTES:
            raise AuthenticationFailed(f"the client's message is larger than {MAX_MESSAGE_BYTES} bytes")
        found = _MESSAGE.fullmatch(data.decode("utf-8", "replace"))
        if found is None:
            raise AuthenticationFailed("the client's message is none of OAUTHBEARER")
        pairs = dict(each.split("=", 1) for each in found[2].split(SEPARATOR) if each)
        auth = pairs.pop(AUTH, None)
        credential = None if auth is None else _AUTH.fullmatch(auth)
        if credential is None:
            raise AuthenticationFailed("the client's message has no 'auth' with a scheme and a token")
        scheme, token = credential.groups()
        if scheme.lower() != "bearer":
            raise AuthenticationFailed("the client's message has another scheme than Bearer")
        return cls(token, found[1] or "", pairs)

    def to_bytes(self) -> bytes:
        authorization_id = f"a={self.authorization_id}" if self.authorization_id else ""
        pairs = {AUTH: f"Bearer {self.token}", **self.extensions}
        listed = "".join(f"{name}={value}{SEPARATOR}" for name, value in pairs.items())
        return f"n,{authorization_id},{SEPARATOR}{listed}{SEPARATOR}".encode()


def is_extension(name: str, value: str) -> bool:
    """Tell whether an extension may be sent."""
    return (
        name != AUTH and _EXTENSION_NAME.fullmatch(name) is not None and _EXTENSION_VALUE.fullmatch(value) is not None
    )


def is_token(text: str) -> bool:
    """Tell whether a token may be sent (RFC 6750, section 2.1)."""
    return len(text) <= MAX_TOKEN_CHARS and _TOKEN.fullmatch(text) is not None
