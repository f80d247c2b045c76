"""Laws and runs as trees of xarray, and fields of settings as a notebook shows them."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import pytest
from fuzz.known import run as a_run

import fedsim as fs
import theory
from fedsim.equality import ByValue

PROBLEM = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]]] * 2, [[0.0, 1.0], [1.0, 0.0]])
ALGORITHM = fs.FALD(0.1, local_steps=3)
LAW = theory.exact_law(PROBLEM, ALGORITHM, 4, record=[1])
RUN = fs.Run(LAW.rounds, LAW.mean + 0.01, 1.1 * LAW.cov, LAW.target, n_replicas=500, seed=2**64 - 1)


def test_a_tree_has_run_law_and_target():
    tree = RUN.to_datatree(LAW)
    assert set(tree.children) == {"run", "law", "target"}
    assert tree["law"]["mean"].dims == ("round", "coordinate") and tree["run"]["w2"].dims == ("round",)
    for name, one in (("run", RUN), ("law", LAW)):
        np.testing.assert_array_equal(tree[name]["round"], one.rounds)
        np.testing.assert_array_equal(tree[name]["mean"], one.mean)
        np.testing.assert_array_equal(tree[name]["covariance"], one.cov)
        np.testing.assert_array_equal(tree[name]["variance"].sel(coordinate=1), one.cov[:, 1, 1])
        np.testing.assert_array_equal(tree[name]["w2"], one.w2())
    low, high = RUN.w2_interval().T
    np.testing.assert_array_equal(tree["run"]["w2_low"], low)
    np.testing.assert_array_equal(tree["run"]["w2_high"], high)
    np.testing.assert_array_equal(tree["run"]["w2_floor"], RUN.w2_floor())
    assert "w2_low" not in tree["law"]
    np.testing.assert_array_equal(tree["target"]["covariance"], PROBLEM.target().cov)
    attributes = tree["law"].attrs
    assert (attributes["algorithm"], attributes["step_size"], attributes["local_steps"]) == ("FALD", 0.1, 3)
    assert tree["run"].attrs["n_replicas"] == 500 and tree["run"].attrs["seed"] == str(2**64 - 1)


def test_a_tree_of_a_run_alone_and_of_what_is_not_kept():
    assert set(RUN.to_datatree().children) == {"run", "target"}
    thin = fs.Run(LAW.rounds, LAW.mean, None, n_replicas=500)
    assert set(thin.to_datatree().children) == {"run"}
    assert list(thin.to_datatree()["run"].data_vars) == ["mean"]
    variances = fs.Run(LAW.rounds, LAW.mean, np.ones((3, 2)), LAW.target, n_replicas=500)
    assert set(variances.to_datatree()["run"].data_vars) == {"mean", "variance"}  # W2 needs correlations


def test_bad_questions_to_a_tree():
    with pytest.raises(ValueError, match=r"law=3 must be a fedsim\.Law or None"):
        RUN.to_datatree(3)
    with pytest.raises(ValueError, match="law has dimension 1; it must be 2"):
        RUN.to_datatree(a_run())


def test_without_xarray_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match="pip install xarray"):
        RUN.to_datatree()


def test_notebooks_show_the_fields_of_settings():
    large = fs.Quadratic(np.ones((20, 3)), np.zeros((20, 3)))
    assert "(20, 3) array" in large._repr_html_() and "minimizers" in large._repr_html_()
    shown = fs.FALD(0.1, local_steps=3)._repr_html_()
    assert "<th>FALD</th>" in shown and "<td>step_size</td><td>0.1</td>" in shown
    assert "<td>local_steps</td><td>3</td>" in shown

    mixing = fs.DESGLD(0.1, fs.network.ring(4))._repr_html_()
    assert "<td>mixing</td><td>(4, 4) array</td>" in mixing
    assert fs.Gaussian([0.0], [1.0])._repr_html_().startswith("<pre>Gaussian(dim=1")


def test_what_a_field_holds_is_no_markup():
    @dataclass(frozen=True, eq=False)
    class Named(ByValue):
        name: str

    assert "&lt;b&gt;" in Named("<b>")._repr_html_() and "<b>" not in Named("<b>")._repr_html_()
