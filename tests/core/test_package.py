"""What the package says about itself."""

import re
import tomllib
from pathlib import Path

import twofold

ROOT = Path(__file__).parents[2]


def test_the_version_stands_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"] and "version" in project["project"]["dynamic"]
    home = ROOT / project["tool"]["hatch"]["version"]["path"]
    assert re.findall(r'^__version__ = "(.*)"$', home.read_text(), re.M) == [twofold.__version__]


def test_its_types_are_for_others_too():
    assert (Path(twofold.__file__).parent / "py.typed").exists()
