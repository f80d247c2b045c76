"""Fingerprints as identity: a change of a function that changes a value in Python changes its fingerprint."""

import ast
import itertools
import math
import textwrap

import function_pairs
import numpy as np
import pytest

import fedsim as fs
from fedsim.problems.custom import bytecode, forms, functions
from fedsim.problems.custom.functions import frozen

FEW, MANY = 1_000, 10_000
MODULES = {"np": np, "math": math}


def digest(function):
    """None for what is refused."""
    try:
        return frozen("gradient", function, lambda callee: callee).digest
    except ValueError:
        return None


@pytest.fixture(scope="module")
def told_pairs():
    """The first pairs that differ in a value, with both digests; neither is refused."""
    def make():
        for function, other, source, tree in function_pairs.pairs(1, MODULES):
            with np.errstate(all="ignore"):
                both = digest(function), digest(other)
            if None not in both:
                yield function, other, both, (source, ast.unparse(tree) if both[0] == both[1] else "")

    kept, more = [], make()

    def first(count):
        kept.extend(itertools.islice(more, max(0, count - len(kept))))
        return kept[:count]

    return first


@pytest.mark.filterwarnings("ignore")  # of changed programs, as "is" with a number
@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_what_changes_a_value_changes_the_fingerprint(count, told_pairs):
    pairs = told_pairs(count)
    assert len(pairs) == count
    assert not [texts for _, _, (one, other), texts in pairs if one == other]


LEAVES_OUT = {"code": "co_code", "names": "co_names", "all local names": "co_varnames",
              "what is given by place alone": "co_posonlyargcount"}


class Without:
    """A code object that does not say one thing."""

    def __init__(self, code, name):
        self._code, self._name = code, name

    def __getattr__(self, name):
        return 0 if name == self._name else getattr(self._code, name)


REAL = (bool, int, float)
CONSTANTS = {"types of numbers": lambda value: complex(value) if type(value) in REAL else value,
             "numbers": lambda value: None if type(value) in REAL else value}
VALUES = {"defaults": ("defaults",), "globals": ("RATE", "GRID", "PAIR"),
          "what is around": ("depth", "shift")}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("left_out", [*LEAVES_OUT, *CONSTANTS, *VALUES, "callees"])
def test_pairs_see_what_a_fingerprint_leaves_out(left_out, told_pairs, monkeypatch):
    """A pair of them has one fingerprint then."""
    meaning, constant, callee = bytecode.meaning, bytecode.constant, functions._Freezer._callee
    value = functions._Freezer.value
    if left_out in LEAVES_OUT:
        def other_meaning(code):
            return meaning(Without(code, LEAVES_OUT[left_out]))

        monkeypatch.setattr(bytecode, "meaning", other_meaning)
        monkeypatch.setattr(functions, "meaning", other_meaning)
    elif left_out in CONSTANTS:
        for module in (bytecode, functions):
            monkeypatch.setattr(module, "constant", lambda held: constant(CONSTANTS[left_out](held)))
    elif left_out in VALUES:
        monkeypatch.setattr(functions._Freezer, "value", lambda self, word, held: (
            (held, ()) if word in VALUES[left_out] else value(self, word, held)))
    else:
        monkeypatch.setattr(functions._Freezer, "_callee", lambda *given: (callee(*given)[0], ()))
    assert any(digest(one) == digest(other) for one, other, *_ in told_pairs(FEW))


def made(source, name="<one>", line=0):
    names = dict(MODULES)
    exec(compile("\n" * line + textwrap.dedent(source), name, "exec"), names)
    return names["gradient"]


def test_the_same_source_has_the_same_fingerprint_wherever_it_stands():
    for number in range(20):
        source = function_pairs.Writer(number).program()
        assert digest(made(source)) == digest(made(source, "<other>", 50)) is not None


def test_a_function_that_has_run_often_is_the_same():
    """The interpreter rewrites the code of what runs often."""
    function = made("def gradient(client, x):\n    return math.sin(x) * x + client\n")
    before = digest(function)
    for _ in range(2000):
        function(1, 2.0)
    assert digest(function) == before


BY_KEYWORD = """
    def helper({0}, {1}):
        return {0} - {1}

    def gradient(client, x):
        return helper(a=x, b=1.0) if abs(x) > 4.0 else x
    """


def test_functions_that_bind_keywords_otherwise_are_other_problems():
    """They differ far from where a gradient is tried."""
    one, other = (fs.Custom(made(BY_KEYWORD.format(*words)), 1) for words in ("ab", "ba"))
    assert one != other
    assert (one.gradient(0, [5.0]), other.gradient(0, [5.0])) == (4.0, -4.0)


