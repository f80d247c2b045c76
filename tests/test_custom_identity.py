"""Functions that compute something else never share compiled code or a checkpoint; equal ones always do."""

import os
import pickle
import subprocess
import sys
import textwrap

import numba
import numpy as np
import pytest
import scipy.special

import fedsim as fs
from fedsim.problems.custom import forms
from fedsim.problems.custom.functions import frozen

FACTOR = 2.0
TABLE = np.array([1.0, 2.0])


def digest(function):
    return frozen("gradient", function, lambda callee: callee).digest


def scaled(factor):
    def gradient(client, x):
        return factor * x

    return gradient


def by_global(client, x):
    return FACTOR * x


def by_table(client, x):
    return TABLE[client] * x


def helper(x):
    return x * FACTOR


def by_helper(client, x):
    return helper(x)


def with_default(client, x, factor=3.0):
    return factor * x


def test_the_same_function_has_one_fingerprint():
    assert digest(scaled(1.0)) == digest(scaled(1.0))
    assert digest(numba.njit(by_global)) == digest(by_global)
    assert forms.form_of(scaled(1.0), 1) is forms.form_of(scaled(1.0), 1)
    assert digest(lambda client, x: 2.0 * x) == digest(lambda client, x: 2.0 * x)


def test_what_a_function_names_is_in_its_fingerprint(monkeypatch):
    made = {digest(f) for f in (scaled(1.0), scaled(2.0), scaled(1), scaled(True), scaled(-0.0), scaled(0.0),
                                scaled(np.float64(1.0)), scaled(np.array([1.0])), scaled(np.array([1])),
                                scaled((1.0, 2.0)), scaled((1.0, (2.0,))))}
    assert len(made) == 11
    for name, value, function in (("FACTOR", 3.0, by_global), ("FACTOR", 3.0, by_helper),
                                  ("TABLE", np.array([1.0, 3.0]), by_table),
                                  ("helper", lambda x: x, by_helper)):
        before = digest(function)
        with monkeypatch.context() as changed:
            changed.setattr(sys.modules[__name__], name, value)
            assert digest(function) != before
        assert digest(function) == before
    before = digest(with_default)
    monkeypatch.setattr(with_default, "__defaults__", (4.0,))
    assert digest(with_default) != before
    assert digest(lambda client, x: x + x) != digest(lambda client, x: x * x)
    assert digest(lambda client, x: fs.math.tanh(x)) != digest(lambda client, x: fs.math.exp(x))
    assert digest(lambda client, x: x if client in {1, 2} else 0.0) != digest(
        lambda client, x: x if client in {1, 3} else 0.0)


class Renamed(float):
    """A number whose words do not tell it."""

    def __repr__(self):
        return "Renamed"


def test_what_words_do_not_tell_is_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"gradient uses factor=.*, which may change"):
        digest(scaled(Renamed(1.0)))
    monkeypatch.setattr(fs, "RATE", 2.0, raising=False)
    with pytest.raises(ValueError, match=r"gradient uses fs\.RATE=2\.0, which may change"):
        digest(lambda client, x: fs.RATE * x)

    def copies(client, x, out):
        for i in range(len(x)):
            out[i] = x[i]

    assert fs.Custom(copies, 2, 9) != fs.Custom(copies, 2, 10)


def test_a_problem_keeps_what_its_function_named_when_it_was_made(monkeypatch):
    """Compiled before or after the change."""
    problem, table = fs.Custom(by_global, 2), TABLE.copy()
    listed = fs.Custom(by_table, 2)
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 5.0)
    TABLE[:] = 7.0
    try:
        other = fs.Custom(by_global, 2)
        x = np.array([[1.0], [-3.0]])
        np.testing.assert_array_equal(problem.gradient(0, x), 2.0 * x)
        np.testing.assert_array_equal(other.gradient(0, x), 5.0 * x)
        np.testing.assert_array_equal(listed.gradient(1, x), 2.0 * x)
        assert problem != other
    finally:
        TABLE[:] = table


def test_data_are_copied():
    data = np.array([1.0, 2.0])
    problem = fs.Custom(lambda client, x, a, n: a[client] * x, 2, data=(data, 3))
    data[:] = 9.0
    assert problem.gradient(1, [1.0]).tolist() == [2.0]
    with pytest.raises(ValueError, match="read-only"):
        problem.data[0][0] = 1.0
    assert isinstance(problem.data[1], int)
    # fingerprints do not tell it from 0
    assert str(fs.Custom(lambda client, x, a: a * x, 2, data=-0.0).data) == "(0.0,)"


