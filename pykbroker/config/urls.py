"""URLs as they may be shown: a password, a token and whatever else may be one are hidden.

A URL of a setting may carry them, `https://user:password@host/` or `https://host/keys?token=…`, and stands in the log,
in errors and in the console.
"""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "[hidden]"
_USER: Final = re.compile(r"(?<=://)[^/?#\s]*@")
_VALUE: Final = re.compile(r"(?<=[?&;#])([^=&;#\s?]*=)?[^&;#\s]+")


def without_secrets(text: str) -> str:
    """Return a text with the users of its URLs, and the values behind `?` and `#`, hidden."""
    if "://" not in text:
        return text
    before, scheme, after = text.partition("://")
    shown = _USER.sub(f"{HIDDEN}@", scheme + after)
    return before + _VALUE.sub(lambda found: f"{found[1] or ''}{HIDDEN}", shown)
