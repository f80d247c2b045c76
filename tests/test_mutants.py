import pytest
from mutants.decentralized import DE_SGHMC, DE_SGLD
from mutants.fa_hmc import FA_HMC
from mutants.fa_ld import FA_LD
from mutants.stale import STALE_SGHMC, STALE_SGLD
from scores import all_scores

ALL = {"FA-LD": FA_LD, "FA-HMC": FA_HMC, "DE-SGLD": DE_SGLD, "DE-SGHMC": DE_SGHMC,
       "stale SGLD": STALE_SGLD, "stale SGHMC": STALE_SGHMC}


@pytest.mark.parametrize(("row", "case"), [(row, case) for row in ALL for case in ALL[row].cases])
def test_without_a_fault_the_door_leads_to_the_program(row, case, alarm):
    mutants = ALL[row]
    run, program = mutants.control(case), mutants.run(case)
    for one, other in zip((run, *run.clients), (program, *program.clients), strict=True):
        assert one.mean.tobytes() == other.mean.tobytes()
        assert one.cov.tobytes() == other.cov.tobytes()
    alarm.assert_normal(all_scores(program, mutants.law(case)), case)


@pytest.mark.parametrize(("row", "name"), [(row, name) for row in ALL for name in ALL[row].all])
def test_the_mutant_is_caught(row, name, alarm):
    alarm.must_fail(ALL[row].scores(name), name)
