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
from twofold.plots.style import GREY, INK, PALE, style
from twofold.tour.station import Part, Station
from twofold.tour.stylesheet import STYLE

IDEA = (
    "Almost every method that finds hidden structure says the same sentence: the data is two things put together, "
    "and each is easy to find when the other is known. Two factors, two half-steps, one loop."
)


def as_svg(figure: Figure, name: str) -> str:
    """The figure as an <svg> element; `name` keeps its ids apart from those of other figures."""
    with style(), mpl.rc_context({"svg.hashsalt": name}), io.StringIO() as file:
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    for color, variable in ((INK, "--ink"), (GREY, "--soft"), (PALE, "--line")):
        text = text.replace(color, f"var({variable})")
    text = re.sub(r'(<svg[^>]*?) width="[\d.]+pt" height="[\d.]+pt"', r"\1", text, count=1)
    known = set(re.findall(r'\bid="([^"]+)"', text))
    return re.sub(r'(id="|href="#|url\(#)([^")]+)', lambda m: _own(m, name, known), text)


def _own(found: re.Match, name: str, known: set[str]) -> str:
    """An id with the figure's name in front: several figures share one page."""
    return f"{found[1]}{name}-{found[2]}" if found[2] in known else found[0]


def page(stations: Sequence[tuple[Station, float]]) -> str:
    """The whole tour; each station comes with the seconds it took."""
    total = sum(seconds for _, seconds in stations)
    places = "".join(f'<a href="#s{i}">{escape(s.title)}</a>' for i, (s, _) in enumerate(stations))
    body = "\n".join(_section(f"s{i}", s, seconds) for i, (s, seconds) in enumerate(stations))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>A tour of twofold</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<p class="over">twofold {__version__}</p>
<h1>A tour</h1>
<p class="lead">{escape(IDEA)}</p>
<nav>{places}</nav>
</header>
<main>
{body}
</main>
<footer>Computed in {total:.1f} s from data that is bundled, by the code shown. Run it again with
<code>twofold tour</code>.</footer>
</body>
</html>
"""


def _section(anchor: str, station: Station, seconds: float) -> str:
    parts = "\n".join(_part(f"{anchor}p{i}", part) for i, part in enumerate(station.parts))
    return f"""<section id="{anchor}">
<h2>{escape(station.title)}</h2>
<p class="lead">{escape(station.lead)} <span class="time">{seconds:.1f} s</span></p>
{parts}
</section>"""


def _part(name: str, part: Part) -> str:
    tiles = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>" for label, value in part.numbers.items()
    )
    pieces = [
        f"<h3>{escape(part.title)}</h3>",
        f"<p>{part.text}</p>",
        f"<pre><code>{escape(part.code)}</code></pre>" if part.code else "",
        "" if part.figure is None else _figure(name, part.figure, part.caption),
        f"<dl>{tiles}</dl>" if tiles else "",
    ]
    return '<article id="' + name + '">\n' + "\n".join(piece for piece in pieces if piece) + "\n</article>"


def _figure(name: str, figure: Figure, caption: str) -> str:
    svg = as_svg(figure, name).replace("<svg", f'<svg role="img" aria-label="{escape(caption)}"', 1)
    return f'<figure><div class="wide">{svg}</div><figcaption>{escape(caption)}</figcaption></figure>'
