"""Text for a terminal, and values for JSON: names from files may hold anything, and a terminal obeys some of it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

# Control characters but tab and line feed, and the marks that change the direction of what follows.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def escape(text: str) -> str:
    """JSON whose texts hold \\uXXXX in place of such characters: the same value, and nothing that a terminal obeys.

    >>> escape('{"a": "' + chr(155) + '"}')
    '{"a": "\\\\u009b"}'
    """
    return _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def printable(text: str) -> str:
    """The text with a � for every character that a terminal would obey instead of showing it.

    >>> printable("a" + chr(27) + "[31mb")
    'a�[31mb'
    """
    return _OBEYED.sub("�", text)


def plain(value: Any) -> Any:
    """The value in types that JSON has; numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (str, int, bool, type(None))) else str(value)
