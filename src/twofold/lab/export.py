"""One run as one HTML file that plays without a server: the page itself, with the answers that it would ask for.

The modules of the page stand in the file as data, by an import map; requests are answered from a JSON block.
"""

from __future__ import annotations

import base64
import json
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

STATIC = Path(__file__).parent / "static"
MAX_BYTES = 24_000_000  # of frames in a file
IMPORT = re.compile(r"(\bfrom |\bimport )'(\.[^']+)'")


def write_page(answers: Mapping[str, Any], frames: Mapping[str, bytes], address: str) -> str:
    """Write the page of a run.

    Parameters
    ----------
    answers : mapping
        What the server answers to a path, in JSON.
    frames : mapping
        Frames by their paths.
    address : str
        The fragment that names the run.
    """
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    known = json.loads(re.findall(r"<script type=\"importmap\">(.*?)</script>", page, re.S)[0])["imports"]
    modules = {f"lab/{path.relative_to(STATIC).as_posix()}": path for path in STATIC.rglob("*.js")}
    modules |= {name: STATIC / at.removeprefix("/static/") for name, at in known.items()}
    imports = {name: as_data(resolve(path), "text/javascript") for name, path in modules.items()}
    styles = "".join((STATIC / name).read_text(encoding="utf-8") for name in ("vendor/uPlot.min.css", "style.css"))
    kept = {path: base64.b64encode(frame).decode() for path, frame in frames.items()}
    replay = {"answers": dict(answers), "frames": kept, "address": address}
    text = json.dumps(replay, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>twofold lab</title><style>{styles}</style>
<script type="application/json" id="replay">{text}</script>
<script type="importmap">{json.dumps({"imports": imports})}</script>
<script type="module">import 'lab/main.js';</script></head>
<body><div id="lab"></div></body></html>
"""


def resolve(path: Path) -> str:
    """Return a module of the page with its imports by the names of the import map."""
    folder = path.relative_to(STATIC).parent.as_posix()
    name = lambda match: f"{match[1]}'lab/{posixpath.normpath(posixpath.join(folder, match[2]))}'"  # noqa: E731
    return IMPORT.sub(name, path.read_text(encoding="utf-8"))


def as_data(text: str, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"
