"""How the documentation is built: `make docs`. Figures and numbers are computed now, none are stored."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from sphinx_gallery.sorting import ExplicitOrder  # noqa: E402

import twofold  # noqa: E402

FAMILIES = ("linear", "clusters", "completion", "topics", "words", "signals", "deep", "factors")  # of the gallery

project = "twofold"
author = "The twofold authors"
copyright = "2026, The twofold authors"
version = release = twofold.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "figures",
    "mathml",
]
exclude_patterns = ["_build", "gallery/*.rst", "gallery/*.md", "gallery/[!a]*/*.rst"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "substitution"]
myst_substitutions = {"version": version}
myst_heading_anchors = 3
html_math_renderer = "mathml"
suppress_warnings = ["config.cache"]

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "gallery/auto",
    "subsection_order": ExplicitOrder([f"gallery/{family}" for family in FAMILIES]),
    "backreferences_dir": "gallery/auto/backreferences",
    "doc_module": ("twofold",),
    "image_scrapers": ("figures.scrape",),
    "reset_modules": (),
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 10_000,
    "show_memory": False,
    "write_computation_times": False,
    "log_level": {"backreference_missing": "debug"},
}

html_theme = "pydata_sphinx_theme"
html_title = "twofold"
html_static_path = ["_static"]
html_css_files = ["twofold.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "twofold"},
    "show_prev_next": False,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {
    page: []
    for page in (
        "index",
        "design",
        "learn/linear",
        "learn/clusters",
        "learn/completion",
        "learn/topics",
        "learn/words",
        "learn/signals",
        "learn/networks",
        "learn/generators",
        "learn/factors",
        "learn/how-many",
        "reference/index",
    )
}
