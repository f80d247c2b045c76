"""Who is who: what is no object of the class that is wanted is refused by name, wherever it is given."""

import inspect
import re

import pytest
from fuzz.known import PROBLEM, SHARES, examined

import fedsim as fs
import theory

SETTING = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6, delta1=1e-6,
                                        delta2=1e-6, local_steps=10, n_rounds=100, n_clients=50)
WITH_SETTING = {name: function for name in theory.privacy.__all__
                if callable(function := getattr(theory.privacy, name))
                and "given" in inspect.signature(function).parameters}
STRANGERS = (None, 3, "text", {"sensitivity": 1.0}, fs.FALD(0.1), theory.privacy.PrivacySetting)


def test_there_are_functions_of_a_privacy_setting():
    assert len(WITH_SETTING) >= 11


@pytest.mark.parametrize("name", WITH_SETTING)
def test_privacy_functions_take_a_privacy_setting(name):
    function = WITH_SETTING[name]
    numbers = {"step_size": 1e-10, "epsilon": 2.0, "schedule": fs.FALD(1e-9).schedule}
    wanted = {one: value for one, value in numbers.items() if one in inspect.signature(function).parameters}
    function(SETTING, **wanted)
    for stranger in STRANGERS:
        with pytest.raises(ValueError, match=r"given=.* must be a theory\.privacy\.PrivacySetting, not"):
            function(stranger, **wanted)


@pytest.mark.parametrize("entry", theory.theorems(), ids=lambda entry: entry.id)
def test_examine_names_problem_and_algorithm(entry):
    good = examined(entry) or {"problem": PROBLEM, "algorithm": fs.FALD(0.1), "n_rounds": 2}
    for stranger in (None, 3, fs.Gaussian([0.0], [1.0]), fs.Quadratic):
        with pytest.raises(ValueError, match=r"^problem=.* must be a fedsim problem"):
            theory.examine(entry, **{**good, "problem": stranger})
        with pytest.raises(ValueError, match=r"^algorithm=.* must be a "):
            theory.examine(entry, **{**good, "algorithm": stranger})
    families = (fs.FALD(0.01), fs.FAHMC(0.01, 2), fs.DESGLD(0.01, fs.network.ring(2)), fs.StaleSGLD(0.01))
    for other in families:
        if not isinstance(other, entry.algorithm):
            words = f"algorithm=.* not of type {type(other).__name__}; theorem="
            with pytest.raises(ValueError, match=words):
                theory.examine(entry, **{**good, "algorithm": other})


def test_examine_takes_known_constants_and_a_named_variant():
    for wrong in (3, {}, fs.FALD(0.1)):
        with pytest.raises(ValueError, match=r"known=.* must be a theory\.Constants"):
            theory.examine("fa_ld.w2_bound", PROBLEM, fs.FALD(0.01), 2, known=wrong)
    for wrong in ("", 0, False):
        with pytest.raises(ValueError, match=r"variant=.* must be one of"):
            theory.examine("fa_ld.w2_bound", PROBLEM, fs.FALD(0.01), 2, variant=wrong)


CONSTANTS = theory.constants(SHARES, fs.DESGHMC(0.1, 9.0, fs.network.ring(2)))
AVERAGE = theory.stale.average_law(PROBLEM, fs.StaleSGLD(0.01, 2), 3)
PLACES = {
    "begin": lambda stranger: theory.de_sghmc.velocity_bound(
        CONSTANTS, fs.DESGHMC(0.1, 9.9, fs.network.ring(2)), n_rounds=3, begin=stranger),
    "problem of tuning": lambda stranger: theory.tuning.best_step_size(stranger, fs.FALD(0.1), 0.1),
    "algorithm of tuning": lambda stranger: theory.tuning.best_step_size(PROBLEM, stranger, 0.1),
    "problem of compare": lambda stranger: theory.tuning.compare(stranger, fs.FALD(0.1), 0.1),
    "algorithm of compare": lambda stranger: theory.tuning.compare(PROBLEM, stranger, 0.1),
    "problem of exact_law": lambda stranger: theory.exact_law(
        stranger, fs.DESGLD(0.01, fs.network.ring(2)), 3),
    "problem of fluctuation": lambda stranger: theory.stale.fluctuation(stranger, fs.StaleSGLD(0.1), 3),
    "problem of gradient_gap": lambda stranger: theory.stale.gradient_gap(stranger, fs.StaleSGLD(0.1), 3),
    "single": lambda stranger: theory.stale.iteration_speedup(stranger, AVERAGE, 2, 1.0),
    "several": lambda stranger: theory.stale.iteration_speedup(AVERAGE, stranger, 2, 1e3),
    "c": theory.de_sghmc.recursion,
    "constants": lambda stranger: theory.fa_ld.setting(stranger, fs.FALD(0.1)),
    "algorithm": lambda stranger: theory.fa_ld.setting(theory.constants(PROBLEM, fs.FALD(0.1)), stranger),
    "bound": lambda stranger: theory.check(stranger, AVERAGE),
    "problem of costs": lambda stranger: fs.FALD(0.1).costs(stranger, 3),
    "problem of stability": lambda stranger: fs.StaleSGLD(0.1).stability(stranger),
    "problem of check": lambda stranger: fs.DESGLD(0.1, fs.network.ring(2)).check(stranger),
    "problem of target": lambda stranger: fs.FAHMC(0.1, 2).target(stranger),
    "groups": lambda stranger: theory.fa_hmc.fewest_rounds(stranger, 0.3, 10),
    "laws[0]": lambda stranger: theory.stale.combine_servers([stranger], [1.0]),
}


@pytest.mark.parametrize("place", PLACES)
def test_strangers_are_named(place):
    for stranger in (3, "text", fs.Gaussian([0.0], [1.0]), object()):
        with pytest.raises(ValueError, match=f"^{re.escape(place.split()[0])}="):
            PLACES[place](stranger)
