"""Text for a terminal: names from files may hold anything, and a terminal obeys some of it."""

from __future__ import annotations

import re

# Control characters but tab and line feed, and the marks that change the direction of what follows.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with a � for every character that a terminal would obey instead of showing it.

    >>> printable("a" + chr(27) + "[31mb")
    'a�[31mb'
    """
    return _OBEYED.sub("�", text)
