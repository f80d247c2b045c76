"""The explorable pages: their JavaScript laws against the exact ones; they need nothing from outside."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import re
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import browser
import numpy as np
import pytest

import fedsim as fs
import theory
from reproduce.explorables import FOLDER, NAMES, pages

RELATIVE = 1e-9
"""Of every number of laws.js; below `ZERO` numbers are compared absolutely."""
ZERO = 1e-12
ROUNDS, START = 25, 3.0


def node(question: str, given: Any, folder: Path = FOLDER) -> Any:
    """The answer of tests/explorables.js, which loads the scripts of a folder."""
    done = subprocess.run([browser.node(), Path(__file__).with_name("explorables.js"), folder, question],
                          input=json.dumps(given), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def grid(**values):
    """All combinations, as settings of laws.js."""
    return [dict(zip(values, one, strict=True), rounds=ROUNDS, start=START)
            for one in itertools.product(*values.values())]


SETTINGS = {
    "localSteps": grid(stepSize=(0.01, 0.1, 0.7, 1.3, 2.5), localSteps=(1, 2, 5, 40), distance=(0, 3.5),
                       ratio=(1, 7), sharedNoise=(0, 0.4, 1)),
    "gossip": grid(graph=("path", "ring", "star", "grid", "complete"), agents=(3, 4, 7, 12),
                   stepSize=(0.02, 0.3, 1.1), distance=(0, 3), ratio=(1, 5)),
    "staleness": grid(stepSize=(0.005, 0.02, 0.1, 0.3, 0.6, 1.1, 1.9, 2.6), staleness=(0, 1, 2, 4, 8, 15, 40),
                      curvature=(0.3, 1, 4)),
}


def made(name, s):
    """The problem and the algorithm of a page's settings."""
    ratio = s.get("ratio", 1)
    flat, steep = 2 / (1 + ratio), 2 * ratio / (1 + ratio)
    if name == "localSteps":
        problem = fs.Quadratic([flat, steep], [[-s["distance"] / 2], [s["distance"] / 2]])
        return problem, fs.FALD(s["stepSize"], s["localSteps"], shared_noise=s["sharedNoise"])
    if name == "staleness":
        return fs.Quadratic([s["curvature"]], [[0.0]]), fs.StaleSGLD(s["stepSize"], s["staleness"])
    n = s["agents"]
    problem = fs.Quadratic.from_components([flat if 2 * i < n else steep for i in range(n)],
                                           [[s["distance"] * (i / (n - 1) - 0.5)] for i in range(n)])
    sides = {3: (1, 3), 4: (2, 2), 7: (1, 7), 12: (3, 4)}[n] if s["graph"] == "grid" else (n,)
    return problem, fs.DESGLD(s["stepSize"], getattr(fs.network, s["graph"])(*sides))


@dataclass
class Deviations:
    """The largest deviation of every quantity, relative or, from zero, in units of `ZERO` / `RELATIVE`."""

    worst: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def add(self, what, setting, found, exact, size=0.0):
        """Compare numbers or lists of numbers, relative to themselves or to `size` if that is larger."""
        found, exact = np.asarray(found, dtype=float), np.asarray(exact, dtype=float)
        if found.shape != exact.shape:
            self.wrong.append(f"{what}: {found.shape} numbers for {exact.shape} at {setting}")
            return
        if exact.size:
            scale = np.maximum(np.maximum(np.abs(exact), size), ZERO / RELATIVE)
            most = float(np.max(np.abs(found - exact) / scale))
            self.worst[what] = max(self.worst.get(what, 0.0), most)
            if not most <= RELATIVE:
                self.wrong.append(f"{what}: off by {most:.2g} at {setting}")


def compare(name, settings, folder=FOLDER):
    """All that laws.js says of these settings against theory."""
    said = node("laws", {"name": name, "settings": settings}, folder)
    deviations = Deviations()
    for s, js in zip(settings, said, strict=True):
        _compare_one(deviations, name, s, js)
    return deviations, said


