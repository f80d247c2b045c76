"""The house rules that a reader relies on, checked by reading the sources."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import tomllib

import pytest
from layout import PACKAGES, ROOT, imports, imports_of, name_of, shown, sources, top, tree_of, violations

MAX_LINES = 400

TEXT = {".py", ".toml", ".txt", ".md", ".json", ".csv", ".html", ".j2", ".mplstyle", ".cff", ".cfg", ".ini",
        ".yml", ""}

# What theory may take from fedsim: modules of definitions, never one that simulates or compiles.
THEORY_MAY_IMPORT = {
    "fedsim", "fedsim.algorithms", "fedsim.distance", "fedsim.estimators", "fedsim.fingerprints",
    "fedsim.hints", "fedsim.interfaces", "fedsim.laws", "fedsim.network", "fedsim.problems",
    "fedsim.pickles", "fedsim.provenance", "fedsim.samplers", "fedsim.schedules", "fedsim.settings",
    "fedsim.stability",
}
ROOMS = (["problems"], ["algorithms"], ["laws"], ["samplers"], ["settings"], ["stability"])
SIMULATES = {"simulate", "sample_path", "warm_up", "engine", "vector", "random", "Run", "load", "_kernel",
             "_workspace", "draw_clients", "step_size", "compiled", "inlined", "dispatched",
             "stochastic_gradient"}
COMPILER_OPTIONS = {"nogil", "fastmath", "error_model", "boundscheck", "forceinline", "looplift", "nopython"}
DRAWING = {"matplotlib", "pandas"}


def test_the_reader_of_imports_sees_every_form():
    code = ("import a.b\nfrom ..c import d\nfrom . import e\n"
            "def f():\n    import pandas\nif TYPE_CHECKING:\n    import matplotlib\n")
    found = list(imports(ast.parse(code), "x.y.z", False))
    assert [(m, n) for _, m, n in sorted(found)] == [
        ("a.b", None), ("x.c", "d"), ("x.y", "e"), ("pandas", None), ("matplotlib", None)]
    early = {m for _, m, _ in imports(ast.parse(code), "x.y.z", False, at_import=True)}
    assert early == {"a.b", "x.c", "x.y"}
    assert next(iter(imports(ast.parse("from .a import b"), "x.y", True)))[1] == "x.y.a"


def test_data_only_moves_right():
    right_of = {"fedsim": {"theory", "reproduce", "tests", "tools"},
                "theory": {"reproduce", "tests", "tools"},
                "reproduce": {"tests", "tools"}}
    for package, later in right_of.items():
        assert not violations(lambda m, n, later=later: top(m) in later, package)


def test_only_one_module_names_the_compiler():
    allowed = "fedsim/vector/compile.py"  # and what it imports at the first compilation, which name no option
    found = [text for text in violations(lambda m, n: top(m) in ("numba", "llvmlite"), *PACKAGES)
             if not text.startswith((allowed, *(f"fedsim/vector/{name}.py" for name in (
                 "guards", "kept", "moving", "pipelines", "tiles"))))]
    for path in sources(*PACKAGES):
        if shown(path) != allowed:
            found += [f"{shown(path)}:{node.value.lineno} sets {node.arg}" for node in ast.walk(tree_of(path))
                      if isinstance(node, ast.keyword) and node.arg in COMPILER_OPTIONS]
    assert not found
    assert any(top(m) == "numba" for _, m, _ in imports_of(ROOT / allowed))


def test_only_figures_draw():
    assert not violations(lambda m, n: top(m) in DRAWING, "fedsim", "theory", at_import=True)
    draw = ("fedsim/laws/plots.py", "fedsim/laws/law.py", "theory/declare/bound.py",
            "theory/declare/pictures.py", "theory/judge/verdict.py", "theory/testing/findings.py",
            "theory/testing/picture.py")  # when asked to, by .plot()
    found = violations(lambda m, n: top(m) == "matplotlib", "fedsim", "theory")
    assert {text.partition(":")[0] for text in found} == set(draw)


def _beyond_definitions(module, name):
    """True for what theory may not take from fedsim."""
    if top(module) != "fedsim":
        return False
    full = f"{module}.{name}" if name else module
    parts = full.split(".")
    family = ".".join(parts[:2]) if parts[1:2] in ROOMS else module
    if module == "fedsim" and name and (ROOT / "fedsim" / f"{name}.py").exists():
        family = full
    is_kernel = "Kernel" in parts[-1] or parts[-1].startswith("_")
    return family not in THEORY_MAY_IMPORT or bool(SIMULATES & set(parts)) or is_kernel


def test_theory_shares_no_numerics_with_the_simulator():
    for allowed in (("fedsim.laws.law", "Law"), ("fedsim", "FALD"), ("fedsim", "schedules"),
                    ("fedsim.problems.quadratic", "Quadratic"), ("fedsim.algorithms.fa_ld", "FALD"),
                    ("numpy", "engine")):
        assert not _beyond_definitions(*allowed)
    for forbidden in (("fedsim.engine", None), ("fedsim.engine.running", "simulate"), ("fedsim", "simulate"),
                      ("fedsim", "random"), ("fedsim.random.normals", "normals"),
                      ("fedsim.vector.compile", "compiled"),
                      ("fedsim.algorithms.fa_ld", "FALDKernel"), ("fedsim.algorithms.fa_ld", "_radius")):
        assert _beyond_definitions(*forbidden)
    found = violations(_beyond_definitions, "theory")
    for path in sources("theory"):  # also not as attributes of the package
        tree = tree_of(path)
        aliases = {alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, ast.Import)
                   for alias in node.names if top(alias.name) == "fedsim"}
        found += [f"{shown(path)}:{node.lineno} uses fedsim.{node.attr}" for node in ast.walk(tree)
                  if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
                  and node.value.id in aliases and node.attr in SIMULATES]
        found += [f"{shown(path)}:{node.lineno} calls .{node.func.attr}()" for node in ast.walk(tree)
                  if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                  and node.func.attr in ("_kernel", "_workspace", "_arrays", "_coordinate_arrays")]
    assert not found


def _asked(node):
    """What a getattr or hasattr asks a problem or an algorithm for, else None."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr") and node.args):
        return None
    whom = ast.unparse(node.args[0]).split(".")[-1]
    return ast.unparse(node) if whom in ("problem", "algorithm", "followed", "pooled", "solved") else None


