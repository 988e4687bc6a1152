"""A private file or folder of src is imported only by its own folder and the folders below it.

    python tools/private_imports.py

A name with one underscore in front is private: `twofold/words/_files.py` serves `twofold/words/` and what lies in it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"


def find_modules(node: ast.AST, folder: list[str]) -> list[list[str]]:
    """Return the dotted names that an import statement may load, in parts; `folder` resolves relative ones."""
    if isinstance(node, ast.Import):
        return [alias.name.split(".") for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = folder[: len(folder) - node.level + 1] if node.level else []
    base = [*base, *(node.module.split(".") if node.module else [])]
    return [[*base, alias.name] for alias in node.names]


def find_private(module: list[str]) -> int | None:
    """Return the place of the first part that is a private file or folder of src."""
    for at, part in enumerate(module):
        path = SOURCE.joinpath(*module[: at + 1])
        if part.startswith("_") and not part.startswith("__") and (path.is_dir() or path.with_suffix(".py").is_file()):
            return at
    return None


def find_offenders() -> Iterator[str]:
    """Yield a line for each import of a private file from outside its folder."""
    for file in sorted(SOURCE.rglob("*.py")):
        folder = list(file.relative_to(SOURCE).parent.parts)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            homes = {}
            for module in find_modules(node, folder):
                at = find_private(module)
                if at is not None and folder[:at] != module[:at]:
                    homes[".".join(module[: at + 1])] = ".".join(module[:at])
            for private, home in homes.items():
                line = getattr(node, "lineno", 0)
                yield f"{file.relative_to(SOURCE.parent)}:{line}: {private} is private to {home}"


def main() -> int:
    offenders = list(find_offenders())
    print("\n".join(offenders), end="\n" * bool(offenders))
    return int(bool(offenders))


if __name__ == "__main__":
    raise SystemExit(main())
