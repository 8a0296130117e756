"""Packages that `pip install 'pykbroker[tls]'` brings: the core is without them, and is a third smaller for it.

Whatever needs one asks here before it imports it, so that a missing package is one line with the setting that needs it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from pykbroker.config import ConfigurationError

CERTIFICATES: Final = "cryptography"
SIGNED_TOKENS: Final = "joserfc"


def need(package: str, needed_by: str) -> None:
    """Raise ConfigurationError where the package is not installed. needed_by: a key or a flag."""
    if find_spec(package) is None:
        raise ConfigurationError(f"{needed_by} needs {package}: pip install 'pykbroker[tls]'")
