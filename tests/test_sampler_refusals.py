"""What the notation of samplers does not have is refused where it is written, with line and operation."""

from __future__ import annotations

import linecache
import math

import numpy as np
import pytest

import fedsim as fs
import theory
from fedsim import samplers
from fedsim.samplers import NotationError

WRONG = [
    ("return x * x", "the product of two vectors is not linear"),
    ("return x / x", "the quotient of two vectors is not linear"),
    ("return x ** 2", "**"),
    ("return 2.0 ** x", "**"),
    ("return x + 1.0", "+ 1.0: only vectors of clients can be added"),
    ("return 1.0 + x", "+ 1.0: only vectors of clients can be added"),
    ("return x - 1.0", "- 1.0: only vectors of clients can be taken"),
    ("return 1.0 - x", "1.0 -: only vectors of clients"),
    ("return 1.0 / x", "**"),
    ("return x // 2", "**"),
    ("return x % 2", "**"),
    ("return abs(x)", "abs()"),
    ("return x[0]", "[0]: a vector of clients has no parts"),
    ("return x if x else x", "neither true nor false"),
    ("return x if x > 0 else x", "a comparison: a vector of clients is neither larger nor smaller"),
    ("return sum(v for v in x)", "no parts to run over"),
    ("return len(x) * x", "no length"),
    ("return float(x) * x", "no single number"),
    ("return np.sqrt(x)", "np.sqrt"),
    ("return np.clip(x, 0, 1)", "np.clip"),
    ("return np.tanh(x)", "np.tanh"),
    ("return np.maximum(x, 0)", "np.maximum"),
    ("return np.ones(3) * x", "an array of shape (3,)"),
    ("return x * np.ones(3)", "a factor is a number"),
    ("return x * np.eye(3)", "a factor is a number"),
    ("return x * 'two'", "a factor is a number"),
    ("return x * float('nan')", "a factor must be finite"),
    ("return x / 0", "/ 0"),
    ("return x.clip(0, 1)", ".clip"),
    ("return x.T", ".T"),
    ("return x @ W", "matrices act from the left"),
    ("return np.eye(4) @ x", "W has shape (4, 4); for 3 clients it must be (3, 3)"),
    ("return np.full((3, 3), np.inf) @ x", "W must be finite"),
    ("return 'W' @ x", "must be a matrix of numbers"),
    ("return grad(3.0)", "grad of 3.0: it takes a vector of clients"),
    ("return mean(3.0)", "mean of 3.0: it takes a vector of clients"),
    ("return past(2 * x, 1)", "one of the state's own vectors"),
    ("return past(x, 1.5)", "past(age=1.5)"),
    ("return past(x, -1)", "past(age=-1)"),
    ("return noise(common=1) + x", "noise(common=1)"),
    ("return mean(x, of=[(0, 7)])", "a set of clients 0 to 2"),
    ("return mean(x, drawn=3)", "it must be a participation"),
    ("return sqrt(x)", "sqrt of a vector"),
    ("return sqrt(-1.0) * x", "sqrt of -1.0 is not finite"),
    ("return math.sqrt(weights()) * x", "sqrt and exp of coefficients are those of fedsim.samplers"),
    ("return np.sqrt(weights()) * x", "write sqrt(...) of fedsim.samplers"),
    ("return weights() @ x", "matrices act on vectors of clients"),
    ("return (weights() + 'a') * x", "goes with numbers and other coefficients"),
    ("return x, x", "must return the new value of x, as a vector of clients; it returns a vector, a vector"),
    ("return None", "it returns None"),
    ("return 3.0", "it returns 3.0"),
    ("return x - step_size * grad(x) + sqrt(2 * step_size) * noise", "noise is a function: write noise()"),
    ("return x + noise", "noise is a function: write noise()"),
    ("return noise - x", "noise is a function: write noise()"),
    ("return x - grad", "grad is a function: write grad(x)"),
    ("return 2.0 * mean", "mean is a function: write mean(x)"),
    ("return -past", "past is a function: write past(x)"),
    ("return x / weights", "weights is a function: write weights()"),
    ("return x * weights", "weights is a function: write weights()"),
    ("return weights() * noise", "noise is a function: write noise()"),
    ("return sqrt(weights) * x", "weights is a function: write weights()"),
    ("return np.float64(2.0) * noise", "noise is a function: write noise()"),
    ("return np.eye(3) @ noise", "noise is a function: write noise()"),
    ("return np.sqrt(weights) * x", "weights is a function: write weights()"),
    ("return math.sqrt(weights) * x", "weights is a function: write weights()"),
    ("return grad(noise)", "noise is a function: write noise()"),
    ("return noise", "wrong returns what is no vector: noise is a function: write noise()"),
    ("return np.linalg.norm(x) * x", "np.linalg.norm: only"),
    ("return np.fft.fft(x)", "np.fft.fft: only"),
    ("return kept[0]", "wrong returns a vector of another call"),
    ("return x + kept[0]", "each call has its own"),
]


