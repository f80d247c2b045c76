"""What the harness has to be told: valid calls that no example shows, and what may be as it is, and why."""

from __future__ import annotations

import dataclasses
import os
import re
import tempfile
from typing import Any

import numpy as np

import fedsim as fs
import theory
from fedsim.data.adult import LABEL, QUESTIONS
from theory.judge.examining import drawn_numbers

PROBLEM = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
PLANE = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]]], [[0.3, -0.2]])
SHARES = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])


FOLDER = tempfile.TemporaryDirectory(prefix="fuzz.")
MIXING = fs.network.ring(2)
GROUPS = theory.fa_hmc.TwoGroups(L=1.0, mu=0.25, theta_L=2.0, theta_mu=1.0, dim=10)
SETTINGS = (
    (PROBLEM, fs.FALD(0.01, 2)), (PROBLEM, fs.FALD(0.01, 2, participation=fs.Participation(1, True))),
    (PROBLEM, fs.FALD(fs.schedules.Harmonic.from_theorem(strong_convexity=1.0, smoothness=3.0), 2)),
    (PROBLEM, fs.FALD(1e-7, 2)), (PROBLEM, fs.FALD(0.01)),
    (PROBLEM, fs.FAHMC(0.01, 10, local_steps=2)), (PROBLEM, fs.FAHMC(0.01, 10)),
    (GROUPS.problem, theory.exact.FAHMCFlow(0.5, 10)), (SHARES, fs.DESGLD(0.01, MIXING)),
    (SHARES, fs.DESGHMC(0.1, 10.0, MIXING)), (PROBLEM, fs.StaleSGLD(0.01, 2)),
    (PROBLEM, fs.StaleSGHMC(0.01, 1.0, 2)), (PROBLEM, fs.StaleSGLD(0.01)))
"""Problems and algorithms, of which every entry of the catalogue speaks about one."""


def law() -> fs.Law:
    return theory.exact_law(PROBLEM, fs.FALD(0.1), 3)


def run() -> fs.Run:
    """As `fs.simulate` makes it, without simulating."""
    exact = law()
    return fs.Run(exact.rounds, exact.mean + 0.01, 1.01 * exact.cov, exact.target, n_replicas=2000,
                  costs={"communications": 3}, leaf_cov=exact.cov, spread=0.1 * exact.cov, n_leaves=31,
                  seed=1)


INSTANCES: dict[str, Any] = {
    "fedsim.Run": run, "fedsim.Law": law, "theory.Bound": lambda: theory.Bound(**bound_fields()),
    "theory.stale.AverageLaw": lambda: theory.stale.average_law(PROBLEM, fs.StaleSGLD(0.01, 2), 5)}
"""Of classes whose example simulates, or makes them by a function."""
ARGUMENTS: dict[str, Any] = {
    "problem": lambda: PROBLEM, "n_rounds": lambda: 3, "temperature": lambda: 1.0, "client": lambda: 0,
    "x": lambda: np.zeros(1), "k": lambda: [0, 1], "n_clients": lambda: 2, "n_updates": lambda: 4,
    "level": lambda: 0.9, "path": lambda: os.path.join(FOLDER.name, "a.npz"),
    "n": lambda: 3, "seed": lambda: 1, "eta": lambda: 0.01, "rho": lambda: 0.5, "S": lambda: 1,
    "scheme": lambda: "I", "W": lambda: MIXING, "gamma": lambda: 2.0, "h": lambda: 0.01, "B": lambda: 1.0,
    "tau": lambda: 2, "rounds": lambda: [0, 1], "weights": lambda: [0.5, 0.5]}
"""Of methods, by the names of their parameters."""


def bound_fields() -> dict[str, Any]:
    """Those of what a theorem says; its `terms` and `inputs` as plain mappings."""
    algorithm = fs.FALD(0.01, local_steps=2)
    bound = theory.fa_ld.w2_bound(theory.constants(PROBLEM, algorithm), algorithm, n_rounds=50)
    given = {one.name: getattr(bound, one.name) for one in dataclasses.fields(bound) if one.init}
    return given | {"terms": dict(bound.terms), "inputs": dict(bound.inputs)}