GRADIENT = "def gradient(client, x):\n    "
AROUND = """
def make(lib):
    def gradient(client, x):
        {}
    return gradient
gradient = make({})
"""
AS_VALUE = "gradient uses the module {} as a value"
HIDDEN = "gradient uses {}, which reaches what cannot be followed"
REFUSED = {
    "a local name": (GRADIENT + "m = np; return m.size(x) * x",
                     AS_VALUE.format("np") + "; take what is needed of it at once, as in np.exp"),
    "an attribute of a local name": (GRADIENT + "m = np; return m.MINE * x",
                                     "'MINE' of what it computes, .*; of a module take it at once, as in np"),
    "a choice": (GRADIENT + "return (np if x > 9.0 else np).MINE * x",  # by later Pythons in each branch
                 r"gradient (takes the attribute 'MINE' of what|uses np\.MINE=3\.0, which may change)"),
    "a default": ("def gradient(client, x, m=np):\n    return m.size(x)",
                  AS_VALUE.format("numpy") + ", in defaults"),
    "a tuple": ("both = np, math\n" + GRADIENT + "return both[0].size(x)",
                AS_VALUE.format("numpy") + ", in both"),
    "a name around it": (AROUND.format("return lib.MINE * x", "np"), r"gradient uses lib\.MINE=3\.0, which"),
    "a function inside": (AROUND.format("return (lambda y: lib.MINE * y)(x)", "np"),
                          r"gradient uses lib\.MINE=3\.0, which may change"),
    "a name around it that is written": (AROUND.format("nonlocal lib; lib += 1.0; return lib * x", "1.0"),
                                         "gradient writes to a name of the function around it .'lib'."),
    "an import": (GRADIENT + "import numpy as m; return m.MINE * x",
                  "gradient imports a module; import it where the function is defined .'numpy'."),
    "a name imported": (GRADIENT + "from numpy import MINE; return MINE * x", "gradient imports a module"),
    "getattr": (GRADIENT + "return getattr(np, 'MINE') * x", HIDDEN.format("getattr")),
    "getattr by another name": ("get = getattr\n" + GRADIENT + "return get(x, 'MINE')",
                                HIDDEN.format("getattr")),
    "globals": (GRADIENT + "return globals()['RATE'] * x", HIDDEN.format("globals")),
    "a function of another's": ("np.mine = lambda x: x\n" + GRADIENT + "return np.mine(x)",
                                r"gradient uses np\.mine=.*, which may change; import it by name"),
    "a function that says it is NumPy's": (
        "import functools\nnp.interp = functools.wraps(np.interp)(lambda x: x)\n" + GRADIENT
        + "return np.interp(x)",
        r"gradient uses np\.interp=.*, which may change; import it by name"),
    "an object of a module's class": (
        "helper = np.vectorize(lambda x: 2.0 * x)\n" + GRADIENT + "return helper(x)",
        "gradient uses helper=.*, of type vectorize, which may change or cannot be compiled; pass it"),
    "an attribute of a function": ("def helper(x): pass\n" + GRADIENT + "return helper.rate * x",
                                   "takes the attribute 'rate' of the function helper"),
    "an attribute of a value": (GRADIENT + "return x.rate",
                                "takes the attribute 'rate' of what it computes, which numbers and arrays"),
    "an attribute that is set": (GRADIENT + "x.rate = 2.0; return x", "gradient sets an attribute .'rate'."),
    "a class": (GRADIENT + "class Mine:\n        rate = 2.0\n    return x", "gradient defines a class"),
    "random numbers": (GRADIENT + "return np.random.normal() if x > 9.0 else x",
                       r"gradient uses np\.random\.normal; it must depend on its arguments alone"),
}


@pytest.mark.parametrize("way", REFUSED)
def test_what_cannot_be_followed_is_refused(way, monkeypatch):
    monkeypatch.setattr(np, "MINE", 3.0, raising=False)
    monkeypatch.setattr(np, "mine", 3.0, raising=False)
    monkeypatch.setattr(np, "interp", np.interp)
    source, message = REFUSED[way]
    with pytest.raises(ValueError, match=message):
        fs.Custom(made(source), 1)


def test_what_a_module_calls_its_own_is_told_from_what_says_so():
    """By `functools.wraps` a function says that it is NumPy's."""
    source = ("import functools\n@functools.wraps(np.interp)\ndef helper(x):\n    return {} * x\n"
              "def gradient(client, x):\n    return helper(x)\n")
    one, other = (digest(made(source.format(factor))) for factor in (2.0, 3.0))
    assert one != other
    assert None not in (one, other)


def test_functions_of_modules_can_be_reached_in_every_way():
    for way in ("np.exp(x)", "np.linalg.norm(x)", "math.sin(x) + math.pi", "fs.math.tanh(x)", "x.sum()",
                "np.finfo(np.float64).eps", "operator.add(x, x)", "x.shape[0] + x.real", "abs(x) ** 2",
                "x[np.newaxis]"):
        names = {**MODULES, "fs": fs, "operator": __import__("operator")}
        exec(f"def gradient(client, x):\n    return {way}\n", names)
        assert digest(names["gradient"]), way
        names["made"] = lambda body, names=names: None
        exec(f"def make({', '.join(names)}):\n    def gradient(client, x):\n        def inside(x):\n"
             f"            return {way}\n        return inside(x)\n    return gradient\n", around := {})
        assert digest(around["make"](**names)), way


def test_a_hit_compares_all_that_was_hashed(monkeypatch):
    monkeypatch.setattr(functions, "_hash", lambda text: "0" * 64)
    one, other = (made(f"def gradient(client, x):\n    return {factor} * x\n") for factor in (2.5, 3.5))
    assert forms.form_of(one, 1) is forms.form_of(one, 1)
    with pytest.raises(ValueError, match=r"has the fingerprint 0000.* of another function; change"):
        forms.form_of(other, 1)
