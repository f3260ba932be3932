"""The page in a real Chromium: nothing foreign is loaded, nothing is complained of, and it works by keys.

Skipped where there is no Chromium (`apt install chromium`) or no Playwright (`pip install playwright`),
unless `CI_BROWSER=require`. With `UA_MEMORY_AXE=axe.min.js` accessibility is checked, too (`npm pack
axe-core`), and `UA_MEMORY_PICTURES=docs/images` with `-k pictures` makes those of docs/web.md.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from banks import new_bank
from daemons import Place
from test_web import HOSTILE

from ua_memory.memory import Memory

CHROMIUM = os.environ.get("UA_MEMORY_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
AXE, PICTURES = os.environ.get("UA_MEMORY_AXE"), os.environ.get("UA_MEMORY_PICTURES")
VIEWS = (
    "/",
    "/days/2026-11-21",
    "/sessions",
    "/names",
    "/names?pairs=1",
    "/names/Alice",
    "/graph",
    "/diary?by=ua-memory&text=alice",
    "/pages",
    "/pages/infra",
    "/beliefs",
    "/core?proposals=1",
    "/diary",
    "/work",
    "/health?all=1",
    "/diary/HEAD",
    "/diary/HEAD?raw=1",
    "/search?q=alice+or+a+works&by=words",
    "/bench",
    "/help",
    "/search?q=heroku&by=words",
    "/files/memory/2026-11-21.md",
    "/files/memory/2026-11-21.md?view=source",
    "/files/memory/plan.md",
    "/forget",
)
READY = CHROMIUM and importlib.util.find_spec("playwright")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(
        not READY and os.environ.get("CI_BROWSER") != "require",
        reason="no chromium (apt install chromium), or no playwright (pip install playwright)",
    ),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bank = new_bank(tmp_path_factory.mktemp("browser") / "notes")
    with Memory.open(bank.root, now=bank.clock) as memory:
        works = [f"{letter}MW Montgomery-Wilhelmina Works" for letter in "ABCDEFGHIJKL"]
        for one, other in pairwise(works):
            memory.insert(f"{one} bought {other}.", entities=[one, other])
        for text in (
            "Alice moved the API to Fly.io because Heroku doubled its price.",
            "Alice met Bob in Lisbon.",
        ):
            memory.insert(text, tags=["infra"], entities=["Alice", "Bob"])
        for text in HOSTILE:
            memory.insert(f"payload {text}")
        memory.core.replace("Who I serve", "Noor, who likes short answers.")
        memory.proposals.edit("Rules", "- Stop on Fridays\n- Use the blue pipeline", None)
        memory.pages.create("infra", "Infrastructure", "Where do our services run")
    (bank.root / "memory/plan.md").write_text(
        "---\ntags: [a]\n---\n> [!note] Costs\n> of ![[plan.png]]\n\n| a | b |\n|:-:|--:|\n| $x$ | 1 |\n\nA"
        + " line" * 99
    )
    return bank.root


@contextmanager
def served(root: Path) -> Iterator[str]:
    """The one-time link of a page that is served by a process."""
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "ua_memory", "--bank", str(root), "web", "--no-open", "--write"],
        env={**os.environ, "UA_MEMORY_DAEMON": "off"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    try:
        yield next(found[0] for line in server.stdout if (found := re.findall(r"http://\S+/enter\S+", line)))
    finally:
        server.terminate()
        server.wait(20)
        server.stdout.close()


def entered(browser: Any, link: str) -> Any:
    """(browser, its state, the address) once it has used a link."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.locator("h1").first.wait_for()
    assert page.url == link.partition("enter")[0], "it leads to the first page"
    state = context.storage_state()
    context.close()
    return browser, state, link.partition("/enter")[0]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright import sync_api

    with sync_api.sync_playwright() as play:
        how = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = play.chromium.launch(executable_path=CHROMIUM, args=how)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def chrome(root: Path, chromium: Any) -> Iterator[Any]:
    with served(root) as link:
        yield entered(chromium, link)


class Watched:
    """A page, with what it said and asked for."""

    def __init__(self, chrome: Any, **how: Any) -> None:
        browser, state, self.base = chrome
        self.context = browser.new_context(storage_state=state, **how)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", self._asked)
        self.page.on("request", lambda request: self.asked.append(request.url))

    def _asked(self, dialog: Any) -> None:
        self.said.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def go(self, url: str) -> Any:
        self.page.goto(self.base + url)
        self.page.locator("h1").first.wait_for()
        return self.page