def _compare_one(deviations, name, s, js):
    problem, algorithm = made(name, s)
    stability, laws = algorithm.stability(problem), js["laws"]
    target, kept = algorithm.target(problem), len(laws["w2"])
    deviations.add("limit", s, js["limit"], stability.max_step_size)
    deviations.add("stable", s, js["stable"], stability.stable)
    deviations.add("target", s, [js["target"]["mean"], js["target"]["variance"]],
                   [target.mean[0], target.cov[0, 0]])
    law = theory.exact_law(problem, algorithm, min(kept, ROUNDS), start=[START], allow_unstable=True)
    if kept <= ROUNDS:  # it was left off where it is out of range, and nowhere else
        most = max(max(abs(one.mean[-1, 0]), one.cov[-1, 0, 0]) for one in law.clients or (law,))
        deviations.add("end of the range", s, most > 0.99e12 and not stability.stable, True)
    # an unstable map of all agents makes rounding grow too: exact_law knows 1e-15 of the widest agent's law
    widest = np.zeros(kept) if stability.stable else 1e-6 * np.max(
        [one.cov[:kept, 0, 0] for one in law.clients or (law,)], axis=0)
    deviations.add("mean", s, laws["mean"], law.mean[:kept, 0], np.sqrt(widest))
    deviations.add("variance", s, laws["variance"], law.cov[:kept, 0, 0], widest)
    deviations.add("w2", s, laws["w2"], law.w2()[:kept], np.sqrt(widest))
    if name == "gossip":
        deviations.add("mixing", s, js["net"]["W"], algorithm.mixing)
        deviations.add("gap", s, js["net"]["gap"], fs.network.spectral_gap(algorithm.mixing))
        deviations.add("w2 of agents", s, laws["agentW2"],
                       np.mean([one.w2()[:kept] for one in law.clients], axis=0))
        means, variances = (np.stack([part[:kept].ravel() for part in parts], axis=1) for parts in zip(
            *((one.mean, one.cov) for one in law.clients), strict=True))
        for what, exact, size in (("mean", means, np.sqrt(widest)), ("variance", variances, widest)):
            found = [[one[what] for one in row] for row in laws["agents"]]
            deviations.add(f"{what} of agents", s, found, exact, size[:, None])
    if name != "staleness":
        deviations.add("radius", s, js["radius"], stability.radius)
    settles = js["stationary"] is not None
    deviations.add("settles", s, settles, stability.stable)
    if settles and stability.stable:
        end, found = theory.stationary_law(problem, algorithm), js["stationary"]
        deviations.add("stationary", s, [found["mean"], found["variance"], found["w2"]],
                       [end.mean[0], end.cov[0, 0], end.w2(target)])
        if name == "gossip":
            each = [theory.stationary_law(problem, algorithm, client=i).w2(target)
                    for i in range(problem.n_clients)]
            deviations.add("stationary w2 of agents", s, js["stationaryAgentW2"], np.mean(each))


@pytest.mark.parametrize("name", SETTINGS)
def test_laws_are_the_exact_ones(name):
    deviations, said = compare(name, SETTINGS[name])
    assert not deviations.wrong, deviations.wrong[:5]
    assert len(said) >= 150
    stable = [js["stable"] for js in said]
    assert 30 < sum(stable) < len(stable) - 30  # both kinds are among them

MUTANTS = {
    "localSteps": [
        ("noise: 2 * eta", "noise: eta"), ("s * shared / 4", "s * shared / 2"),
        ("(1 - s) * own / 2", "(1 - s) * own / 4"), ("geometric(p * q, K)", "geometric(p * p, K)"),
        ("eta * a * geometric(P[c], K)", "eta * a * K"),
        ("(1 - away) ** 2 *", "(1 - away) *"), ("Math.abs(factor) < 1)", "Math.abs(factor) < 1.01)"),
        ("noise / (away * (2 - away))", "noise / (2 * away)"),
        ("[-distance / 2, distance / 2]", "[-distance, distance]"),
    ],
    "gossip": [
        ("* v + 2 * eta)", "* v + eta)"), ("Array(agents).fill(1)", "Array(agents).fill(1.5)"),
        ("1 / Math.max(degree[i], degree[j])", "1 / (0.5 * (degree[i] + degree[j]))"),
        ("row[k] * other[k] / Math.sqrt(1 + value)", "row[k] * other[k] / (1 + value)"),
        ("w - eta * curvatures[i]", "w - eta * curvatures[0]"),
        ("variance: 1 / total", "variance: agents / total"),
        ("Math.abs(values[agents - 2])", "values[0]"), ("2 * i < agents", "2 * i <= agents"),
        ("2 * eta / ((1 - mu) * (1 + mu))", "2 * eta / (2 * (1 - mu))"),
    ],
    "staleness": [
        ("2 * (2 * tau + 1)", "2 * (2 * tau + 2)"), ("variance: 2 * h * total", "variance: h * total"),
        ("Math.max(l - 1 - tau, 0)", "Math.max(l - 2 - tau, 0)"),
        ("answer[l - 1 - tau] : 0", "answer[l - 1] : 0"), ("+ Math.sin(w * tau)", "- Math.sin(w * tau)"),
        ("{ mean: 0, variance: 1 / curvature }", "{ mean: 0, variance: 1 }"),
    ],
}


@pytest.mark.parametrize(("name", "formula", "wrong"),
                         [(name, *one) for name, mutants in MUTANTS.items() for one in mutants])
