"""The pages that are made of the code, and the parts of pages between two marks."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from . import api_tables, client_properties, quotas, variables
from .config_pages import KINDS, index_page, page_of_kind

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"


def pages() -> dict[Path, str]:
    """Return every page with the text that it should have."""
    folder = DOCS / "reference"
    return {
        DOCS / "configuration-reference.md": index_page(),
        **{folder / f"{kind}.md": page_of_kind(kind) for kind in KINDS},
        folder / "variables.md": variables.page(),
        folder / "quotas.md": quotas.page(),
        folder / "clients.md": client_properties.page(),
        DOCS / "protocol.md": with_parts((DOCS / "protocol.md").read_text(), api_tables.parts()),
    }


def stale_pages() -> dict[Path, str]:
    return {path: text for path, text in pages().items() if not path.exists() or path.read_text() != text}


def with_parts(page: str, parts: dict[str, str]) -> str:
    """Return the page with each part between its marks. Raises ValueError where a mark is missing."""
    for name, text in parts.items():
        begin, end = f"<!-- made of the code: {name} -->", f"<!-- end of {name} -->"
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"the page has no '{begin}' with '{end}' behind it")
        page = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    return page
