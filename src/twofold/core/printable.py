"""Text for a terminal: names from files may hold anything, and a terminal obeys some of it."""

from __future__ import annotations

import re

# Control characters but tab and line feed, and the marks that change the direction of what follows.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def escape(text: str) -> str:
    """JSON whose texts hold \\uXXXX in place of such characters: the same value, and nothing that a terminal obeys.

    >>> escape('{"a": "' + chr(155) + '"}')
    '{"a": "\\\\u009b"}'
    """
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def printable(text: str) -> str:
    """The text with a � for every character that a terminal would obey instead of showing it.

    >>> printable("a" + chr(27) + "[31mb")
    'a�[31mb'
    """
    return _OBEYED.sub("�", text)
