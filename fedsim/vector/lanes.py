"""Loops over lanes: small functions of contiguous rows (B,), which LLVM vectorises.

Each inner loop is its own function of one-dimensional rows on purpose: writing several rows of one
array inside an outer loop makes the compiler fall back to scalar code.

Coefficients may be a scalar, a row with one value per lane, or what `per_lane.entry` returned.
"""

from __future__ import annotations

from typing import Any

from ..settings.lazy_import import lazy
from .compile import fused, inner, intrinsic
from .per_lane import per_lane

ir = lazy("llvmlite.ir")
cgutils, types = lazy("numba.core", "cgutils", "types")
INDEX, contiguous = lazy("fedsim.vector.tiles", "INDEX", "contiguous")


@inner
def affine_pair(out, a0, x0, c0, a1, x1, c1):
    """out = a0 (x0 - c0) + a1 (x1 - c1)"""
    for b in range(out.shape[0]):
        out[b] = (per_lane(a0, b) * (x0[b] - per_lane(c0, b))
                  + per_lane(a1, b) * (x1[b] - per_lane(c1, b)))


@inner
def fill(out, value):
    """out = value"""
    for b in range(out.shape[0]):
        out[b] = value


@inner
def copy(out, x):
    """out = x"""
    for b in range(out.shape[0]):
        out[b] = x[b]


@inner
def scale(out, a, x):
    """out = a x"""
    for b in range(out.shape[0]):
        out[b] = per_lane(a, b) * x[b]


@inner
def scale_product(out, a, private, x):
    """out = a private x"""
    for b in range(out.shape[0]):
        out[b] = a * per_lane(private, b) * x[b]


@inner
def blend(out, a, private, x, c, y):
    """out = a private x + c y"""
    for b in range(out.shape[0]):
        out[b] = a * per_lane(private, b) * x[b] + c * y[b]


@inner
def axpy(out, a, x):
    """out += a x"""
    for b in range(out.shape[0]):
        out[b] += per_lane(a, b) * x[b]


@inner
def add_share(out, share, x, centre):
    """out += share (x - centre) where the share is not zero, whatever x is elsewhere"""
    for b in range(out.shape[0]):
        out[b] += share[b] * (x[b] - centre[b]) if share[b] != 0.0 else 0.0


@inner
def add_squares(out, x):
    """out += x^2"""
    for b in range(out.shape[0]):
        out[b] += x[b] * x[b]


@inner
def add_form(out, a, x, c, y, d):
    """out += a (x - c) (y - d)"""
    for b in range(out.shape[0]):
        out[b] += a * (x[b] - c) * (y[b] - d)


@inner
def damp(x, a):
    """x *= a"""
    for b in range(x.shape[0]):
        x[b] *= a


@inner
def scale_pair(out, a0, x0, a1, x1):
    """out = a0 x0 + a1 x1"""
    for b in range(out.shape[0]):
        out[b] = per_lane(a0, b) * x0[b] + per_lane(a1, b) * x1[b]


@inner
def axpy_pair(out, a0, x0, a1, x1):
    """out += a0 x0 + a1 x1"""
    for b in range(out.shape[0]):
        out[b] += per_lane(a0, b) * x0[b] + per_lane(a1, b) * x1[b]


@inner
def mix_three(out, a0, x0, a1, x1, a2, x2):
    """out = a0 x0 + a1 x1 + a2 x2"""
    for b in range(out.shape[0]):
        out[b] = a0 * x0[b] + a1 * x1[b] + a2 * x2[b]


@inner
def axpy_eight(out, a0, x0, a1, x1, a2, x2, a3, x3, a4, x4, a5, x5, a6, x6, a7, x7):
    """out += a0 x0 + ... + a7 x7: an eighth of the traffic on `out`"""
    for b in range(out.shape[0]):
        low = fused(per_lane(a0, b), x0[b], fused(per_lane(a1, b), x1[b], fused(
            per_lane(a2, b), x2[b], per_lane(a3, b) * x3[b])))
        high = fused(per_lane(a4, b), x4[b], fused(per_lane(a5, b), x5[b], fused(
            per_lane(a6, b), x6[b], fused(per_lane(a7, b), x7[b], out[b]))))
        out[b] = low + high


@inner
def shift(out, x, centre):
    """out = x - centre"""
    for b in range(out.shape[0]):
        out[b] = x[b] - per_lane(centre, b)


@inner
def scaled_shift(out, a, x, centre):
    """out = a (x - centre)"""
    for b in range(out.shape[0]):
        out[b] = per_lane(a, b) * (x[b] - per_lane(centre, b))


@inner
def langevin(x, step, gradient, size, private, noise):
    """x += -step gradient + size private noise"""
    for b in range(x.shape[0]):
        x[b] += size * per_lane(private, b) * noise[b] - step * gradient[b]


@inner
def damped(v, keep, step, gradient, size, noise):
    """v = keep v - step gradient + size noise"""
    for b in range(v.shape[0]):
        v[b] = keep * v[b] + (size * noise[b] - step * gradient[b])


