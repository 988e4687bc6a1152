"""Docstrings are written to be read in an editor; this makes them fit for reStructuredText."""

from __future__ import annotations

import re

SAFE = re.compile(r"(``.*?``|`[^`]*`|\*\*.*?\*\*)")  # literals, roles, bold
LOOSE = re.compile(r"(?<!\w)([A-Za-z]\w*_)(?!\w)")  # n_iter_ is a name here, not a link


def escape(app, what, name, obj, options, lines):
    """Escape names that end in an underscore, and bars, outside literals and examples."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...", "..")):
            parts = SAFE.split(line)
            parts[::2] = [LOOSE.sub(lambda m: m[1][:-1] + r"\_", part).replace("|", r"\|") for part in parts[::2]]
            lines[i] = "".join(parts)


def skip(app, what, name, obj, skipped, options):
    """Leave out what scikit-learn's base classes bring: it is documented there."""
    home = getattr(obj, "__module__", None) or ""
    return True if home.startswith("sklearn") else None


def setup(app):
    app.connect("autodoc-process-docstring", escape, priority=900)  # after numpydoc
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
