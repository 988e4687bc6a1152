"""An answer as HTML: a page that needs no other file, and a fragment for notebooks."""

from __future__ import annotations

import base64
from typing import Any

from twofold import __version__
from twofold.analyses.common.answer import Answer


def page(answer: Answer) -> str:
    return template("report.html").render(**_content(answer))


def fragment(answer: Answer) -> str:
    """Without the figure: a notebook draws it when asked."""
    return template("fragment.html").render(**_content(answer, figure=False))


def _content(answer: Answer, figure: bool = True) -> dict[str, Any]:
    return {
        "answer": answer,
        "picture": base64.b64encode(answer.picture).decode() if figure else "",
        "version": __version__,
    }


def template(name: str, package: str = "twofold.analyses.common") -> Any:
    """A template of the package, in which text is escaped."""
    from jinja2 import Environment, PackageLoader

    loader = PackageLoader(package, "templates")
    return Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True).get_template(name)