def test_what_a_problem_or_an_algorithm_may_offer_has_one_default():
    """It stands in fedsim/interfaces.py, so that nobody asks whether a part is there."""
    found = [f"{shown(path)}:{node.lineno} {what}" for path in sources("fedsim", "theory")
             for node in ast.walk(tree_of(path)) if (what := _asked(node))]
    assert not found
    for guess in ("getattr(problem, 'pooled')", "hasattr(plan.algorithm, name)"):
        assert _asked(ast.parse(guess).body[0].value) == guess
    assert _asked(ast.parse("getattr(law, 'mean')").body[0].value) is None


def test_files_are_short():
    long = {shown(path): count for path in sources(*PACKAGES)
            if (count := len(path.read_text(encoding="utf-8").splitlines())) >= MAX_LINES}
    assert not long, f"at least {MAX_LINES} lines; make a folder of the same name"


def test_every_folder_of_sources_is_a_package():
    """Otherwise an installation would leave it out, while a checkout works."""
    folders = {path.parent for path in sources(*PACKAGES)}
    assert not [shown(folder) for folder in folders if not (folder / "__init__.py").exists()]


def _inherited(module, cls, method):
    """Documented by a base class, e.g. the common words for all schedules."""
    owner = getattr(importlib.import_module(module), cls)
    return any(vars(base)[method].__doc__ for base in owner.__mro__[1:] if method in vars(base))


def undocumented(tree, module):
    """Public methods that neither have a docstring nor override what a base class documents.

    Modules, classes and functions are ruff's (rules D1); it sees no base class.
    """
    return [f"{node.name}.{member.name}" for node in tree.body
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") for member in node.body
            if isinstance(member, ast.FunctionDef) and not member.name.startswith("_")
            and not ast.get_docstring(member) and not _inherited(module, node.name, member.name)]


@pytest.mark.parametrize("path", sources(*PACKAGES), ids=shown)
def test_public_methods_are_documented(path):
    assert not undocumented(tree_of(path), name_of(path))


def test_undocumented_methods_are_seen():
    names = ("nowhere", "_own", "batch_response")
    code = "class Quadratic:" + "".join(f"\n def {name}(self): ..." for name in names)
    assert undocumented(ast.parse(code), "fedsim") == ["Quadratic.nowhere"]


def test_every_bound_names_its_source():
    """Paper, number and hypotheses of every theorem; and its own words beneath them."""
    entries = importlib.import_module("theory").theorems()
    assert entries
    numbered = re.compile(r"(Theorem|Lemma|Proposition|Corollary|Equation|section)s? \S*\d", re.IGNORECASE)
    for entry in entries:
        ours = entry.number.startswith("derived here")
        assert entry.paper.strip() and (ours or numbered.search(entry.number)), entry.id
        assert all(text.strip() for text in entry.hypotheses), entry.id
        words = inspect.getdoc(entry.function) or ""
        assert "Source" in words or numbered.search(words), f"{entry.id} has no source in its docstring"


