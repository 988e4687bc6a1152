"""Figures made while the documentation is built: those of learn/ from functions, those of the gallery from its code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

from twofold.plots.style import save

_drawn: list[Figure] = []  # figures of gallery pages that are already on them


def scrape(block, block_vars, gallery_conf):
    """Put every new Figure among a code block's variables on its page."""
    new = []
    for value in block_vars["example_globals"].values():
        if isinstance(value, Figure) and not any(value is old for old in _drawn):
            path = next(block_vars["image_path_iterator"])
            save(value, path, dpi=160)
            _drawn.append(value)
            new.append(path)
    return figure_rst(new, gallery_conf["src_dir"])


def draw(app):
    """Call every public function of learn/figures*.py; its name is the file's."""
    target = Path(app.srcdir) / "_build" / "figures"
    target.mkdir(parents=True, exist_ok=True)
    for script in sorted(Path(app.srcdir, "learn").glob("figures*.py")):
        spec = importlib.util.spec_from_file_location(script.stem, script)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, make in list(vars(module).items()):  # drawing may add a registry of warnings
            if callable(make) and getattr(make, "__module__", "") == script.stem and not name.startswith("_"):
                save(make(), target / f"{name}.svg")


def setup(app):
    app.connect("builder-inited", draw, priority=100)
    return {"parallel_read_safe": True}
