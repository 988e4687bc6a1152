"""What each verb of the command line does, as a function: on a path, a frame or an array.

    from twofold import analyses
    answer = analyses.cluster("wine.csv")
    answer.table, answer.figures, answer.baseline, answer.notes, answer.model, answer.code
    answer.plot(); answer.save("groups.html")

An analysis is imported when it is first named, so that importing this package is quick.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twofold.analyses.apply import apply
    from twofold.analyses.cluster import cluster
    from twofold.analyses.common.answer import Answer
    from twofold.analyses.complete import complete
    from twofold.analyses.compress import compress
    from twofold.analyses.denoise import denoise
    from twofold.analyses.embed import embed
    from twofold.analyses.generate import generate
    from twofold.analyses.inpaint import inpaint
    from twofold.analyses.recommend import recommend
    from twofold.analyses.reduce import reduce
    from twofold.analyses.sense import sense
    from twofold.analyses.topics import topics
    from twofold.analyses.train import train

__all__ = [
    "Answer",
    "apply",
    "cluster",
    "complete",
    "compress",
    "denoise",
    "embed",
    "generate",
    "inpaint",
    "recommend",
    "reduce",
    "sense",
    "topics",
    "train",
]


class _Analyses(ModuleType):
    """This package, whose attribute `cluster` is the function and never the folder of the same name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Analyses


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = f"{__name__}.common.answer" if name == "Answer" else f"{__name__}.{name}"
    found = getattr(importlib.import_module(home), name)
    setattr(sys.modules[__name__], name, found)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
