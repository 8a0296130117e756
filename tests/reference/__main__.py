"""`python -m tests.reference` writes the pages that are stale, and names them."""

from __future__ import annotations

from .pages import ROOT, stale_pages

if __name__ == "__main__":
    for path, text in stale_pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        print(path.relative_to(ROOT))  # noqa: T201
