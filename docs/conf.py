# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx, as scripts/make_site.py runs it over a copy of the pages."""

project = "Ryle"
author = "The Ryle authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
html_theme = "alabaster"
html_theme_options = {"page_width": "1240px", "sidebar_width": "260px", "fixed_sidebar": False, "show_powered_by": False,
                      "font_family": "system-ui, sans-serif", "head_font_family": "system-ui, sans-serif", "font_size": "16px",
                      "code_font_size": "0.82em", "body_max_width": "100%",
                      "description": "What radio telescopes deliver, into what astronomers use"}
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}
html_show_copyright = False
html_copy_source = False
highlight_language = "none"
myst_enable_extensions = ["html_image"]
myst_heading_anchors = 4
# Headings of pages begin at any level, and code of any kind is shown as it is.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": False}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True


def plain_docstring(app, what, name, obj, options, lines):
    """What docstrings mean by | and @shape, which Sphinx would read otherwise."""
    for k, line in enumerate(lines):
        quoted = line.split("``")
        quoted[::2] = [part.replace("|", "\\|").replace("@shape ", "Shape: ") for part in quoted[::2]]
        lines[k] = "``".join(quoted)


def setup(app):
    app.connect("autodoc-process-docstring", plain_docstring, priority=100)