def test_a_wrong_formula_is_seen(name, formula, wrong, tmp_path):
    source = (FOLDER / "laws.js").read_text()
    assert source.count(formula) == 1
    (tmp_path / "laws.js").write_text(source.replace(formula, wrong))
    deviations = compare(name, SETTINGS[name][::13], tmp_path)[0]
    assert max(deviations.worst.values()) > 1e3 * RELATIVE, "not seen"


@pytest.mark.parametrize("name", NAMES)
def test_no_setting_shows_what_is_no_number(name):
    found = node("drawn", name)
    assert not found["bad"], found["bad"][:3]
    assert 0 < found["unstable"] < found["count"]


LINES = {
    "local_steps": ["", "#local_steps=1", "#step_size=1.5&rounds=30", "#shared_noise=0.35&ratio=7",
                    "#rounds=0"],
    "gossip": ["", "#graph=grid&agents=6&ratio=3", "#graph=star&agents=5&step_size=0.4",
               "#step_size=1.2&agents=9"],
    "staleness": ["", "#staleness=0", "#staleness=15&rounds=200", "#curvature=4&step_size=0.02"],
}


@pytest.mark.parametrize("name", NAMES)
def test_the_python_lines_give_the_same_numbers(name):
    for js in node("lines", {"name": name, "addresses": LINES[name]}):
        names: dict[str, Any] = {}
        with contextlib.redirect_stdout(io.StringIO()):
            exec(js["lines"], names)
        found = [names["law"].w2()[-1], names["algorithm"].stability(names["problem"]).max_step_size]
        exact = [js["now"], js["limit"]]
        assert ("end" in names) == (js["end"] is not None)
        if js["end"] is not None:
            found.append(names["end"].w2(names["problem"].target()))
            exact.append(js["end"])
        assert found == pytest.approx(exact, rel=RELATIVE)


@pytest.mark.parametrize("name", NAMES)
def test_an_address_holds_a_setting(name):
    scales = node("scales", name)
    first = {key: value for key, _, value in scales}
    last = {key: values[-1] for key, values, _ in scales}
    assert all(value in values for _, values, value in scales)
    (_, start), (_, strange), (_, held) = node("addresses", {"name": name, "addresses": [
        "", "#nonsense=1&step_size=x&graph=y", "#step_size=1e9"]})
    assert start == strange
    address = "#" + "&".join(f"{snake(key)}={value}" for key, value in last.items())
    (found, again), = node("addresses", {"name": name, "addresses": [address]})
    assert found == last != first and again == address
    assert f"step_size={last['stepSize']}" in held


def snake(name):
    """As in an address."""
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


class Elements(HTMLParser):
    """Every start tag with its attributes, and the scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] == "script" and data.strip():
            self.scripts.append(data.strip())

    def all(self, *keys):
        """Values of these attributes."""
        return [value for _, given in self.tags for key, value in given.items() if key in keys]


def reaches_out(text):
    """What in a page would load something, or lead away from its folder."""
    links = Elements(text).all("src", "href", "srcset", "action", "data", "poster", "style")
    found = [link for link in links if link != "index.html" and not link.startswith("#")]
    return found + re.findall(
        r"https?:|@import|url\((?!#)|\b(?:fetch|XMLHttpRequest|WebSocket|import)\s*\(", text)


@pytest.mark.parametrize("name", NAMES)
def test_pages_need_nothing_from_outside(name):
    assert list(pages()) == [f"explore_{one}.html" for one in NAMES]
    text = pages()[f"explore_{name}.html"]
    found = Elements(text)
    assert not reaches_out(text)
    assert "index.html" in found.all("href")
    policy, = (given["content"] for _, given in found.tags
               if given.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")  # the browser refuses what this test would miss
    assert found.scripts == [(FOLDER / f"{one}.js").read_text(encoding="ascii").strip()
                             for one in ("laws", "plots", "page", name)]
    for wrong in ('<script src="d3.js"></script>', '<a href="other.html">', '<img src="x.png">', "fetch (x)",
                  "<style>p { background: url(x.png) }</style>", "http:" + "//example.org"):
        assert reaches_out(text + wrong)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_sentences_try_is_a_setting_of_the_page(name):
    links = Elements(pages()[f"explore_{name}.html"]).all("href")
    tried = [link[1:] for link in links if link.startswith("#") and len(link) > 1]
    assert len(tried) >= 3
    allowed = {snake(key): [str(value) for value in values] for key, values, _ in node("scales", name)}
    for address in tried:
        for part in address.split("&"):
            key, value = part.split("=")
            assert value in allowed[key], address


def test_sources_are_short_and_plain():
    for path in FOLDER.iterdir():
        if path.is_file():
            assert len(path.read_text(encoding="ascii").splitlines()) < 300, path.name
