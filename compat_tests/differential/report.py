"""docs/differential.md, made of what is recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[2] / "docs" / "differential.md"


def page() -> str:
    return ""
