"""The gallery in a browser: pages are quiet and fit, filters and headings do what the stored figures say."""

from __future__ import annotations

import csv
import itertools
import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import pytest
from a_figure import made
from browser import FIGURES, SIZES, WANTING, opened

import theory
from reproduce import coverage, headlines, store
from reproduce.discovery import figures
from reproduce.gallery.content import ALGORITHMS, used

ROOT = Path(__file__).resolve().parent.parent
STORED = store.FOLDER
RECORDS = {name: store.load_record(STORED, name) for name in made()}
FIGURE = "fa_ld_fig1a"
PAGES = ("index", FIGURE, "scoreboard", "errata", "worst_cases", "missing",
         "explore_local_steps", "explore_gossip", "explore_staleness")

GROUNDS = {"light": (0.8, 1.01), "dark": (-0.01, 0.05)}
"""Between what luminances of the page's ground."""

# What a page is like at one width in one scheme: each list names what is wrong.
AUDIT = """() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => numbers(colour).slice(0, 3).map((one) => one / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((numbers(colour)[3] ?? 1) === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const own = (node) => [...node.childNodes].some((part) => part.nodeType === 3 && part.data.trim());
  const texts = [...document.querySelectorAll("body *")]
    .filter((node) => own(node) && node.checkVisibility() && !node.closest("svg"));
  return {
    over: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    ground: light(ground(document.body)),
    faint: texts.filter((node) => contrast(getComputedStyle(node).color, ground(node)) < 4.5)
      .map((node) => node.outerHTML.slice(0, 120)),
    empty: [...document.images].filter((one) => one.complete && !one.naturalWidth).map((one) => one.src),
  };
}"""
SHOWN = """() => [...document.querySelectorAll(".card")].filter((card) => card.checkVisibility())
  .map((card) => card.querySelector("a").getAttribute("href").replace(".html", ""))"""
# Is the top of what an address names on the screen, and on top of all else there?
LANDED = """(id) => {
  const node = document.getElementById(id).querySelector("h3, td") || document.getElementById(id);
  const { left, top } = node.getBoundingClientRect();
  const seen = document.elementFromPoint(left + 8, top + 8);
  return seen !== null && (node.contains(seen) || seen.contains(node) && seen.tagName !== "BODY");
}"""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_quiet_fits_and_can_be_read(visit, name):
    page = visit(f"{name}.html", size=SIZES["phone"])
    for (width, height), (scheme, (least, most)) in itertools.product(SIZES.values(), GROUNDS.items()):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate(AUDIT)
        assert found["over"] <= 0 and least < found["ground"] < most, (width, scheme)
        assert not found["faint"] and not found["empty"], (width, scheme)


def test_the_listener_hears(chrome):
    page, wrong = opened(chrome)
    page.goto(f"{FIGURES}/missing.html")
    assert not wrong
    page.evaluate("console.warn('no matter')")
    assert not wrong
    page.evaluate("console.error('heard')")
    page.evaluate("setTimeout(() => { throw new Error('thrown'); })")
    page.evaluate("""() => new Promise((done) => {
        const link = document.createElement("link");
        link.onerror = done;
        document.head.append(Object.assign(link, { rel: "stylesheet", href: "http://fonts.example/x.css" }));
    })""")
    page.wait_for_function("() => true")
    for word in ("console: heard", "error: thrown", "asks for http://fonts.example/x.css"):
        assert any(word in line for line in wrong), (word, wrong)
    page.context.close()


def test_a_run_without_a_browser_says_so(tmp_path):
    words = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider",
             "tests/test_browser_notebook.py", "tests/test_browser.py::test_the_listener_hears"]
    elsewhere = os.environ | {"PATH": str(tmp_path)}
    done = subprocess.run(words, cwd=ROOT, env=elsewhere, capture_output=True, text=True)
    count = int(re.search(r"^(\d+) skipped in", done.stdout, re.MULTILINE)[1])
    assert done.returncode == 0 and count >= 2
    assert f"SKIPPED: {count} browser tests, for want of Chromium" in done.stdout and WANTING in done.stdout


def test_every_thumbnail_loads(visit):
    page = visit("index.html")
    page.evaluate("() => { for (const image of document.images) image.loading = 'eager'; }")
    page.wait_for_function("() => [...document.images].every((image) => image.complete)")
    assert page.evaluate("() => document.images.length") == len(RECORDS)
    assert not page.evaluate(AUDIT)["empty"]


def test_every_figure_fits_a_phone_and_leads_to_its_neighbours(visit):
    """All of them are passed by going on to the next, and each but the first leads back."""
    names = visit("index.html").evaluate(SHOWN)
    page = visit(f"{names[0]}.html", size=SIZES["phone"])
    assert page.locator("[rel=prev]").count() == 0
    for before, name in pairwise([None, *names]):
        if before is not None:
            page.click("[rel=next]")
            page.wait_for_url(f"**/{name}.html")
            assert page.locator("[rel=prev]").get_attribute("href") == f"{before}.html"
        over, width = page.evaluate("""() => [document.documentElement.scrollWidth - innerWidth,
            document.querySelector("main img").naturalWidth]""")
        assert over <= 0 < width, name
    assert page.locator("[rel=next]").count() == 0 and sorted(names) == sorted(RECORDS)


