"""Formulas as MathML, which browsers draw by themselves: no script, no font to fetch, no network."""

from __future__ import annotations

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging
from sphinx.util.math import wrap_displaymath

logger = logging.getLogger(__name__)


def mathml(text: str, **options: str) -> str:
    """The formula, with two repairs to what browsers make of it."""
    done = convert(text, **options)
    if "\\" in done:
        logger.warning("formula with an unknown command: %s", text)
    # Bars of norms keep the size of the text, for browsers stretch only one of a pair; and ~ is a relation.
    done = re.sub(r"<mo[^>]*>(&#x0?2016;|&#x0?007C;)</mo>", r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', done)
    return done.replace("<mi>&#x0007E;</mi>", '<mo lspace="0.28em" rspace="0.28em">&#x223C;</mo>')


def inline(self, node):
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def block(self, node):
    text = node.astext().strip()
    if r"\\" in text and r"\begin" not in text:
        text = wrap_displaymath(text, None, False)
    self.body.append(f'<div class="math-block">{mathml(text, display="block")}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True}
