"""Which samplers are equal, and how those travel whose function another process finds by no name."""

from __future__ import annotations

import dataclasses
import importlib.util
import linecache
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import sampler_zoo as zoo

import fedsim as fs
import theory
from fedsim import samplers
from fedsim.fingerprints import fingerprint
from fedsim.samplers import declared, grad, identity, noise, sqrt

ROOT = Path(__file__).resolve().parent.parent
PROBLEM = fs.Quadratic([1.0], [[1.0]])
PLAIN = """
def scaled(x, *, step_size):
    return x - step_size * grad(x) + rate * sqrt(step_size) * noise()
"""
HELPED = """
def helper(x, h):
    return rate * h * grad(x)
def scaled(x, *, step_size):
    return x - helper(x, step_size) + sqrt(2 * step_size) * noise()
"""
OF_MODULE = """
def scaled(x, *, step_size):
    return x - step_size * grad(x) + settings.rate * sqrt(step_size) * noise()
"""


def made(source, keep_text, number=0, **names):
    """A sampler of this text, as a cell of a notebook would make it."""
    name = f"<cell {number} {hash(source)}>" if keep_text else "<string>"
    if keep_text:
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"__name__": "__main__", **{one: getattr(samplers, one) for one in samplers.__all__}, **names}
    exec(compile(source, name, "exec"), space)
    return fs.sampler(space["scaled"]), space


def module_of(rate):
    one = type(os)("settings")
    one.rate = rate
    return one


TEXT = pytest.mark.parametrize("keep_text", [True, False], ids=["with text", "without"])


@TEXT
def test_what_a_function_reads_tells_it_from_others(keep_text):
    for source in (PLAIN, HELPED):
        one, other, again = (made(source, keep_text, rate=rate)[0](step_size=0.1) for rate in (1.0, 2.0, 1.0))
        assert type(one) is not type(again) and fingerprint(one) == fingerprint(again) != fingerprint(other)
    one, other = (made(OF_MODULE, keep_text, settings=module_of(rate))[0](step_size=0.1)
                  for rate in (1.0, 2.0))
    assert fingerprint(one) != fingerprint(other)
    one, other = (made(PLAIN, keep_text, rate=rate)[0](step_size=0.1)
                  for rate in (np.array([1.0]), np.array([2.0])))
    assert fingerprint(one) != fingerprint(other)


def closed(rate):
    @fs.sampler
    def scaled(x, *, step_size):
        return x - step_size * grad(x) + rate * sqrt(step_size) * noise()

    return scaled(step_size=0.1)


def test_what_a_function_holds_of_the_one_around_it_counts():
    assert fingerprint(closed(1.0)) == fingerprint(closed(1.0)) != fingerprint(closed(2.0))


@TEXT
def test_other_code_is_another_sampler(keep_text):
    told = fingerprint(made(PLAIN, keep_text, rate=1.0)[0](step_size=0.1))
    for old, new in (("x - step", "x + step"), ("sqrt(step_size)", "sqrt(2 * step_size)"),
                     ("noise()", "noise(common=True)")):
        assert fingerprint(made(PLAIN.replace(old, new), keep_text, rate=1.0)[0](step_size=0.1)) != told
    helper = HELPED.replace("rate * h", "rate * h * 2")
    assert fingerprint(made(HELPED, keep_text, rate=1.0)[0](step_size=0.1)) != fingerprint(
        made(helper, keep_text, rate=1.0)[0](step_size=0.1))


def test_comments_and_documentation_make_no_other_sampler():
    told = fingerprint(made(PLAIN, True, rate=1.0)[0](step_size=0.1))
    written = PLAIN.replace("):\n", '):\n    """Words."""\n    # why\n')
    assert fingerprint(made(written, True, 1, rate=1.0)[0](step_size=0.1)) == told


def test_the_fingerprint_is_that_of_every_version_of_python():
    """No bytecode is in it: `make newest` compares it in another Python."""
    assert fingerprint(zoo.extra_sgld(step_size=0.5, W=np.eye(2))) == "a54e3e7ad35ec8a4efcb05328eb52eb3"
    assert fingerprint(declared(fs.FALD(0.25, 3))) == "e1ea9a9d9f908d8c36f566b637e3c972"


def test_what_no_hash_tells_apart_is_equal_to_itself_alone():
    kind, _ = made(PLAIN, True, rate=object())
    one, other = kind(step_size=0.1), kind(step_size=0.1)
    assert one == one != other and fingerprint(one) is None


