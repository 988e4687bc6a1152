"""The tour as one HTML page that needs no other file and no network.

Figures are inline SVG whose ink, grid and paper follow the page, so that they read well in light and in dark.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import escape
from itertools import count

import matplotlib as mpl
from matplotlib.figure import Figure

from twofold import __version__
from twofold.analyses.common.answer import template
from twofold.plots.style import GREY, INK, PALE, style
from twofold.tour import STATIONS, Station


def as_svg(figure: Figure, name: str) -> str:
    """Return the figure as an <svg> element; `name` stands in its ids, since several figures share one page."""
    with style(), mpl.rc_context({"svg.hashsalt": name}), io.StringIO() as file:
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    for color, variable in ((INK, "--ink"), (GREY, "--soft"), (PALE, "--line")):
        text = text.replace(color, f"var({variable})")
    text = re.sub(r'(<svg[^>]*?) width="[\d.]+pt" height="[\d.]+pt"', r"\1", text, count=1)
    known = set(re.findall(r'\bid="([^"]+)"', text))
    return re.sub(r'(id="|href="#|url\(#)([^")]+)', lambda m: f"{m[1]}{name}-{m[2]}" if m[2] in known else m[0], text)


def page(stations: Sequence[tuple[str, Station, float]]) -> str:
    """Write the whole tour: titles, what their stations found, and the seconds they took."""
    numbers = count()

    def draw(figure: Figure, caption: str) -> str:
        """Draw a figure, with its caption for screen readers."""
        return as_svg(figure, f"f{next(numbers)}").replace("<svg", f'<svg role="img" aria-label="{escape(caption)}"', 1)

    sections = [
        (title, seconds, template(f"{STATIONS[title]}.html", "twofold.tour").render(found, draw=draw))
        for title, found, seconds in stations
    ]
    return template("tour.html", "twofold.tour").render(sections=sections, version=__version__)
