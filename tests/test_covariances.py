"""What is no covariance is refused by everything public that takes one, found by its signature."""

import inspect
import re

import numpy as np
import pytest

import fedsim as fs
import theory
from fedsim.laws.moments import roots

PARAMETER = re.compile(r"(^|_)(cov\d?|covs|covariances?|variances|reference|gradient_noise)$")
NO_MATRIX = {  # of which kind of covariance is asked for, and numbers
    "fs.simulate(covariance)", "theory.exact_law(covariance)", "fs.Custom(gradient_noise)",
    "fs.LogisticRegression(gradient_noise)", "fs.SoftmaxRegression(gradient_noise)",
    "fs.papers.fa_hmc_logistic(gradient_noise)", "theory.worst_case.ProblemClass(gradient_noise)",
    "theory.worst_case.certify(gradient_noise)", "theory.worst_case.commuting_supremum(gradient_noise)"}
ONE, ZERO = np.eye(2), np.zeros(2)
LAW = {"rounds": np.arange(2), "mean": np.zeros((2, 2))}


def joint(**changed):
    problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    made = theory.exact.joint_law(problem, fs.FALD(0.1, local_steps=2), n_steps=4)
    values = {name: getattr(made, name) for name in ("steps", "mean", "cov", "sync_steps", "before_mean",
                                                     "before_cov", "is_gaussian", "problem", "algorithm")}
    return theory.exact.JointLaw(**values | {
        name: np.stack([cov, *[ONE] * (len(values[name]) - 1)]) for name, cov in changed.items()})


# What takes one matrix, and what takes stacks of them.
SINGLE = {
    "fs.Gaussian(cov)": lambda cov: fs.Gaussian(ZERO, cov),
    "fs.papers.fa_ld_simulation(covariance)": lambda cov: fs.papers.fa_ld_simulation(1.0, covariance=cov),
    "fs.papers.fa_ld_unequal_curvature(covariance)":
        lambda cov: fs.papers.fa_ld_unequal_curvature(1.0, covariance=cov),
    "theory.exact.JointLaw(cov)": lambda cov: joint(cov=cov),
    "theory.exact.JointLaw(before_cov)": lambda cov: joint(before_cov=cov),
}
STACKS = {
    "fs.Law(cov)": lambda covs: fs.Law(**LAW, cov=covs),
    "fs.Run(cov)": lambda covs: fs.Run(**LAW, cov=covs, n_replicas=9),
    "fs.Run(leaf_cov)": lambda covs: fs.Run(**LAW, cov=np.stack([ONE, ONE]), n_replicas=9, leaf_cov=covs),
    "fs.Quadratic(gradient_noise)": lambda covs: fs.Quadratic([1.0, 1.0], np.zeros((2, 2)),
                                                              gradient_noise=covs),
    "fs.distance.w2_gaussian(cov1)": lambda covs: fs.distance.w2_gaussian(LAW["mean"], covs, ZERO, ONE),
    "fs.distance.w2_gaussian(cov2)": lambda covs: fs.distance.w2_gaussian(ZERO, ONE, LAW["mean"], covs),
    "fs.distance.psd_sqrt(cov)": fs.distance.psd_sqrt,
    "fs.distance.w2_floor(cov)": lambda covs: fs.distance.w2_floor(covs, 9),
    "fs.distance.w2_floor(reference)": lambda covs: fs.distance.w2_floor(ONE, 9, covs),
    "fs.distance.w2_floor_parts(cov)": lambda covs: fs.distance.w2_floor_parts(covs, 9),
    "fs.distance.w2_floor_parts(reference)": lambda covs: fs.distance.w2_floor_parts(ONE, 9, covs),
}
VARIANCES = {"fs.distance.w2_floor_parts_diagonal(variances)":
             lambda variances: fs.distance.w2_floor_parts_diagonal(variances, 9)}
# One matrix too, besides stacks.
BOTH = {name: call for name, call in STACKS.items() if name.startswith("fs.distance")} | {
    "fs.distance.w2_gaussian(cov1)": lambda cov: fs.distance.w2_gaussian(ZERO, cov, ZERO, ONE),
    "fs.distance.w2_gaussian(cov2)": lambda cov: fs.distance.w2_gaussian(ZERO, ONE, ZERO, cov)}
BAD = {
    "asymmetric": np.array([[1.0, 0.9], [0.0, 1.0]]), "its transpose": np.array([[1.0, 0.0], [0.9, 1.0]]),
    "a Cholesky factor": np.linalg.cholesky([[2.0, 1.2], [1.2, 1.0]]),
    "indefinite": np.array([[1.0, 2.0], [2.0, 1.0]]), "negative": -ONE, "barely": np.diag([1.0, -1e-6]),
    "no number": np.array([[1.0, np.nan], [np.nan, 1.0]]), "infinite": np.diag([1.0, np.inf]),
}
MODULES = {"fs": fs, "fs.distance": fs.distance, "fs.estimators": fs.estimators, "fs.papers": fs.papers,
           "theory": theory, "theory.exact": theory.exact, "theory.tuning": theory.tuning,
           "theory.worst_case": theory.worst_case} | {
    f"theory.{paper}": getattr(theory, paper)
    for paper in ("fa_ld", "fa_hmc", "de_sgld", "de_sghmc", "stale", "privacy")}