@pytest.fixture
def watch(chrome: Any) -> Iterator[Callable[..., Watched]]:
    """Opens pages, which are closed at the end: no more than eight are told what is new."""
    opened: list[Watched] = []

    def watched(**how: Any) -> Watched:
        opened.append(Watched(chrome, **how))
        return opened[-1]

    yield watched
    for one in opened:
        one.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_quiet_and_asks_nobody_else(watch: Callable[..., Watched], scheme: str) -> None:
    seen = watch(color_scheme=scheme)
    for url in VIEWS:
        page = seen.go(url)
        assert page.title().endswith("ua-memory")
        assert page.locator("img, iframe, object, embed").count() == 0
    assert seen.said == []
    assert [url for url in seen.asked if not url.startswith(seen.base)] == []


@pytest.mark.parametrize("width", [320, 640, 3840])
def test_no_view_scrolls_sideways(watch: Callable[..., Watched], width: int) -> None:
    seen = watch(viewport={"width": width, "height": 900}, bypass_csp=True)
    for url in VIEWS:
        assert seen.go(url).evaluate("document.documentElement.scrollWidth") <= width, url


@pytest.mark.parametrize("width", [400, 1200])
def test_a_long_line_of_a_file_goes_on_below_its_text(watch: Callable[..., Watched], width: int) -> None:
    """It went on below its number; and on a phone the authors' column, which is not for it, took half."""
    page = watch(viewport={"width": width, "height": 900}, bypass_csp=True).go(VIEWS[-2] + "?view=source")
    line = page.locator("#L11")
    lines = """one => { const range = document.createRange(); range.selectNodeContents(one.lastChild);
        return [...range.getClientRects()].filter(each => each.width > 20).map(each => each.x); }"""
    xs = line.evaluate(lines)
    assert len(xs) > 2 and max(xs) - min(xs) < 12, xs
    shown = line.locator("b").evaluate("one => getComputedStyle(one).display")
    assert shown == ("none" if width < 820 else "inline-block")
    tops = [page.locator(f"#L{n}").bounding_box()["y"] for n in (9, 10, 11)]
    assert 12 < tops[1] - tops[0] == tops[2] - tops[1] < 24, "an empty line is one, and none is between two"


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("url", ["/graph", "/names/BMW Montgomery-Wilhelmina Works"])
def test_no_label_of_a_graph_is_cut_or_covered(watch: Callable[..., Watched], width: int, url: str) -> None:
    page = watch(viewport={"width": width, "height": 900}, bypass_csp=True).go(url)
    ready(page)
    cut = """() => { const box = (one) => one.getBoundingClientRect();
        const all = box(document.querySelector(".graph svg"));
        const top = box(document.querySelector(".zoom")).bottom;
        return [...document.querySelectorAll(".graph text")].filter((one) => { const it = box(one);
            return it.left < all.left || it.right > all.right || it.top < top || it.bottom > all.bottom; })
            .map((one) => one.textContent); }"""
    assert page.locator(".graph text").count() > 2 and page.evaluate(cut) == []


def ready(page: Any) -> None:
    """Its script runs: it has connected."""
    page.get_by_text("● live").wait_for()


def test_what_is_typed_is_searched_and_the_focus_stays(watch: Callable[..., Watched]) -> None:
    seen = watch()
    page = seen.go("/")
    ready(page)
    page.keyboard.press("/")
    page.keyboard.type("heroku")
    page.locator(".hit").first.wait_for()
    assert "Fly.io" in page.locator(".hit").first.inner_text()
    page.keyboard.type(" price")
    page.wait_for_timeout(600)
    assert page.locator("header input[name=q]").input_value() == "heroku price"
    assert page.locator("header input[name=q]").evaluate("box => box === document.activeElement")
    assert page.url.endswith("/search?q=heroku%20price")
    assert page.title() == "heroku price · ua-memory"
    page.keyboard.press("Escape")
    page.keyboard.press("w")
    assert page.locator("input[name=why]").evaluate("box => box === document.activeElement")
    assert seen.said == []


@pytest.mark.parametrize("width", [400, 1100])
def test_nothing_moves_once_it_is_connected(watch: Callable[..., Watched], width: int) -> None:
    tops = []
    for scripts in (False, True):
        seen = watch(viewport={"width": width, "height": 700}, java_script_enabled=scripts)
        page = seen.go("/names")
        if scripts:
            ready(page)
        tops.append(page.locator("h1").bounding_box()["y"])
    assert tops[0] == tops[1]


