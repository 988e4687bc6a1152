"""The exact Python of a run: every line is written down as it is executed, so that the script cannot differ from it.

script = Script(data, rows)                     # X, y, … are bound as data.code binds them
script.use("twofold", "KMeans")
script.do("model = KMeans(3, random_state=0)")
script.do("model.fit(X)")
script.text                                     # imports, data, and these lines
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.core.checks import InputError

if TYPE_CHECKING:
    from twofold.lab.data import Data

PART_NAMES = {
    "table": "X", "target": "y", "ratings": "ratings", "texts": "texts", "picture": "picture", "pictures": "pictures",
    "signal": "signal",
}  # parts of `Data` by their names in the code  # fmt: skip
BY_ROW = ("X", "y", "pictures")  # arrays whose rows a selection takes


class Name(str):
    """A value that the script writes as a name."""

    def __repr__(self) -> str:
        return str(self)


class Script:
    """Lines of Python, and the names they have bound so far."""

    def __init__(self, data: Data | None = None, rows: Sequence[int] | None = None):
        self.names: dict[str, Any] = {"np": np}
        self.imports: dict[str, set[str]] = {}
        self.lines: list[str] = []
        if data is not None:
            parts = {name: getattr(data, part) for part, name in PART_NAMES.items()}
            self.names |= {name: part for name, part in parts.items() if part is not None}
            if "\ncolumns = " in data.code:
                self.names["columns"] = np.array(data.columns, dtype=object)
            self._write(data.code)
        if rows is not None:
            self._select([int(row) for row in rows])

    def __getitem__(self, name: str) -> Any:
        return self.names[name]

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def _write(self, code: str) -> None:
        """Write down the lines that load the data, which is loaded already; their imports go to the top."""
        body = []
        for node in ast.parse(code).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                self.imports.setdefault(node.module, set()).update(alias.name for alias in node.names)
            elif not isinstance(node, ast.Import):  # of numpy, which every script has
                body.append(ast.get_source_segment(code, node) or "")
        self.say("\n".join(body))

    def run(self, code: str) -> None:
        """Execute and write down whole lines with their imports."""
        exec(code, self.names)
        self._write(code)

    def read(self, module: str, line: str) -> Any:
        """Import the reader of a line ``value = reader(FILE)``, and do the line."""
        self.use(module, line.partition(" = ")[2].partition("(")[0])
        return self.do(line)

    def _select(self, rows: list[int]) -> None:
        n = next((len(self[name]) for name in (*BY_ROW, "texts", "ratings") if name in self), 0)
        if not rows or min(rows) < 0 or max(rows) >= n:
            raise InputError(f"the selection does not fit: rows are numbered from 0 to {n - 1}, and one is needed.")
        self.do(f"rows = {rows}")
        for name in BY_ROW:
            if name in self:
                self.do(f"{name} = {name}[rows]")
        if "texts" in self:
            self.do("texts = [texts[row] for row in rows]")
        if "ratings" in self:
            self.do("ratings = ratings[rows]")

    def use(self, module: str, name: str) -> None:
        """``from module import name``."""
        self.imports.setdefault(module, set()).add(name)
        exec(f"from {module} import {name}", self.names)

    def do(self, line: str) -> Any:
        """Execute a line, write it down, and return the value that it binds, if it binds one name."""
        exec(line, self.names)
        self.say(line)
        return self.names.get(line.partition(" = ")[0])

    def value(self, expression: str) -> Any:
        """Return the value of an expression, which is not written down."""
        return eval(expression, self.names)

    def say(self, line: str) -> None:
        """Write down a line that was done by hand."""
        if line:
            self.lines.append(line)

    def build(self, name: str, params: Mapping[str, Any], *, to: str = "model", module: str = "twofold") -> Any:
        """Bind `to` to an estimator, with those parameters alone that are not its defaults."""
        self.use(module, name)
        self.do(f"{to} = {name}({_arguments(self[name], params)})")
        return self[to]

    @property
    def text(self) -> str:
        body = "\n".join(self.lines)
        imports = [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(self.imports.items())]
        if "np." in body:
            imports.insert(0, "import numpy as np\n" if imports else "import numpy as np")
        return "\n".join(imports) + "\n\n" + body + "\n"


def _arguments(cls: Any, params: Mapping[str, Any]) -> str:
    """Arguments of a call; the first parameter of the class goes without its name."""
    signature = inspect.signature(cls).parameters
    out = []
    for place, (name, parameter) in enumerate(signature.items()):
        if name in params and (params[name] != parameter.default or type(params[name]) is not type(parameter.default)):
            alone = place == 0 and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            out.append(repr(params[name]) if alone else f"{name}={params[name]!r}")
    return ", ".join(out)
