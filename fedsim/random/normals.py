"""Standard normals in lanes: Philox words through the Box-Muller transform.

numba has no vector mathematics, so logarithm, sine and cosine are written here from + * / sqrt and
bit operations, without a branch; all loops over lanes then vectorise. The coefficients are Chebyshev
interpolants in the squared argument; the tests compare the transform with libm.

With ``noise="single"`` the variates are float32 and one Philox call gives four of them: twice as
fast, accurate to about 1e-6, and no draw exceeds 6.7 in size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..settings.validation import Array
from ..vector.compile import (
    bits_float32,
    bits_float64,
    dispatched,
    float32_bits,
    float64_bits,
    fused,
    inlined,
    inner,
    spliced,
)
from ..vector.memory import aligned
from .philox import last_words, word_rows
from .slots import Normals
from .streams import ROOM, CoordinateLaneSet, LaneSet

_2, _12, _52, _62 = np.uint64(2), np.uint64(12), np.uint64(52), np.uint64(62)
_32 = np.uint64(32)
_ONE, _ONE64 = np.uint64(1), np.uint64(0x3FF0000000000000)
_FRACTION = np.uint64(0x000FFFFFFFFFFFFF)
_ROOT_HALF = np.uint64(0x3FE6A09E667F3BCD)  # bits of sqrt(1/2)
_TWO52 = np.uint64(0x4330000000000000)  # bits of 2^52: turns a small integer into a double
_LN2_HIGH = int(np.log(2.0) * 2.0**40) / 2.0**40  # exact times any exponent
_LN2_LOW = 7.371002565167799e-13
_HALF_PI = np.pi / 2

_1F, _2F, _HALF = np.float32(1.0), np.float32(2.0), np.float32(0.5)
_ROOT_HALF_F, _ONE_F, _FRACTION_F = np.uint32(0x3F3504F3), np.uint32(0x3F800000), np.uint32(0x007FFFFF)


class SingleLaneSet(NamedTuple):
    """A `LaneSet` whose normals are float32, with room for the words of all slots of a row.

    The first four coordinates are quad `first_quad` of the problem's.
    """

    key0: Any
    key1: Any
    replicas: Any
    words: Any
    spare: Any
    first_quad: Any


@dispatched
def normals(lane_set: Any, tag: int, position: Any, client: Any, out: Array) -> None:
    """Fill `out` (rows, m B) with independent standard normals, two (four) rows from one Philox call.

    The numbers belong to (seed, tag, position, client, row, replica) and to nothing else; `client` is a
    number, or one number per lane. For m > 1 slots side by side, position or client differ: see `slots`; then
    r m B is at most `ROOM`. B is the number of lanes of `lane_set`, whole tiles unless they are coordinates.
    """


@inlined
def box_muller(high, low):
    """Two standard normals (float64) from two words of 64 bits."""
    uniform = 2.0 - bits_float64((high >> _12) | _ONE64)  # in (0, 1], 52 bits
    # -2 log(uniform): split into 2^k m with m in [sqrt(1/2), sqrt(2)), then 2 atanh(f / (2 + f)); the factor
    # 2 is in the constants, where it is exact and costs nothing
    shifted = float64_bits(uniform) + (_ONE64 - _ROOT_HALF)
    exponent = bits_float64((shifted >> _52) | _TWO52) - (4503599627370496.0 + 1023.0)
    f = bits_float64((shifted & _FRACTION) + _ROOT_HALF) - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z  # even and odd powers apart: two short chains of operations instead of a long one
    even = fused(w, fused(w, fused(w, 0.2923289937017781, 0.3636577825052376),
                          0.5714285725195097), 1.333333333333334)
    odd = fused(w, fused(w, 0.3066344320110338, 0.44444422269590156), 0.7999999999979901)
    series = fused(w, odd, z * even)
    square = f * f
    rest = square - fused(s, square + series, exponent * (2.0 * _LN2_LOW))
    radius = np.sqrt(fused(exponent, -2.0 * _LN2_HIGH, rest - (f + f)))
    # angle: two bits choose the quadrant, 52 bits an angle in [-pi/4, pi/4)
    quadrant = low >> _62
    angle = (bits_float64(((low << _2) >> _12) | _ONE64) - 1.5) * _HALF_PI
    q = angle * angle
    r = q * q
    sine = fused(angle * q, fused(r, fused(
        r, fused(q, 1.5918129294866381e-10, -2.5051131845003620553e-8),
        fused(q, 2.7557316102552440095e-6, -0.00019841269836758574323)),
        fused(q, 0.0083333333333309484855, -0.16666666666666664624)), angle)
    cosine = fused(r, fused(r, fused(
        r, fused(q, -1.1382632425521575557e-11, 2.0876146268403195477e-9),
        fused(q, -2.7557317271729792867e-7, 0.000024801587298765687927)),
        fused(q, -0.0013888888888887397237, 0.041666666666666665389)), fused(q, -0.5, 1.0))
    swap = (quadrant & _ONE) != 0
    first = sine if swap else cosine
    second = cosine if swap else sine
    first_sign = ((quadrant + _ONE) & _2) << (_62)
    second_sign = (quadrant & _2) << _62
    return (radius * bits_float64(float64_bits(first) ^ first_sign),
            radius * bits_float64(float64_bits(second) ^ second_sign))


@inner
def _transform_rows(out0, out1):
    for b in range(out0.shape[0]):
        first, second = box_muller(float64_bits(out0[b]), float64_bits(out1[b]))
        out0[b] = first
        out1[b] = second


@normals.register(LaneSet)
def _normals_double(lane_set, tag, position, client, out):
    # two loops and not one: neither then runs out of registers
    rows, n_slots = out.shape[0], out.shape[1] // lane_set.replicas.shape[0]
    word_rows(out, lane_set.spare, n_slots, lane_set.key0, lane_set.key1, lane_set.replicas, client, position,
              lane_set.first_pair, tag)
    for row in range(0, rows, 2):
        _transform_rows(out[row], out[row + 1] if row + 1 < rows else lane_set.spare[0])


@normals.register(CoordinateLaneSet)
def _normals_by_coordinates(lane_set, tag, position, client, out):
    n_slots = out.shape[1] // lane_set.replicas.shape[0]
    word_rows(out, out, n_slots, lane_set.key0, lane_set.key1, lane_set.replicas, client, position,
              lane_set.pairs, tag)
    last_words(out, n_slots, lane_set.key0, lane_set.key1, lane_set.replicas, client, position,
               lane_set.pairs, tag)
    _transform_rows(out[0], out[1])


@inlined
def box_muller_single(word0, word1):
    """Two standard normals (float32) from two 32-bit words (uint32)."""
    # (0, 1]: 31 bits, rounded to 24; the half keeps zero away
    uniform = (np.float32(np.int32(word0 >> np.uint32(1))) + _HALF) * np.float32(2.0**-31)
    shifted = np.uint32(float32_bits(uniform) + (_ONE_F - _ROOT_HALF_F))
    exponent = np.float32(np.int32(shifted >> np.uint32(23))) - np.float32(127.0)
    f = bits_float32(np.uint32((shifted & _FRACTION_F) + _ROOT_HALF_F)) - _1F
    s = f / (_2F + f)
    z = s * s
    series = z * fused(z, fused(z, np.float32(0.29579949392), np.float32(0.39988780566)),
                       np.float32(0.666666850396))
    half_square = _HALF * f * f
    logarithm = fused(exponent, np.float32(0.69314718056), f - (half_square - s * (half_square + series)))
    radius = np.sqrt(max(np.float32(0.0), -_2F * logarithm))
    quadrant = np.uint32(word1 >> np.uint32(30))
    part = np.float32(np.int32(word1 & np.uint32(0x3FFFFFFF)))
    angle = (part * np.float32(2.0**-30) - _HALF) * np.float32(1.5707963267948966)
    q = angle * angle
    sine = fused(angle * q, fused(q, fused(q, np.float32(-0.000195878908804), np.float32(0.00833274827063)),
                                  np.float32(-0.166666646623)), angle)
    cosine = fused(q * q, fused(q, fused(q, np.float32(2.45479420851e-5), np.float32(-0.00138883030359)),
                                np.float32(0.0416666646595)), fused(q, -_HALF, _1F))
    swap = (quadrant & np.uint32(1)) != 0
    first = sine if swap else cosine
    second = cosine if swap else sine
    first_sign = np.uint32(((quadrant + np.uint32(1)) & np.uint32(2)) << np.uint32(30))
    second_sign = np.uint32((quadrant & np.uint32(2)) << np.uint32(30))
    return (radius * bits_float32(np.uint32(float32_bits(first) ^ first_sign)),
            radius * bits_float32(np.uint32(float32_bits(second) ^ second_sign)))


@inner
def _transform_single(out0, out1, words):
    for b in range(out0.shape[0]):
        word = float64_bits(words[b])
        first, second = box_muller_single(np.uint32(word >> _32), np.uint32(word))
        out0[b] = first
        out1[b] = second


@normals.register(SingleLaneSet)
def _normals_single(lane_set, tag, position, client, out):
    rows, words = out.shape[0], lane_set.words
    n_slots = out.shape[1] // lane_set.replicas.shape[0]
    for quad in range((rows + 3) // 4):
        word_rows(words, words, n_slots, lane_set.key0, lane_set.key1, lane_set.replicas, client, position,
                  lane_set.first_quad + np.uint64(quad), tag)
        for half in range(2):
            row = 4 * quad + 2 * half
            if row + 1 < rows:
                _transform_single(out[row], out[row + 1], words[half])
            elif row < rows:
                _transform_single(out[row], lane_set.spare, words[half])


@spliced
def draw(lane_set, room, tag, position, client, slot, step, dim, fresh):
    """The `Normals` of one slot at `step`: `dim` of its rows, which hold those of several steps.

    If `fresh`, the first slot of a group draws for all of it, at `position` and for `client`; see `normals`.
    """
    together, groups = room.slots.shape[2], room.slots.shape[0]
    group = slot // together if groups > 1 else 0
    if fresh and slot % together == 0:
        normals(lane_set, tag, position, client, room.rows[group])
    return Normals(room.slots[group], slot % together, step % (room.rows.shape[1] // dim) * dim)


def steps_per_draw(dim: int, dtype: Any) -> int:
    """Consecutive steps whose noise is drawn together, so that no normal of a call is wasted."""
    per_call = 4 if dtype == np.float32 else 2
    return per_call // int(np.gcd(dim, per_call))


def as_single(lane_set: LaneSet) -> SingleLaneSet:
    """The same lanes with float32 normals."""
    n_lanes = len(lane_set.replicas)
    return SingleLaneSet(lane_set.key0, lane_set.key1, lane_set.replicas,
                         aligned((2, max(n_lanes, ROOM))), aligned(max(n_lanes, ROOM), np.float32),
                         lane_set.first_pair // np.uint64(2))
