"""What a problem and an algorithm must offer is looked for once, and named where it is missing."""

import numpy as np
import pytest

import fedsim as fs
import theory
from fedsim import interfaces
from fedsim.interfaces import Algorithm, Problem, offers

GOOD = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 1.0]]], [[0.0, 1.0], [2.0, 3.0]])
STEP = fs.FALD(0.1, 3)


class _Half(fs.FALD):
    """An algorithm that forgot a part, and one whose part is no method."""

    _radius = None


class _Alone:
    """It derives from nothing and offers nothing but sizes."""

    n_clients, dim, weights = 2, 2, np.ones(2)


@pytest.mark.parametrize("problem, algorithm, message", [
    (GOOD, _Half(0.1), r"algorithm=_Half\(.* must be a fedsim algorithm: _Half has no method _radius\(\): "
                       "`Stability.radius` without"),
    (_Alone(), STEP, r"problem=.* must be a fedsim problem: _Alone has no method target\(\): The law"),
    (GOOD, fs.FALD, "must be a fedsim algorithm, an instance and not the class"),
    (fs.Quadratic, STEP, "must be a fedsim problem, an instance and not the class"),
])
def test_a_part_that_is_missing_is_named_with_what_it_must_do(problem, algorithm, message):
    for check in (fs.validate, lambda *both: fs.simulate(*both, 1, 2, seed=1, allow_unstable=True)):
        with pytest.raises(ValueError, match=message):
            check(problem, algorithm)


def test_what_has_laws_alone_is_not_simulated():
    flow = theory.exact.FAHMCFlow(0.3)
    fs.validate(GOOD, flow)
    with pytest.raises(ValueError, match=r"FAHMCFlow has no method _kernel\(\): The NamedTuple"):
        fs.simulate(GOOD, flow, 1, 2, seed=1)


def test_deriving_from_a_declaration_offers_nothing_yet():
    class Derived(Problem):
        """It has the declarations alone."""

    with pytest.raises(ValueError, match="Derived has no n_clients"):
        fs.validate(Derived(), STEP)


@pytest.mark.parametrize("held", [3, None])
def test_what_an_instance_holds_hides_the_method_of_its_class(held):
    algorithm = fs.FALD(0.1, 3)
    fs.validate(GOOD, algorithm)
    object.__setattr__(algorithm, "check", held)
    with pytest.raises(ValueError, match=r"FALD has no method check\(\)"):
        fs.validate(GOOD, algorithm)


def test_looking_for_parts_computes_none_of_them():
    class Shy(fs.FALD):
        @property
        def convention(self):
            raise AssertionError("computed")

    offers("algorithm", Shy(0.1, 3), Algorithm)


def test_parts_that_only_instances_have_are_looked_for_in_each():
    """Also where an instance of the class was looked at before, which had them."""
    class Bare:
        """Offers a problem's parts but for its weights, which instances have."""

    for name, (declared, _) in interfaces._members(Problem).items():
        nothing = property(lambda self: None) if isinstance(declared, property) else lambda self, *_: None
        setattr(Bare, name, nothing)
    del Bare.weights
    first, second = Bare(), Bare()
    first.weights = np.ones(2)
    for _ in range(2):
        offers("problem", first, Problem)
    with pytest.raises(ValueError, match="Bare has no weights"):
        offers("problem", second, Problem)
    with pytest.raises(ValueError, match="must be a fedsim algorithm"):
        offers("algorithm", first, Algorithm)  # another interface is another question
