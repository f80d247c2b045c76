"""The numbers of a setting, read from a point of the unit cube.

A random setting is a uniform point; the adversarial search moves the same point. Every name has a place
of its own, so that a change of one number leaves the others as they are. Coordinates are multiples of
2^-24, so that a setting can be written down exactly in a line of text.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from reproduce.random_settings import RANDOM

CLIENTS, DIM = max(RANDOM.n_clients), max(RANDOM.dim)
"""The largest that are drawn."""
PLACES: dict[str, tuple[int, ...]] = {
    "clients": (1,), "dim": (1,), "condition": (1,), "scale": (1,), "frames": (1,),
    "angles": (CLIENTS, 3), "curvatures": (CLIENTS, DIM), "minimizer_scale": (1,),
    "same_minimizers": (1,), "minimizers": (CLIENTS, DIM), "equal_weights": (1,), "weights": (CLIENTS,),
    "noise_kind": (1,), "noise": (1,), "noises": (CLIENTS, DIM), "units": (1,), "temperature": (1,),
    "shared_kind": (1,), "shared": (1,), "local_steps": (1,), "leapfrogs": (1,), "schedule": (1,),
    "step_kind": (1,), "step": (1,), "participation": (1,), "active": (1,), "graph": (1,),
    "links": (CLIENTS, CLIENTS), "momentum_kind": (1,), "momentum": (1,), "velocity_kind": (1,),
    "velocity_scale": (1,), "velocity": (CLIENTS, DIM), "start_kind": (1,), "start_scale": (1,),
    "start": (CLIENTS, DIM), "spread": (DIM,), "spread_of_all": (1,), "rounds": (1,), "last": (1,),
    "age": (1,), "dynamics": (1,), "friction": (1,), "free": (4, CLIENTS, DIM)}
SIZES = {name: int(np.prod(shape)) for name, shape in PLACES.items()}
ENDS = np.cumsum([0, *SIZES.values()])
FIRST = {name: int(end) for name, end in zip(SIZES, ENDS, strict=False)}
SIZE = int(ENDS[-1])
STEPS = 2**24


def rounded(values: np.ndarray) -> np.ndarray:
    """The nearest points that a code can hold, strictly inside the unit cube."""
    return np.clip(np.round(np.asarray(values) * STEPS), 1, STEPS - 1) / STEPS


class Numbers:
    """Reads named numbers from a point (SIZE,) of the unit cube, and remembers which coordinates mattered.

    Examples
    --------
    >>> numbers = Numbers(np.full(SIZE, 0.5))
    >>> numbers.pick("graph", "abc"), round(numbers.log("step", -2.0, 0.0), 12), numbers.whole("rounds", 1, 9)
    ('b', 0.1, 5)
    >>> Numbers.from_code(numbers.code).uniform("graph")
    0.5
    """

    def __init__(self, values: Any) -> None:
        self.values = rounded(values)
        self.used = np.zeros(SIZE, dtype=bool)

    @property
    def code(self) -> str:
        """What was read so far, as text."""
        whole = np.where(self.used, np.round(self.values * STEPS), 0).astype(">u4")
        return base64.urlsafe_b64encode(zlib.compress(whole.tobytes(), 9)).decode()

    @classmethod
    def from_code(cls, code: str) -> Numbers:
        """What `code` was made from; numbers that were not read are lost."""
        raw = np.frombuffer(zlib.decompress(base64.urlsafe_b64decode(code)), dtype=">u4")
        if len(raw) != SIZE:
            raise ValueError(f"code has {len(raw)} numbers; it must have {SIZE}")
        return cls(raw / STEPS)

    def _table(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        full = PLACES[name]
        places = np.arange(FIRST[name], FIRST[name] + SIZES[name]).reshape(full)
        kept = places[tuple(slice(size) for size in shape)]
        self.used[kept] = True
        return self.values[kept]

    def uniform(self, name: str) -> float:
        """In (0, 1)."""
        return float(self._table(name, (1,))[0])

    def uniforms(self, name: str, *shape: int) -> np.ndarray:
        """A table of numbers in (0, 1)."""
        return self._table(name, shape)

    def normals(self, name: str, *shape: int) -> np.ndarray:
        """A table of standard normal numbers."""
        return ndtri(self._table(name, shape))

    def between(self, name: str, low: float, high: float) -> float:
        """Uniform."""
        return low + (high - low) * self.uniform(name)

    def log(self, name: str, low: float, high: float) -> float:
        """10 to a uniform exponent."""
        return float(10.0 ** self.between(name, low, high))

    def whole(self, name: str, low: int, high: int) -> int:
        """A uniform integer, both ends included."""
        return low + int(self.uniform(name) * (high + 1 - low))

    def pick(self, name: str, options: Sequence[Any], shares: Sequence[float] | None = None) -> Any:
        """One of `options`, with the probabilities `shares`."""
        edges = np.cumsum(shares if shares is not None else np.full(len(options), 1.0 / len(options)))
        return options[min(int(np.searchsorted(edges, self.uniform(name), side="right")), len(options) - 1)]

    def coin(self, name: str, share: float) -> bool:
        """True with probability `share`."""
        return self.uniform(name) < share
