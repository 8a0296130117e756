"""The site of the documentation: `make site` builds it into build/site with Sphinx."""

from __future__ import annotations

from importlib.metadata import version as version_of

project = "pykbroker"
version = release = version_of("pykbroker")
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = f"pykbroker {release}"
html_copy_source = False
html_show_copyright = False
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
nitpicky = False
# Links to folders, and to files beside docs/, have no page here and stay as text; a test knows that they are there.
suppress_warnings = ["myst.xref_missing"]
