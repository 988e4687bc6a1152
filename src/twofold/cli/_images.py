"""Options that the verbs for images share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twofold.io.images import READ

Source = Annotated[str, typer.Argument(metavar="INPUT", help=f"An image: {READ}; or - for stdin.")]
Compare = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Show before and after side by side: .png or .html.")
]