@inner
def langevin_shared(x, step, gradient, size, private, noise, shared_size, shared):
    """x += -step gradient + size private noise + shared_size shared"""
    for b in range(x.shape[0]):
        x[b] += (size * per_lane(private, b) * noise[b] + shared_size * shared[b]) - step * gradient[b]


@inner
def langevin_plane(x0, x1, eta, plane, size, private, n0, n1):
    """x += -eta A (x - c) + size private n in two dimensions; `plane` is a00, a01, a10, a11, c0, c1"""
    a00, a01, a10, a11, c0, c1 = plane
    for b in range(x0.shape[0]):
        gap0, gap1 = x0[b] - per_lane(c0, b), x1[b] - per_lane(c1, b)
        spread = size * per_lane(private, b)
        x0[b] += spread * n0[b] - eta * (per_lane(a00, b) * gap0 + per_lane(a01, b) * gap1)
        x1[b] += spread * n1[b] - eta * (per_lane(a10, b) * gap0 + per_lane(a11, b) * gap1)


@inner
def langevin_plane_shared(x0, x1, eta, plane, size, private, n0, n1, shared_size, s0, s1):
    """x += -eta A (x - c) + size private n + shared_size s in two dimensions, as `langevin_plane`"""
    a00, a01, a10, a11, c0, c1 = plane
    for b in range(x0.shape[0]):
        gap0, gap1 = x0[b] - per_lane(c0, b), x1[b] - per_lane(c1, b)
        spread = size * per_lane(private, b)
        x0[b] += ((spread * n0[b] + shared_size * s0[b])
                  - eta * (per_lane(a00, b) * gap0 + per_lane(a01, b) * gap1))
        x1[b] += ((spread * n1[b] + shared_size * s1[b])
                  - eta * (per_lane(a10, b) * gap0 + per_lane(a11, b) * gap1))


@inner
def leapfrog_plane(x0, x1, v0, v1, size, plane):
    """v += size A (x - c), then x += v, in two dimensions, as `langevin_plane`"""
    a00, a01, a10, a11, c0, c1 = plane
    for b in range(x0.shape[0]):
        gap0, gap1 = x0[b] - per_lane(c0, b), x1[b] - per_lane(c1, b)
        new0 = v0[b] + size * (per_lane(a00, b) * gap0 + per_lane(a01, b) * gap1)
        new1 = v1[b] + size * (per_lane(a10, b) * gap0 + per_lane(a11, b) * gap1)
        v0[b] = new0
        v1[b] = new1
        x0[b] += new0
        x1[b] += new1


@inner
def count_beyond(x, radius):
    """Number of lanes that are not within the radius (NaN counts)."""
    bad = 0
    for b in range(x.shape[0]):
        bad += not (abs(x[b]) < radius)
    return bad


def _sum_of(n_sums: int, products: bool) -> Any:
    @intrinsic
    def interleaved(typingctx: Any, x: Any, y: Any, first: Any, last: Any) -> Any:
        """`n_sums` sums of x, or of x y, each over every so manieth of lanes first..last-1."""
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.VectorType(ir.DoubleType(), n_sums)
            arrays = [contiguous(context, builder, signature.args[i], args[i], 64) for i in range(2)]
            sums = cgutils.alloca_once_value(builder, ir.Constant(kind, [0.0] * n_sums))
            with cgutils.for_range_slice(builder, args[2], args[3], INDEX(n_sums)) as (lane, _):
                places = [builder.gep(array.data, [lane]) for array in arrays[:1 + products]]
                values = [builder.load(builder.bitcast(place, kind.as_pointer()), align=8)
                          for place in places]
                term = builder.fmul(*values) if products else values[0]
                builder.store(builder.fadd(builder.load(sums), term), sums)
            parts = [builder.extract_element(builder.load(sums), INDEX(i)) for i in range(n_sums)]
            return context.make_tuple(builder, signature.return_type, parts)

        n = types.int64
        return types.containers.UniTuple(types.float64, n_sums)(x, y, n, n), build

    return interleaved


_eight_sums, _four_sums = _sum_of(8, products=True), _sum_of(4, products=False)


@inner
def dot(x, y, first, last):
    """Sum of x y over lanes first..last-1, in a fixed order of eight interleaved partial sums."""
    whole = first + (last - first) // 8 * 8
    s0, s1, s2, s3, s4, s5, s6, s7 = _eight_sums(x, y, first, whole)
    rest = 0.0
    for b in range(whole, last):
        rest += x[b] * y[b]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)) + rest


@inner
def total(x, first, last):
    """Sum of x over lanes first..last-1, in the order of `dot` with four partial sums."""
    whole = first + (last - first) // 4 * 4
    s0, s1, s2, s3 = _four_sums(x, x, first, whole)
    rest = 0.0
    for b in range(whole, last):
        rest += x[b]
    return ((s0 + s1) + (s2 + s3)) + rest
