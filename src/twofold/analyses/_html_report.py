"""A report as one HTML page that needs no other file."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

from twofold import __version__

_STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; color: #1f2933; background: #f5f7fa; margin: 0; }
main { max-width: 62rem; margin: 2.5rem auto; padding: 2rem 2.5rem; background: #fff; border-radius: 10px;
       box-shadow: 0 1px 4px #1f293322; }
h1 { font-size: 1.5rem; margin: 0 0 .4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
.lead { margin: 0 0 1.5rem; color: #52606d; }
img { width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th, td { text-align: left; padding: .4rem .9rem .4rem 0; border-bottom: 1px solid #e4e7eb; }
td:nth-child(2), td:nth-child(3), th:nth-child(2), th:nth-child(3) { text-align: right; white-space: nowrap; }
ul { padding-left: 1.2rem; color: #52606d; font-size: .93rem; }
footer { margin-top: 2rem; color: #7b8794; font-size: .85rem; }
"""


def page(
    title: str,
    lead: str,
    picture: bytes,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str],
) -> str:
    """One picture, one table, and the choices made on the way."""
    image = base64.b64encode(picture).decode()
    cells = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows)
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    choices = "".join(f"<li>{escape(note)}</li>\n" for note in notes)
    section = f"<h2>Choices made</h2>\n<ul>\n{choices}</ul>" if notes else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body><main>
<h1>{escape(title)}</h1>
<p class="lead">{escape(lead)}</p>
<img alt="{escape(lead)}" src="data:image/png;base64,{image}">
<div class="wide"><table>
<thead><tr>{names}</tr></thead>
<tbody>
{cells}</tbody>
</table></div>
{section}
<footer>twofold {__version__}</footer>
</main></body>
</html>
"""
