"""Print the newest Python of this machine, when it is newer than the one that runs this.

Looked for are `python3.N` on the path, and what pyenv and uv have installed.
"""

import os
import subprocess
import sys
from pathlib import Path

ASK = """
import ensurepip, sys, venv
assert sys.implementation.name == "cpython" and sys.version_info.releaselevel == "final"
print(*sys.version_info[:3])
"""
HOMES = (Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions",
         Path(os.environ.get("UV_PYTHON_INSTALL_DIR", Path.home() / ".local/share/uv/python")))


def candidates():
    """Files that may be a Python, some of them twice."""
    for folder in os.get_exec_path():
        yield from Path(folder).glob("python3.[0-9]*")
    for home in HOMES:
        yield from home.glob("3.*/bin/python3")
        yield from home.glob("cpython-3.*/bin/python3")


def version(path):
    """(3, N, M), or None of what does not run: pyenv has files for versions that are not chosen."""
    if not path.name.removeprefix("python3").lstrip(".").isdigit() and path.name != "python3":
        return None
    try:
        said = subprocess.run([path, "-c", ASK], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return tuple(map(int, said.stdout.split())) if said.returncode == 0 else None


def newest(paths):
    """(version, path) of the newest of them that runs, or None."""
    found = [(one, path) for path in sorted(set(paths)) if (one := version(path)) is not None]
    return max(found, key=lambda pair: pair[0], default=None)


if __name__ == "__main__":
    best = newest(candidates())
    if best is not None and best[0][:2] > sys.version_info[:2]:
        print(best[1])
    else:
        here = max(sys.version_info[:3], best[0] if best else (0,))
        print(f"newest Python here is {'.'.join(map(str, here))}, the one of .venv: nothing more to try",
              file=sys.stderr)
