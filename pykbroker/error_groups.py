"""Groups of errors, as Trio's nurseries raise them, for who needs one error to tell of."""

from __future__ import annotations

from typing import Any


def first_of(error: BaseException) -> Any:
    """Return the first error of a group that is no group itself; an error that is none already is returned."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
