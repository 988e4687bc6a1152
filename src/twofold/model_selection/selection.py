"""The result of `select` as a table, a figure and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import polars as pl

COUNTED = ("folds",)  # whole numbers among the figures


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """The result of `select`.

    Attributes
    ----------
    table : polars.DataFrame
        One row a setting: its parameters, its figures, the seconds it took, and a note if it failed. With folds,
        ``…_error`` is the standard error of the figure, ``behind`` the gap to the best figure over the folds of both,
        ``behind_error`` its standard error, and ``folds`` the number of folds before it was dropped.
    best_params : dict
    winner : estimator
        The chosen setting, fitted to all of X.
    criterion : str
        Name of the criterion.
    why : str
        The reason for this criterion and this setting, in a sentence.
    row : int
        The row of the table that was chosen.
    """

    table: pl.DataFrame
    best_params: dict[str, Any]
    winner: Any
    criterion: str
    why: str
    row: int

    def __str__(self) -> str:
        chosen = ", ".join(f"{name}={value}" for name, value in self.best_params.items())
        return f"{type(self.winner).__name__}({chosen}) by {self.criterion}: {self.why}"

    def __repr__(self) -> str:
        return f"{self}\n{self.table}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>{self.table._repr_html_()}"

    def plot(self) -> Any:
        """Draw the criterion against the first parameter, one line for each setting of the others.

        Bars are one standard error of the distance from the best; a setting that was dropped early is hollow.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from twofold.core.figure import ShownFigure

        figure = ShownFigure(layout="constrained")
        axes = figure.subplots()
        first = next(iter(self.best_params), "model")
        others = [name for name in ("model", *self.best_params) if name in self.table.columns and name != first]
        done = self.table.drop_nulls(self.criterion)
        for setting, part in done.group_by(others, maintain_order=True) if others else [((), done)]:
            label = ", ".join(f"{name}={value}" for name, value in zip(others, setting, strict=True))
            self._draw(axes, part, first, label or None)
        chosen = ([self.table[name][self.row]] for name in (first, self.criterion))
        axes.plot(*chosen, "*", markersize=16, label="chosen")
        axes.set(xlabel=first, ylabel=self.criterion, title=type(self.winner).__name__)
        axes.legend()
        return figure

    def _draw(self, axes: Any, part: pl.DataFrame, first: str, label: str | None) -> None:
        x, y = part[first].to_list(), part[self.criterion].to_list()
        (line,) = axes.plot(x, y, marker="o", label=label)
        if "behind_error" not in part.columns:
            return
        errors = part["behind_error"].fill_null(0.0).fill_nan(0.0).to_list()
        axes.errorbar(x, y, yerr=errors, fmt="none", ecolor=line.get_color(), capsize=3)
        early = part.filter(pl.col("folds") < self.table["folds"].max())
        axes.scatter(early[first].to_list(), early[self.criterion].to_list(), fc="white", ec=line.get_color(), zorder=3)


def as_table(entries: list[Any], criterion: str, names: list[str] | None) -> pl.DataFrame:
    """A row for each candidate; `names` of the estimators where there are several."""
    columns: dict[str, pl.Series] = {}
    if names is not None:
        bases = list(dict.fromkeys(id(c.base) for c in entries))
        columns["model"] = pl.Series("model", [names[bases.index(id(c.base))] for c in entries])
    for key in entries[0].setting:
        values = [c.setting[key] for c in entries]
        plain = {type(value) for value in values} in ({int}, {float}, {str}, {bool})
        columns[key] = pl.Series(key, values if plain else [str(value) for value in values])
    figures = list(dict.fromkeys(name for c in entries for name in c.figures)) or [criterion]
    for name in figures:
        kind = pl.Int64 if name in COUNTED else pl.Float64
        columns[name] = pl.Series(name, [c.figures.get(name) for c in entries], dtype=kind)
    columns["seconds"] = pl.Series("seconds", [c.seconds for c in entries], dtype=pl.Float64)
    columns["note"] = pl.Series("note", [c.note for c in entries], dtype=pl.String)
    return pl.DataFrame(columns)
