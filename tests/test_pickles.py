"""Pickles of public objects name no module that may be renamed; old names of modules work with a warning."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pickletools
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from fuzz.doors import callables, of_class

import fedsim as fs
import theory
from fedsim import pickles
from fedsim.old_names import MOVED

ROOT = Path(__file__).resolve().parent.parent
CLASSES = {name: kind for name, kind in callables().items()
           if inspect.isclass(kind) and not issubclass(kind, BaseException)}
NETWORK = fs.network.complete(2)
PAIR, GOSSIP = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]]), fs.DESGLD(0.01, NETWORK)


def pull(client, x):
    return x - client


def quartic(x):
    return 0.25 * x**4


def halves(step_size):
    return halving


def halving(x, noise):
    return x / 2 + noise


MADE = {
    "fedsim.Custom": lambda: fs.Custom(pull, n_clients=2, dim=1, curvature=(1.0, 1.0)),
    "fedsim.Density": lambda: fs.Density(quartic),
    "theory.de_sghmc.Recursion": lambda: theory.de_sghmc.Recursion(-0.2, 0.5, 0.9),
    "theory.de_sgld.Connectivity": lambda: theory.de_sgld.Connectivity(np.array([0.0, 0.5]), np.ones(2)),
    "theory.de_sgld.Coupling": lambda: theory.de_sgld.coupling(PAIR, GOSSIP, 2, alpha=0.01),
    "theory.de_sgld.NoiseFree": lambda: theory.de_sgld.NoiseFree(PAIR, GOSSIP),
    "theory.de_sgld.Setting": lambda: theory.de_sgld.setting(theory.constants(PAIR, GOSSIP), GOSSIP),
    "theory.privacy.Approximation": lambda: theory.privacy.Approximation(0.5, "(75), linearised"),
    "theory.testing.UpdateRule": lambda: theory.testing.UpdateRule(halves, PAIR, 0.1, noise=1),
    "theory.rates.Line": lambda: theory.rates.fit_affine([1, 2, 3], [3, 5, 7])}
"""Of classes whose example keeps no instance."""
ABSTRACT = {"fedsim.schedules.Schedule"}


def modules_of(stored):
    """Names of modules of ours that a pickle has; what it calls is told by a name and a module before it."""
    texts = [value for op, value, _ in pickletools.genops(stored) if isinstance(value, str)]
    return {text for text in texts if re.fullmatch(r"(fedsim|theory)(\.\w+)*", text)}


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, Mapping):
        assert list(one) == list(other)
        for name in one:
            assert_same(one[name], other[name])
    elif type(one) in pickles._KEYS and hasattr(one, "__dict__"):
        assert_same(*({name: part for name, part in vars(value).items() if name[0] != "_"}
                      for value in (one, other)))


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_public_object_is_pickled_by_a_stable_name(name):
    if name in ABSTRACT:
        assert CLASSES[name].__subclasses__()
        return
    made = MADE[name]() if name in MADE else of_class(name, CLASSES[name])[1]
    stored = pickle.dumps(made)
    assert modules_of(stored) <= {"fedsim.pickles"} | set(pickles._PLACES)
    assert_same(made, pickle.loads(stored))
    assert_same(made, copy.copy(made))
    assert_same(made, copy.deepcopy(made))


def test_a_class_that_moved_is_found_by_its_key(monkeypatch):
    """As if the module of `Quadratic` had another name when the pickle was written."""
    stored = pickle.dumps(fs.Quadratic([1.0], [[0.0]]))
    assert b"fedsim.Quadratic" in stored and b"problem" not in stored.replace(b"problems", b"")
    moved = type("Quadratic", (fs.Quadratic,), {"__module__": "elsewhere"})
    monkeypatch.setitem(pickles._PLACES, "fedsim.Quadratic", moved)
    assert type(pickle.loads(stored)) is moved
    monkeypatch.delitem(pickles._PLACES, "fedsim.Quadratic")
    with pytest.raises(KeyError, match=r"fedsim\.Quadratic"):
        pickle.loads(stored)


def test_a_class_with_a_new_name_keeps_the_key_of_stored_pickles():
    """`fedsim.Part` is what pickles of laws call `fedsim.provenance.Identity`."""
    stored = pickle.dumps(fs.provenance.Identity.of(fs.FALD(0.1)))
    assert b"fedsim.Part" in stored and type(pickle.loads(stored)) is fs.provenance.Identity


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_a_module_works_under_its_old_name_and_warns_once(old, new, monkeypatch):
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(DeprecationWarning, match=rf"{old} is called {new} now") as heard:
        there = importlib.import_module(old)
    assert len(heard) == 1
    importlib.import_module(old)  # warnings are errors
    public = [name for name in vars(importlib.import_module(new)) if name[0] != "_"]
    assert public and all(getattr(there, name) is getattr(sys.modules[new], name) for name in public)
    del sys.modules[old]


def test_the_page_has_every_old_name():
    page = (ROOT / "docs" / "renamed.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| `([\w.]+)` \| `([\w.]+)` \|$", page, re.MULTILINE)) == MOVED


def test_nothing_here_uses_an_old_name():
    files = [path for folder in ("fedsim", "theory", "reproduce", "tests", "tools", "docs", ".ci")
             for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".toml")
             and path.name not in ("old_names.py", "renamed.md", Path(__file__).name)]
    paths = [name.replace(".", "/") + ".py" for name in MOVED if name.replace(".", "/") + ".py" not in {
        other.replace(".", "/") + ".py" for other in MOVED.values()}]
    old = re.compile("|".join(rf"(?<![\w/]){re.escape(path)}" for path in paths))
    assert old.search(" theory/bound.py")
    assert not [f"{path.relative_to(ROOT)}: {match[0]}" for path in files
                for match in old.finditer(path.read_text(encoding="utf-8"))]


def test_dir_shows_what_users_use():
    assert set(dir(fs)) == {*fs.__all__, "__version__"}
    assert set(theory.__all__) < set(dir(theory))
    for package in (fs, theory):
        assert all(hasattr(package, name) for name in dir(package))
