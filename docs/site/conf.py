"""Settings of Sphinx for the site; ``build.py`` says what it is made of."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import bayesmeta

project = "bayesmeta"
author = "The bayesmeta developers"
copyright = author
version = release = bayesmeta.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "myst_nb",
]
root_doc = "docs/index"
html_theme = "furo"
html_title = "bayesmeta"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}

nb_execution_mode = "off"  # outputs are shown as stored; a test runs the notebooks
nb_merge_streams = True
nb_render_markdown_format = "myst"  # tables and formulas in what cells say
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type"]

autodoc_typehints = "none"  # the Parameters of a docstring say them
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": "object,tuple,Exception,Enum,str"}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False

PUBLIC = set(bayesmeta.__all__)
_LITERAL = re.compile(r"(``[^`]*``|:[a-z:]+:`[^`]*`|`[^`]*`)")


def marked_up(line: str) -> str:
    """A line of a docstring as reStructuredText: symbols such as mu_* and N_0 are text, and public
    names in code style are links."""
    if line.lstrip().startswith((">>>", "...")):
        return line
    parts = _LITERAL.split(line)
    for k, part in enumerate(parts):
        if k % 2:
            name = part.strip("`").removeprefix("bm.")
            if part.startswith("``") and name in PUBLIC:
                parts[k] = f":py:obj:`~bayesmeta.{name}`"
        else:
            parts[k] = re.sub(r"(?<!\\)([*|]|_(?!\w)|(?<!\w)_(?=\w))", r"\\\1", part)
    return "".join(parts)


def mark_up(
    app: object, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Mark up all lines of a docstring but those of examples and of headings."""
    example = False
    for k, line in enumerate(lines):
        under = lines[k + 1] if k + 1 < len(lines) else ""
        if re.fullmatch(r"-{3,}", under.strip()):
            example = line.strip() == "Examples"
        if not example:
            lines[k] = marked_up(line)


def setup(app: object) -> None:
    """Docstrings are marked up before napoleon reads them."""
    app.connect("autodoc-process-docstring", mark_up, priority=100)  # type: ignore[attr-defined]
