"""The project as it is published: the files under version control, built in a folder of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

PIXELS = (".png", ".jpg", ".gif", ".webp", ".pdf")
"""Of pictures that are made and never stored: each drawing of one would add all of it to the history."""


def added(name: str) -> bool:
    """Is it a file that building writes?"""
    return name == "PKG-INFO"


def tracked() -> list[str]:
    """The files under version control; in an unpacked source distribution those that it lists."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True,
                                check=True).stdout
    else:
        found = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
        listed = "\n".join(path.as_posix() for path in found if path.suffix not in PIXELS
                           and not {"__pycache__", ".pytest_cache", ".hypothesis", "build"} & set(path.parts))
    return [name for name in listed.splitlines() if not added(name)]


def copied(folder: Path) -> Path:
    """A copy without caches, and without what no commit has."""
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder


def outside() -> dict[str, str]:
    """The environment without paths that lead to this checkout."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}


def _built(source: Path, folder: Path, kind: str) -> Path:
    """What a front end asks of the build backend, without its environment from the network."""
    code = f"import sys; from hatchling import build; build.build_{kind}(sys.argv[1])"
    folder.mkdir()
    subprocess.run([sys.executable, "-c", code, str(folder)], cwd=source, capture_output=True, check=True,
                   env=outside())
    return next(folder.iterdir())


def source_distribution(folder: Path) -> Path:
    """Build it, unpack it, and give the folder that was in it."""
    archive = _built(copied(folder / "copy"), folder / "sdist", "sdist")
    with tarfile.open(archive) as opened:
        opened.extractall(folder / "unpacked", filter="data")
    return next((folder / "unpacked").iterdir())


def wheel(source: Path, folder: Path) -> Path:
    """Build it from these sources, and give the folder it was unpacked into."""
    with zipfile.ZipFile(_built(source, folder / "wheel", "wheel")) as opened:
        opened.extractall(folder / "installed")
    return folder / "installed"
