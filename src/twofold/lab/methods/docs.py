"""Sentences of the documentation, read from the source without importing it, so that the catalog is quick.

    describe_parameter("KMeans", "init")    → "Where to begin. "auto" takes k-means++ for small data …"
    summarize("KMeans")                     → "k-means: every row belongs to the nearest of k centers, …"

A class is named as in ``twofold``, "KMeans"; a function by its file, "signals.images.denoise:denoise_image".
"""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import twofold

LONGEST = 320  # letters of an explanation; further sentences are left to the reference


@cache
def read_docstring(name: str) -> str:
    """The docstring of a class or function."""
    home, _, last = name.rpartition(":")
    module = f"twofold.{home}" if home else vars(twofold)["_HOMES"][name]
    path = Path(twofold.__file__).parent.joinpath(*module.split(".")[1:]).with_suffix(".py")
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == last:
            return inspect.cleandoc(ast.get_docstring(node) or "")
    raise LookupError(f"{path} has no {last}")


def summarize(name: str) -> str:
    """Its first line."""
    return _plain(read_docstring(name).partition("\n\n")[0])


def describe_parameter(name: str, parameter: str) -> str:
    """What the docstring says of one parameter, "" if nothing; "As in :class:`SVP`" is followed."""
    text = read_docstring(name)
    part = re.search(r"(?ms)^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+$|\Z)", text)
    for heading, body in re.findall(
        r"(?m)^(\S[^\n]*(?:\\\n[^\n]*)*)\n((?:[ \t]+[^\n]*\n?|\n)*)", part[1] if part else ""
    ):
        if parameter in re.split(r"[,\s]+", heading.partition(" : ")[0].strip()):
            said = " ".join(body.split())
            elsewhere = re.search(r"[Aa]s (?:in|for) :(?:class|func):`(\w+)`", said)
            if elsewhere and elsewhere[1] in vars(twofold)["_HOMES"]:
                return describe_parameter(elsewhere[1], parameter) or _plain(said)
            return _shorten(_plain(said))
    return ""


def _plain(text: str) -> str:
    """Without the marks of reStructuredText."""
    text = re.sub(r":\w+:`~?\.?([^`]*)`", lambda found: found[1].rpartition(".")[2], " ".join(text.split()))
    return re.sub(r"`{1,2}([^`]*)`{1,2}", r"\1", text).replace("*", "")


def _shorten(text: str) -> str:
    """As many whole sentences as fit, one at least."""
    sentences = re.split(r"(?<=[.?!])\s+(?=[A-Z\"])", text)
    out = sentences[0]
    for sentence in sentences[1:]:
        if len(out) + len(sentence) >= LONGEST:
            break
        out += " " + sentence
    return out