def made(line):
    """A sampler whose function has this line."""
    source, name = f"def wrong(x, *, step_size, W=None):\n    {line}\n", f"<sampler {line}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    words = {"__name__": "user", "np": np, "math": math, "kept": []}
    words.update({one: getattr(samplers, one) for one in samplers.__all__})
    exec(compile(source, name, "exec"), words)
    keep = words["kept"]

    @fs.sampler
    def other(x, *, step_size):
        keep.append(x)
        return x

    other(step_size=0.1).trace(PROBLEM)
    return fs.sampler(words["wrong"])


PROBLEM = fs.Quadratic([1.0, 2.0, 3.0], [[0.0], [1.0], [2.0]])


@pytest.mark.parametrize(("line", "words"), WRONG, ids=[line for line, _ in WRONG])
def test_wrong_functions_are_refused(line, words):
    with pytest.raises(TypeError) as refused:
        theory.exact_law(PROBLEM, made(line)(step_size=0.1), 1)
    assert words in str(refused.value)
    written = "return" not in words  # else it is refused after the function returned
    if isinstance(refused.value, NotationError) and written:
        assert f"line 2, `{line}`: " in str(refused.value)


def test_messages_have_the_line():
    with pytest.raises(NotationError) as refused:
        made("return x * x")(step_size=0.1).trace(PROBLEM)
    assert str(refused.value) == ("wrong, line 2, `return x * x`: x * x: the product of two vectors is not "
                                  "linear")


def test_right_lines_are_not_refused():
    for line in ("return 2 * x - x / 4 + sum([x, x])", "return np.float64(0.5) * x",
                 "return x * np.float64(0.5)", "return np.eye(3) @ x", "return -x",
                 "return (2 - weights() ** 2 / 3 + 1 / weights()) * x", "return mean(x, of=[(0, 1), (2,)])",
                 "return past(x, np.int64(2))"):
        assert made(line)(step_size=0.1).trace(PROBLEM).n_clients == 3


@pytest.mark.parametrize(("signature", "words"), [
    ("()", "must have a state"), ("(x)", "must have the parameter step_size"),
    ("(x=1, *, step_size)", "must have no default"), ("(*x, step_size)", "must take neither"),
    ("(x, *, step_size, **more)", "must take neither"),
    ("(x, *, step_size, check)", "otherwise: every algorithm")])
def test_signatures_are_checked(signature, words):
    space = {"__name__": "user"}
    exec(f"def wrong{signature}:\n    return x\n", space)
    with pytest.raises(ValueError, match=words):
        fs.sampler(space["wrong"])


def test_other_arguments_are_checked():
    with pytest.raises(ValueError, match=r"follows='client'"):
        fs.sampler(follows="client")
    with pytest.raises(ValueError, match=r"must be a function"):
        fs.sampler(3)
    with pytest.raises(NotationError, match=r"known only inside a function of fs.sampler"):
        samplers.noise()
    with pytest.raises(NotationError, match=r"known sets of clients are mean"):
        known = fs.FixedParticipation([[0, 1]], cyclic=True)
        made("return mean(x, drawn=W)")(step_size=0.1, W=known).trace(PROBLEM)
    with pytest.raises(NotationError, match=r"do not sum to one"):
        made("return mean(x, drawn=W)")(step_size=0.1, W=fs.IndependentParticipation(0.5)).trace(PROBLEM)
    with pytest.raises(ValueError, match=r"chances=\[0.5, 0.6\] must be at least 0 and sum to one"):
        fs.network.random([np.eye(3), np.eye(3)], [0.5, 0.6])
    for matrices in ([1j], [np.eye(2), [[1j, 0.0], [0.0, 1.0]]]):
        with pytest.raises(ValueError, match=rf"matrices\[{len(matrices) - 1}\]: mixing must be an array"):
            fs.network.random(matrices)
    with pytest.raises(ValueError, match=r"matrices\[1\]: mixing has shape \(\)"):
        fs.network.random([np.eye(3), 0.5])
    with pytest.raises(NotationError, match=r"W has shape \(4, 4\)"):
        made("return W @ x")(step_size=0.1, W=fs.network.random_pairs(fs.network.ring(4))).trace(PROBLEM)


def test_a_schedule_is_no_number_a_client():
    kind = made("return mean(x - step_size * grad(x)) + sqrt(2 * step_size) * noise(common=True)")
    assert "(one a round: -0.3, ...)" in kind(step_size=[0.3, 0.2, 0.1]).words(PROBLEM)
    assert "one a round" not in kind(step_size=0.3).words(PROBLEM)