PAPERS = ("de_sghmc", "de_sgld", "fa_hmc", "fa_ld", "privacy", "stale")
SECTIONS = ("Parameters", "Returns", "Raises", "Source")


def unsaid(function):
    """The parts of a docstring that are missing, as a section or in a line of its own ("Source: ...")."""
    words = inspect.getdoc(function) or ""
    return [name for name in SECTIONS if not re.search(rf"^{name}(:|\n-+$)", words, re.MULTILINE)]


def public_functions():
    """Every theorem, and every function that a paper's package offers, unwrapped."""
    found = {entry.function for entry in importlib.import_module("theory").theorems()}
    for name in PAPERS:
        package = importlib.import_module(f"theory.{name}")
        offered = getattr(package, "__all__", [name for name in vars(package) if not name.startswith("_")])
        found |= {member for name in offered if inspect.isfunction(member := getattr(package, name))}
    return sorted(found,
                  key=lambda function: (function.__module__, function.__name__))


@pytest.mark.parametrize("function", public_functions(), ids=lambda f: f"{f.__module__}.{f.__name__}")
def test_public_functions_say_what_they_take_give_and_rest_on(function):
    assert not unsaid(function)


def test_unsaid_parts_are_seen():
    def whole():
        """W.

        Parameters
        ----------
        x : float

        Returns
        -------
        float

        Source: S, Theorem 1.
        Raises: ValueError.
        """

    def prose():
        """Raises ValueError, see Source: and Parameters."""

    assert unsaid(whole) == []
    assert unsaid(prose) == list(SECTIONS)


def text_files():
    """Every text file of the project: of its folders, but not what `make docs` builds, and beside them."""
    folders = [ROOT / name for name in (*PACKAGES, "docs", "tests", "tools", "figures", ".ci")]
    found = [path for folder in folders for path in sorted(folder.rglob("*"))] + sorted(ROOT.glob("*"))
    # in a linked work tree .git is a file, with a path of its machine
    return [path for path in found if path.is_file() and path.suffix in TEXT and path.name != ".git"
            and not path.is_relative_to(ROOT / "docs" / "build")]


# Spelled so that this file does not contain what it forbids.
FORBIDDEN = {
    "package index": re.compile("|".join([
        "py" + r"pi\.(org|io|python)", "python" + "hosted", "ana" + r"conda\.", "conda" + "-forge/"])),
    "installer address": re.compile(r"--(extra-)?" + r"index-url|--find" + r"-links|--trusted" + "-host"),
    "path of one machine": re.compile(
        r"(?<![\w.>])/(home|Users|root|work|tmp|opt|mnt)/" + r"\w|[A-Z]:\\" + "Users"),
}


def test_no_addresses_and_no_paths_of_one_machine():
    found = []
    for path in text_files():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            found += [f"{shown(path)}:{number} {what}" for what, pattern in FORBIDDEN.items()
                      if pattern.search(line)]
    assert not found
    assert {"README.md", "Makefile", ".ci/run"} <= {shown(path) for path in text_files()}
    seen = {"package index": "https://py" + "pi.org/simple", "installer address": "--index" + "-url x",
            "path of one machine": "see /" + "home/someone/data"}
    assert all(FORBIDDEN[what].search(example) for what, example in seen.items())


def test_dependencies_are_pinned_exactly_and_without_address():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines()
             if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-zA-Z.]*", line) for line in lines)
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines}
    extras = [name for names in project["optional-dependencies"].values() for name in names]
    for wanted in [*project["dependencies"], *extras]:
        assert re.split(r"[<>=!~\[; ]", wanted)[0].lower().replace("_", "-") in pinned, wanted


def test_imports_are_declared():
    """Nothing is used that an installation would not bring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[<>=]", name)[0] for name in project["dependencies"]} | {"llvmlite"}  # with numba
    inside = {*PACKAGES, "__future__"}
    extra = {re.split(r"[<>=]", name)[0] for name in project["optional-dependencies"]["figures"]}
    figures = {"sklearn" if name == "scikit-learn" else name for name in extra}
    drawn = {re.split(r"[<>=]", name)[0] for name in project["optional-dependencies"]["plot"]}
    drawn |= {"xarray", "arviz", "clarabel"}  # of `to_datatree`, `to_arviz` and `certify`, which name them
    for packages, allowed in ((("fedsim", "theory"), declared | drawn), (("reproduce",), declared | figures)):
        used = {top(m) for path in sources(*packages) for _, m, _ in imports_of(path)}
        assert not used - inside - allowed - set(sys.stdlib_module_names)
    assert not violations(lambda m, n: top(m) == "sklearn", "reproduce", at_import=True)