@TEXT
def test_a_number_that_changes_is_seen(keep_text):
    kind, space = made(PLAIN, keep_text, rate=np.sqrt(2.0))
    one = kind(step_size=0.1)
    before = theory.exact_law(PROBLEM, one, 3).cov[-1]
    space["rate"] = 0.5
    with pytest.raises(ValueError, match=r"scaled reads something from outside its function"):
        theory.exact_law(PROBLEM, one, 3)
    other = kind(step_size=0.1)
    assert other != one and dataclasses.replace(one) == other
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", samplers.SamplerWarning)
        after = theory.exact_law(PROBLEM, other, 3).cov[-1]
    assert after == pytest.approx(before / 8.0, rel=1e-12)


READ = """
import pickle, sys
import fedsim as fs, theory
one = pickle.load(open(sys.argv[1], "rb"))
law = theory.exact_law(fs.Quadratic([1.0], [[1.0]]), one, 3)
print(repr(one), repr(law.mean[-1, 0].item()), repr(law.cov[-1, 0, 0].item()), one.source().count("noise"))
"""
MAIN = """
import pickle, sys
import numpy as np
import fedsim as fs
from fedsim.samplers import grad, noise, sqrt
factor = np.sqrt(2.0)

def root(h):
    return sqrt(h)

@fs.sampler
def mine(x, *, step_size):
    return x - step_size * grad(x) + factor * root(step_size) * noise()

if __name__ == "__main__":
    pickle.dump(mine(step_size=0.1), open(sys.argv[1], "wb"))
"""


def python(*args):
    """What another process prints."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *map(str, args)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def law_elsewhere(algorithm, folder):
    path = folder / "one.pickle"
    path.write_bytes(pickle.dumps(algorithm))
    return python("-c", READ, path)


def law_here(algorithm, texts):
    law = theory.exact_law(PROBLEM, algorithm, 3)
    return f"{algorithm!r} {law.mean[-1, 0].item()!r} {law.cov[-1, 0, 0].item()!r} {texts}"


@TEXT
@pytest.mark.parametrize("source", [PLAIN, HELPED, OF_MODULE.replace("settings.rate", "np.sqrt(2.0)")],
                         ids=["numbers", "functions", "modules"])
def test_a_sampler_of_a_notebook_travels(keep_text, source, tmp_path):
    rate = 1.0 if source is HELPED else float(np.sqrt(2.0))
    kind, _ = made(source, keep_text, rate=rate, np=np)
    one = kind(step_size=0.1)
    assert law_elsewhere(one, tmp_path) == law_here(one, int(keep_text))
    again = pickle.loads(pickle.dumps(one))
    assert again == one and type(again) is type(one)


def test_one_of_a_function_around_it_travels(tmp_path):
    one = closed(float(np.sqrt(2.0)))
    assert law_elsewhere(one, tmp_path) == law_here(one, 1)
    assert pickle.loads(pickle.dumps(one)) == one


def test_one_of_main_travels(tmp_path):
    script, kept = tmp_path / "script.py", tmp_path / "kept.pickle"
    script.write_text(MAIN, encoding="utf-8")
    python(script, kept)
    one = pickle.loads(kept.read_bytes())
    assert type(one).__module__ == "__main__" and not hasattr(sys.modules["__main__"], "mine")
    told, _ = made(PLAIN, True, rate=float(np.sqrt(2.0)))
    known = theory.exact_law(PROBLEM, told(step_size=0.1), 3)
    assert (theory.exact_law(PROBLEM, one, 3).cov == known.cov).all()
    assert pickle.loads(kept.read_bytes()) == one


def test_one_of_a_module_travels_by_its_name():
    sent = pickle.dumps(zoo.extra_sgld(step_size=0.1, W=np.eye(2)))
    assert b"extra_sgld" in sent and b"fedsim.sampled" not in sent
    assert b"fedsim.sampled" in pickle.dumps(closed(1.0))


def test_another_version_of_python_is_refused(monkeypatch):
    identity.KINDS.clear()
    sent = pickle.dumps(closed(3.0))
    identity.KINDS.clear()
    monkeypatch.setattr(importlib.util, "MAGIC_NUMBER", b"other")
    with pytest.raises(ValueError, match=r"closed.<locals>.scaled was saved by another version of Python"):
        pickle.loads(sent)


def test_what_cannot_travel_is_said():
    source = """
def again(x, k):
    return again(x, k - 1) if k else x
def scaled(x, *, step_size):
    return x - step_size * grad(again(x, 3)) + sqrt(2 * step_size) * noise()
"""
    one = made(source, True)[0](step_size=0.1)
    assert fingerprint(one) == fingerprint(made(source, True)[0](step_size=0.1)) is not None
    with pytest.raises(ValueError, match=r"again calls itself, so that it cannot be sent"):
        pickle.dumps(one)
