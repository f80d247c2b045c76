"""Pages in the system's Chromium, headless, and what they do besides what they show.

pytest takes the fixtures and the count of skipped tests from here (`tests/conftest.py`). playwright is
imported where it is used: the tests with the lowest versions of the dependencies do without it.
"""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import pytest

FIGURES = (Path(__file__).resolve().parent.parent / "figures").as_uri()
SIZES = {"phone": (390, 844), "desk": (1280, 900)}
PATIENCE = 30_000
"""Milliseconds until a condition that is waited for counts as failed; the machine may be busy."""
WANTING = "Chromium is not installed"
OPTIONS = (
    "--no-sandbox",  # containers run as root
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # what leaves is seen, and ends here
)


def node() -> Path:
    """The node that playwright brings."""
    import playwright

    return Path(playwright.__file__).parent / "driver" / "node"


@functools.cache
def chromium() -> str | None:
    """The system's browser, if there is one."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


@pytest.fixture(scope="module")
def chrome():
    """A browser for one file: while it runs, no other event loop can run in its thread."""
    program = chromium()
    if program is None:
        pytest.skip(WANTING)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=OPTIONS)
        yield browser
        browser.close()


def opened(chrome, *, size=SIZES["desk"], home=FIGURES, theme="light"):
    """An empty page, and the list of what it will do wrong: errors, and requests outside of `home`."""
    width, height = size
    context = chrome.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    context.set_default_timeout(PATIENCE)
    page, wrong = context.new_page(), []

    def asked(url):
        if not url.startswith((f"{home}/", "data:", "blob:")):
            wrong.append(f"asks for {url}")

    page.on("console", lambda line: line.type == "error" and wrong.append(f"console: {line.text}"))
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("request", lambda request: asked(request.url))
    page.on("websocket", lambda socket: asked(socket.url.replace("ws", "http", 1)))
    return page, wrong


@pytest.fixture
def visit(chrome):
    """Opens addresses, each in a page of its own; what a page has done wrong fails the test at its end."""
    pages = []

    def go(address, **options):
        page, wrong = opened(chrome, **options)
        pages.append((page, wrong))
        page.goto(address if "://" in address else f"{FIGURES}/{address}")
        return page

    yield go
    for page, _ in pages:
        page.context.close()
    assert not [line for _, wrong in pages for line in wrong]


def pytest_terminal_summary(terminalreporter):
    """Say how many tests found no browser."""
    count = sum(str(report.longrepr[-1]).endswith(WANTING)
                for report in terminalreporter.stats.get("skipped", ()))
    if count:
        terminalreporter.write_line(f"SKIPPED: {count} browser tests, for want of Chromium", yellow=True)
