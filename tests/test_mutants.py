"""The law test has power: wrong programs are caught by the very scores that the right one passes."""

import pytest
from algorithms import ROWS, each
from scores import all_scores

from fedsim.vector.cache import cache_place

FEW = 64 * 9 + 20
"""Replicas whose bits are compared."""


@pytest.mark.parametrize(**each(lambda row: row.mutants.cases))
def test_without_a_fault_the_mutant_is_the_program(kind, name, alarm):
    mutants = ROWS[kind].mutants
    run, program = mutants.control(name, FEW), mutants.run(name, FEW)
    for one, other in zip((run, *run.clients), (program, *program.clients), strict=True):
        assert one.mean.tobytes() == other.mean.tobytes()
        assert one.cov.tobytes() == other.cov.tobytes()
    alarm.assert_normal(all_scores(mutants.run(name), mutants.law(name)), name)


@pytest.mark.parametrize(**each(lambda row: row.mutants.all))
def test_the_mutant_is_caught(kind, name, alarm):
    alarm.must_fail(ROWS[kind].mutants.scores(name), name)


def test_every_algorithm_has_mutants():
    for kind, row in ROWS.items():
        assert row.mutants.program is kind and row.mutants.all


def test_foreign_code_stays_out_of_the_shared_cache():
    """An index that names a class of another module could not be read without that module."""
    mutants = ROWS[next(iter(ROWS))].mutants
    mutants.control(next(iter(mutants.cases)), FEW)
    kept = [path.read_bytes() for path in cache_place()[0].rglob("*.nbi")]
    assert any(b"FALDKernel" in index for index in kept)
    assert not any(b"mutants" in index or b"Faulty" in index for index in kept)
