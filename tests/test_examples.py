"""Every example runs when it is pasted after the imports that README shows, and every public name has one."""

import doctest
import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import fedsim as fs
import theory

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PUBLIC = ("fedsim", "fedsim.estimators", "fedsim.network", "fedsim.papers", "fedsim.schedules", "theory",
          "theory.exact", "theory.testing", "theory.tuning", "theory.rates", "theory.fa_ld", "theory.fa_hmc",
          "theory.de_sgld", "theory.de_sghmc", "theory.stale", "theory.privacy")
"""Where users find names: what these offer (`__all__`, or what they define) is public."""


def modules():
    """Every module of what is installed."""
    names = ["fedsim", "theory"]
    for package in (fs, theory):
        names += [info.name for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return sorted(names)


def pasted(name, text, inside=None):
    """The examples of a docstring, with nothing in sight but what README imports.

    `inside` is a module that no user sees: its own names are in sight then.
    """
    names = {"fs": fs, "theory": theory, "np": np} if inside is None else dict(vars(inside))
    return doctest.DocTestParser().get_doctest(text, {**names, "__name__": "__main__"}, name, None, 0)


def documented(module):
    """Docstrings of a module, its classes and functions and their members: name -> text."""
    found = {module.__name__: module.__doc__}
    for name, member in vars(module).items():
        if getattr(member, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(member):
            found |= {f"{module.__name__}.{name}.{inner}": inspect.unwrap(
                getattr(part, "fget", None) or getattr(part, "func", None) or getattr(part, "__func__", part)
                ).__doc__ for inner, part in vars(member).items()
                if callable(part) or isinstance(part, (property, classmethod, staticmethod))
                or hasattr(part, "func")}
        if inspect.isclass(member) or callable(member):
            found[f"{module.__name__}.{name}"] = member.__doc__
    return {name: text for name, text in found.items() if isinstance(text, str) and ">>>" in text}


def failures(name, text, inside=None):
    """What went wrong where the examples of a docstring were pasted."""
    words = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    runner.run(pasted(name, text, inside), out=words.append)
    return "".join(words)


@pytest.mark.parametrize("name", modules())
def test_examples_run_when_pasted(name):
    for member, text in documented(importlib.import_module(name)).items():
        assert not failures(member, text)


@pytest.mark.parametrize("package", ["reproduce", "tools.search"])
def test_examples_of_what_is_not_installed_run_in_their_modules(package):
    place = importlib.import_module(package)
    found = 0
    for info in pkgutil.walk_packages(place.__path__, f"{package}."):
        if not info.name.endswith("__main__"):
            module = importlib.import_module(info.name)
            for member, text in documented(module).items():
                assert not failures(member, text, module)
                found += 1
    assert found >= 2


def test_an_example_that_needs_another_import_is_seen():
    assert "NameError" in failures("x", ">>> Quadratic([1.0], [[0.0]])\n1\n")
    assert "Expected" in failures("x", ">>> fs.FALD(0.1).local_steps\n2\n")
    assert not failures("x", ">>> fs.FALD(0.1).local_steps\n1\n")


def public():
    """What users call: functions and classes, by the name they find first."""
    found = {}
    for place in PUBLIC:
        module = importlib.import_module(place) if place != "fedsim.papers" else fs.papers
        offered = getattr(module, "__all__", None) or [name for name in vars(module) if name[0] != "_"]
        for name in offered:
            member = getattr(module, name)
            if inspect.isclass(member) or (callable(member) and not inspect.ismodule(member)):
                home = getattr(member, "__module__", "") or ""
                if home.startswith(("fedsim", "theory")):
                    found.setdefault(id(member), (f"{place}.{name}", member))
    return dict(found.values())


@pytest.mark.parametrize("name", public())
def test_every_public_name_has_an_example(name):
    words = public()[name].__doc__ or ""
    assert pasted(name, words).examples, f"{name} has no example in its docstring"
