"""Packages that only some options need, and that are imported when one of these is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..command import CommandFailed


def imported(module: str, *, extra: str, needed_by: str) -> Any:
    """Return the module. Raises CommandFailed, which says what to install.

    extra: the name in `pip install 'pykbroker[…]'`. needed_by: the option that asks for the module.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError:
        raise CommandFailed(f"{needed_by} needs a package more: pip install 'pykbroker[{extra}]'") from None