@pytest.mark.parametrize("name", [FIGURE, "stale_fig5"])
def test_a_picture_is_in_words(visit, name):
    page, record = visit(f"{name}.html"), RECORDS[name]
    words, width = page.locator("main img").evaluate("(image) => [image.alt, image.naturalWidth]")
    assert width > 300 and record["shows"] in words and words not in (record["title"], record["paper"])
    assert all(one["why"] in words for one in (record["claims"] + record["findings"])[:2])


def facts(name):
    """What a card is filtered by, from what is stored of its figure."""
    record = RECORDS[name]
    claims, findings = ([one["verdict"] for one in record[kind]] for kind in ("claims", "findings"))
    return {"paper": {headlines.paper_of(name)}, "algorithm": set(used(figures()[name].source)[1]),
            "outcome": {headlines.word_of(record)},
            "verdict": {*claims, *findings},
            "whose": {"ours" if record["paper"].startswith("ours") else "theirs"}}


def wanted(**asked):
    """Figures that answer to all of these."""
    return [name for name in RECORDS if all(value in facts(name)[field] for field, value in asked.items())]


def assert_shown(page, names):
    """Cards, their count in words, and headings of papers that have any."""
    assert sorted(page.evaluate(SHOWN)) == sorted(names)
    assert page.locator("#count").inner_text() == f"{len(names)} figure{'s' * (len(names) != 1)}"
    headings = page.locator(".group h2:visible").all_inner_texts()
    assert set(headings) == {headlines.paper_of(name) for name in names}


@pytest.mark.parametrize("field", ["paper", "algorithm", "outcome", "verdict", "whose"])
def test_a_filter_shows_what_is_stored(visit, field):
    page = visit("index.html")
    assert_shown(page, RECORDS)
    choice = page.locator(f"#filters [name={field}]")
    options = choice.locator("option").evaluate_all("(all) => all.map((one) => one.value)")
    assert options[0] == "" and {*options} >= set().union(*(facts(name)[field] for name in RECORDS))
    assert field != "algorithm" or options[1:] == list(ALGORITHMS.values())
    answers = set()
    for option in options[1:]:
        choice.select_option(option)
        assert_shown(page, wanted(**{field: option}))
        answers.add(frozenset(wanted(**{field: option})))
    assert len(answers) >= 2 and frozenset(RECORDS) not in answers
    choice.select_option("")
    assert_shown(page, RECORDS)


def test_words_are_looked_for(visit):
    page = visit("index.html", size=SIZES["phone"])
    for words in ("GOSSIP", "misprint", "figure 1(", "no such words"):
        page.locator("#filters [name=words]").fill(words)
        found = [name for name, one in RECORDS.items() if words.lower() in " ".join(
            [one["paper"], one["title"], *facts(name)["outcome"], headlines.sentence(one)]).lower()]
        assert_shown(page, found)
        assert len(found) < len(RECORDS)


def address(page):
    """What the address asks for."""
    return {name: value for name, (value,) in parse_qs(page.url.partition("#")[2]).items()}


ASKED = {"paper": "FA-LD", "verdict": "PASS", "whose": "theirs"}


def test_the_address_holds_the_filters(visit):
    page = visit("index.html")
    for field, value in ASKED.items():
        page.locator(f"#filters [name={field}]").select_option(value)
    found = wanted(**ASKED)
    assert 0 < len(found) < len(wanted(paper="FA-LD")) and address(page) == ASKED
    assert_shown(page, found)
    page.reload()
    assert_shown(page, found)
    first = page.evaluate(SHOWN)[0]
    page.locator(".card:visible a").first.click()
    page.wait_for_url(f"**/{first}.html")
    page.go_back()
    page.wait_for_url("**/index.html#*")
    assert_shown(page, found)
    page.locator("#filters [type=reset]").click()
    page.wait_for_function("() => !location.hash.includes('=')")
    assert_shown(page, RECORDS)
    page.reload()
    assert_shown(page, RECORDS)


def test_an_address_that_is_written_is_followed_and_left_again(visit):
    page = visit(f"index.html#{urlencode(ASKED)}")
    assert_shown(page, wanted(**ASKED))
    page.evaluate("() => { location.hash = 'verdict=FAIL'; }")
    page.wait_for_function("() => document.querySelector('#filters [name=verdict]').value === 'FAIL'")
    assert_shown(page, wanted(verdict="FAIL"))
    page.evaluate("() => { location.hash = 'papers'; }")  # an anchor of the page
    page.wait_for_function("() => location.hash === '#papers'")
    assert_shown(page, wanted(verdict="FAIL"))
    page.go_back()
    page.go_back()
    page.wait_for_function("() => document.querySelector('#filters [name=paper]').value === 'FA-LD'")
    assert_shown(page, wanted(**ASKED))


