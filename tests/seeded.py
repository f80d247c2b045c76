"""Normals by seeds, for kernels that take many seeds at once: those of a seed do not depend on the others."""

import numpy as np
from scipy.special import ndtri


def normals(seeds, *shape, stream=0):
    """(K, *shape) normals, a hash of each seed (K,), of the place in `shape`, and of the stream."""
    count = int(np.prod(shape, dtype=int))
    with np.errstate(over="ignore"):
        keys = (np.asarray(seeds, dtype=np.uint64)[:, None] * np.uint64(4096) + np.uint64(1000 * stream)
                + np.arange(count, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
        keys ^= keys >> np.uint64(31)
    return ndtri((keys >> np.uint64(11)).astype(float) * 2.0**-53 + 2.0**-54).reshape(len(seeds), *shape)
