"""The site of the documentation: `make site` builds it into build/site with Sphinx."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from pygments.lexers.shell import BashLexer
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

import pykbroker
import pykbroker.testing

DOCS = Path(__file__).parent

project = "pykbroker"
version = release = pykbroker.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = f"pykbroker {release}"
html_copy_source = False
html_show_copyright = False
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}
default_role = "code"

# Autodoc sees the names that are there; these are made when they are used.
for _name in pykbroker.testing.__all__:
    getattr(pykbroker.testing, _name)


def leave_files_as_text(app: Sphinx, doctree: nodes.document) -> None:
    """Links to folders, and to pages beside docs/, have no page here; tests/test_documentation.py follows them."""
    for reference in list(doctree.findall(pending_xref)):
        target = str(reference["reftarget"])
        beside = reference.get("refdomain") == "doc" and target not in app.env.found_docs
        if beside or any((folder / target).exists() for folder in (DOCS, DOCS.parent)):
            reference.replace_self(reference.children)


def leave_out_aliases(app: Sphinx, what: str, name: str, subject: object, skip: bool, options: object) -> bool | None:
    """Leave out fields of named tuples, of which Python says "Alias for field number 0"; the signature has them."""
    return True if str(getattr(subject, "__doc__", "")).startswith("Alias for field number") else None


def leave_out_maps(app: Sphinx, what: str, name: str, subject: object, options: object, lines: list[str]) -> None:
    """Docstrings of packages are for who reads the source."""
    if what == "module":
        lines.clear()


def setup(app: Sphinx) -> None:
    app.add_lexer("console", BashLexer)  # without prompts, as they are copied
    app.connect("autodoc-process-docstring", leave_out_maps)
    app.connect("autodoc-skip-member", leave_out_aliases)
    app.connect("doctree-read", leave_files_as_text)