def law_fields() -> dict[str, Any]:
    exact = law()
    return {"rounds": exact.rounds, "mean": exact.mean, "cov": exact.cov, "target": exact.target}


def saved() -> dict[str, Any]:
    path = os.path.join(FOLDER.name, "saved.npz")
    law().save(path)
    return {"path": path}


def written() -> dict[str, Any]:
    path = os.path.join(FOLDER.name, "data.txt")
    with open(path, "w") as file:
        file.write("+1 1:0.5 3:1\n-1 2:1\n")
    return {"path": path}


def magic() -> dict[str, Any]:
    path = os.path.join(FOLDER.name, "magic.data")
    with open(path, "w") as file:
        file.write("1,2,3,4,5,6,7,8,9,10,g\n1,2,3,4,5,6,7,8,9,11,h\n")
    return {"path": path, "n_rows": 2}


def adult() -> dict[str, Any]:
    path = os.path.join(FOLDER.name, "adult.csv")
    row = "39,?,77516,Bachelors,13,Never-married,Sales,Wife,White,Male,0,0,46,Cuba,"
    with open(path, "w") as file:
        file.write("\n".join([",".join([*QUESTIONS, LABEL]), f"{row}<=50K", f"{row}>50K", ""]))
    return {"path": path, "long_hours": 47}


def image_files() -> dict[str, str]:
    """Paths by the names of the readers' arguments."""
    found = {}
    for part in ("train", "test"):
        for kind, content in (("images", [0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 5, 6]),
                              ("labels", [0, 0, 8, 1, 0, 0, 0, 1, 7])):
            usual = f"{'t10k' if part == 'test' else part}-{kind}-idx{content[3]}-ubyte"
            found[f"{part}_{kind}"] = os.path.join(FOLDER.name, usual)
            with open(found[f"{part}_{kind}"], "wb") as file:
                file.write(bytes(content))
    return found


def cifar() -> dict[str, Any]:
    path = os.path.join(FOLDER.name, "batch.bin")
    with open(path, "wb") as file:
        file.write(bytes(2 * 3073))
    return {"paths": [path], "n_rows": 2}


