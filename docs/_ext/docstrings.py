"""Docstrings are written to be read in an editor; this makes them fit for reStructuredText."""

from __future__ import annotations

import inspect
import re

import twofold
from twofold.core.files.arrays_fit import read_declarations

SAFE = re.compile(r"(``.*?``|`[^`]*`|\*\*.*?\*\*)")  # literals, roles, bold
LOOSE = re.compile(r"(?<!\w)([A-Za-z]\w*_)(?!\w)")  # n_iter_ is a name here, not a link


def escape(app, what, name, obj, options, lines):
    """Escape names that end in an underscore, and bars, outside literals and examples."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...", "..")):
            parts = SAFE.split(line)
            parts[::2] = [LOOSE.sub(lambda m: m[1][:-1] + r"\_", part).replace("|", r"\|") for part in parts[::2]]
            lines[i] = "".join(parts)


def declare(app, what, name, obj, options, lines):
    """Beside the attributes of an estimator, how its arrays fit together: what a model file is held against."""
    said = read_declarations(obj) if what == "class" else {}
    said = {name: text for name, text in said.items() if name != "feature_names_in_"}
    if not said:
        return
    ends = [i for i, line in enumerate(lines) if line.startswith(".. rubric::") and "Attributes" not in line]
    at = next((i for i in ends if any("Attributes" in line for line in lines[:i])), len(lines))
    shown = [f"- ``{name}``: {told(text)}" for name, text in said.items()]
    lead = (
        "Sizes in a model file, which is refused if they do not agree: d columns of X, n rows; another letter is the "
        "same number wherever it stands."
    )
    lines[at:at] = ["", ".. rubric:: How the arrays fit together", "", lead, "", *shown, ""]


def told(text):
    """A declaration in words: "k d, >= 0" is ``(k, d)``, ≥ 0."""
    shapes, *conditions = (part.strip() for part in text.split(","))
    choices = []
    for choice in shapes.split(" or "):
        axes, _, value = choice.partition("(")
        axes = ["any" if axis == "." else axis for axis in axes.split()]
        shape = f"``({', '.join(axes)})``" if axes else "one number"
        choices.append(f'{shape} for "{value.rstrip(")")}"' if value else shape)
    signs = {">=": "≥", "<": "<", ">": ">"}
    parts = [" ".join(signs.get(word, word) for word in one.split()) for one in conditions]
    parts = [{"any": "also infinite", "text": "ids or words"}.get(part, part) for part in parts]
    return ", ".join([" or ".join(choices), *parts])


def skip(app, what, name, obj, skipped, options):
    """Leave out what scikit-learn's base classes bring: it is documented there."""
    home = getattr(obj, "__module__", None) or ""
    return True if home.startswith("sklearn") else None


def sign(app):
    """Give every model the signature of its constructor: sphinx would take that of `Model.__new__`."""
    for name in twofold._MODELS:
        model = getattr(twofold, name)
        own = model.__init__ is not object.__init__
        model.__signature__ = inspect.signature(model) if own else inspect.Signature()


def setup(app):
    app.connect("builder-inited", sign)
    app.connect("autodoc-process-docstring", escape, priority=900)  # after numpydoc
    app.connect("autodoc-process-docstring", declare, priority=950)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
