"""Elementary functions for gradients of one's own: loops over replicas that call them vectorise.

The functions of Python's `math` and of NumPy are compiled as calls of the machine's library, one number at
a time, and their last bits may differ between machines. These are written from + * / and bits, have no
branches, and give the same bits on every machine, within three units in the last place of the true value (exp
is 0 below -708, log is -inf below the least normal number). `math.sqrt` and `abs` do as well as they are.

From Python they are NumPy's.

Examples
--------
>>> def gradient(client, x, centres):
...     return fs.math.tanh(x - centres[client])
>>> problem = fs.Custom(gradient, n_clients=2, data=[-1.0, 1.0], curvature=1.0)
>>> problem.gradient(0, [0.0]).round(6).tolist()
[0.761594]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..settings.lazy_import import lazy
from .compile import intrinsic
from .reals import Reals

types = lazy("numba.core", "types")

_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer in the low bits
_LOG2E = float(np.log2(np.e))
_LN2_HIGH = int(np.log(2.0) * 2.0**40) / 2.0**40  # exact times any exponent
_LN2_LOW = 7.371002565167799e-13
_EXP = (2.510037583256133e-08, 2.7620075879983494e-07, 2.7557268480310024e-06, 2.4801521322368692e-05,
        0.00019841269863040545, 0.0013888888917196719, 0.008333333333330065, 0.041666666666624164,
        0.16666666666666669, 0.5000000000000001)
"""A Chebyshev interpolant of (exp(r) - 1 - r) / r^2 for |r| <= log(2)/2."""
_LOG = (0.14616449685088906, 0.1533172160055169, 0.1818288912526188, 0.22222211134795078,
        0.28571428625975487, 0.39999999999899505, 0.666666666666667)
"""The same of (2 atanh(s) - 2 s) / s^3 in s^2, for |s| <= (sqrt(2) - 1) / (sqrt(2) + 1)."""
_ROOT_HALF, _ONE, _FRACTION = 0x3FE6A09E667F3BCD, 0x3FF0000000000000, 0x000FFFFFFFFFFFFF
_TWO52 = 0x4330000000000000  # bits of 2^52: turns a small integer into a double
_LEAST = 2.2250738585072014e-308
_BOTTOM, _TOP = -708.0, 710.0


def _split_exp(z: Any) -> tuple[Any, Any]:
    """2^(k-1) and exp(r) - 1 for z = k log(2) + r, |r| <= log(2)/2; z between `_BOTTOM` and `_TOP`."""
    z = z.choose("<", _BOTTOM, _BOTTOM, z)
    z = z.choose(">", _TOP, _TOP, z)  # a NaN stays
    shifted = z.times(_LOG2E, _ROUND)
    k = shifted - _ROUND
    r = k.times(-_LN2_LOW, k.times(-_LN2_HIGH, z))
    series: Any = _EXP[0]
    for coefficient in _EXP[1:]:
        series = r.times(series, coefficient)
    return z.from_bits((shifted.bits() + 1022) << 52), (r * r).times(series, r)


def exp_of(z: Any) -> Any:
    """exp(z) of `Reals`; 0 below -708."""
    half_power, q = _split_exp(z)
    return z.choose("<", _BOTTOM, 0.0, q.times(half_power, half_power) * 2.0)


def expm1_of(z: Any) -> Any:
    """exp(z) - 1, accurate for a small z."""
    half_power, q = _split_exp(z)
    return q.times(half_power, half_power - 0.5) * 2.0


def log_of(x: Any) -> Any:
    """log(x); -inf below the least normal number, and NaN below 0."""
    shifted = x.bits() + (_ONE - _ROOT_HALF)
    k = x.from_bits((shifted >> 52) | _TWO52) - (4503599627370496.0 + 1023.0)
    f = x.from_bits((shifted & _FRACTION) + _ROOT_HALF) - 1.0
    s = f / (2.0 + f)
    z = s * s
    series: Any = _LOG[0]
    for coefficient in _LOG[1:]:
        series = z.times(series, coefficient)
    half_square = f * f * 0.5
    # log(1 + f) = f - (f^2/2 - s (f^2/2 + z series)), which cancels nothing
    rest = half_square - s.times(z.times(series, half_square), k * _LN2_LOW)
    value = k.times(_LN2_HIGH, f - rest)
    value = x.choose("<", _LEAST, -np.inf, value)
    value = x.choose("<", 0.0, np.nan, value)
    return x.choose("<=", np.finfo(float).max, value, x)  # inf and NaN are theirs


def log1p_of(y: Any) -> Any:
    """log(1 + y), accurate for a small y."""
    u = 1.0 + y
    value = log_of(u) - ((u - 1.0) - y) / u
    return u.choose("<=", np.finfo(float).max, u.choose("<", _LEAST, log_of(u), value), u)


def tanh_of(z: Any) -> Any:
    """tanh(z)."""
    gap = expm1_of(-2.0 * abs(z))
    size = -gap / (2.0 + gap)
    return z.choose("<", 0.0, -size, size)


def softplus_of(z: Any) -> Any:
    """log(1 + exp(z))."""
    return z.choose(">", 0.0, z, 0.0) + log1p_of(exp_of(-abs(z)))


def sigmoid_of(z: Any) -> Any:
    """1 / (1 + exp(-z)) of `Reals`; for z below -708 the value at -708."""
    size = abs(z)
    size = size.choose(">", 708.0, 708.0, size)  # a NaN stays
    # exp(-size) = 2^k exp(r)
    shifted = size.times(-_LOG2E, _ROUND)
    k = shifted - _ROUND
    r = k.times(-_LN2_LOW, k.times(-_LN2_HIGH, -size))
    series: Any = _EXP[0]
    for coefficient in _EXP[1:]:
        series = r.times(series, coefficient)
    power = z.from_bits((shifted.bits() + 1023) << 52)
    e = power * (1.0 + (r * r).times(series, r))
    return z.choose(">=", 0.0, 1.0, e) / (1.0 + e)


def _elementary(of: Callable[[Any], Any], python: Callable[[Any], Any], fuses: bool = True) -> Any:
    """A function of a number, for compiled code; `of` says what it is."""
    def define(typingctx: Any, x: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return of(Reals(builder, args[0], fuses)).value

        return types.float64(types.float64), build

    define.__doc__, define.__name__ = of.__doc__, of.__name__.removesuffix("_of")
    define.__qualname__ = define.__name__
    return intrinsic(define, python)


exp, expm1 = _elementary(exp_of, np.exp), _elementary(expm1_of, np.expm1)
log, log1p = _elementary(log_of, np.log), _elementary(log1p_of, np.log1p)
tanh = _elementary(tanh_of, np.tanh)
sigmoid = _elementary(sigmoid_of, lazy("scipy.special", "expit"), fuses=False)
softplus = _elementary(softplus_of, lambda x: np.logaddexp(0.0, x))

__all__ = ["exp", "expm1", "log", "log1p", "sigmoid", "softplus", "tanh"]
