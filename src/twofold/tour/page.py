"""The tour as one HTML page that needs no other file and no network.

Figures are inline SVG whose ink, grid and paper follow the page, so that they read well in light and in dark.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import escape

import matplotlib as mpl
from matplotlib.figure import Figure

from twofold import __version__
from twofold.analyses.common.answer import template
from twofold.plots.style import GREY, INK, PALE, style
from twofold.tour.station import Part, Station

IDEA = (
    "Almost every method that finds hidden structure says the same sentence: the data is two things put together, "
    "and each is easy to find when the other is known. Two factors, two half-steps, one loop."
)


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


def page(stations: Sequence[tuple[Station, float]]) -> str:
    """Write the whole tour; each station comes with the seconds it took."""
    return template("tour.html", "twofold.tour").render(
        stations=stations,
        total=sum(seconds for _, seconds in stations),
        idea=IDEA,
        version=__version__,
        draw=_draw,
    )


def _draw(part: Part, name: str) -> str:
    """Draw the figure of a part, with its caption for screen readers."""
    assert part.figure is not None
    return as_svg(part.figure, name).replace("<svg", f'<svg role="img" aria-label="{escape(part.caption)}"', 1)