def column(page, number):
    """Texts of a column, from above."""
    return page.locator("table.sortable tbody").evaluate(
        "(body, i) => [...body.rows].map((row) => row.cells[i].textContent.trim())", number)


def is_number(text):
    return re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", text) is not None


def in_order(texts, down):
    """Numbers by size, then words by their first letter; what is empty is last."""
    numbers = [float(text) for text in texts if is_number(text)]
    words = [text for text in texts if not is_number(text)]
    assert texts == [*(text for text in texts if is_number(text)), *words]  # numbers first
    letters = [text[:1].lower() for text in words]
    assert numbers == sorted(numbers, reverse=down)
    assert letters == sorted(letters, reverse=down)
    assert len(set(words)) == sum(a != b for a, b in zip(words, [None, *words], strict=False))  # no two heaps


@pytest.mark.parametrize("size", SIZES)
def test_a_heading_sorts_the_scoreboard(visit, size):
    page = visit("scoreboard.html", size=SIZES[size])
    rows = list(csv.DictReader((STORED / "scoreboard.csv").read_text(encoding="utf-8").splitlines()))
    for number, name in list(enumerate(rows[0]))[::1 if size == "desk" else 6]:
        stored = sorted(row[name].strip() for row in rows)
        heading = page.locator("table.sortable th").nth(number)
        for direction in ("ascending", "descending"):
            heading.locator("button").click()
            assert heading.get_attribute("aria-sort") == direction
            assert page.locator("th[aria-sort]").count() == 1
            texts = column(page, number)
            assert sorted(texts) == stored
            in_order(texts, direction == "descending")


def test_a_heading_sorts_the_worst_cases_by_size(visit):
    page = visit("worst_cases.html")
    stored = json.loads((STORED / "worst_cases.json").read_text(encoding="utf-8"))
    values = sorted(float.fromhex(one["value"]) for one in stored.values())
    page.get_by_role("button", name="value").click()
    assert [float(text) for text in column(page, 5)] == pytest.approx(values, rel=1e-3)
    page.get_by_role("button", name="value").click()
    assert [float(text) for text in column(page, 5)] == pytest.approx(values[::-1], rel=1e-3)


def sentences(name):
    """Names of what is judged of a figure."""
    return [item.name for item in figures()[name].judged]


ANCHORS = {
    FIGURE: sentences(FIGURE),
    "fa_hmc_fig3_4": sentences("fa_hmc_fig3_4")[::4],
    "errata": [one.id for one in (*theory.errata()[::7], *theory.remarks()[::7])],
    "scoreboard": [one.id for one in theory.theorems()[::9]],
    "index": ["explore", "verdicts", "papers"],
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ANCHORS)
def test_what_an_address_names_is_on_the_screen(visit, name, size):
    page = visit(f"{name}.html", size=SIZES[size])
    for anchor in ANCHORS[name]:
        page.goto(f"{FIGURES}/{name}.html?{anchor}#{anchor}")  # not from within the page
        page.wait_for_function(LANDED, arg=anchor)
    if name == FIGURE:
        page.goto(f"{FIGURES}/{name}.html")
        page.locator(f"#{anchor} h3 a").click()
        page.wait_for_function(LANDED, arg=anchor)
        assert page.url.endswith(f"#{anchor}")


def focused(page):
    """What has the focus, in words."""
    return page.evaluate("() => document.activeElement.textContent.trim() || document.activeElement.tagName")


def test_the_keyboard_reaches_the_content_at_once(visit):
    page = visit(f"{FIGURE}.html")
    assert not page.evaluate("() => document.querySelector('.skip').getBoundingClientRect().right > 0")
    page.keyboard.press("Tab")
    assert focused(page) == "to the content"
    box = page.locator(".skip").bounding_box()
    assert box["x"] >= 0 and box["y"] >= 0
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash === '#main'")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.querySelector('main').contains(document.activeElement)")


def test_filters_cards_and_headings_work_by_the_keyboard(visit):
    page = visit("index.html")
    choice = page.locator("#filters [name=verdict]")
    choice.focus()
    choice.press("ArrowDown")
    value = choice.input_value()
    assert value and address(page) == {"verdict": value}
    found = wanted(verdict=value)
    assert_shown(page, found)
    page.locator("#filters [type=reset]").focus()
    page.keyboard.press("Tab")
    first = page.evaluate(SHOWN)[0]
    assert focused(page).startswith(RECORDS[first]["paper"])  # hidden cards are not in the way
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{first}.html")
    page.goto(f"{FIGURES}/scoreboard.html")
    page.locator("th button").nth(4).focus()
    page.keyboard.press("Enter")
    assert page.locator("th").nth(4).get_attribute("aria-sort") == "ascending"


def test_what_is_missing_is_listed(visit):
    page = visit("missing.html", size=SIZES["phone"])
    text = page.locator("main").inner_text()
    assert coverage.NOT_REPRODUCED and all(one.why in text for one in coverage.NOT_REPRODUCED)
