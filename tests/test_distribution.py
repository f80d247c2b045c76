"""What is published is whole: the tests run from it, and editors see its types and its version."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from distribution import PIXELS, PROJECT, ROOT, added, outside, source_distribution, tracked, wheel

import fedsim as fs


@pytest.fixture(name="source", scope="module")
def _source(tmp_path_factory):
    return source_distribution(tmp_path_factory.mktemp("source"))


@pytest.fixture(name="installed", scope="module")
def _installed(source, tmp_path_factory):
    """The wheel of the source distribution, as whoever has only that would install it."""
    return wheel(source, tmp_path_factory.mktemp("wheel"))


def names(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_source_distribution_is_what_is_tracked(source):
    found = {name for name in names(source) if not added(name)}
    assert found == set(tracked())
    assert {"tests/conftest.py", "constraints.txt", ".ci/run", "figures/scoreboard.csv"} <= found


def test_no_pixels_are_stored():
    """Pictures are stored as SVG: pixels would add 7 MB to the history each time that all are drawn."""
    assert not [name for name in tracked() if name.endswith(PIXELS)]
    assert any(name.endswith(".svg") for name in tracked())


def test_the_wheel_has_the_two_packages_and_their_types(installed):
    found = {name for name in names(installed) if ".dist-info/" not in name}
    assert found == {name for name in tracked() if name.startswith(("fedsim/", "theory/"))}
    assert {"fedsim/py.typed", "theory/py.typed"} <= found


def test_licence_and_notice_are_where_the_data_are(source, installed):
    """The wheel has neither data nor anything else of `reproduce`, and both texts all the same."""
    data = {name for name in names(source) if name.startswith("reproduce/data/")}
    assert len(data) == 4 and "reproduce/data/NOTICE.md" in data and "LICENSE" in names(source)
    assert PROJECT["license"] == "MIT AND CC-BY-4.0"
    texts = {name.rpartition("/")[2] for name in names(installed) if "/licenses/" in name}
    assert texts == {"LICENSE", "NOTICE.md"}


CODE = """
import sys
from importlib import metadata

version = metadata.version

def missing(name):
    if name == "fedsim-theory":
        raise metadata.PackageNotFoundError(name)
    return version(name)

if sys.argv[1] == "missing":
    metadata.version = missing
import fedsim
print(fedsim.__version__, fedsim.__file__)
"""


def test_the_version_is_that_of_the_project(installed):
    assert fs.__version__ == PROJECT["version"]
    for installed_as, expected in (("wheel", PROJECT["version"]), ("missing", "0+not.installed")):
        printed = subprocess.run([sys.executable, "-c", CODE, installed_as], capture_output=True, text=True,
                                 check=True, cwd=installed, env=outside() | {"PYTHONPATH": str(installed)})
        version, file = printed.stdout.split()
        assert version == expected and file == str(installed / "fedsim" / "__init__.py")


def test_the_version_to_cite_is_that_of_the_project():
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited and cited[1] == PROJECT["version"]


def test_every_dependency_has_a_lowest_version():
    """From which .ci/lowest.py makes the environment that is tested with them."""
    printed = subprocess.run([sys.executable, ROOT / ".ci" / "lowest.py"], capture_output=True, text=True,
                             check=True).stdout.split()
    assert all(re.fullmatch(r"[a-zA-Z-]+==[0-9.]+", pin) for pin in printed)
    lowest = {name.replace(">=", "==") for name in PROJECT["dependencies"]}
    assert lowest <= set(printed) and all("==" in name for name in lowest)
