"""What `fedsim.explain` says of exact laws, once `theory` is imported."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.interfaces import EXPLAINERS
from fedsim.problems.quadratic import Quadratic

from .families import family_of


def which_law(problem: Any, algorithm: Any) -> str:
    """The family that answers `theory.exact_law` and what it follows, or why there is no exact law."""
    try:
        family = family_of(algorithm)
        solved = family.solvable(problem)
        if isinstance(solved, Quadratic):
            form = f"{solved.structure} curvatures"
        else:  # some algorithms have no moments under minibatches
            iter(family.moments(solved, algorithm, np.array([0]), np.zeros(problem.dim), None, "full"))
            form = "moments under minibatches"
        gaussian = family.is_gaussian(solved, algorithm)
    except ValueError as error:
        return f"none: {error}"
    cls = type(family)
    return (f"{cls.__module__}:{cls.__qualname__}, {form}; "
            f"{'the law is Gaussian' if gaussian else 'only its moments are exact'}")


EXPLAINERS.append(which_law)
