"""Slow: on another processor the figures come out as they are stored, and no file changes."""

import os
import shutil
import subprocess
import sys

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from reproduce import store

OTHER = {
    "an older BLAS": {"OPENBLAS_CORETYPE": "Haswell"},
    "plain NumPy loops": {"NPY_DISABLE_CPU_FEATURES": " ".join(
        name for name in __cpu_dispatch__ if __cpu_features__.get(name))},
}


@pytest.mark.slow
@pytest.mark.parametrize("processor", OTHER)
def test_figures_and_scoreboard_change_no_file(processor, tmp_path):
    stored = {path.name: path.read_bytes() for path in store.FOLDER.iterdir() if path.is_file()}
    folder = tmp_path / "figures"
    shutil.copytree(store.FOLDER, folder)
    for command in ([], ["scoreboard"]):
        done = subprocess.run([sys.executable, "-m", "reproduce", *command, "--out", str(folder)],
                              env=os.environ | OTHER[processor], cwd=store.FOLDER.parent, capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    changed = [path.name for path in folder.iterdir() if path.is_file()
               and path.read_bytes() != stored.get(path.name)]
    assert not changed and set(stored) <= {path.name for path in folder.iterdir()}
