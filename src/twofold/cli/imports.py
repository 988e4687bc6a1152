"""Libraries that others import without need, put off until something of them is used.

scikit-learn imports pandas and scipy.stats with its base classes, for functions that no verb calls: half of the time
until a verb begins. A table from the command line is never one of pandas.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

ABSENT, PUT_OFF = "pandas", "scipy.stats"


class PutOffModule(ModuleType):
    """A module that is imported when something of it is first used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return PutOffName(self, name)

    def load(self) -> ModuleType:
        """The module itself."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return importlib.import_module(self.__name__)


class PutOffName:
    """A function or distribution of such a module."""

    def __init__(self, module: PutOffModule, name: str):
        self._module, self._name = module, name

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return getattr(self._module.load(), self._name)(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(self._module.load(), self._name), name)


def import_scikit_learn() -> None:
    """Import what all estimators need, without the libraries that none needs."""
    if "sklearn.base" in sys.modules:
        return
    if PUT_OFF not in sys.modules:
        sys.modules[PUT_OFF] = PutOffModule(PUT_OFF)
    hidden = ABSENT not in sys.modules
    if hidden:
        sys.modules[ABSENT] = None  # type: ignore[assignment]
    try:
        import sklearn.base  # noqa: F401
    finally:
        if hidden:
            del sys.modules[ABSENT]
