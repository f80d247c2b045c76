"""The gallery: every link leads somewhere beside it, every picture is in words, every claim has an anchor."""

from __future__ import annotations

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from a_figure import made

import theory
from reproduce import explorables, gallery, headlines, store
from reproduce.discovery import figures
from reproduce.gallery import content
from reproduce.gallery.content import size_of
from reproduce.verdicts import NOT_TESTABLE, OPEN

PAGES = gallery.pages(store.FOLDER, "quick")
HTML = {name: text for name, text in PAGES.items() if name.endswith(".html") and name[:8] != "explore_"}
ORDER = [json.loads(line.rstrip(",")) for line in PAGES["order.js"].splitlines() if line[:2] == '["']
RECORDS = {name: store.load_record(store.FOLDER, name) for name in made()}


class Reader(HTMLParser):
    """Ids, links, pictures and the tags that are open."""

    VOID = ("meta", "link", "img", "input", "br")

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.pictures, self.open, self.headings, self.cards = [], [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        if "id" in known:
            self.ids.append(known["id"])
        self.links += [known[name] for name in ("href", "src") if name in known]
        if tag == "img":
            self.pictures.append(known)
        if tag == "article" and known.get("class") == "card":
            self.cards.append(known)
        if re.fullmatch(r"h\d", tag):
            self.headings.append(int(tag[1]))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes something else"


READ = {name: Reader(text) for name, text in HTML.items()}


@pytest.mark.parametrize("name", HTML)
def test_a_page_is_whole(name):
    page = READ[name]
    assert not page.open and len(page.ids) == len(set(page.ids))
    assert page.headings[0] == 1 and page.headings.count(1) == 1
    assert all(later <= before + 1 for before, later in zip(page.headings, page.headings[1:], strict=False))
    assert '<html lang="en">' in HTML[name] and 'name="viewport"' in HTML[name]


@pytest.mark.parametrize("name", HTML)
def test_every_link_leads_to_a_file_beside_it_or_a_source(name):
    for link in READ[name].links:
        file, _, anchor = link.partition("#")
        assert "://" not in link and not link.startswith(("/", "//", "data:", "javascript:"))
        if file and file not in PAGES:
            assert (store.FOLDER / file).is_file(), link
        if anchor:
            assert anchor in READ[file or name].ids, link
    assert "http" not in HTML[name] and str(store.FOLDER) not in HTML[name]


def test_the_explorables_are_on_the_way():
    assert {name for name in PAGES if name.startswith("explore_")} == set(explorables.pages()) <= set(
        READ["index.html"].links)


def test_scripts_and_styles_ask_for_nothing_else():
    for name in ("gallery.js", "gallery.css"):
        assert not re.search(r"http|url\(|@import|import\s|fetch|XMLHttp", PAGES[name])


@pytest.mark.parametrize("name", RECORDS)
def test_the_page_of_a_figure_says_all_that_is_stored(name):
    text, page, record = HTML[f"{name}.html"], READ[f"{name}.html"], RECORDS[name]
    for item in record["claims"] + record["findings"] + record["unjudged"]:
        assert page.ids.count(item["name"]) == 1
    assert text.count("The authors' answer: ") == len(record["claims"])
    (picture,) = page.pictures
    assert picture["src"] == f"{name}.svg" and (int(picture["width"]), int(picture["height"])) == size_of(
        store.FOLDER / f"{name}.svg")
    assert int(picture["width"]) <= 1200  # nine points are nine points
    assert picture["alt"].startswith(record["shows"]) and len(picture["alt"]) < len(record["shows"]) + 810
    decided = [item["why"] for item in record["claims"] + record["findings"]
               if item["verdict"] not in (NOT_TESTABLE, OPEN)]
    assert picture["alt"] != record["shows"] or all(len(why) > 400 for why in decided)
    assert all(f"<code>{item['name']}</code>" in text for item in record["parameters"])
    assert record["command"] in text
    assert all(f"{name}.{ending}" in page.links for ending in ("svg", "csv", "json"))


def test_the_index_has_a_card_for_every_figure():
    page = READ["index.html"]
    assert len(page.cards) == len(RECORDS) == len(page.pictures)
    for name, record in RECORDS.items():
        verdicts, findings = ([item["verdict"] for item in record[kind]] for kind in ("claims", "findings"))
        theirs = "ours" if record["paper"].startswith("ours") else "theirs"
        cards = [card for card in page.cards if card["data-whose"] == theirs
                 and card["data-paper"] == headlines.paper_of(name)
                 and card["data-outcome"] == headlines.word_of(record)
                 and card["data-verdict"] == "|".join(dict.fromkeys(verdicts + findings))]
        assert cards and f"{name}.html" in page.links
    assert [picture["src"] for picture in page.pictures] == [f"{name}.svg" for name, _ in ORDER]


def test_a_new_figure_changes_no_other_figures_page(tmp_path):
    """Neighbours are named by order.js alone."""
    assert {name for name, _ in ORDER} == set(RECORDS)
    left_out = ORDER[7][0]
    for name in RECORDS.keys() - {left_out}:
        for ending in ("json", "svg"):
            (tmp_path / f"{name}.{ending}").symlink_to(store.FOLDER / f"{name}.{ending}")
    without = gallery.pages(tmp_path, "quick")
    here = f'href="{os.path.relpath(content.ROOT, store.FOLDER)}/'
    for name in RECORDS.keys() - {left_out}:
        theirs = HTML[f"{name}.html"]
        assert re.sub(f'<a {here}[^>]*>(.*?)</a>', r"\1", theirs) == without[f"{name}.html"], name
    assert json.dumps(left_out) in PAGES["order.js"] and json.dumps(left_out) not in without["order.js"]


@pytest.mark.parametrize(("verdicts", "findings", "words"), [
    (["PASS"], [], "The claim of the paper passes."),
    (["PASS", "PASS"], ["HOLDS"], "All 2 claims of the paper pass."),
    (["MISPRINT"], [], "The paper's claim: 1 MISPRINT."),
    (["PASS", "FAIL", "MISPRINT"], [], "1 of the paper's 3 claims passes; 1 FAIL, 1 MISPRINT."),
    (["FAIL"], [], "The paper's claim: 1 FAIL."),
    (["ECHOED"], [], "1 claim of the paper is seen here, where nothing could have contradicted it."),
    (["ECHOED", "ECHOED", "OUTSIDE"], [], "2 of the paper's 3 claims are seen here, where nothing could have "
                                          "contradicted them; 1 OUTSIDE."),
    (["PASS", "ECHOED"], [], "1 of the paper's 2 claims passes; 1 is seen here, where nothing could have "),
    (["NOT TESTABLE", "OUTSIDE"], [], "The paper's 2 claims can be neither"),
    ([], ["HOLDS", "OPEN"], "1 HOLDS, 1 OPEN."),
    ([], [], "A drawing.")])
def test_headlines(verdicts, findings, words):
    assert words in headlines.sentence(said(verdicts, findings))


def said(verdicts, findings=(), n_unjudged=0, why=""):
    """A stored figure, as far as headlines read it."""
    claims, ours = ([{"verdict": one, "why": why} for one in some] for some in (verdicts, findings))
    return {"claims": claims, "findings": ours, "unjudged": [{"text": str(i)} for i in range(n_unjudged)]}


@pytest.mark.parametrize(("verdicts", "n_unjudged", "word"), [
    (["PASS", "PASS"], 0, headlines.REPRODUCED), (["PASS", "MISPRINT"], 0, headlines.CORRECTED),
    (["PASS"], 1, headlines.PARTLY), (["MISPRINT"], 1, headlines.PARTLY),
    (["PASS", "FAIL"], 0, headlines.PARTLY),
    (["MISPRINT", "OUTSIDE"], 0, headlines.PARTLY), (["FAIL", "OUTSIDE"], 0, headlines.CONTRADICTED),
    (["PASS", "ECHOED"], 0, headlines.PARTLY), (["ECHOED", "OUTSIDE"], 1, headlines.ECHO),
    (["ECHOED", "FAIL"], 0, headlines.CONTRADICTED), (["OUTSIDE"], 2, headlines.UNDECIDED),
    ([], 1, headlines.NOTHING)])
def test_a_word_says_no_more_than_the_verdicts(verdicts, n_unjudged, word):
    record = said(verdicts, (), n_unjudged)
    assert headlines.word_of(record) == word
    assert ("cannot be judged here" in headlines.sentence(record)) == (n_unjudged > 0)


def test_a_report_that_fails_was_seen_by_chance():
    """Where nothing else of the figure is contradicted."""
    record = said(["FAIL", "ECHOED"])
    record["claims"][0]["seen"] = "by chance"
    assert headlines.word_of(record) == headlines.CHANCE
    assert headlines.word_of(said(["FAIL"])) == headlines.CONTRADICTED
    record["claims"].append({"verdict": "FAIL", "why": ""})
    assert headlines.word_of(record) == headlines.CONTRADICTED


def test_a_sentence_that_several_figures_have_is_counted_once():
    assert headlines.n_unjudged([said([], (), 2), said([], (), 3)]) == 3


def test_what_a_figure_uses_is_read_from_its_source():
    theorems, algorithms = content.used(figures()["fa_ld_fig1b"].source)
    assert "fa_ld.w2_bound" in theorems and algorithms == ("FA-LD",)
    assert set(content.used(figures()["de_fig3"].source)[1]) >= {"DE-SGHMC"}
    assert content.used("") == ((), ())
    assert all(set(content.used(one.source)[0]) <= {entry.id for entry in theory.theorems()}
               for one in figures().values())


def test_theorems_and_errata_are_read_from_a_figures_words():
    gap, privacy = RECORDS["de_spectral_gap"], RECORDS["privacy_frontier"]
    assert {"de_sgld.w2_bound", "de_sgld.w2_clients_bound"} == set(content.named(gap))
    assert "privacy.run_bound" in content.named(privacy) and not content.named(RECORDS["de_fig1"])
    assert not any(id.startswith("de_") for id in content.named(privacy))
    assert "fa_ld.equal_curvature" in {one.id for one in content.about_figures(["FA-LD 1(c)"])}
    assert not content.about_figures(["FA-LD 3(c)"]) and not content.about_figures(["DE 1"])
    assert '<a href="errata.html#fa_ld.privacy.client_sampling">' in HTML["privacy_frontier.html"]


def test_errata_remarks_and_worst_cases_are_all_there():
    page = READ["errata.html"]
    assert set(page.ids) >= {one.id for one in (*theory.errata(), *theory.remarks())}
    stored = json.loads((store.FOLDER / "worst_cases.json").read_text(encoding="utf-8"))
    assert HTML["worst_cases.html"].count("<tr>") == len(stored) + 1


def test_a_folder_elsewhere_has_no_links_to_sources(tmp_path):
    for name in ("csv", "json", "svg"):
        (tmp_path / f"de_fig1.{name}").write_bytes((store.FOLDER / f"de_fig1.{name}").read_bytes())
    gallery.write(tmp_path, "quick")
    text = (tmp_path / "de_fig1.html").read_text(encoding="utf-8")
    assert "<code>reproduce/decentralized/fig1.py</code>" in text and ".py\">" not in text
    assert str(Path(tmp_path)) not in text
