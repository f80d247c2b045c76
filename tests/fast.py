"""What `make test-fast` runs: for every room some tests of it, chosen to be quick once all is compiled.

`tests/test_fast.py` fails while a room of fedsim or theory has none, or a name here is that of no test.
"""

from __future__ import annotations

from collections.abc import Iterable

FAST = {
    "fedsim": {
        "algorithms": ("naive_parity::test_every_algorithm_has_a_row",
                       "naive_parity::test_every_round_of_a_path",  # kernel against slow twin, all algorithms
                       "naive_parity::test_the_twins_are_not_the_same_code"),
        "data": ("data", "libsvm", "image_files"),
        "engine": ("kept_blocks",),
        "equality": ("equality",),
        "explaining": ("explain::test_the_general_body_and_the_layout",),
        "fingerprints": ("provenance",),
        "hints": ("provocations",),
        "interfaces": ("interfaces",),
        "laws": ("run_and_law", "z_scores", "density"),
        "old_names": ("pickles::test_the_page_has_every_old_name",),
        "pickles": ("pickles::test_a_class_that_moved_is_found_by_its_key",),
        "problems": ("problems", "custom_identity::test_the_same_function_has_one_fingerprint"),
        "provenance": ("provenance",),
        "random": ("noise::test_known_answers", "noise::test_philox_is_its_slow_twin",
                   "noise::test_draws_are_their_slow_twins"),
        "samplers": ("sampler_refusals",),
        "settings": ("alignment::test_labels_that_occur_twice",
                     "schedules_participation", "sets_and_answers::test_bad_sets", "network", "staleness"),
        "stability": ("stability_limits",),
        "vector": ("matrix", "modes"),
    },
    "theory": {
        "all_clients": ("every_client::test_closed_forms",),
        "certificates": ("certificates",),
        "de_sghmc": ("theorems_decentralized_by_hand",),
        "de_sgld": ("theorems_decentralized_by_hand",),
        "decentralized": ("theorems_decentralized_by_hand",),
        "declare": ("declarations", "errata_fa_ld", "theory_core", "drawing::test_a_bound_has_its_terms"),
        "exact": ("exact_fa_ld", "exact_decentralized_joint", "exact_fa_ld_joint", "exact_flow"),
        "fa_hmc": ("theorems_fa_hmc_by_hand",),
        "fa_ld": ("theorems_fa_ld_by_hand",),
        "facts": ("theorems_fa_ld_by_hand",
                  "constants::test_regression_has_the_curvatures_it_says_and_gaps_at_least_its_own",
                  "constants::test_pooled_minibatches_are_noisier_than_those_of_clients_together"),
        "float_range": ("theory_core",),
        "judge": ("verdicts", "scoring::test_theorems_by_function_and_by_algorithm",
                  "scoring::test_privacy_takes_the_users_numbers"),
        "privacy": ("privacy",),
        "rates": ("rates",),
        "recursions": ("contraction", "recursions::test_where_clients_do_not_drift"),
        "stale": ("theory_stale",),
        "theorem_parts": ("theorems_fa_hmc_by_hand",),
        "testing": ("update_rules::test_what_is_never_read_does_not_count",
                    "kernels::test_a_report_is_json_html_and_words"),
        "tuning": ("theory_core", "plans_fa_ld"),
        "worst_case": ("worst_case_classes::test_empty_and_impossible_ranges_are_refused",
                       "worst_case_search::test_the_budget_is_used_up_and_not_exceeded"),
    },
    "reproduce": {"": ("figures_computed::test_same_seed_same_tables", "verdicts")},
    "all": {"": ("layout", "rooms", "imports")},
}
"""By package and room: files of tests, without what their names share, or single tests of them."""


def selected(name: str) -> bool:
    """Is the test of this node id to be run?"""
    return any(name == start or name.startswith((f"{start}::", f"{start}[")) for start in starts())


def starts() -> Iterable[str]:
    """What the ids of the chosen tests begin with."""
    for choices in (choices for rooms in FAST.values() for choices in rooms.values()):
        for choice in choices:
            file, _, test = choice.partition("::")
            yield f"tests/test_{file}.py" + (f"::{test}" if test else "")