SOFTMAX_POINT = [0.1, 0.2, 0.0]
COV = np.array([[2.0, 0.5], [0.5, 1.0]])
CALLS: dict[str, Any] = {
    "fedsim.Law": law_fields, "theory.Bound": bound_fields,
    "fedsim.Run": lambda: law_fields() | {"n_replicas": 2000, "costs": {"rounds": 3}},
    "fedsim.SoftmaxRegression.potential": lambda: {"x": SOFTMAX_POINT},
    "fedsim.SoftmaxRegression.gradient": lambda: {"x": SOFTMAX_POINT},
    "fedsim.SoftmaxRegression.hessian": lambda: {"x": SOFTMAX_POINT},
    "fedsim.SoftmaxRegression.hessian_times": lambda: {"x": SOFTMAX_POINT, "vector": [1.0, 2.0, 0.0]},
    "fedsim.SoftmaxRegression.probabilities": lambda: {"x": SOFTMAX_POINT, "features": [[0.5]]},
    "fedsim.load": saved, "fedsim.data.libsvm.read_libsvm": written,
    "fedsim.data.magic.read_magic": magic, "fedsim.data.adult.read_adult": adult,
    "fedsim.data.cifar.load_cifar10": cifar,
    "fedsim.data.idx.load_idx": lambda: {"path": image_files()["train_images"], "kind": "images"},
    "fedsim.data.idx.load_pair": lambda: {kind: image_files()[f"train_{kind}"]
                                          for kind in ("images", "labels")},
    "fedsim.data.idx.load_four": image_files,
    "fedsim.data.idx.load_images": lambda: {"folder": image_files() and FOLDER.name},
    "fedsim.Density.moment": lambda: {"order": 2},
    "fedsim.Density.quantile": lambda: {"probability": 0.5},
    "fedsim.Density.w2": lambda: {"sample": [0.5, 1.0]},
    "fedsim.Gaussian.marginal": lambda: {"coordinates": [0]},
    "fedsim.Gaussian.w2": lambda: {"other": fs.Gaussian([3.0], [[25.0]])},
    "fedsim.DESGLD.check": lambda: {"problem": fs.Quadratic(np.ones(4), np.zeros((4, 1)))},
    "fedsim.DESGLD.stability": lambda: {"problem": fs.Quadratic(np.ones(4), np.zeros((4, 1)))},
    "theory.exact.JointLaw.average": lambda: {"k": 1},
    "fedsim.Law.at": lambda: {"round": 2}, "fedsim.Run.at": lambda: {"round": 2},
    "fedsim.Run.z_scores": lambda: {"law": law(), "same": False},
    "fedsim.Quadratic.from_components": lambda: {"hessians": [1.0, 2.0], "minimizers": [[0.5], [-0.5]]},
    "fedsim.distance.w1_normal": lambda: {"mean1": 0.0, "sd1": 1.0, "mean2": 1.0, "sd2": 2.0},
    "fedsim.distance.w2_floor": lambda: {"cov": COV, "n_replicas": 10},
    "fedsim.distance.w2_gaussian": lambda: {"mean1": np.zeros(2), "cov1": COV, "mean2": np.ones(2),
                                            "cov2": 2.0 * COV},
    "theory.plan": lambda: {"theorem": "fa_ld.w2_bound", "problem": PROBLEM, "algorithm": fs.FALD(0.1),
                            "eps": 0.5},
    "fedsim.schedules.Harmonic.from_theorem": lambda: {"strong_convexity": 1.0, "smoothness": 2.0},
    "theory.Assumption.at_most": lambda: {"name": "x <= 1", "value": 0.5, "limit": 1.0},
    "theory.Assumption.yes": lambda: {"name": "x", "holds": True},
    "theory.Bound.alone": lambda: {"term": "discretization"},
    "theory.Constants.need": lambda: {"name": "n_clients"},
    "theory.fa_hmc.TwoGroups.fixed_point": lambda: {"length": 0.5, "local_steps": 10},
    "theory.fa_hmc.TwoGroups.law": lambda: {"rounds": [0, 3], "length": 0.5, "local_steps": 10},
    "theory.fa_hmc.TwoGroups.w2": lambda: {"rounds": [0, 3], "length": 0.5, "local_steps": 10},
    "theory.fa_hmc.TwoGroups.printed_variance": lambda: {"rounds": [0, 3], "length": 0.5, "local_steps": 10},
    "theory.fa_hmc.TwoGroups.of": lambda: {"problem": GROUPS.problem},
    "theory.privacy.Release.delta": lambda: {"epsilon": 1.0, "count": 4},
    "theory.privacy.Release.epsilon": lambda: {"delta": 0.1, "count": 4},
    "theory.stale.AverageLaw.at": lambda: {"length": 3},
    "theory.exact.JointLaw.second_moment_about": lambda: {"point": [0.0]},
    **{f"theory.testing.UpdateRule.{name}": lambda: {"problem": PLANE}
       for name in ("check", "n_active", "stability", "target", "variance_factor")},
    "theory.testing.UpdateRule.costs": lambda: {"problem": PLANE, "n_rounds": 3},
}
"""Valid arguments of single callables, where neither example nor `ARGUMENTS` has them."""
INTERNAL = re.compile("|".join((
    r"theory\.\w+\.(Setting|Chain)\.\w+",  # a paper's letters, asked by its statements
    r"PrivacySetting\.(chance|drawn|log_noise_scale)|Release\.affordable",
    r"theory\.Theorem\.\w+",  # what a statement declares
    r"schedules\.Schedule\.at|Workers\.(ages|worked_out)",  # of the base class; asked by the engine
    r"schedules\.\w+\.total",  # the same
    r"distance\.(psd_sqrt|w2_floor_parts\w*|check_quantile)|libsvm\.(text|rows)_of",
    r"(LogisticRegression|SoftmaxRegression|Custom)\.target",  # refuses always
    r"theory\.exact\.JointLaw$",  # made by `theory.exact.joint_law`
    r"theory\.stale\.AverageLaw$",  # made by `theory.stale.average_law`
    r"fedsim\.(plot|animate)$",  # take any number of laws; `tests/test_drawing.py` asks them
    r"fedsim\.each$",  # a word of samplers, while they are traced; `tests/test_each.py` asks it
    r"Gaussian\.ellipse$",  # of two dimensions alone; the same
    r"theory\.testing\.assert_samples$",  # fails by AssertionError; `tests/test_kernels.py` asks it
    r"theory\.Bound\.from_terms",  # asked by statements, and checked as `theory.Bound`
)))
"""Public by name alone: not fuzzed."""
ALIASES: dict[str, tuple[str, ...]] = {
    r"fedsim\.Custom:(dim|data|n_clients|potential)$": ("gradient",),
    r"from_paper:": ("step_size", "mixing", "friction", "n_active", "local_steps", "leapfrog_steps",
                     "temperature", "shared_noise", "staleness"),
    r"schedules\.\w+:values?$": ("step_size",), r"TwoGroups\.\w+:length$": ("trajectory_length",),
    r"first_reaching:lengths$": ("values",), r"estimators\.combine:averages$": ("times",),
    r"contraction_bound:constants$": ("points",), r"fedsim\.(Law|Run):(rounds|clients)$": ("mean",),
    r"fewest_rounds:local_steps$": ("eps",),
    r"friction_interval:(smooth|strong)|largest_momentum:": ("step_size",),
    r"fedsim\.Gaussian:mean$": ("cov",), r"check_mixing:n_clients$": ("client",),
    r"sample_path:n_chains$": ("n_replicas",), r"vanilla_algorithm:eps$": ("step_size",),
    r"stale\.plan:": ("eps",), r":n_rounds$": ("n_steps",),
    r"remark_step_size:": ("n_iterations",),
    r"fa_hmc\.\w+:(constants|algorithm)$": ("gradient_moments", "coupling"),
    r"examine\[privacy\.\w+\]:n_rounds$": ("count",),
    r"privacy\.(guarantee|setting_of):problem$": ("weights",),
}
"""What an argument may be called in a message instead: "door:argument", as a pattern, -> names."""
TRIED = ("evaluate", "evaluate_checked")
"""Kernels that check an argument, and may be compiled where nothing is to run."""
NOT_FINITE: dict[str, set[str]] = {
    f"theory.privacy.{name}": {"inf"} for name in (
        "guarantee", "guarantee_at", "fa_ld_guarantee", "validity_ceiling", "local_ceiling", "round_ceiling",
        "noisy_step_bound", "minibatch_step_bound", "client_bound", "round_bound", "run_bound")}
NOT_FINITE["theory.fa_hmc.u_curve"] = {"inf"}
"""Doors whose documented result may be "inf" or "nan"."""


def examined(entry: theory.Theorem) -> dict[str, Any] | None:
    """Problem, algorithm and rounds within which an entry of the catalogue can be examined."""
    if entry.kind == "rate":
        return None
    for problem, algorithm in SETTINGS:
        if isinstance(algorithm, entry.algorithm) and entry.applies(algorithm, problem):
            return {"problem": problem, "algorithm": algorithm, "n_rounds": 12,
                    "privacy": drawn_numbers(entry, problem, algorithm, 12)}
    return None


def stated(entry: theory.Theorem) -> dict[str, Any]:
    """Arguments of a theorem, as `theory.examine` finds them."""
    problem, algorithm = next(pair for pair in SETTINGS if isinstance(pair[1], entry.algorithm)
                              and entry.applies(pair[1], pair[0]))
    n_rounds = 12
    constants = theory.constants(problem, algorithm)
    inputs = entry.inputs(problem, algorithm, constants, n_rounds, None) if entry.inputs else {}
    return {"constants": constants, "algorithm": algorithm, "n_rounds": n_rounds, **inputs}
