"""docs/own_problems.md: its code runs, and what it says of it is so."""

import sys
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
sys.path.insert(0, str(DOCS))

import own_problems  # noqa: E402

import fedsim as fs  # noqa: E402


@pytest.fixture(name="page", scope="module")
def _page():
    """All names that the page's code makes."""
    return own_problems.run_page()


def test_runs_are_near_what_they_are_compared_with(page):
    assert page["distance"] > 3.0 * page["floor"]  # five local steps have a bias
    assert abs(page["student_run"].mean[-1, 0] - page["student_law"].mean) < 0.02
    assert page["moments"] < 0.02
    left, exact = page["in_the_right_well"]
    assert abs(left - exact) < 0.03
    assert 0.5 < exact < 0.7
    assert not page["gamma_run"].outside.any() and page["gamma_error"] < 0.3


def test_what_is_refused_is(page):
    for call in (page["student"].target, page["student_run"].w2):
        with pytest.raises(ValueError, match="target"):
            call()
    with pytest.raises(fs.UnstableStepSize, match=r"limit 0\.0399"):
        fs.validate(page["student"], fs.FALD(0.05))
    with pytest.raises(fs.DivergedError):
        fs.simulate(page["wells"], fs.FALD(0.5, local_steps=4), n_rounds=1500, n_replicas=2000, seed=2)


def test_the_picture_is_drawn(page, tmp_path):
    own_problems.draw(page, tmp_path / "drawn.svg")
    assert (tmp_path / "drawn.svg").stat().st_size > 20_000
    assert (DOCS / "own_problems.svg").exists()
    assert np.isfinite(page["school_run"].final).all()