def test_what_is_written_from_the_right_begins_there(watch: Callable[..., Watched], root: Path) -> None:
    assert Place(root).run("insert", "הקומקום כחול.", daemon="off").code == 0
    first, last = (
        f"""one => {{ const range = document.createRange(), text = one.firstChild, at = {at};
        range.setStart(text, at); range.setEnd(text, at + 1); return range.getBoundingClientRect().x; }}"""
        for at in ("0", "text.length - 1")
    )
    page = watch(bypass_csp=True).go("/")
    fact = page.locator(".fact .text", has_text="הקומקום")
    assert fact.evaluate(first) > fact.evaluate(last), "the full stop is to the left"
    fact.click()
    page.get_by_text("In its file").wait_for()
    assert page.locator("h1").evaluate(first) > page.locator("h1").evaluate(last)


def test_it_prints_dark_on_white(watch: Callable[..., Watched]) -> None:
    page = watch(color_scheme="dark", bypass_csp=True).go("/core")
    dark = page.locator("body").evaluate("one => getComputedStyle(one).backgroundColor")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator("body").evaluate("one => getComputedStyle(one).backgroundColor") != dark
    assert not page.locator("header").is_visible() and not page.locator("main form").first.is_visible()


def test_the_page_works_by_keys(watch: Callable[..., Watched]) -> None:
    seen = watch()
    page = seen.go("/")
    ready(page)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_text("In its file").wait_for()
    for key, title in (
        ("n", "Names"),
        ("h", "History"),
        ("c", "Core memory"),
        ("w", "Status"),
        ("d", "Days"),
    ):
        ready(page)
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.get_by_role("heading", name=title, level=1).wait_for()
    ready(page)
    page.keyboard.press("?")
    page.get_by_role("heading", name="Keys").wait_for()
    ready(page)
    page.keyboard.press("Escape")
    page.get_by_role("heading", name="Days", level=1).wait_for()
    assert seen.said == []


def test_keys_reach_what_is_folded_only_once_it_is_open(watch: Callable[..., Watched]) -> None:
    page = watch().go("/diary?op=insert")
    ready(page)
    folded = page.locator("summary:focus")
    for _ in range(20):
        if not folded.count():
            page.keyboard.press("j")
    assert "more" in folded.inner_text() and not page.locator(".diary .diary li").first.is_visible()
    page.keyboard.press("Enter")
    page.keyboard.press("j")
    assert page.locator(".diary .diary li").first.locator(":focus").count() == 1


def test_a_search_by_meaning_is_tried_again_while_the_daemon_starts(watch: Callable[..., Watched]) -> None:
    seen = watch()
    page = seen.go("/")
    ready(page)
    page.keyboard.press("/")
    page.keyboard.type("heroku")
    with page.expect_request("**/search?q=heroku"):
        page.locator(".hit").first.wait_for()
    with page.expect_request("**/search?q=heroku", timeout=6000):  # no daemon runs here
        pass
    page.get_by_text("by words alone").wait_for()
    page.keyboard.press("ArrowDown")
    page.wait_for_timeout(3000)
    assert page.locator(".hit .text").first.evaluate("hit => hit === document.activeElement")


def test_a_link_within_the_page_does_not_load_it_again(watch: Callable[..., Watched]) -> None:
    """It did, so that whoever skipped to the content stood before the header again."""
    seen = watch()
    page = seen.go("/core")
    ready(page)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_timeout(500)
    page.keyboard.press("Tab")
    page.locator("main :focus").wait_for(timeout=3000)
    assert sum(url.startswith(f"{seen.base}/core") for url in seen.asked) == 1


def test_what_is_new_is_told_and_nothing_moves(watch: Callable[..., Watched], root: Path) -> None:
    seen = watch()
    page = seen.go("/")
    page.get_by_text("● live").wait_for()
    before = page.locator("main").inner_text()
    assert Place(root).run("insert", "The kettle is blue.", daemon="off").code == 0
    page.get_by_text("1 new · r").wait_for(timeout=5000)
    assert page.locator("main").inner_text() == before
    page.keyboard.press("r")
    page.get_by_text("The kettle is blue.").wait_for()
    assert seen.said == []