def test_a_checkpoint_of_another_function_is_refused(tmp_path):
    algorithm = fs.FALD(0.1)

    def run(factor, folder):
        return fs.simulate(fs.Custom(scaled(factor), 2), algorithm, 4, 128, seed=1, checkpoint=folder)

    first = run(1.0, tmp_path / "one")
    np.testing.assert_array_equal(run(1.0, tmp_path / "one").mean, first.mean)
    with pytest.raises(ValueError, match="belongs to another simulation"):
        run(2.0, tmp_path / "one")


KEYWORDS = """
    import sys
    import fedsim as fs

    def helper({0}, {1}):
        return {0} - {1}

    def gradient(client, x):
        return helper(a=x, b=1.0 + 2.0 * client)

    try:
        run = fs.simulate(fs.Custom(gradient, 2), fs.FALD(0.1), 4, 128, seed=1, checkpoint=sys.argv[1])
        print(run.mean[-1, 0].hex())
    except ValueError as error:
        print(error)
    """


def test_another_process_does_not_take_the_checkpoint_of_another_function(tmp_path):
    """They differ in the names of parameters alone, by which arguments are bound."""
    said = []
    for words in ("ab", "ba", "ab"):
        program = tmp_path / f"{words}.py"
        program.write_text(textwrap.dedent(KEYWORDS).format(*words))
        said.append(subprocess.run([sys.executable, program, tmp_path / "kept"], capture_output=True,
                                   text=True, check=True).stdout)
    assert said[0] == said[2]
    assert float.fromhex(said[0]) > 0.0
    assert "belongs to another simulation" in said[1]


CENTRE = 1.0


def by_centre(client, x):
    return (x - CENTRE) ** 2 / 2


def test_a_potential_is_kept_and_told(monkeypatch):
    def slope(client, x):
        return x - 1.0

    problem = fs.Custom(slope, 1, potential=by_centre)
    assert problem == fs.Custom(slope, 1, potential=by_centre) != fs.Custom(slope, 1)
    assert problem != fs.Custom(slope, 1, potential=lambda client, x: (x - 1.0) ** 2 / 2 + 1.0)
    kept = pickle.dumps(fs.Custom(by_global, 1, potential=shifted))
    monkeypatch.setattr(sys.modules[__name__], "CENTRE", 5.0)
    assert problem.potential(0, [3.0]) == 2.0
    assert problem.density().mean == pytest.approx(1.0, abs=1e-9)
    assert pickle.loads(kept).potential(0, [3.0]) == 9.0
    monkeypatch.setattr(sys.modules[__name__], "SHIFT", 5.0)
    with pytest.raises(ValueError, match=r"potential=.* is another function in this process than where its"):
        pickle.loads(kept)


SHIFT = 0.0


def shifted(client, x):
    return x * x + SHIFT


def test_a_potential_that_cannot_be_followed_is_like_no_other():
    known = {"a": 0.5}

    def potential(client, x):
        return known["a"] * x * x

    def slope(client, x):
        return x

    problem = fs.Custom(slope, 1, potential=potential)
    assert problem != fs.Custom(slope, 1, potential=potential)
    assert problem.potential(0, [2.0]) == 2.0
    followed = fs.Custom(slope, 1, potential=lambda client, x: scipy.special.xlogy(x * x, np.e) / 2)
    assert followed == fs.Custom(slope, 1, potential=lambda client, x: scipy.special.xlogy(x * x, np.e) / 2)


def test_a_function_that_is_another_one_elsewhere_is_refused(monkeypatch):
    kept = pickle.dumps(fs.Custom(by_global, 2))
    assert pickle.loads(kept) == fs.Custom(by_global, 2)
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 5.0)
    with pytest.raises(ValueError, match="is another function in this process than where its problem"):
        pickle.loads(kept)


PROGRAM = """
    import sys
    import fedsim as fs
    from fedsim.vector.compile import compiled_here

    def scaled(factor):
        def gradient(client, x):
            return factor * fs.math.tanh(x)

        return gradient

    problem = fs.Custom(scaled(float(sys.argv[1])), 2, curvature=10.0)
    run = fs.simulate(problem, fs.FALD(0.01), 4, 64, seed=1, start=[1.0])
    problem.gradient(0, [1.0])
    print(len(compiled_here()), run.mean[-1, 0].hex())
    """


def test_a_second_process_compiles_nothing(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))

    def run(factor):
        said = subprocess.run([sys.executable, program, str(factor)], capture_output=True, text=True,
                              check=True, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
                              ).stdout.split()
        return int(said[0]), said[1]

    first, second, other, third = run(1.0), run(1.0), run(2.0), run(1.0)
    assert first[0] == 3
    assert second == (0, first[1]) == third
    assert other[0] == 3
    assert other[1] != first[1]
    folders = [path.name for path in (tmp_path / "cache").rglob("*_of_Custom_*") if path.is_dir()]
    assert len({name.partition("_of_")[2] for name in folders}) == 2
