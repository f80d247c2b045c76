"""The drawing of servers and workers: its history against a slow twin and against rules of Algorithm 2."""

import numpy as np
import pytest

import fedsim as fs
from reproduce.discovery import figures
from reproduce.figure import reseeded, settings
from reproduce.stale import fig5
from reproduce.tables import among

FIGURE = figures()["stale_fig5"]
COLUMNS = ["worker", "begin", "taken", "end", "read", "written", "staleness"]
SEEDS = range(4)


def algorithm_2(p, server):
    """One server until the test, in the order of events: updates, and gradients under way (slow twin)."""
    services = iter(np.random.default_rng(p.schedule_seed + server - 1).exponential(size=1024))
    working = {worker: (0.0, next(services), 0) for worker in range(1, p.n_workers + 1)}
    version, free, updates = 0, 0.0, []
    while True:
        worker = min(working, key=lambda one: working[one][1])
        begin, ready, read = working[worker]
        taken = max(free, ready)
        free = taken + p.update_cost
        if free > p.test_time:
            return updates, [(one, begin, read, version - read) for one, (begin, _, read) in working.items()]
        updates.append((worker, begin, taken, free, read, version + 1, version - read))
        version += 1
        working[worker] = (free, free + next(services), version)


def broken(tables):
    """Which rules of Algorithm 2 the drawn updates break, judged by their times alone."""
    found = set()
    for _, one in tables["updates"].groupby("server"):
        sent = [0.0, *one["end"]]  # version v is sent at sent[v]
        if list(one["written"]) != list(range(1, len(one) + 1)) or not one["end"].is_monotonic_increasing:
            found.add("written in the order of completion")
        if not all(row.read < len(sent) and sent[row.read] <= row.begin + 1e-12 for row in one.itertuples()):
            found.add("a version is read after it is sent")
        before = np.array(sent[:-1])  # the update before is done
        if not ((one["begin"] < one["taken"]) & (one["taken"] >= before - 1e-12)).all():
            found.add("one gradient at a time")
        now = [sum(end <= row.taken + 1e-12 for end in one["end"]) for row in one.itertuples()]
        if list(one["staleness"]) != [n - read for n, read in zip(now, one["read"], strict=True)]:
            found.add("staleness is version now less version read")
        for _, own in one.groupby("worker"):
            if list(own["read"]) != [0, *own["written"][:-1]]:
                found.add("a worker reads what its gradient made")
    return found


@pytest.mark.parametrize("reseed", SEEDS)
def test_the_drawn_history_is_that_of_the_slow_twin(reseed):
    tables = FIGURE.compute("tiny", reseed=reseed)
    with reseeded(reseed):
        p = settings(FIGURE.module.PARAMETERS, "tiny")
    assert len(tables["averaged"]) == p.n_servers > 1
    for server in range(1, p.n_servers + 1):
        updates, waiting = algorithm_2(p, server)
        drawn, under_way = (among(tables[name], server=server).drop(columns="server")
                            for name in ("updates", "under_way"))
        assert list(drawn) == COLUMNS and list(under_way) == ["worker", "begin", "read", "staleness"]
        np.testing.assert_allclose(drawn, updates, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(under_way, waiting, rtol=1e-12, atol=1e-12)
        samples, weight = among(tables["averaged"], server=server)[["samples", "weight"]].iloc[0]
        assert samples == len(updates) and weight == samples / len(tables["updates"])
    assert all(np.isfinite(table.select_dtypes("number").to_numpy()).all() for table in tables.values())


@pytest.mark.parametrize("reseed", SEEDS)
def test_the_drawn_history_obeys_algorithm_2(reseed):
    assert not broken(FIGURE.compute("tiny", reseed=reseed))


@pytest.mark.parametrize(("rule", "change"), [
    ("written in the order of completion", lambda one: one.assign(written=one["written"].to_numpy()[::-1])),
    ("a version is read after it is sent", lambda one: one.assign(begin=one["begin"] - 0.1)),
    ("one gradient at a time", lambda one: one.assign(taken=one["taken"] - 0.2)),
    ("staleness is version now less version read", lambda one: one.assign(staleness=one["staleness"] + 1)),
    ("a worker reads what its gradient made", lambda one: one.assign(read=0))])
def test_a_broken_rule_is_seen(rule, change):
    tables = FIGURE.compute("tiny")
    assert rule in broken({"updates": change(tables["updates"])})


def test_a_history_is_made_as_long_as_the_test_asks():
    """Beyond the first length that is tried, and with updates at the time of the test itself."""
    workers = fs.Workers(2, "deterministic", 0.5)  # updates at 1.5, 3, 4.5, ... and at 2, 3.5, 5, ...
    for time, made in ((1.0, 0), (1.5, 1), (2.9, 2), (150.0, 100 + 99), (151.49, 100 + 100)):
        history, count = fig5.until(workers, time)
        assert count == made == (history.times <= time).sum() and history.times[-1] > time


def test_shares_and_bounds_of_the_long_run():
    """All updates are counted; W - 1 settles between equal workers; a cap holds, and nothing else does."""
    tables, p = FIGURE.compute("tiny"), settings(FIGURE.module.PARAMETERS, "tiny")
    shares, bounds = tables["shares"], tables["bounds"]
    np.testing.assert_allclose(shares.groupby("clock")["share"].sum(), 1.0, rtol=1e-12)
    equal = shares[shares["clock"] == fig5.EQUAL]
    np.testing.assert_allclose(equal["share"], [1.0 / p.n_updates, 1.0 - 1.0 / p.n_updates], rtol=1e-12)
    assert dict(zip(bounds["clock"], bounds["bound"], strict=True)) == {fig5.EQUAL: 1, fig5.CAPPED: p.cap}
    largest = shares[shares["share"] > 0.0].groupby("clock")["staleness"].max()
    assert largest[fig5.EQUAL] == 1 and largest[fig5.CAPPED] == p.cap < largest[fig5.RANDOM]