def test_a_graph_is_moved_and_zoomed_smoothly(watch: Callable[..., Watched]) -> None:
    """As many frames while it is dragged as without anything to draw, but for a quarter."""
    from playwright.sync_api import expect

    seen = watch(bypass_csp=True)
    page = seen.go("/graph")
    ready(page)
    frames = """(run) => new Promise((done) => {
        let n = 0; const svg = document.querySelector(".graph svg"), end = performance.now() + 1500;
        const [x, y] = [svg.getBoundingClientRect().x + 300, svg.getBoundingClientRect().y + 300];
        const send = (kind, at) => svg.dispatchEvent(new PointerEvent(kind, {
            clientX: x + at, clientY: y + at, buttons: 1, pointerId: 1, bubbles: true }));
        svg.setPointerCapture = () => {};
        if (run) send("pointerdown", 0);
        const frame = (now) => { n += 1; if (run) send("pointermove", 5 + (n % 100));
            if (now < end) requestAnimationFrame(frame); else done(n); };
        requestAnimationFrame(frame); })"""
    box = page.locator(".graph svg").get_attribute("viewBox")
    pairs = [(page.evaluate(frames, False), page.evaluate(frames, True)) for _ in range(3)]
    assert max(moved / still for still, moved in pairs) > 0.75, pairs
    expect(page.locator(".graph svg")).not_to_have_attribute("viewBox", str(box))
    page.get_by_role("button", name="whole").click()
    assert page.locator(".graph svg").get_attribute("viewBox") == box
    page.get_by_role("button", name="Zoom in").click()
    assert page.locator(".graph svg").get_attribute("viewBox") == "100 100 800 800"
    page.locator(".graph a").first.click()
    page.wait_for_url("**/names/*")
    assert seen.said == []


def test_forms_are_sent_and_carried_out(watch: Callable[..., Watched]) -> None:
    """As a browser sends them, with the origin that it names: each write of another kind."""
    seen = watch()
    page = seen.go("/core")
    page.get_by_label("New rule").fill("Never name a customer.")
    page.get_by_role("button", name="add").click()
    page.get_by_text("Never name a customer.").wait_for()
    page = seen.go("/names/Alice")
    page.get_by_role("link", name="Alice moved").click()
    ready(page)
    page.keyboard.press("f")
    page.get_by_text("Will be removed").wait_for()
    assert page.locator(".fact .text").first.bounding_box()["width"] > 200, "one letter a line"
    page.go_back()
    page.go_back()
    page.get_by_role("link", name="Alice met Bob in Lisbon.").click()
    page.get_by_label("Why it no longer holds").fill("they never met")
    page.get_by_role("button", name="retire").click()
    page.locator("code, .words, pre", has_text="they never met").first.wait_for()
    page = seen.go("/diary")
    ready(page)
    page.keyboard.press("u")
    page.get_by_role("button", name="undo", exact=True).click()
    page.get_by_role("button", name="redo the newest undo").wait_for()
    assert page.locator("ul.diary li").first.inner_text().count("they never met") == 0
    assert seen.said == []


def test_a_form_is_sent_once_and_keeps_what_was_typed(watch: Callable[..., Watched], root: Path) -> None:
    seen = watch()
    page = seen.go("/core")
    ready(page)
    page.get_by_label("New rule").fill("Say it twice, say it thrice.")
    box = page.get_by_role("button", name="add").last.bounding_box()
    for _ in range(3):
        page.mouse.click(box["x"] + 5, box["y"] + 5)
        page.wait_for_timeout(40)
    page.get_by_text("Say it twice, say it thrice.").wait_for()
    assert sum("/do/" in url for url in seen.asked) == 1
    assert (root / "ua-memory.toml").read_text().count("Say it twice") == 1
    block = page.locator("section.block", has_text="Who I serve")
    block.get_by_text("edit…").click()
    block.get_by_label("Text of Who I serve").fill("Noor.\n\n## Other")
    block.get_by_role("button", name="replace").click()
    page.get_by_role("alert").wait_for()
    ready(page)
    assert page.url == seen.base + "/core", "a reload sends nothing"
    assert block.get_by_label("Text of Who I serve").input_value() == "Noor.\n\n## Other"
    assert Place(root).run("insert", "The cups are white.", daemon="off").code == 0
    page.get_by_text("1 new · r").wait_for(timeout=5000)
    page.get_by_label("New rule").fill("Half of a rule")
    page.get_by_text("1 new · r").click()  # whoever says no to losing it keeps it
    assert page.get_by_label("New rule").input_value() == "Half of a rule"
    page.go_back()
    page.get_by_role("heading", name="Core memory").wait_for()
    assert [text for text in seen.said if "409" not in text] == [
        "dialog Show what is new? What you have typed here is lost."
    ]


