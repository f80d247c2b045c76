"""A lecture notebook in a browser, as `marimo run` serves it: its sliders move its measured sentence."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from browser import PATIENCE, SIZES

import fedsim as fs
import theory

ROOT = Path(__file__).resolve().parent.parent
FIRST = {"distance": 2.0, "curvature": 6.0, "local_steps": 20, "step_size": 0.01, "shared_noise": 0.0,
         "accuracy": 0.1}
"""Where the sliders of docs/notebooks/heterogeneity.py begin, in their order on the page."""
LABELS = ("distance of the optima", "ratio of the curvatures", "local steps K", "step size",
          "shared part of the noise", "accuracy wanted, in W2")
PIXELS = "() => document.querySelector('canvas')?.toDataURL()"


def answers(address, server, log):
    """Wait for a server that has been started."""
    end = time.monotonic() + PATIENCE / 1000
    while True:
        assert server.poll() is None and time.monotonic() < end, log.read_text()
        try:
            return urllib.request.urlopen(f"{address}/health", timeout=5).close()
        except OSError:
            time.sleep(0.05)


@pytest.fixture(scope="module")
def served(chrome, tmp_path_factory):
    """The address of the notebook on this machine; the server ends with the tests."""
    folder = tmp_path_factory.mktemp("marimo")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "marimo", "--yes", "run", "docs/notebooks/heterogeneity.py", "--headless",
             "--host", "127.0.0.1", "--port", str(port), "--no-token"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(folder),
                                "MARIMO_SKIP_UPDATE_CHECK": "1"}
    log = folder / "log"
    with log.open("w") as out:
        server = subprocess.Popen(words, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL)
        try:
            answers(f"http://127.0.0.1:{port}", server, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def measured(at):
    """The numbers that the notebook's sentence has to have, as theory has them."""
    near, far = [-at["distance"] / 2, 0.0], [at["distance"] / 2, 0.0]
    problem = fs.Quadratic([[1.0, at["curvature"]], [at["curvature"], 1.0]], [near, far])
    algorithm, every_step = (fs.FALD(at["step_size"], k, shared_noise=at["shared_noise"])
                             for k in (at["local_steps"], 1))
    ends = [theory.stationary_law(problem, one).w2(problem.target()) for one in (algorithm, every_step)]
    rounds = theory.tuning.rounds_to(problem, algorithm, at["accuracy"])
    return [f"the common optimum) is {theory.constants(problem, algorithm).heterogeneity:.3g}.",
            f"With K = {at['local_steps']} the average",
            f"W2 = {ends[0]:.3g} from the posterior against {ends[1]:.3g}.",
            f"To W2 = {at['accuracy']}, K = {at['local_steps']} "
            + ("never gets there" if rounds is None else f"gets there after {rounds}")]


def shows(page, at):
    """Wait until the sentence is that of these settings."""
    page.wait_for_function("""(parts) => [...document.querySelectorAll(".paragraph")].some((one) => {
        const words = one.textContent.replace(/\\s+/g, " ");
        return words.startsWith("Measured.") && parts.every((part) => words.includes(part));
    })""", arg=measured(at))
    return page.locator(".paragraph", has_text="Measured.").inner_text()


def stands(page):
    """Wait until the page has its last words and its picture: nothing moves under a finger any more."""
    page.get_by_role("heading", name="Where it stands").wait_for()
    page.wait_for_function(f"() => ({PIXELS})()?.length > 10000")


@pytest.fixture
def notebook(visit, served):
    """The page, when it has computed."""
    page = visit(served, home=served)
    shows(page, FIRST)
    return page


MOVES = [("local_steps", "Home", 1), ("local_steps", "ArrowRight", 2), ("distance", "End", 4.0),
         ("curvature", "ArrowLeft", 5.0), ("step_size", "ArrowLeft", 0.005), ("shared_noise", "End", 1.0),
         ("accuracy", "End", 0.5)]


def test_sliders_move_the_measured_sentence(notebook):
    """Also, by `visit`: no error, and not one request leaves this machine."""
    sliders = notebook.get_by_role("slider")
    assert sliders.count() == len(FIRST)
    hosts = notebook.locator("marimo-slider").evaluate_all("(all) => all.map((one) => one.dataset.label)")
    assert all(label in host for label, host in zip(LABELS, hosts, strict=True))
    at, said = dict(FIRST), [shows(notebook, FIRST)]
    for name, pressed, value in MOVES:
        sliders.nth(list(FIRST).index(name)).press(pressed)
        at[name] = value
        said.append(shows(notebook, at))
        assert said[-1] != said[-2]
    assert len({re.sub(r"[\d.]+", "", one) for one in said}) > 1  # its words too


def test_a_slider_moves_the_picture(notebook):
    stands(notebook)
    before = notebook.evaluate(PIXELS)
    notebook.get_by_role("slider").first.press("Home")
    shows(notebook, FIRST | {"distance": 0.0})
    notebook.wait_for_function(f"(before) => ({PIXELS})() !== before", arg=before)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_is_as_dark_as_the_readers_screen(visit, served, theme):
    page = visit(served, home=served, theme=theme)
    shows(page, FIRST)
    light = """(element) => {
        const pixel = new OffscreenCanvas(1, 1).getContext("2d");
        pixel.fillStyle = getComputedStyle(element).%s;
        pixel.fillRect(0, 0, 1, 1);
        return pixel.getImageData(0, 0, 1, 1).data[1] / 255;
    }"""
    ground = page.locator("body").evaluate(light % "backgroundColor")
    letters = page.locator(".paragraph", has_text="Measured.").evaluate(light % "color")
    assert (ground > 0.9 and letters < 0.3) if theme == "light" else (ground < 0.2 and letters > 0.7)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_answers_unfold_on_every_screen(visit, served, size, theme):
    page = visit(served, home=served, size=SIZES[size], theme=theme)
    shows(page, FIRST)
    stands(page)
    unfolded = page.get_by_text("How far the average ends from the posterior, in W2:").locator("visible=true")
    assert unfolded.count() == 0
    page.get_by_role("button", name="Answer 1").click()
    unfolded.wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
