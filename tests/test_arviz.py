"""Chains and last states of replicas as ArviZ takes them; where it is installed, it looks at them itself."""

from __future__ import annotations

import pickle
import sys
import types

import numpy as np
import pytest
import xarray as xr

import fedsim as fs
from fedsim.laws.chains import Chains

PROBLEM = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]]] * 2, [[0.0, 1.0], [1.0, 0.0]])
ALGORITHM = fs.FALD(0.1, local_steps=3)
ROUNDS = (2, 4, 6)
CHAINS = fs.sample_path(PROBLEM, ALGORITHM, 7, seed=2**64 - 1, every=2, n_chains=3)
RUN = fs.simulate(PROBLEM, ALGORITHM, 6, 70, seed=3, keep_final=True, record=())


@pytest.fixture(autouse=True)
def without_arviz(monkeypatch, request):
    """Whether it is installed here or not, but for the tests that ask for it."""
    if "arviz" not in request.fixturenames:
        monkeypatch.setitem(sys.modules, "arviz", None)


@pytest.fixture
def arviz():
    return pytest.importorskip("arviz")


def test_a_chain_is_a_replica_and_a_draw_is_a_round():
    """As many chains as draws, so that no shape tells them apart: as `simulate` ends after so many rounds."""
    posterior = CHAINS.to_arviz()["posterior"]
    assert posterior["average"].dims == ("chain", "draw", "coordinate")
    assert {name: posterior[name].values.tolist() for name in posterior.coords} == {
        "chain": [0, 1, 2], "draw": list(ROUNDS), "coordinate": [0, 1]}
    np.testing.assert_array_equal(posterior["average"], CHAINS)
    for n_rounds in ROUNDS:
        run = fs.simulate(PROBLEM, ALGORITHM, n_rounds, 3, seed=2**64 - 1, keep_final=True, record=())
        np.testing.assert_array_equal(posterior["average"].sel(draw=n_rounds), run.final)
    assert len(np.unique(CHAINS[:, :, 0])) == 9


def test_attributes_say_what_the_chains_are_of():
    tree = CHAINS.to_arviz()
    for attributes in (tree.attrs, tree["posterior"].attrs):
        assert attributes["of"] == str(RUN.of)
        assert {"algorithm": "FALD", "step_size": 0.1, "local_steps": 3, "n_replicas": 3,
                "seed": str(2**64 - 1), "inference_library": "fedsim"}.items() <= attributes.items()


def test_burn_in_is_left_out_by_rounds():
    late = CHAINS.to_arviz().sel(draw=slice(3, None))["posterior"]
    np.testing.assert_array_equal(late["average"], CHAINS[:, 1:])


def test_the_chains_of_a_client_have_its_number():
    gossip = fs.DESGLD(0.1, fs.network.ring(3))
    problem = fs.Quadratic.from_components([1.0, 2.0, 3.0], [[0.5], [-0.5], [4.0]])
    paths = [fs.sample_path(problem, gossip, 4, seed=1, n_chains=2, client=client) for client in range(3)]
    of_client = paths[2].to_arviz()["posterior"]
    assert list(of_client.data_vars) == ["clients"]
    assert of_client.attrs["algorithm"] .startswith("client 2 of DESGLD")
    together = xr.concat([path.to_arviz()["posterior"].to_dataset() for path in paths], "client")["clients"]
    assert set(together.dims) == {"chain", "draw", "client", "coordinate"}
    for client, path in enumerate(paths):
        np.testing.assert_array_equal(together.sel(client=client).transpose("chain", "draw", ...), path)


def test_last_states_of_a_run_are_draws_of_one_chain():
    posterior = RUN.to_arviz()["posterior"]
    assert posterior["average"].dims == ("chain", "draw", "coordinate")
    np.testing.assert_array_equal(posterior["average"], RUN.final[None])
    np.testing.assert_array_equal(posterior["draw"], np.arange(70))
    expected = {"algorithm": "FALD", "n_replicas": 70, "seed": "3", "round": 6, "of": str(RUN.of)}
    assert expected.items() <= posterior.attrs.items()


def test_a_run_without_draws_is_refused():
    run = fs.simulate(PROBLEM, ALGORITHM, 2, 64, seed=3)
    with pytest.raises(ValueError, match=r"final=None: .* keep_final=True.* fs\.sample_path"):
        run.to_arviz()


def test_chains_are_used_as_an_array():
    plain = np.asarray(CHAINS)
    assert isinstance(CHAINS, np.ndarray) and CHAINS.dtype == np.float64 and CHAINS.flags.c_contiguous
    for made in (CHAINS[0], CHAINS[:, 1:], CHAINS + 1.0, 2.0 * CHAINS, CHAINS @ np.eye(2), np.exp(CHAINS),
                 CHAINS.mean(axis=0), next(iter(CHAINS)), np.concatenate([CHAINS, CHAINS])):
        assert type(made) is np.ndarray
    assert type(CHAINS.mean()) is type(CHAINS[0, 1, 0]) is np.float64
    assert (CHAINS.mean(), CHAINS[2, 0, 1]) == (plain.mean(), plain[2, 0, 1])
    assert repr(CHAINS[0]) == repr(plain[0])


def test_changed_numbers_are_no_longer_those_chains():
    changed = CHAINS.copy()
    for other in (changed, CHAINS.swapaxes(0, 1), CHAINS.reshape(1, 9, 2)):
        with pytest.raises(ValueError, match=r"of shape \(.*\) must be as fs\.sample_path returned them"):
            other.to_arviz()
    changed -= 1.0
    assert type(changed) is np.ndarray


def test_a_pickle_knows_what_the_chains_are_of():
    stored = pickle.dumps(CHAINS)
    assert b"laws" not in stored and b"fedsim.Chains" in stored
    again = pickle.loads(stored)
    assert type(again) is Chains and again.tobytes() == CHAINS.tobytes()
    assert again.to_arviz().identical(CHAINS.to_arviz())


def test_without_xarray_what_to_install_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    for source in (CHAINS, RUN):
        with pytest.raises(ImportError, match="pip install arviz"):
            source.to_arviz()


@pytest.mark.parametrize("old", [False, True])
def test_an_arviz_that_takes_no_tree_makes_its_own_of_it(old, monkeypatch):
    module = types.ModuleType("arviz")
    if old:
        module.from_datatree = lambda tree: ("own", tree)
    monkeypatch.setitem(sys.modules, "arviz", module)
    found = CHAINS.to_arviz()
    assert isinstance(found, xr.DataTree) is not old
    if old:
        assert found[0] == "own" and found[1].children.keys() == {"posterior"}


def test_arviz_looks_at_chains_and_runs(arviz):
    """Chains that hardly leave their starts: R-hat of 200 chains of 4 draws each would be about 1."""
    start = fs.Gaussian([0.0, 0.0], 100.0 * np.eye(2))
    chains = fs.sample_path(PROBLEM, fs.FALD(1e-6), 200, seed=1, n_chains=4, start=start)
    table = arviz.summary(chains.to_arviz(), round_to="none").astype(float)
    assert list(table.index) == ["average[0]", "average[1]"]
    np.testing.assert_allclose(table["mean"], chains.mean(axis=(0, 1)), rtol=1e-12)
    assert (table["r_hat"] > 2.0).all()
    table = arviz.summary(RUN.to_arviz(), round_to="none").astype(float)
    np.testing.assert_allclose(table["mean"], RUN.final.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(table["sd"], RUN.final.std(axis=0, ddof=1), rtol=1e-12)
    assert table["r_hat"].isna().all()