def test_what_is_typed_outlives_the_server(chromium: Any, tmp_path: Path) -> None:
    """It ends half an hour after the last request, however long a text takes; a new link signs in again."""
    root = new_bank(tmp_path / "notes").root
    with served(root) as link:
        seen = Watched(entered(chromium, link))
        page = seen.go("/core")
        ready(page)
        page.get_by_label("New rule").fill("Half an hour in the making.")
        assert Place(root).run("web", "--stop").code == 0
        page.get_by_text("not connected").wait_for()
        page.get_by_role("button", name="add").last.click()
        page.wait_for_timeout(500)
        assert [text[:20] for text in seen.said if text.startswith("dialog")] == ["dialog Not connected"]
        assert page.get_by_label("New rule").input_value() == "Half an hour in the making."
        with served(root) as again:
            assert again.partition("/enter")[0] == seen.base, "the same port"
            other = seen.context.new_page()
            other.goto(again)
            other.locator("h1").first.wait_for()
            page.get_by_role("button", name="add").last.click()
            page.locator("li", has_text="Half an hour in the making.").wait_for()
    seen.context.close()


def test_it_works_without_scripts(watch: Callable[..., Watched]) -> None:
    seen = watch(java_script_enabled=False)
    page = seen.go("/")
    page.get_by_label("Search").fill("heroku")
    page.keyboard.press("Enter")
    page.locator(".hit").first.wait_for()


@pytest.mark.skipif(not AXE, reason="no axe-core: UA_MEMORY_AXE=axe.min.js")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(watch: Callable[..., Watched], scheme: str) -> None:
    seen = watch(color_scheme=scheme, bypass_csp=True)
    source = Path(str(AXE)).read_text("utf-8")
    for url in VIEWS:
        page = seen.go(url)
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
        page.add_script_tag(content=source)
        found = page.evaluate("axe.run()")["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], url


PROJECT = (
    "Alice moved the API to Fly.io because Heroku doubled its price. #infra",
    "The staging database runs Postgres 16 and is copied from production each Monday. #infra",
    "Bob prefers pnpm, and never wants a lock file of npm in a commit.",
    "The invoice job takes ten minutes since the index on orders.created is back. #invoices",
    "Alice met Noor in Lisbon; they agreed on the release of 12 January.",
    "Deploys stop on Fridays at noon. #rules",
    "The new logo is green, and Noor has the files.",
)


@pytest.fixture(scope="module")
def root_of_pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank as somebody has one after some months, for the pictures."""
    with pytest.MonkeyPatch.context() as env:
        for who in ("AUTHOR", "COMMITTER"):
            env.setenv(f"GIT_{who}_NAME", "Noor")
            env.setenv(f"GIT_{who}_EMAIL", "noor@example.org")
        return _some_months(tmp_path_factory.mktemp("pictures") / "notes")


def _some_months(root: Path) -> Path:
    bank = new_bank(root)
    today = date.today()
    for ago in range(0, 200, 3):
        day = today - timedelta(days=ago)
        lines = [f"- {PROJECT[(ago * n) % len(PROJECT)]}\n" for n in range(1, 2 + ago % 5)]
        (bank.root / "memory").mkdir(exist_ok=True)
        (bank.root / f"memory/{day}.md").write_text(f"# {day}\n\n" + "".join(dict.fromkeys(lines)))
    with Memory.open(bank.root) as memory:
        memory.core.replace("Who I serve", "Noor, who likes short answers.")
        with (Path(__file__).parents[1] / "examples/session.jsonl").open("rb") as talk:
            memory.flush(talk, force=True)
        memory.pages.create("infra", "Infrastructure", "Where do our services run")
        memory.pages.refresh("infra")
        memory.consolidate()
    return bank.root


@pytest.mark.skipif(not PICTURES, reason="UA_MEMORY_PICTURES=docs/images makes them")
def test_pictures(root_of_pictures: Path, chromium: Any) -> None:
    folder = Path(str(PICTURES)).absolute()
    folder.mkdir(exist_ok=True)
    with Memory.open(root_of_pictures) as memory:
        (session,) = [one.name for one in memory.sessions.all()]
        (card, *_) = [
            hit.item for hit in memory.search_many(["invoice job orders.created"], by_words=True)[0].hits
        ]
    with served(root_of_pictures) as link:
        seen = Watched(entered(chromium, link), viewport={"width": 1100, "height": 700})
        for name, url in (
            ("days", "/"),
            ("search", "/search?q=heroku+price&by=words"),
            ("name", "/names/Alice"),
            ("session", f"/sessions/{session}"),
            ("card", f"/f/{card.id}"),
            ("names", "/names"),
            ("graph", "/graph"),
            ("page", "/pages/infra"),
            ("beliefs", "/beliefs"),
            ("diary", "/diary"),
            ("core", "/core"),
            ("work", "/work"),
            ("file", f"/files/{card.path}?view=source"),
        ):
            seen.go(url).screenshot(path=folder / f"{name}.png")
