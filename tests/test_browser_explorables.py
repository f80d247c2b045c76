"""The explorable pages in a browser: every control moves what is shown, and that is the exact law."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from browser import FIGURES, SIZES
from test_explorables import made, node, snake

import fedsim as fs
import theory

CONTROLS = {
    "local_steps": ("stepSize", "localSteps", "distance", "ratio", "sharedNoise", "rounds"),
    "gossip": ("stepSize", "agents", "distance", "ratio", "rounds"),
    "staleness": ("stepSize", "staleness", "curvature", "rounds"),
}
STARTS = {"local_steps": 4.0, "gossip": 3.0, "staleness": 4.0}
LAST = {"local_steps": 100, "gossip": 300, "staleness": 400}
SHOWN = 5.1e-4
"""Numbers are shown with four digits."""
SAID = 5.1e-3
"""Numbers of the sentence have three."""
every_page = pytest.mark.parametrize("name", CONTROLS)


@functools.cache
def scales(name):
    """Values and first value of every control."""
    return {key: (values, value) for key, values, value in node("scales", name)}


def at_first(name):
    """The settings that a page begins with."""
    return {key: value for key, (_, value) in scales(name).items()}


def place(page, name, key, value):
    """Drag a slider to a value, or press a button of a choice."""
    values, _ = scales(name)[key]
    if key == "graph":
        page.locator(f"input[name=graph][value={value}]").check()
    else:
        page.locator(f"#{key}").fill(str(values.index(value)))


def settings(page, name):
    """Where the sliders and choices stand."""
    found = {}
    for key, (values, _) in scales(name).items():
        if key == "graph":
            found[key] = page.locator("input[name=graph]:checked").get_attribute("value")
        else:
            found[key] = values[int(page.locator(f"#{key}").input_value())]
    return found


def numbers(page):
    """What stands beside the pictures: {name: text}."""
    return dict(page.locator("#numbers div").evaluate_all(
        "(all) => all.map((one) => [...one.children].map((part) => part.textContent))"))


def number(text):
    """The last number of a text."""
    return float(re.findall(r"-?\d[\d.]*(?:e-?\d+)?", text)[-1])


def seen(page):
    """All that a setting changes at once."""
    pictures = page.locator("svg[role=img]").evaluate_all("(all) => all.map((one) => one.innerHTML)")
    return {"numbers": numbers(page), "python": page.locator("#python").inner_text(), "pictures": pictures}


def hash_of(asked):
    """The end of an address that asks for this."""
    return "#" + "&".join(f"{snake(key)}={value}" for key, value in asked.items())


def settled(page, name, asked):
    """Wait until sentence and address follow."""
    page.wait_for_function("(words) => location.hash === words", arg=hash_of(asked))


@every_page
def test_every_control_is_tried(visit, name):
    page = visit(f"explore_{name}.html")
    ids = page.locator("input[type=range]").evaluate_all("(all) => all.map((one) => one.id)")
    assert tuple(ids) == CONTROLS[name] and {*ids, "graph"} >= set(scales(name))
    assert settings(page, name) == at_first(name)


@every_page
def test_a_slider_moves_all_that_is_shown(visit, name):
    page = visit(f"explore_{name}.html")
    for key in CONTROLS[name]:
        values, first = scales(name)[key]
        next_one = values[values.index(first) + 1]
        before, said = seen(page), page.locator("#sentence").inner_text()
        slider = page.locator(f"#{key}")
        slider.focus()
        slider.press("ArrowRight")
        assert settings(page, name) == at_first(name) | {key: next_one}
        assert number(page.locator(f"#{key}-value").inner_text()) == next_one
        assert slider.get_attribute("aria-valuetext") == page.locator(f"#{key}-value").inner_text()
        after = seen(page)
        assert all(after[part] != before[part] for part in before), key
        settled(page, name, settings(page, name))
        assert page.locator("#sentence").inner_text() != said, key
        slider.press("ArrowLeft")
        assert seen(page) == before, key
        for pressed, value in (("Home", values[0]), ("End", values[-1])):
            slider.press(pressed)
            assert settings(page, name)[key] == value
        page.get_by_role("link", name="Reset").click()
        settled(page, name, at_first(name))


def test_a_choice_moves_all_that_is_shown(visit):
    page, pictures = visit("explore_gossip.html"), []
    for graph in scales("gossip")["graph"][0]:
        place(page, "gossip", "graph", graph)
        assert page.locator("#network figcaption").inner_text().startswith(f"The {graph}:")
        pictures.append(str(seen(page)))
    assert len(set(pictures)) == 5


def exact(name, at):
    """What a page has to say of these settings, by theory: {beginning of its name: number, or None}."""
    camel = {"local_steps": "localSteps"}.get(name, name)
    problem, algorithm = made(camel, at)
    stability, target = algorithm.stability(problem), algorithm.target(problem)
    law = theory.exact_law(problem, algorithm, at["rounds"], start=[STARTS[name]], allow_unstable=True)
    end = theory.stationary_law(problem, algorithm) if stability.stable else None
    now = law.at(at["rounds"])
    found = {"stability": stability.max_step_size}
    if name == "gossip":
        agents = [one.w2()[-1] for one in law.clients]
        found |= {"spectral gap": fs.network.spectral_gap(algorithm.mixing),
                  "second eigenvalue": fs.network.second_eigenvalue(algorithm.mixing),
                  f"W2 of the average after {at['rounds']}": law.w2()[-1],
                  "W2 of the average, at the end": end and end.w2(target),
                  f"mean W2 of agents after {at['rounds']}": np.mean(agents),
                  "mean W2 of agents, at the end": end and np.mean([
                      theory.stationary_law(problem, algorithm, client=i).w2(target)
                      for i in range(problem.n_clients)]),
                  "bias of the average's mean, at the end": end and end.mean[0] - target.mean[0]}
        return found
    unit = "round" if name == "local_steps" else "iteration"
    found |= {f"W2 after {at['rounds']} {unit}s": law.w2()[-1],
              "W2 at the end (floor)": end and end.w2(target),
              "bias of the mean, now": now.mean[0] - target.mean[0],
              "variance / target's, now": now.cov[0, 0] / target.cov[0, 0],
              "variance / target's, at the end": end and end.cov[0, 0] / target.cov[0, 0]}
    if name == "staleness":
        fresh = fs.StaleSGLD(at["stepSize"], 0).stability(problem)
        return found | {"limit without staleness": fresh.max_step_size}
    return found | {"bias of the mean, at the end": end and end.mean[0] - target.mean[0],
                    "local steps so far": at["rounds"] * at["localSteps"]}


MOVED = {
    "local_steps": [{}, {"stepSize": 0.08, "localSteps": 25, "ratio": 7, "sharedNoise": 0.35, "rounds": 3},
                    {"stepSize": 1.5, "localSteps": 2, "rounds": 5}],
    "gossip": [{}, {"graph": "grid", "agents": 12, "ratio": 3, "stepSize": 0.2, "rounds": 7},
               {"graph": "star", "stepSize": 1.2, "rounds": 4}],
    "staleness": [{}, {"stepSize": 0.05, "staleness": 15, "curvature": 1.5, "rounds": 90},
                  {"stepSize": 0.3, "staleness": 12, "rounds": 30}],
}


@pytest.mark.parametrize(("name", "number_of_setting"), [(name, i) for name in MOVED for i in range(3)])
def test_what_is_shown_is_the_exact_law(visit, name, number_of_setting):
    page, moves = visit(f"explore_{name}.html", size=SIZES["phone"]), MOVED[name][number_of_setting]
    for key, value in moves.items():
        place(page, name, key, value)
    at = at_first(name) | moves
    settled(page, name, at)
    shown, law = numbers(page), exact(name, at)
    assert set(shown) == set(law)
    for what, value in law.items():
        if value is None:
            assert shown[what] == "none: unstable"
        else:
            assert number(shown[what]) == pytest.approx(value, rel=SHOWN, abs=1e-12), what
    sentence = page.locator("#sentence").inner_text()
    stable = all(value is not None for value in law.values())
    assert sentence.startswith("Unstable") != stable and stable == (number_of_setting < 2)
    said = [float(found) for found in re.findall(r"\d[\d.]*(?:e-?\d+)?(?<!\.)", sentence)]
    for value in ([law[what] for what in law if what.startswith(("W2", "mean W2"))] if stable
                  else [law["stability"]]):
        assert any(one == pytest.approx(value, rel=SAID) for one in said), (value, sentence)


@every_page
def test_play_runs_to_the_last_round_and_stops(visit, name):
    page = visit(f"explore_{name}.html")
    button = page.get_by_role("button", name=re.compile("^(Play|Stop)$"))
    assert button.inner_text() == "Play"
    began = settings(page, name)["rounds"]
    button.click()
    page.wait_for_function("(began) => Number(document.getElementById('rounds').value) >= began + 2",
                           arg=scales(name)["rounds"][0].index(began))
    assert button.inner_text() == "Stop"
    button.click()
    assert button.inner_text() == "Play"
    settled(page, name, settings(page, name))  # it would move meanwhile
    assert settings(page, name)["rounds"] == number(page.locator("#rounds-value").inner_text()) < LAST[name]
    place(page, name, "rounds", LAST[name] - 2)
    button.click()
    page.wait_for_function("() => document.getElementById('play').textContent === 'Play'")
    assert settings(page, name)["rounds"] == LAST[name]
    button.click()  # again, from the start
    page.wait_for_function("(last) => Number(document.getElementById('rounds').value) < last", arg=LAST[name])
    place(page, name, "rounds", 5)
    assert button.inner_text() == "Play" and settings(page, name)["rounds"] == 5


@every_page
def test_reset_brings_the_first_setting_back(visit, name):
    page = visit(f"explore_{name}.html")
    before, said = seen(page), page.locator("#sentence").inner_text()
    for key, value in MOVED[name][1].items():
        place(page, name, key, value)
    assert settings(page, name) != at_first(name)
    page.get_by_role("link", name="Reset").click()
    assert settings(page, name) == at_first(name) and seen(page) == before
    settled(page, name, at_first(name))
    assert page.locator("#sentence").inner_text() == said


@every_page
def test_the_address_holds_the_setting(visit, name):
    page = visit(f"explore_{name}.html")
    for key, value in MOVED[name][1].items():
        place(page, name, key, value)
    at = at_first(name) | MOVED[name][1]
    settled(page, name, at)
    shown = seen(page)
    page.reload()
    assert settings(page, name) == at and seen(page) == shown
    tried = page.locator(".try a").first
    named = tried.get_attribute("href")
    tried.click()
    page.wait_for_function("(named) => location.hash.includes(named)", arg=named[1:])
    page.wait_for_function("(named) => document.getElementById('python').textContent !== named",
                           arg=shown["python"])
    assert seen(page) != shown
    page.go_back()
    page.wait_for_function("(named) => document.getElementById('python').textContent === named",
                           arg=shown["python"])
    assert settings(page, name) == at
    page.goto("about:blank")
    page.goto(f"{FIGURES}/explore_{name}.html{hash_of(at)}")
    assert seen(page) == shown


def test_the_python_lines_can_be_copied(visit):
    page = visit("explore_gossip.html")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy this as Python").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("() => navigator.clipboard.readText()") == page.locator("#python").inner_text()
    page.get_by_role("button", name="Copy this as Python").wait_for()


@every_page
def test_pictures_fit_a_page_that_is_turned(visit, name):
    page = visit(f"explore_{name}.html")
    for size in ("phone", "desk"):
        width, height = SIZES[size]
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function("""() => [...document.querySelectorAll('.drawing')].every((place) =>
            place.firstElementChild.getBoundingClientRect().width <= place.clientWidth + 1
            && place.firstElementChild.getBoundingClientRect().width > 0.9 * place.clientWidth)""")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