def takers():
    """Public functions, classes and methods with such a parameter, once each."""
    found = {}
    for room, module in MODULES.items():
        names = getattr(module, "__all__", None) or [name for name in vars(module) if name[0] != "_"]
        for name in names:
            thing = getattr(module, name)
            if not callable(thing) or not str(thing.__module__).startswith(("fedsim", "theory")):
                continue
            if inspect.isclass(thing) and issubclass(thing, Exception):
                continue
            parts = {name: thing}
            if inspect.isclass(thing):
                parts |= {f"{name}.{own}": part for own, part in vars(thing).items()
                          if own[0] != "_" and inspect.isfunction(part)}
            for own, part in parts.items():
                for parameter in inspect.signature(part).parameters:
                    if PARAMETER.search(parameter):
                        found.setdefault((part.__module__, part.__qualname__, parameter),
                                         f"{room}.{own}({parameter})")
    return set(found.values())


def test_everything_that_takes_a_covariance_is_here():
    assert takers() == {*SINGLE, *STACKS, *VARIANCES, *NO_MATRIX}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("name", [*SINGLE, *BOTH])
def test_what_is_no_covariance_is_refused(name, what):
    call, (argument,) = (SINGLE | BOTH)[name], re.findall(r"\((\w+)\)", name)
    assert call(ONE) is not None
    with pytest.raises(ValueError, match=rf"^{argument}\b"):
        call(BAD[what])


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("row", [0, 1])
def test_one_that_is_none_in_a_stack_is_named(name, what, row):
    call, (argument,) = STACKS[name], re.findall(r"\((\w+)\)", name)
    covs = np.stack([ONE, ONE])
    assert call(covs) is not None
    covs[row] = BAD[what]
    with pytest.raises(ValueError, match=rf"^{argument}(\[{row}[,\]]| must be finite; {argument}\[{row}"
                                         rf"| of the law at round {row} )"):
        call(covs)


@pytest.mark.parametrize("name", ["fs.distance.w2_gaussian(cov1)", "fs.distance.w2_floor(cov)"])
def test_a_small_one_is_judged_by_its_own_size(name):
    covs = np.stack([1e12 * ONE, BAD["indefinite"]])
    with pytest.raises(ValueError, match=r"\[1\] has smallest eigenvalue -1; it must be positive semidef"):
        STACKS[name](covs)


@pytest.mark.parametrize("scale", [1e-250, 1e-40, 1.0, 1e250])
@pytest.mark.parametrize("name", BOTH)
def test_rounding_is_told_from_a_negative_eigenvalue_of_any_size(name, scale):
    assert BOTH[name](scale * np.diag([1.0, -1e-13])) is not None
    for cov in (np.diag([1.0, -1e-11]), BAD["indefinite"]):
        with pytest.raises(ValueError, match="positive semidefinite"):
            BOTH[name](scale * cov)


@pytest.mark.parametrize("name", VARIANCES)
def test_negative_variances_are_refused(name):
    assert VARIANCES[name](np.ones((3, 2))) is not None
    with pytest.raises(ValueError, match="variances has a negative variance -1"):
        VARIANCES[name](np.array([[1.0, 1.0], [1.0, -1.0]]))
    with pytest.raises(ValueError, match=r"variances.* must be finite"):
        VARIANCES[name](np.array([1.0, np.nan]))


def test_rounding_is_no_fault():
    """Of few draws in many dimensions, of one direction, of tiny and of huge ones, and of none at all."""
    rng = np.random.default_rng(1)
    for scale in (1e-300, 1e-30, 1.0, 1e300):
        for cov in (np.cov(rng.standard_normal((60, 7))), np.ones((60, 60)), np.zeros((60, 60)), np.eye(60)):
            scaled = scale * cov
            same = fs.distance.w2_gaussian(np.zeros(60), scaled, np.zeros(60), scaled)
            assert same <= 1e-6 * np.sqrt(scale) and np.isfinite(fs.distance.w2_floor(scaled, 9))
            np.testing.assert_array_equal(fs.distance.psd_sqrt(scaled), roots(scaled))


def test_rounding_grows_with_the_dimension():
    """Of many coordinates that move together the least eigenvalue comes out as -d eps of the largest."""
    ones, one = np.ones((1200, 1200)), np.eye(1200)
    common = np.random.default_rng(2).standard_normal((5, 1)) + 0.01 * np.ones((5, 1200))
    for cov in (ones, ones - 1e-11 * one, np.cov(common.T)):
        assert fs.Gaussian(np.zeros(1200), cov).dim == 1200
    noise = (ones - 1e-11 * one)[None]
    assert fs.Quadratic([1.0], np.zeros((1, 1200)), gradient_noise=noise).dim == 1200
    for name, call in (("cov", lambda cov: fs.Gaussian(np.zeros(1200), cov)), ("gradient_noise", lambda cov: (
            fs.Quadratic([1.0], np.zeros((1, 1200)), gradient_noise=cov[None])))):
        with pytest.raises(ValueError, match=f"{name}.* has smallest eigenvalue -"):
            call(ones - 1e-8 * one)


@pytest.mark.parametrize("name", STACKS)
def test_short_floats_have_fewer_digits(name):
    """Of rank 1 in float32, as other libraries give them; the same error in float64 is one."""
    factor = np.array([[1.3], [1.2]], dtype=np.float32)
    short = np.stack([factor @ factor.T] * 2)
    assert np.linalg.eigvalsh(short.astype(np.float64))[0, 0] < -1e-10
    assert STACKS[name](short) is not None
    with pytest.raises(ValueError, match=re.findall(r"\((\w+)\)", name)[0]):
        STACKS[name](short.astype(np.float64))
    with pytest.raises(ValueError, match=re.findall(r"\((\w+)\)", name)[0]):
        STACKS[name](short - np.float32(1e-5) * np.eye(2, dtype=np.float32))
