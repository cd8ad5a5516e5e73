"""The documentation site: `python -m sphinx -W docs build/site`, then open build/site/index.html.

The pages are the Markdown files of this folder, which read well on a plain git host too. The reference is written into
reference/ when the site is built, from the package itself.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "_site"), str(Path(__file__).parents[1])]

project = "queueing_ucrl"
extensions = ["myst_parser", "reference_pages", "source_links", "flowcharts"]
exclude_patterns = ["_site"]
source_suffix = {".md": "markdown"}
highlight_language = "none"  # indented blocks are commands and what they print
myst_heading_anchors = 4
myst_url_schemes = {"http": None, "https": None, "mailto": None, "source": "{{path}}#{{fragment}}"}
maximum_signature_line_length = 88
nitpicky = True  # every reference leads somewhere,
nitpick_ignore_regex = [("py:class", ".*")]  # but types in signatures: those of numpy, and our own inner ones
toc_object_entries = False
html_theme = "furo"
html_title = "queueing_ucrl"
html_show_sourcelink = html_copy_source = html_show_copyright = False
html_show_search_summary = False  # it would fetch pages, which a browser refuses for files
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
pygments_dark_style = "monokai"
