"""Importing takes nothing that is slow, and laws and bounds need NumPy and SciPy alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import fedsim as fs

SLOW = """
import sys
import fedsim, theory
print(sorted({"scipy", "numba", "llvmlite", "pandas", "matplotlib"} & set(sys.modules)))
"""

HIDDEN = """
class Hidden:
    names = ["numba", "llvmlite", "pandas", "matplotlib", "tqdm"]

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

import sys
sys.meta_path.insert(0, Hidden())
"""

LAWS = """
import hashlib
import numpy as np
import fedsim as fs, theory
dense = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 3.0]]], [[0.0, 1.0], [1.0, -1.0]])
flat = fs.Quadratic([[1.0, 2.0], [3.0, 1.0]], [[0.0, 1.0], [1.0, -1.0]])
rng = np.random.default_rng(0)
data = fs.LinearRegression(rng.normal(size=(12, 2)), rng.normal(size=12), np.arange(12) % 2, noise_std=1.0,
                           prior_variance=2.0, batch_size=2)
alone = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]]], [[0.0, 1.0]])
pair = fs.network.complete(2)
for problem, algorithm in (
        (dense, fs.FALD(0.05, 3)),
        (dense, fs.FALD(0.05, 3, participation=fs.Participation(1, replace=True))),
        (flat, fs.FALD(fs.schedules.Harmonic(20, 0.1), 2)),
        (dense, fs.FAHMC(0.1, leapfrog_steps=3, local_steps=2)),
        (dense, fs.DESGLD(0.05, pair)),
        (data, fs.DESGLD(0.005, pair)),
        (dense, fs.DESGHMC(0.05, 2.0, pair)),
        (alone, fs.StaleSGLD(0.02, 3)),
        (alone, fs.StaleSGHMC(0.02, 2.0, 3))):
    law = theory.exact_law(problem, algorithm, 50)
    print(type(algorithm).__name__, hashlib.sha256(law.mean.tobytes() + law.cov.tobytes()).hexdigest()[:16])
def langevin(h):
    return lambda x, z: x - h * alone.gradient(0, x) + np.sqrt(2 * h) * z
rule = theory.testing.UpdateRule(langevin, alone, 0.02, noise=2)
print(theory.exact_law(alone, rule, 50).cov[-1])
def kernel(seed, x):
    return langevin(0.02)(x, np.random.default_rng(seed).normal(size=2))
print(theory.testing.assert_samples(kernel, alone, like=fs.StaleSGLD(0.02, 0), smallest=0.1))
print(theory.examine("fa_ld.w2_bound", dense, fs.FALD(0.05, 3), n_rounds=20))
print(theory.examine("fa_hmc.w2_bound", dense, fs.FAHMC(0.01, 2), n_rounds=20))
"""

SIMULATE = """
Hidden.names = ["numba", "llvmlite"]
try:
    fs.simulate(dense, fs.FALD(0.05, 3), 5, 64, seed=1)
except ImportError as error:
    print(error)
"""


def words(code: str) -> str:
    """What a new process prints."""
    environment = os.environ | {"PYTHONPATH": str(Path(fs.__file__).parent.parent)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_importing_loads_nothing_slow():
    assert words(SLOW).strip() == "[]"


def test_laws_and_bounds_need_numpy_and_scipy_alone():
    """The same bits as where all is installed; to simulate says what is missing."""
    plain, hidden = words(LAWS), words(HIDDEN + LAWS + SIMULATE)
    *laws, refused = hidden.splitlines()
    assert laws == plain.splitlines()
    assert len(laws) > 10
    assert refused == "to simulate needs numba, which is not installed: pip install numba"
