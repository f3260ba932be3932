"""The page: who is let in, what is shown and written, and that text from memory stays text.

No browser is needed here: each claim about safety holds by these tests alone. `test_web_browser` looks at the
page in a real one.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import socket
import struct
import termios
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx
import pytest
from banks import new_bank
from daemons import Place, forking, until
from fork_server import Begun
from starlette.requests import Request
from test_cli_json import EXAMPLES, SECRET
from test_flush import transcript

from ua_memory.caller import Call
from ua_memory.cli import web
from ua_memory.cli.web import WebBank
from ua_memory.daemon.watch import Watch
from ua_memory.git.repository import MACHINE, Commit
from ua_memory.knowledge import facts, observations, opinions
from ua_memory.knowledge.facts import Provenance
from ua_memory.knowledge.observations import ProofText
from ua_memory.mcp.tools import listen
from ua_memory.memory import Memory
from ua_memory.records import Fact, Problem
from ua_memory.store.scan import SnapshotCache
from ua_memory.text import tokens
from ua_memory.upkeep import doctor
from ua_memory.web import app, pages, render
from ua_memory.web.app import Guard, OneTimeLink

PORT = 4711
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"
FORM = {
    "sec-fetch-site": "same-origin",
    "origin": ORIGIN,
    "content-type": "application/x-www-form-urlencoded",
}


@dataclass
class Page(HTMLParser):
    """What a test reads of a page."""

    text: str = ""
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def links(self) -> list[str]:
        return [str(a["href"]) for tag, a in self.tags if tag == "a" and a.get("href")]


@dataclass
class Browser:
    """A browser that is signed in, on a bank that is served in this process."""

    root: Path
    write: bool = True

    def __post_init__(self) -> None:
        call = Call(
            [], self.root, Path(os.environ["HOME"]), {**os.environ, "UA_MEMORY_DAEMON": "off"}, *_streams()
        )
        self.bank = WebBank(call, self.root)
        self.memory = Memory.open(self.root)
        served = app.Served(
            self.root,
            {"reads": self.bank, "typing": self.bank, "meaning": self.bank},
            self.memory.store.history.head,
            lambda: None,
            lambda: None,
            self.write,
        )
        self.link = OneTimeLink(self.memory.store.bank.local)
        self.web = app.Web(served)
        self.guard = Guard(self.web.application(), PORT, self.link)
        self.cookie = f"{self.guard.name}={self.guard.value}"

    def ask(self, url: str, method: str = "GET", body: str = "", **headers: str) -> httpx.Response:
        """A request with just these headers, `_` standing for `-`."""
        return self.send(
            url, method, body, {name.replace("_", "-"): value for name, value in headers.items()}
        )

    def send(self, url: str, method: str, body: str, headers: Mapping[str, str]) -> httpx.Response:
        async def sent() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.guard, raise_app_exceptions=True)
            async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
                request = client.build_request(
                    method, url, content=body.encode(), headers={"host": HOST, **headers}
                )
                return await client.send(request)

        return asyncio.run(sent())

    def get(self, url: str, **headers: str) -> httpx.Response:
        return self.ask(url, cookie=self.cookie, sec_fetch_site="none", sec_fetch_dest="document", **headers)

    def page(self, url: str) -> Page:
        answer = self.get(url)
        assert answer.status_code == 200, (url, answer.status_code, answer.text[:500])
        found = Page()
        found.feed(answer.text)
        return found

    def post(self, what: str, **form: str) -> httpx.Response:
        return self.send(f"/do/{what}", "POST", urlencode(form), {**FORM, "cookie": self.cookie})


def _streams() -> tuple[Any, Any, Any]:
    import io

    return io.BytesIO(), io.StringIO(), io.StringIO()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank that has something for each page."""
    bank = new_bank(tmp_path_factory.mktemp("web") / "bank")
    with Memory.open(bank.root, now=bank.clock) as memory:
        one = memory.insert("Alice moved the API to Fly.io because Heroku doubled its price.", tags=["infra"])
        memory.insert("Alice met Bob in Lisbon.", entities=["Alice", "Bob"])
        memory.insert("Alice and Bob sail on Fridays.", entities=["Alice", "Bob"], kind="preference")
        memory.insert("The version stands in package.json.", entities=["package.json", "src/a", "Who?"])
        memory.core.replace("Who I serve", "Noor, who likes short answers.")
        memory.pages.create("infra", "Infrastructure", "Where do our services run")
        assert one.fact.id
    (bank.root / "memory" / "note.md").write_text(
        "# A note\n\nSee [[Alice]] and <b>this</b>; `[[ -f x ]]` asks for a file.\n\n- a [x] line\n"
    )
    bank.again().adopt()  # else the first search of a test does, and the head is another one
    return bank.root


@pytest.fixture(scope="module")
def browser(filled: Path) -> Iterator[Browser]:
    found = Browser(filled)
    yield found
    found.memory.close()


@pytest.fixture
def fresh(tmp_path: Path) -> Browser:
    bank = new_bank(tmp_path / "bank")
    return Browser(bank.root)


# -- who is let in -----------------------------------------------------------------------------------------

ROUTES = (
    "/",
    "/search?q=a",
    "/f/aaaaaaaaaa",
    "/files/memory/note.md",
    "/names.json",
    "/static/page.js",
    "/live",
    "/do/undo",
    "/none",
)
REFUSED: tuple[tuple[dict[str, str], int], ...] = (
    ({"host": "evil.example"}, 421),
    ({"host": "127.0.0.1"}, 421),
    ({"host": "127.0.0.1:80"}, 421),
    ({"origin": "http://evil.example"}, 403),
    ({"origin": "null"}, 403),
    ({"origin": "https://127.0.0.1:4711"}, 403),
    ({"origin": "http://localhost:4711"}, 403),
    ({"sec-fetch-site": "cross-site", "sec-fetch-dest": "image"}, 403),
    ({"sec-fetch-site": "same-site", "sec-fetch-dest": "empty"}, 403),
    ({"cookie": ""}, 401),
    ({"cookie": "ua_memory_4711=guess"}, 401),
)


@pytest.mark.parametrize("url", ROUTES)
def test_what_comes_from_elsewhere_is_refused_on_every_route(browser: Browser, url: str) -> None:
    for headers, status in REFUSED:
        answer = browser.send(
            url, "GET", "", {"cookie": browser.cookie, "sec-fetch-site": "same-origin", **headers}
        )
        assert answer.status_code == status, headers
        assert "Alice" not in answer.text


@pytest.mark.parametrize("missing", ["sec-fetch-site", "origin", "content-type", "cookie"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_a_write_needs_our_own_page(browser: Browser, missing: str, method: str) -> None:
    headers = {name: value for name, value in {**FORM, "cookie": browser.cookie}.items() if name != missing}
    assert browser.send("/do/redo", method, "", headers).status_code in (401, 403)
    for other in (
        {"content-type": "text/plain"},
        {"content-type": "application/json"},
        {"sec-fetch-site": "none"},
    ):
        answer = browser.send("/do/redo", method, "{}", {**FORM, "cookie": browser.cookie, **other})
        assert answer.status_code == 403


def test_a_link_works_once_and_for_a_minute(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    token = browser.link.make()
    assert browser.link.file.stat().st_mode & 0o777 == 0o600
    assert browser.ask("/enter?t=wrong").status_code == 401
    answer = browser.ask(f"/enter?t={token}")
    assert answer.status_code == 200, "a page and no redirect: a strict cookie is not sent along one"
    assert answer.headers["set-cookie"] == f"{browser.cookie}; HttpOnly; Path=/; SameSite=strict"
    assert browser.ask(f"/enter?t={token}").status_code == 401
    late = browser.link.make()
    os.utime(browser.link.file, (0, time.time() - app.LINK_SECONDS - 1))
    assert browser.ask(f"/enter?t={late}").status_code == 401
    assert browser.ask("/enter?t=").status_code == 401


def test_a_cookie_of_another_port_locks_nobody_out(browser: Browser) -> None:
    name = browser.cookie.partition("=")[0]
    for cookie in (f"{name}=other; {browser.cookie}", f"{browser.cookie}; {name}=other"):
        assert browser.ask("/help", cookie=cookie, sec_fetch_site="none").status_code == 200
    assert browser.ask("/help", cookie=f"{name}=other; {name}=x", sec_fetch_site="none").status_code == 401


def test_a_page_reached_from_elsewhere_asks_once_again(browser: Browser) -> None:
    """The browser leaves the strict cookie out then; the second time the page itself has asked."""
    for url in ("/names", "//evil.example/x", "/\\evil.example"):
        answer = browser.ask(url, sec_fetch_site="cross-site", sec_fetch_dest="document")
        where = re.findall(r'content="0;url=([^"]*)"', answer.text)
        assert answer.status_code == 200 and where[0].endswith("?again=1")
        assert where[0].startswith("/") and not where[0].startswith(("//", "/\\"))
        again = browser.ask("/names?again=1", sec_fetch_site="cross-site", sec_fetch_dest="document")
        assert again.status_code == 401


@pytest.mark.parametrize("url", [*ROUTES[:-3], "/none", "/enter?t=x", "/f/none.json"])
def test_every_answer_has_the_headers_that_keep_others_out(browser: Browser, url: str) -> None:
    for answer in (browser.get(url), browser.ask(url), browser.ask(url, host="evil.example")):
        told = answer.headers
        policy = told["content-security-policy"]
        assert (
            "default-src 'none'" in policy
            and "unsafe" not in policy
            and "require-trusted-types-for" in policy
        )
        assert told["x-content-type-options"] == "nosniff" and told["referrer-policy"] == "same-origin"
        assert told["cache-control"] == "no-store"
        assert not [name for name in told if name.startswith("access-control")]


def test_nothing_is_written_without_the_option(filled: Path) -> None:
    reading = Browser(filled, write=False)
    for what in pages.WRITES:
        assert reading.post(what, rev="HEAD", target="^x", hash="", count="0").status_code == 404
    for url in pages.VIEWS:
        page = reading.get(
            url.replace("{day}", "2026-11-21").replace("{id}", "infra").replace("{name}", "Alice")
        )
        assert 'method="post"' not in page.text


def test_an_address_never_becomes_an_option(browser: Browser) -> None:
    head = browser.memory.store.history.head()
    for url in (
        "/names/--suggest",
        "/sessions/--help",
        "/pages/--json",
        "/diary/--help",
        "/forget?target=--purge+--yes",
        "/search?q=--batch&by=words",
        "/?kind=--retired",
        "/f/x%20--help",
        "/files/--raw",
        "/diary?op=--each",
    ):
        answer = browser.get(url)
        assert answer.status_code in (200, 404, 500) and "Usage:" not in answer.text, url
    assert browser.memory.store.history.head() == head


@pytest.mark.parametrize(
    "path",
    [
        "../../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "/etc/passwd",
        ".git/config",
        "ua-memory.toml%00",
    ],
)
def test_no_path_leads_out_of_the_bank(browser: Browser, path: str) -> None:
    for route in ("/files/", "/at/", "/static/"):
        answer = browser.get(route + path)
        assert answer.status_code in (404, 500), (route, path)
        assert "root:" not in answer.text and "[core]" not in answer.text


def test_what_is_too_long_is_refused(browser: Browser) -> None:
    assert browser.get("/search?q=" + "a" * 3000).status_code == 414
    assert browser.get("/search?q=" + "a" * 401).status_code == 404
    big = "a=" + "b" * (app.MOST_BODY + 1)
    head = browser.memory.store.history.head()
    answer = browser.send("/do/undo", "POST", big, {**FORM, "cookie": browser.cookie})
    assert answer.status_code == 413 and answer.headers["x-content-type-options"] == "nosniff"
    assert browser.memory.store.history.head() == head


# -- text from memory --------------------------------------------------------------------------------------

HOSTILE: list[str] = json.loads((Path(__file__).parent / "data/hostile_texts.json").read_text("utf-8"))
ALLOWED_SCRIPT = {"type": "module", "src": "/static/page.js"}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    bank = new_bank(tmp_path_factory.mktemp("hostile") / "bank")
    with Memory.open(bank.root, now=bank.clock) as memory:
        said = Provenance(bank.clock(), "test")
        with memory.store.revision("insert", door="test") as draft:
            for text in HOSTILE:
                facts.add(draft, Fact(f"payload {text}", tags=("x",), entities=('Ev"il<b>',)), said)
        memory.core.replace("Block <b>\"'", "\n".join(HOSTILE[:20]))
    (bank.root / "memory" / "pages").mkdir(exist_ok=True)
    body = "\n\n".join(HOSTILE)
    (bank.root / "memory" / "hostile.md").write_text(
        f"# {HOSTILE[0]}\n\n{body}\n", "utf-8", "surrogateescape"
    )
    return Browser(bank.root)


def harmless(page: Page, raw: str) -> None:
    """No element, attribute or address that text could have brought in."""
    for tag, given in page.tags:
        assert tag not in (
            "iframe",
            "object",
            "embed",
            "base",
            "style",
            "img",
            "math",
            "video",
            "applet",
        ), tag
        assert not [name for name in given if name.startswith("on") or name == "style"], (tag, given)
        if tag == "script":
            assert given == ALLOWED_SCRIPT
        if tag == "meta":
            assert given.get("http-equiv") is None
        if tag == "form":
            assert str(given.get("action", "")).startswith("/")
        for name in ("href", "src", "action"):
            url = given.get(name)
            if url and tag != "link":
                scheme = urlsplit(url).scheme
                assert scheme in ("", "http", "https", "mailto", "vscode", "obsidian"), url
                assert not url.startswith(("//", "/\\")), url
    assert "\u202e" not in raw and "\x1b" not in raw and "\x00" not in raw


@pytest.mark.parametrize(
    "url",
    [
        "/",
        "/days/2026-11-21",
        "/search?q=payload&by=words",
        "/names",
        "/names/Ev%22il%3Cb%3E",
        "/core",
        "/diary",
        "/work",
        "/files/memory/hostile.md",
        "/files/memory/hostile.md?view=source",
        "/files/memory/2026-11-21.md",
        "/beliefs",
        "/pages",
        "/forget?target=" + quote("memory/hostile.md:3"),
        "/at/memory/hostile.md:5",
        "/diary/HEAD",
        "/help",
        "/sessions",
        "/graph",
        "/diary?by=" + quote(HOSTILE[0]) + "&text=" + quote(HOSTILE[1]),
        "/files/memory/hostile.md?view=source&from=3",
        *(f"/diary?text={quote(text)}" for text in HOSTILE[:6]),
        *("/search?by=words&q=" + quote(text) for text in HOSTILE[:20]),
        *("/names/" + quote(text, safe="") for text in HOSTILE[:6]),
    ],
)
def test_text_stays_text(attacked: Browser, url: str) -> None:
    answer = attacked.get(url)
    assert answer.status_code in (200, 404, 500)
    page = Page()
    page.feed(answer.text)
    harmless(page, answer.text)


def test_hostile_text_is_shown_as_it_is(attacked: Browser) -> None:
    text = attacked.page("/days/2026-11-21").text
    for payload in HOSTILE[:4]:
        assert payload in text


def test_only_one_module_makes_html_of_text() -> None:
    root = Path(app.__file__).parent
    made = {file.name for file in root.rglob("*.py") if re.search(r"Markup\(|\|\s*safe", file.read_text())}
    assert made == {"render.py"}
    sources = [file.read_text() for file in root.glob("templates/*.html")]
    assert len(sources) > 15
    for text in sources:
        assert not re.search(r"\|\s*safe|\son\w+=|\sstyle=|<style|autoescape", text)


def test_secrets_are_masked(tmp_path: Path) -> None:
    bank = new_bank(tmp_path / "bank")
    key = "sk-ant-api03-" + "Ab3" * 30
    (bank.root / "memory" / "2026-11-21.md").write_text(f"- The key is {key}\n")
    (bank.root / "MEMORY.md").write_text(f"## Keys\n\nThe key is {key}\n")
    seen = Browser(bank.root)
    for url in (
        "/",
        "/days/2026-11-21",
        "/files/memory/2026-11-21.md",
        "/core",
        "/diary/HEAD",
        "/search?q=key&by=words",
        "/files/memory/2026-11-21.md?view=source",
        "/core.json",
        "/at/memory/2026-11-21.md:1",
    ):
        assert key not in seen.get(url).text, url


def test_no_part_of_a_key_is_shown(tmp_path: Path) -> None:
    """A key of many lines is recognised as a whole: not where a page cuts out some lines, nor in passages."""
    bank = new_bank(tmp_path / "bank")
    body = "\n".join(f"MIIEpAIBAAKCAQEA{n:02}" + "Zm9vYmFy" * 5 for n in range(14))
    begin, end = (f"-----{word} RSA PRIVATE KEY-----" for word in ("BEGIN", "END"))
    (bank.root / "memory" / "key.md").write_text(
        f"# K\n\nintro\n\n```\n{begin}\n{body}\n{end}\n```\n\n- last\n"
    )
    seen = Browser(bank.root)
    lines = [f"/at/memory/key.md:{n}{more}" for n in range(3, 25) for more in ("", ".json")]
    for url in (
        *lines,
        "/search?q=last&by=words",
        "/search?q=MIIEpAIBAAKCAQEA13Zm9v&by=words",
        "/files/memory/key.md",
    ):
        assert "Zm9vYmFy" not in seen.get(url).text.replace(
            url.partition("q=")[2].partition("&")[0] or "-", ""
        ), url
    source = seen.get("/files/memory/key.md?view=source").text
    assert re.search(r'<span id="L24"><b>.*</b><i>.*</i> - last</span>', source), "lines keep their numbers"


# -- what is shown -----------------------------------------------------------------------------------------


def test_every_link_of_every_page_leads_somewhere(browser: Browser) -> None:
    seen: set[str] = set()
    left = ["/"]
    while left and len(seen) < 150:
        url = left.pop()
        if url in seen:
            continue
        seen.add(url)
        answer = browser.get(url)
        assert answer.status_code == 200, url
        if answer.headers["content-type"].startswith("text/html"):
            page = Page()
            page.feed(answer.text)
            ids = [a["id"] for _, a in page.tags if a.get("id")]
            assert len(ids) == len(set(ids)), url
            assert sum(tag == "h1" for tag, _ in page.tags) >= 1 and page.tags[0] == ("html", {"lang": "en"})
            assert len(answer.text) < 150_000
            left += [link.split("#")[0] for link in page.links() if link.startswith("/")]
    assert {"/", "/names", "/diary", "/work", "/core", "/pages", "/help"} <= seen


@pytest.mark.parametrize(
    ("url", "argv"),
    [
        ("/names.json", ["entities", "list"]),
        ("/core.json", ["core", "list"]),
        ("/pages.json", ["pages", "list"]),
        ("/diary.json", ["log", "-n", str(pages.REVISIONS)]),
        ("/beliefs.json", ["observations", "list"]),
        ("/.json", ["list", "-n", str(pages.MOST_LISTED)]),
        ("/names/Alice.json", ["entities", "show", "Alice", "--limit", "100"]),
        ("/names/package.json/.json", ["entities", "show", "package.json", "--limit", "100"]),
    ],
)
def test_a_pages_json_is_its_commands(browser: Browser, filled: Path, url: str, argv: list[str]) -> None:
    done = Place(filled).run(*argv, "--json", daemon="off")
    assert browser.get(url).json() == json.loads(done.out)


def test_what_is_found_is_json_as_well(browser: Browser) -> None:
    found = browser.get("/search.json?q=Heroku&by=words").json()
    assert found["results"][0]["link"] == f"[[2026-11-21#^{found['results'][0]['id']}]]"


def test_pages_say_what_there_is(browser: Browser) -> None:
    days = browser.page("/")
    assert "Alice moved the API to Fly.io" in days.text and "#infra" in days.text
    fact = next(link for link in days.links() if link.startswith("/f/"))
    card = browser.page(fact)
    assert "In its file" in card.text and "$ ua-memory why" in card.text
    assert "Bob" in browser.page("/names/Alice").text
    found = browser.page("/search?q=Heroku&by=words")
    assert "Fly.io" in found.text and "by words alone" in found.text and "not requested" not in found.text
    assert "Nothing found" in browser.page("/search?q=zzyzx&by=words").text
    assert "short answers" in browser.page("/core").text
    note = browser.get("/files/memory/note.md").text
    assert 'href="/names/Alice"' in note and "&lt;b&gt;this" in note
    assert "<code>[[ -f x ]]</code>" in note


def test_a_note_outside_the_bank_is_opened(tmp_path: Path) -> None:
    """It was "no such file in the bank", under its whole path."""
    note = tmp_path / "vault/notes/Deployment plan.md"
    note.parent.mkdir(parents=True)
    note.write_text("# Deployment plan\n\nThe blue pipeline deploys on Mondays.\n")
    bank = new_bank(tmp_path / "vault/bank")
    assert Place(bank.root).run("config", "set", "extraPaths", str(note.parent), daemon="off").code == 0
    page = Browser(bank.root)
    found = page.page("/search?by=words&q=blue+pipeline")
    (at,) = {link for link in found.links() if "Deployment" in link}
    opened = page.page(at.partition("#")[0])
    assert at.endswith("#L3") and "deploys on Mondays" in opened.text
    for text in (found.text, opened.text.partition("$ ua-memory")[0]):
        assert "notes/Deployment plan.md" in text and str(note.parent) not in text
    assert f"vscode://file/{quote(str(note))}" in opened.links()


def test_what_obsidian_reads_is_read() -> None:
    shown = {
        "> [!note] Before\n> Ask.": "<strong>Note</strong> Before<br />\nAsk.",
        "$a_i * b_i * c\\{x\\}$ for $5 or $10": "<code>$a_i * b_i * c\\{x\\}$</code> for $5 or $10",
        "[[Alice Smith#Work|Al]]": '<a href="/names/Alice%20Smith">Al</a>',
        "[[2026-11-20]]": '<a href="/days/2026-11-20">2026-11-20</a>',
        "[[2026-13-45]]": '<a href="/names/2026-13-45">',
        "![[plan.png]]": '<p><a href="/names/plan.png">plan.png</a>',
        "![a](https://example.org/b.png)!": '<p><a href="https://example.org/b.png"',
        "- [x] done": "<li>☑ done",
        "---\ntags: [a]\n---\n# Plan": "<pre><code>tags: [a]\n</code></pre>\n<h1>Plan",
        "| a |\n|--:|\n| 1 |": '<td class="n">1</td>',
        "plain [!x] [ ] $x": "plain [!x] [ ] $x",
        "## A\n<!-- through: pi/1 -->\n\n<!-- mine -->": "<h2>A</h2>\n<p>&lt;!-- mine",
        "- tea ^k7m2q5x4tb": '<li>tea <a href="/f/k7m2q5x4tb" class="cite">^k7m2q5x4tb</a>',
    }
    for text, html in shown.items():
        assert html in render.markdown(text)
    note = "> [!tip] Tea\n> is [[Tea pot|hot]]\n\n| a |\n|---|\n| 1 |\n\n```sh\nmake -- -x\n```"
    assert render.first_line(note) == "Tea is hot | a | | 1 | make -- -x"
    assert render.first_line("[ ] [a](b.md) -- ![c](d.png) [e] (f)") == "☐ a -- c [e] (f)"
    line = render.with_links("<b> [[a#^k7m2q5x4tb]] ^t-94eb0068")
    assert line == '&lt;b&gt; [[a#<a href="/f/k7m2q5x4tb">^k7m2q5x4tb</a>]] ^t-94eb0068'


def test_parts_of_a_page_that_are_asked_for_are_shown(fresh: Browser) -> None:
    """What a refresh would change, or that there is nothing to run, and why."""
    with Memory.open(fresh.root) as memory:
        memory.insert("Alice moved the API to Fly.io because Heroku doubled its price.")
        memory.pages.create("infra", "Infrastructure", "Heroku and its price")
    plan = fresh.get("/pages/infra?plan=1").text
    assert '<span class="add">+- Alice moved' in plan and "without a model" in plan
    assert "there are no probes" in fresh.page("/bench?run=1").text
    assert "None." in fresh.page("/health").text


def test_what_commands_print_is_shown_as_people_read_it(
    fresh: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views of what takes months, or a model, to come about: from the examples of docs/json.md."""
    printed = {
        ("bench", "probes"): "bench probes", ("core", "proposals"): "core proposals",
        ("opinions", "list"): "opinions list", ("queue", "list"): "queue list",
        ("stats", "--cost"): "stats cost",
    }  # fmt: skip
    ask = fresh.bank.ask

    def asked(*argv: str, fails: bool = True) -> dict[str, Any]:
        name = printed.get(argv[:2])
        days = {"2026-11-21": {"requests": 2, "usd": 0.0711}}
        return {**EXAMPLES[name], "days": days} if name else ask(*argv, fails=fails)

    monkeypatch.setattr(fresh.bank, "ask", asked)
    assert "R@5 83 (was 81) · R@10 91 (was 91)" in fresh.page("/bench?run=1").text
    opinion = EXAMPLES["opinions list"]["opinions"][0]
    beliefs = fresh.page("/beliefs")
    assert f"/f/{opinion['id']}" in beliefs.links() and f"/f/{opinion['because'][0]['id']}" in beliefs.links()
    work = fresh.page("/work")
    assert (
        "A conversation of 275 turns of claude-code, session 258c7280, waiting since 2026-11-21" in work.text
    )
    assert "at most $0.07 a day" in work.text and "+00:00" not in work.text and "documentId" not in work.text
    planned = EXAMPLES["pages refresh"]["pages"][0] | {"estimate": EXAMPLES["flush dry-run"]["estimate"]}
    monkeypatch.setattr(pages, "result_or_error", lambda *_: {"pages": [planned]})
    fresh.post("page", id="infra", query="Where do our services run")
    assert "by claude-sonnet-5-5: about 24,000 tokens, $0.11" in fresh.page("/pages/infra?plan=1").text
    proposed = EXAMPLES["core proposals"]["proposals"][0]
    assert f"/f/{proposed['id'][1:]}" in fresh.page("/core?proposals=1").links()


def test_a_day_shows_what_no_longer_holds(fresh: Browser) -> None:
    with Memory.open(fresh.root) as memory:
        fact = memory.insert("The kettle is blue.").fact
        memory.retire(str(fact.id))
        memory.insert("The lease ends.", when="2031-05-01")
        day = f"{memory.store.now():%Y-%m-%d}"
    assert "The kettle is blue." not in fresh.page("/").text
    assert "The kettle is blue." in fresh.page(f"/days/{day}").text
    for either in (day, "2031-05-01"):
        assert "The lease ends." in fresh.page(f"/days/{either}").text, "noted, and about"
    for url in (f"/days/{day}", "/search?q=lease"):
        assert "about 2031-05-01" in fresh.page(url).text


def test_a_filtered_day_counts_what_the_filter_leaves(fresh: Browser) -> None:
    with Memory.open(fresh.root) as memory:
        for n in range(14):
            memory.insert(f"The web said {n}.", origin="web")
        day = memory.insert("A person said it.", origin="person").fact.place.path[7:17]
    assert f"/days/{day}?source=web" in fresh.page("/?source=web").links()
    assert "all 14" in fresh.page("/?source=web").text
    assert "14 items · source web" in fresh.page(f"/days/{day}?source=web").text
    assert "all 1" not in fresh.page("/?source=person").text


def test_days_are_filtered_by_menus_of_what_there_is(fresh: Browser) -> None:
    """There were four links, to what people and agents said, to preferences and to notes."""
    with Memory.open(fresh.root) as memory:
        memory.insert("Tea is hot.", tags=["kitchen"])
        memory.insert("The web said it.", origin="web", tags=["kitchen/tea"])
    page = fresh.page("/?tag=kitchen")
    chosen = [a["value"] for tag, a in page.tags if tag == "option" and "selected" in a]
    assert chosen == ["kitchen"] and "kitchen/tea (1)" in page.text and "web (1)" in page.text
    assert [a["name"] for tag, a in page.tags if tag == "select"] == ["kind", "source", "tag"]
    assert "The web said it." not in fresh.page("/?kind=&source=agent&tag=kitchen&session=").text
    (fresh.root / "memory/note.md").write_text("# Tea\n\nWords without a list.\n")
    for url in ("/", "/core", "/search?q=tea", "/none"):
        assert ("2 facts" in fresh.get(url).text) is (url != "/none"), "in the header of each page"


def test_a_day_has_its_sessions_and_what_was_written_on_it(fresh: Browser) -> None:
    with Memory.open(fresh.root) as memory:
        memory.flush(transcript(), force=True)
        (session,) = memory.sessions.all()
        today = f"{memory.store.now():%Y-%m-%d}"
    page = fresh.page(f"/days/{session.name[:10]}")
    assert render.session_url(session.name) in page.links() and "1 session" in page.text
    assert "1 session" in fresh.page("/").text
    page = fresh.page(f"/days/{today}")
    assert "Saved" in page.text and f"/diary?since={today}&until={today}" in page.links()


def test_days_before_crowded_ones_are_reached(fresh: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_LISTED", 10)
    for day in (18, 19, 20):
        text = "".join(f"- fact {n} of {day}\n" for n in range(8))
        (fresh.root / f"memory/2026-11-{day}.md").write_text(text)
    url, seen = "/", ""
    while url:
        page = fresh.page(url)
        seen += page.text
        url = next((link for link in page.links() if "before=" in link and link != url), "")
    assert "fact 0 of 18" in seen and "fact 0 of 20" in seen


def test_each_day_stands_once_and_the_latest_first(fresh: Browser) -> None:
    """`ua-memory list` goes by the day that a fact is about: of a day's log these are any."""
    for day in range(10, 27):
        later = "  - when: 2031-05-01\n" if day % 2 else "  - when: 2026-11\n"
        log = f"- plan {day}\n{later}- fact {day}\n- older {day}\n  - when: 2024-01-{day}\n"
        (fresh.root / f"memory/2026-11-{day}.md").write_text(log)
    url, seen = "/", ""
    while url:
        page = fresh.page(url)
        heads = re.findall(r"(\d{4}-\d\d-\d\d) [A-Z][a-z]+day", page.text)
        assert heads and heads == sorted(set(heads), reverse=True), url
        seen += page.text
        url = next((link for link in page.links() if link.startswith("/?before=") and link != url), "")
    assert all(seen.count(f"{word} {day}") for word in ("plan", "fact", "older") for day in range(10, 27))


def test_what_is_wrong_with_files_is_shown(fresh: Browser) -> None:
    with Memory.open(fresh.root) as memory:
        for n in range(12):
            path = memory.insert(f"Fact {n} of the harbour.").fact.place.path
    assert "disappeared" not in fresh.page("/").text
    (fresh.root / path).unlink()
    (fresh.root / "memory/other.md").write_text("- one ^aaaaaaaaaa\n- two ^aaaaaaaaaa\n")
    assert f"disappeared all at once from {path}" in fresh.page("/").text
    assert "ua-memory status --accept" in fresh.page("/work").text
    assert "is already the id of another text" in fresh.page("/health").text


def test_the_whole_bank_is_checked_only_where_asked(fresh: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the health took 3 s in a bank of 5,000 facts, and all other pages waited for it."""
    monkeypatch.setattr(doctor, "check_integrity", lambda *_: 1 / 0)
    seen = fresh.page("/health")
    assert "settings" in seen.text and "/health?all=1" in seen.links()
    monkeypatch.setattr(
        doctor, "check_integrity", lambda *_: doctor.IntegrityReport([], [Problem("x", 1, "Open")])
    )
    (fresh.root / "memory/keys.md").write_text(f"- The token is {SECRET}.\n")
    whole = fresh.page("/health?all=1")
    assert "Secrets in the files: 1." in whole.text and SECRET not in whole.text
    assert "/files/memory/keys.md?view=source#L1" in whole.links()
    assert "Checked: the files, the whole history and the index" in whole.text and "x: Open" in whole.text
    assert fresh.web._thread(pages.health, {"all": "1"}) != fresh.web._thread(pages.health, {}) == "reads"


def test_a_status_reads_only_what_changed(fresh: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look took a quarter of a second, for the table that counts the tokens of the same core memory."""
    with Memory.open(fresh.root) as memory:
        memory.core.replace("Who I serve", "Noor, who likes short answers.")
        memory.insert("Tea is ready.")
        memory.consolidate()
    before = fresh.get("/work.json").json()["core"]
    monkeypatch.setattr(tokens, "_encode", lambda _: 1 / 0)
    asked, ask = list[tuple[str, ...]](), fresh.bank.ask
    monkeypatch.setattr(fresh.bank, "ask", lambda *argv, **how: asked.append(argv) or ask(*argv, **how))
    assert fresh.get("/work.json").json()["core"] == before
    assert {"sync"} <= {argv[2] for argv in asked if argv[0] == "log"} <= {"sync", "flush", "refresh"}


def test_a_revision_is_shown_by_statement(fresh: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a raw diff, of all files at once: 628 kB and 3 s at each look where 5,000 lines were new."""
    with Memory.open(fresh.root) as memory:
        memory.core.replace("Where", "The API runs on Heroku <b>now</b>.")
        memory.core.replace("Where", "The API runs on Fly.io <b>now</b>.")
        rev = memory.history.log(limit=1)[0].id
    text = fresh.get(f"/diary/{rev[:12]}").text
    assert "on<del> Heroku</del><ins> Fly.io</ins> &lt;b&gt;now" in text and "@@" not in text
    assert "A program" in text, "its entry in the log, however old it is"
    assert "+The API runs on Fly.io" in fresh.page(f"/diary/{rev[:12]}?raw=1").text
    (fresh.root / "memory/list.md").write_text("".join(f"- Item {n} of the list.\n" for n in range(9)))
    fresh.memory.store.adopt()
    monkeypatch.setattr(pages, "MOST_CHANGES", 4)
    page = fresh.page(f"/diary/{fresh.memory.history.log(limit=1)[0].id}")
    assert "The first 4 statements" in page.text and "Item 4" not in page.text


def test_a_consolidation_is_shown_without_its_bookkeeping(fresh: Browser) -> None:
    for day in (19, 20):
        (fresh.root / f"memory/2026-11-{day}.md").write_text("- The night job of the ledger fails again\n")
    with Memory.open(fresh.root) as memory:
        memory.consolidate()
    (row,) = fresh.get("/diary.json?op=consolidate").json()["revisions"]
    assert row["trailers"].keys() & {"Compared", "Considered"}
    page = fresh.page(f"/diary/{row['revision'][:12]}")
    assert "Compared" not in page.text and "Considered" not in page.text


def test_what_is_not_trusted_is_marked_on_every_view(fresh: Browser) -> None:
    """A name's facts had no origin."""
    (fresh.root / "memory/2026-11-20.md").write_text(
        "- Alice sells boats\n  - origin: web (https://example.org)\n- Alice rows\n"
    )
    for url in ("/", "/names/Alice", "/search?q=alice&by=words"):
        page = fresh.page(url)
        assert page.text.count("from the web") == 1, url
        assert sum("untrusted" in str(a.get("class")) for _, a in page.tags) == 1, url
    assert fresh.page("/names/Alice").text.count("▪") == 1


def test_a_hand_edit_is_told_in_words(fresh: Browser) -> None:
    (fresh.root / "memory/2026-11-20.md").write_text("- The kettle is blue\n")
    fresh.memory.store.adopt()
    (row,) = fresh.get("/diary.json?op=edit").json()["revisions"]
    page = fresh.page(f"/diary/{row['revision'][:12]}")
    assert f"{row['says']}\n" in page.text and "viaeditor" in page.text
    assert ".md#" not in page.text and "+00:00" not in page.text


def test_what_was_said_is_linked(fresh: Browser) -> None:
    with Memory.open(fresh.root) as memory:
        (done,) = memory.flush(transcript()).done
        fact = done.facts[0]
    link = next(link for link in fresh.page(f"/f/{fact.id}").links() if link.startswith("/sessions/"))
    assert "#t-" in link and "read without a model" in fresh.page(link.split("#")[0]).text
    assert "no model" in fresh.page("/sessions").text
    hits = fresh.page(f"/search?q={quote(fact.text)}&kind=session&by=words").links()
    assert "#" not in hits and any(each.startswith("/sessions/") for each in hits)
    page = fresh.page(f"/search?q={quote(fact.text)}&by=words")
    assert re.search(r"\d duplicate", page.text)
    assert {fresh.get(each.split("#")[0]).status_code for each in page.links()} == {200}


def test_a_command_is_shown_as_one_types_it() -> None:
    assert render.shell(("why", "--", "^abc")) == "why '^abc'"
    assert render.shell(("log", "-n", "60")) == "log -n 60"
    assert render.shell(("get", "--", "--raw")) == "get -- --raw"


def test_hits_are_divided_by_what_they_have_in_common(browser: Browser) -> None:
    """Only kinds and origins were counted, and choosing one dropped the filters that were set."""
    page = browser.page("/search?q=alice&by=words&tag=infra")
    assert "infra any" in " ".join(page.text.split())
    page = browser.page("/search?q=alice&by=words&since=2026-01-01")
    rows = browser.get("/search.json?q=alice&by=words&since=2026-01-01").json()["results"]
    few = sum(row["kind"] == "preference" for row in rows)
    assert 0 < few < len(rows) and f"preference {few}" in page.text
    kept = "/search?q=alice&since=2026-01-01"
    assert {f"{kept}&kind=preference", f"{kept}&tag=infra"} <= {*page.links()}
    rows = [{"day": "2025-03-04"}, {"day": "2026-03-04", "client": "pi"}]
    client, year = pages._facets(rows, {"q": "a"})
    assert client == ("client", [("pi", "/search?q=a&source=pi", 1)])
    assert year[1][0] == ("2025", "/search?q=a&since=2025-01-01&until=2025-12-31", 1)


def test_a_word_is_found_while_it_is_typed(browser: Browser) -> None:
    for typed in ("hero", "alice moved the api to her", "Hero"):
        assert "Fly.io" in browser.page(f"/search?by=words&q={quote(typed)}").text, typed


def test_a_search_is_not_made_once_its_page_has_gone(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever types fast leaves a search with each letter, and the last waited for all of them."""
    made, sent = [], []
    monkeypatch.setattr(browser.bank, "by_words", lambda *_: made.append(1))

    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = {"host": HOST, "cookie": browser.cookie, "sec-fetch-site": "same-origin"}
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/search",
        "query_string": b"q=hero&by=words",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    asyncio.run(browser.guard(scope, gone, send))
    assert made == [] and sent[0]["status"] == 499


def test_the_map_has_all_days_of_a_year(fresh: Browser) -> None:
    today = date.fromisoformat(fresh.bank.today())
    for ago in range(0, 300, 6):
        file = fresh.root / f"memory/{today - timedelta(ago)}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"- Said {ago} days ago.\n" * 14 if ago == 12 else f"- Said {ago} days ago.\n")
    found = fresh.page("/")
    days = {link for link in found.links() if link.startswith("/days/")}
    assert len(days) == 50 and "all 14" in found.text


@contextlib.contextmanager
def watched(root: Path, folder: Path) -> Iterator[tuple[WebBank, SnapshotCache]]:
    """A bank as the page sees it that hears of changed files."""
    watch = Watch(root, folder, lambda: None, lambda _: None)
    watch.check()
    snapshots = SnapshotCache(watch.change_count, watch.changed_names)
    call = Call([], root, folder, {**os.environ, "UA_MEMORY_DAEMON": "off"}, *_streams())
    try:
        yield WebBank(call, root, snapshots), snapshots
    finally:
        watch.stop()


def test_what_an_editor_saves_is_on_the_next_page(tmp_path: Path) -> None:
    """The page hears of changed files, as the daemon does, and looks at no other."""
    bank = new_bank(tmp_path / "bank")
    log = bank.root / "memory" / "2026-11-20.md"
    log.parent.mkdir(exist_ok=True)
    log.write_text("- Tea at five.\n")
    with watched(bank.root, tmp_path) as (seen, snapshots):
        for text in ("Tea at six.", "Tea at seven.", "Tea at eight."):
            log.write_text(f"- {text}\n")
            for words in (("list",), ("get", "--", "memory/2026-11-20.md"), ("list",)):
                assert text in json.dumps(seen.ask(*words))
        time.sleep(0.1)
        seen.ask("list")
        known = snapshots.hits
        for _ in range(3):
            seen.ask("list")
        assert snapshots.hits >= known + 3


def test_the_words_of_a_session_that_was_deleted_are_on_no_page(tmp_path: Path) -> None:
    """No file of the bank tells of it."""
    bank = new_bank(tmp_path / "bank")
    with Memory.open(bank.root) as memory, watched(bank.root, tmp_path) as (seen, _):
        (done,) = memory.flush(transcript()).done
        memory.refresh()
        (words,) = memory.sessions.all()
        asked = "why", "--", f"^{done.facts[0].id}"
        time.sleep(0.1)
        assert seen.ask(*asked)["steps"][0]["said"]["words"] and seen.ask(*asked) is seen.ask(*asked)
        memory.sessions.delete(words)
        assert "words" not in seen.ask(*asked)["steps"][0]["said"]


def test_a_page_is_drawn_anew_only_where_it_shows_something_else(fresh: Browser) -> None:
    first = fresh.get("/").text
    drawn = dict(fresh.web.drawn)
    assert fresh.get("/").text == first and fresh.web.drawn == drawn
    with Memory.open(fresh.root) as memory:
        memory.insert("The kettle is blue.")
    assert "The kettle is blue." in fresh.get("/").text
    for number in range(app.MOST_DRAWN + 1):
        fresh.get(f"/?tag=t{number}")
    assert len(fresh.web.drawn) == app.MOST_DRAWN


def test_the_diary_is_filtered_by_who_and_what(fresh: Browser) -> None:
    with Memory.open(fresh.root) as memory:
        memory.insert("The kettle is blue.")
        memory.insert("The teapot is green.")
        memory.core.replace("Lamp", "It stands here.")
    for query, there, gone in (
        ("text=KETTLE", "kettle is blue", "teapot"),
        ("by=ua-mem&text=is", "teapot is green", "stands here"),
        ("by=ua-memory&op=insert", "kettle is blue", "stands here"),
        ("by=nobody", "No revision", "kettle"),
    ):
        text = fresh.page(f"/diary?{query}").text
        assert there in text and gone not in text.partition("json")[0].partition("filter")[2], query
    revised(fresh.memory, pages.REVISIONS)
    (older,) = [link for link in fresh.page("/diary?by=ua-memory").links() if "before=" in link]
    assert "kettle is blue" in fresh.page(older).text and "by=ua-memory" in older


def test_rules_are_added_and_deleted_by_their_number(fresh: Browser) -> None:
    assert fresh.post("directive", rule="Never name a customer.").headers["location"] == "/core"
    assert fresh.post("directive", rule="Be brief.").status_code == 303
    assert "Be brief." in fresh.page("/core").text
    rule = {"do": "delete", "rule": "Be brief."}
    assert fresh.post("directive", count="1", **rule).status_code == 409, "another one has this number"
    for number in ("9", "x", "--help", ""):
        assert fresh.post("directive", count=number, **rule).status_code == 409
    assert fresh.post("directive", count="2", **rule).status_code == 303
    assert "Be brief." not in (fresh.root / "ua-memory.toml").read_text()
    assert "Never name a customer." in fresh.page("/core").text


def test_names_are_drawn_with_those_they_appear_with(browser: Browser) -> None:
    for url in ("/graph", "/names/Alice"):
        page = browser.page(url)
        drawn = [given for tag, given in page.tags if tag == "path"]
        assert drawn and "Alice and Bob: 2" in page.text
        assert {"/names/Alice", "/names/Bob"} <= {*page.links()}
    assert browser.get("/graph.json").json()["together"][0] == {"one": "Alice", "other": "Bob", "count": 2}


def test_how_often_a_name_was_said_is_drawn_over_time(fresh: Browser) -> None:
    for day in ("2026-03-04", "2026-05-06", "2026-05-07"):
        (fresh.root / f"memory/{day}.md").write_text(f"- We met Zuzanna on the {day}.\n")
    page = fresh.page("/names/Zuzanna")
    bars = [a for tag, a in page.tags if tag == "rect" and a.get("class") == "bar"]
    assert [(a["x"], a["height"]) for a in bars] == [("0", "20.0"), ("24", "40.0")], "none in April"
    assert "2026-03 to 2026-05, at most 2" in page.text and "2026-05: 2" in page.text
    days = render.bars([("2026-02-27", 0.5), ("2026-03-02", 0.25)])
    assert [(one["x"], one["height"]) for one in days["bars"]] == [(0, 40), (36, 20)]
    assert render.bars([])["bars"] == []


def test_settings_are_shown_with_their_source(fresh: Browser) -> None:
    toml = fresh.root / "ua-memory.toml"
    toml.write_text(toml.read_text() + "\n[search]\nlimit = 7\n")
    ours, _, default = fresh.page("/work").text.partition("by default")
    assert "search.limit7ua-memory.toml" in ours and "search.min_score0.0default" in default


def test_a_run_of_inserts_is_one_line_of_the_history(fresh: Browser) -> None:
    """A page of the history was sixty lines of one agent that inserted facts one by one."""
    with Memory.open(fresh.root) as memory:
        for n in range(5):
            memory.insert(f"Fact {n} of the run.")
        memory.core.replace("Who", "Noor.")
    page = fresh.page("/diary")
    assert "4 more" in page.text and "Fact 0 of the run" in page.text
    assert [tag for tag, _ in page.tags].count("details") == 1


def test_all_names_are_listed(fresh: Browser) -> None:
    with Memory.open(fresh.root) as memory:
        for number in range(40):
            memory.insert(f"Somebody met somebody in town, number {number}.", entities=[f"Person{number}x"])
    assert sum(link.startswith("/names/Person") for link in fresh.page("/names").links()) == 40


def test_a_long_file_is_read_page_by_page(fresh: Browser) -> None:
    file = fresh.root / "memory" / "long.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"line {n}\n" for n in range(1, 1200)) + "x" * 300_000 + "\n- the end\n")
    for view in ("rendered", "source"):
        url, seen = f"/files/memory/long.md?view={view}", ""
        while url:
            answer, page = fresh.get(url), Page()
            assert answer.status_code == 200 and len(answer.text) < 150_000
            page.feed(answer.text)
            seen += page.text
            url = next(
                (
                    f"/files/memory/long.md{link}"
                    for link in page.links()
                    if "from=" in link
                    and "lines from" in page.text
                    and link.startswith(f"?view={view}&from=")
                ),
                "",
            )
        assert all(f"line {n}\n" in seen for n in range(1, 1200, 100)) and "the end" in seen
    for odd in ("-1", "0", "99999", "x", "٣", "9" * 40):
        assert fresh.get(f"/files/memory/long.md?from={quote(odd)}").status_code == 200
    assert render.file_url("memory/long.md", 700) == "/files/memory/long.md?view=source&from=650#L700"
    assert 'id="L700"' in fresh.get("/files/memory/long.md?view=source&from=650").text


def test_what_is_known_is_not_sent_again(browser: Browser) -> None:
    for url in ("/names", "/names.json", "/static/page.js"):
        tag = browser.get(url).headers["etag"]
        known = browser.get(url, if_none_match=tag)
        assert known.status_code == 304 and not known.content
        assert known.headers["cache-control"] == "no-store", "a browser keeps nothing of a memory on its disk"
        assert browser.get(url, if_none_match='"other"').status_code == 200


def test_an_empty_bank_teaches_its_first_steps(fresh: Browser) -> None:
    assert "ua-memory insert" in fresh.page("/").text
    for url in pages.VIEWS:
        if "{" not in url:
            fresh.page(url)


def test_what_is_not_there_says_so(browser: Browser) -> None:
    for url in (
        "/f/aaaaaaaaaa",
        "/names/Nobody",
        "/files/memory/none.md",
        "/pages/none",
        "/nowhere",
        "/sessions/none",
    ):
        answer = browser.get(url)
        assert answer.status_code == 404 and "$ ua-memory" not in answer.text, url
    assert browser.get("/sessions/none.json").json()["error"]["mend"], "as the command line's error object"


def test_a_fragment_is_the_inside_of_a_page(browser: Browser) -> None:
    inside = browser.get("/names", accept="text/html; fragment").text
    assert "<html" not in inside and "<h1>" in inside and "Alice" in inside


# -- writing -----------------------------------------------------------------------------------------------


def test_forget_takes_the_plan_that_was_shown(fresh: Browser) -> None:
    with Memory.open(fresh.root) as memory:
        fact = memory.insert("The invoice address is Elm Street 5.").fact
    target = f"^{fact.id}"
    plan = fresh.get(f"/forget?target={quote(target)}").text
    shown = re.findall(r'name="hash" value="(\w+)"', plan)[0]
    assert fresh.post("forget", target=target, hash="0" * 32, count="1").status_code == 409
    assert fresh.post("forget", target=target, hash=shown, count="2").status_code == 409
    with Memory.open(fresh.root) as memory:
        memory.insert("Something else.")
    done = fresh.post("forget", target=target, hash=shown, count="1")
    assert done.status_code == 200 and "Found nowhere" in done.text
    assert "Elm Street" not in (fresh.root / "memory" / f"{fact.place.path.rpartition('/')[2]}").read_text()
    assert Memory.open(fresh.root).store.history.log(limit=1)[0].author == "person"


def test_forget_reads_what_is_typed_as_a_shell_does(fresh: Browser) -> None:
    file = fresh.root / "memory" / "two words.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text("- Tea at five.\n- Cake at six.\n")
    plan = fresh.get("/forget?target=" + quote("'memory/two words.md:1'")).text
    assert "Tea at five" in plan and "Cake" not in plan
    shown = re.findall(r'name="hash" value="(\w+)"', plan)[0]
    done = fresh.post("forget", target="'memory/two words.md:1'", hash=shown, count="1", own="")
    assert done.status_code == 200 and file.read_text() == "- Cake at six.\n"
    assert fresh.get("/forget?target=" + quote("'open")).status_code == 404


def test_a_plan_that_changed_meanwhile_is_not_carried_out(fresh: Browser) -> None:
    with Memory.open(fresh.root) as memory:
        fact = memory.insert("The invoice address is Elm Street 5.").fact
    target = f"^{fact.id}"
    shown = re.findall(r'name="hash" value="(\w+)"', fresh.get(f"/forget?target={quote(target)}").text)[0]
    file = fresh.root / fact.place.path
    file.write_text(file.read_text().replace("Elm Street 5", "Elm Street 7"))  # an editor saves
    answer = fresh.post("forget", target=target, hash=shown, count="1")
    assert answer.status_code == 409 and "Elm Street 7" in answer.text
    assert "Elm Street 7" in file.read_text()


@contextlib.contextmanager
def process(root: Path) -> Iterator[tuple[Begun, httpx.Client]]:
    """A page that may write, as a process of its own, and a browser that is signed in."""
    argv = ["--bank", str(root), "web", "--no-open", "--write"]
    reading, writing = os.pipe()
    with open(reading) as says, open(os.devnull, "r+b") as nothing:  # noqa: PTH123
        streams = [nothing.fileno(), writing, nothing.fileno()]
        server = forking().begun(argv, root, {**os.environ, "UA_MEMORY_DAEMON": "off"}, streams)
        os.close(writing)
        try:
            link = next(found[0] for line in says if (found := re.findall(r"http://\S+/enter\S+", line)))
            base = link.partition("/enter")[0]
            with httpx.Client(base_url=base, timeout=60, headers={**FORM, "origin": base}) as client:
                client.headers["cookie"] = client.get(link).headers["set-cookie"].split(";")[0]
                yield server, client
        finally:
            server.kill()
            server.wait()


@pytest.mark.few(3)
@pytest.mark.parametrize("after", [None, 0.0, 0.02, 0.06, 0.15, 0.4])
def test_a_server_that_is_killed_loses_nothing(tmp_path: Path, after: float | None) -> None:
    """Between the plan and its confirmation (None), and so many seconds into carrying it out."""
    root = new_bank(tmp_path / "bank").root
    with Memory.open(root) as memory:
        fact = memory.insert("The invoice address is Elm Street 5.").fact
        memory.insert("Tea at five.")
    form = {"target": f"^{fact.id}", "count": "1"}
    file = root / fact.place.path
    with process(root) as (server, client):
        plan = client.get("/forget", params={"target": f"^{fact.id}"}).text
        form["hash"] = re.findall(r'name="hash" value="(\w+)"', plan)[0]
        if after is not None:
            with ThreadPoolExecutor(1) as pool:
                done = pool.submit(client.post, "/do/forget", data=form)
                time.sleep(after)
                server.kill()
                with contextlib.suppress(httpx.TransportError):
                    assert done.result().status_code == 200
    place = Place(root)
    assert place.run("insert", "It rains.", daemon="off").code == 0, "who writes next ends what was begun"
    assert place.run("verify", daemon="off").code == 0
    text = file.read_text()
    assert "Tea at five." in text
    gone = "Elm Street" not in text
    assert gone == (root / "memory/forgotten.md").exists(), "all of it is done, or nothing"
    with process(root) as (_, client):
        if not gone:
            file.write_text(text.replace("Elm Street 5", "Elm Street 7"))  # an editor saves meanwhile
            assert client.post("/do/forget", data=form).status_code == 409
            file.write_text(text)
            assert client.post("/do/forget", data=form).status_code == 200, "the plan that was shown"
        assert "Elm Street" not in file.read_text() and "Tea at five." in file.read_text()
        stale = client.post("/do/forget", data=form)
        assert stale.status_code in (404, 409) and "Tea at five." in file.read_text()


def test_undo_and_redo(fresh: Browser) -> None:
    with Memory.open(fresh.root) as memory:
        fact = memory.insert("Tea at five.").fact
        rev = memory.store.history.head()
    plan = fresh.get(f"/diary/{rev}?undo=1").text
    assert "Tea at five" in plan
    shown = re.findall(r'name="hash" value="(\w+)"', plan)[0]
    assert fresh.post("undo", rev=str(rev), hash="none").status_code == 409
    assert fresh.post("undo", rev=str(rev), hash=shown).status_code == 303
    assert not (fresh.root / fact.place.path).exists()
    assert fresh.post("redo", rev=str(rev)).status_code == 409
    undone = re.findall(
        r'action="/do/redo"><input type="hidden" name="rev" value="(\w+)"', fresh.get("/diary").text
    )
    assert fresh.post("redo", rev=undone[0]).status_code == 303
    assert fresh.post("redo", rev=undone[0]).status_code == 409, "a second click"
    assert "/do/redo" not in fresh.get("/diary").text, "nothing is left to redo"
    assert "Tea" in (fresh.root / fact.place.path).read_text()
    by = [(one.author, one.trailer("Door")) for one in Memory.open(fresh.root).store.history.log(limit=2)]
    assert by == [("person", "web")] * 2, "who asked for it, not ua-memory"


def test_a_block_is_replaced_only_as_it_was_read(fresh: Browser) -> None:
    with Memory.open(fresh.root) as memory:
        memory.core.replace("Style", "Short answers.")
    assert fresh.post("core", name="Style", was="Short answers.", value="Long answers.").status_code == 303
    late = fresh.post("core", name="Style", was="Short answers.", value="No answers.\r\nNone.")
    assert late.status_code == 409 and "The block has changed" in late.text
    assert ">Long answers.</p>" in late.text and "\nNo answers.\nNone.</textarea>" in late.text, (
        "both are shown"
    )
    assert 'href="/core.json"' in late.text and 'id="news" href="/core"' in late.text, "where the form stands"
    assert fresh.post("core", new="1", name="Style", value="x").status_code == 409, "it is not new"
    assert fresh.post("core", new="1", name="Tone", value="Dry.").status_code == 303
    assert "Long answers." in (fresh.root / "MEMORY.md").read_text()
    log = Place(fresh.root).run("log", "-n", "1", "--json", daemon="off")
    assert json.loads(log.out)["revisions"][0]["trailers"]["Door"] == ["web"]


def test_a_page_and_a_name_are_written(fresh: Browser) -> None:
    with Memory.open(fresh.root) as memory:
        for name in ("Benjamin", "Ben"):
            memory.insert(f"{name} plays chess.", entities=[name])
    assert fresh.post("page", id="hosts", query="Where do services run").headers["location"] == "/pages/hosts"
    assert (fresh.root / "memory/pages/hosts.md").is_file()
    taken = fresh.post("page", id="hosts", query="Another question")
    assert taken.status_code == 409 and "already exists" in taken.text and "Another question" in taken.text
    shown = re.findall(r'name="hash" value="(\w+)"', fresh.get("/pages/hosts").text)[0]
    recipe = {"do": "update", "id": "hosts", "name": "Hosts", "query": "Which hosts", "hash": shown}
    assert fresh.post("page", **recipe).headers["location"] == "/pages/hosts"
    assert fresh.post("page", **recipe).status_code == 409, "the name or question has changed"
    assert "Which hosts" in fresh.get("/pages/hosts").text
    assert fresh.post("page", do="delete", id="hosts", typed="host").status_code == 409
    assert fresh.post("page", do="delete", id="hosts", typed="hosts").headers["location"] == "/pages"
    assert not (fresh.root / "memory/pages/hosts.md").exists()
    assert fresh.post("name", do="merge", one="Benjamin", other="Ben").status_code == 303
    assert "Ben" in (fresh.root / "memory/entities.md").read_text()
    assert (
        fresh.post("name", do="alias", one="Benjamin", other="Benny").headers["location"] == "/names/Benjamin"
    )
    assert "also Ben, Benny" in fresh.page("/names/Benjamin").text
    assert fresh.post("name", do="split", at="name", one="Benjamin", other="Benny").status_code == 303
    assert "also Ben\n" in fresh.page("/names/Benjamin").text
    assert fresh.post("page").status_code == 404, "a form that lacks a field"
    with Memory.open(fresh.root) as memory:
        id = memory.insert("The kettle is blue.").fact.id
    saved = fresh.post("probe", query="which colour has the kettle", id=str(id))
    assert saved.status_code == 200 and "Saved as line 3: which colour has the kettle" in saved.text
    assert f"which colour has the kettle → ^{id}" in (fresh.root / "probes.md").read_text()
    assert fresh.post("probe", query="a\0b", id=str(id)).status_code < 500
    assert fresh.post("nothing").status_code == 404


def test_a_person_vouches_for_what_they_read(fresh: Browser) -> None:
    with Memory.open(fresh.root) as memory:
        fact = memory.insert("The invoices go to Elm Street.", origin="web", client="browser").fact
    form = {"id": str(fact.id), "typed": "vouch"}
    form["hash"] = re.findall(r'name="hash" value="(\w+)"', fresh.get(f"/f/{fact.id}").text)[0]
    assert fresh.post("vouch", **{**form, "typed": "yes"}).status_code == 409
    file = fresh.root / fact.place.path
    file.write_text(file.read_text().replace("Elm Street", "Oak Street"))
    assert fresh.post("vouch", **form).status_code == 409, "it says something else now"
    file.write_text(file.read_text().replace("Oak Street", "Elm Street"))
    assert fresh.post("vouch", **form).status_code == 303
    assert (
        "  - origin: person (vouched for, said by web)\n" in file.read_text()
        and "/do/vouch" not in fresh.get(f"/f/{fact.id}").text
    )


def test_an_observation_and_an_opinion_are_retired_by_their_commands(fresh: Browser) -> None:
    with Memory.open(fresh.root) as memory:
        fact = memory.insert("Alice left Heroku because its price doubled.").fact
        with memory.store.revision("consolidate", door="test") as draft:
            one = observations.add(
                draft, "Alice looks at prices.", [ProofText(fact, "price")], today=date.today()
            )
            two = opinions.form(
                draft, "She will move again.", [(fact, "price")], confidence=0.5, day="2026-11-21"
            )
    for record, what in ((one, "observation"), (two, "opinion")):
        form = f'name="record" value="{what}"'
        shown = fresh.get(f"/f/{record.id}").text
        assert form in shown
        retiring = {"id": str(record.id), "record": what, "reason": "not so", "hash": "of another text"}
        assert fresh.post("retire", **retiring).status_code == 409, "it says something else now"
        retiring["hash"] = re.findall(r'name="hash" value="(\w+)"', shown)[-1]
        assert fresh.post("retire", **retiring).status_code == 303
        assert form not in fresh.get(f"/f/{record.id}").text
        assert re.search(r"retired: .*not so", (fresh.root / record.place.path).read_text())


def test_what_a_flush_refused_is_told_where_it_was_asked_for(
    fresh: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is kept nowhere, see docs/decisions/0030: the answer is the one place for it."""
    ask, told = fresh.bank.ask, dict(EXAMPLES["flush"])

    def asked(*argv: str, fails: bool = True) -> dict[str, Any]:
        return told if argv[:2] == ("queue", "retry") else ask(*argv, fails=fails)

    monkeypatch.setattr(fresh.bank, "ask", asked)
    done = fresh.post("queue", do="retry", key="one")
    assert done.status_code == 200 and "Heroku&#39;s price tripled. (nobody said tripled there)" in done.text
    assert f"/f/{told['flushed'][0]['facts'][0]['id']}" in done.text and "Core block Hosting" in done.text


def test_what_cannot_be_undone_says_why(fresh: Browser) -> None:
    with Memory.open(fresh.root) as memory:
        memory.insert("Tea at five.")
        done = memory.history.undo().revision.id
    page = fresh.get(f"/diary/{done}?undo=1").text
    assert "nothing is left to undo" in page and "/do/undo" not in page


def test_held_facts_are_brought_back_or_let_go(fresh: Browser) -> None:
    with Memory.open(fresh.root) as memory:
        facts = [memory.insert(f"Fact {n} of the harbour.").fact for n in range(12)]
    for do, there in (("restore", True), ("accept", False)):
        (file := fresh.root / facts[0].place.path).unlink()
        assert fresh.get("/forget?target=" + quote(f"^{facts[0].id}")).status_code == 503
        form = {"do": do, "hash": re.findall(r'name="hash" value="(\w+)"', fresh.get("/work").text)[0]}
        assert fresh.post("held", **{**form, "hash": "none"}).status_code == 409
        assert fresh.post("held", **form).status_code == 303
        assert file.exists() is there and "/do/held" not in fresh.get("/work").text


# -- live, and the process ---------------------------------------------------------------------------------


def test_a_commit_by_another_process_is_told_within_a_second(fresh: Browser) -> None:
    async def heard() -> tuple[dict[str, Any], float]:
        news = fresh.web._news()
        assert (await anext(news))["event"] == "ready"
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(
            None, lambda: Place(fresh.root).run("insert", "Tea at five.", daemon="off")
        )
        began = time.monotonic()
        event = await asyncio.wait_for(anext(news), 30)
        took = time.monotonic() - began
        await news.aclose()
        return json.loads(event["data"]), took

    told, _ = asyncio.run(heard())
    assert told["op"] == "insert" and told["paths"]


def revised(memory: Memory, count: int) -> None:
    """So many inserts into one file, by one process of git."""
    path, texts = "memory/baskets.md", [f"- Basket {number}.\n" for number in range(count)]
    (memory.store.bank.root / path).write_text("".join(texts))
    message = "Insert: a basket\n\nMemory-Op: insert\n"
    files = [{path: "".join(texts[:number]).encode()} for number in range(1, count + 1)]
    memory.store.history.commit([Commit(MACHINE, memory.store.now(), message, each) for each in files])


@pytest.mark.parametrize("writers", [16, pytest.param(64, marks=pytest.mark.slow)])
def test_no_page_misses_a_commit_of_many_writers_nor_hears_it_twice(fresh: Browser, writers: int) -> None:
    """Eight open pages, the most there may be; many writers at once, and 70 commits between two looks."""

    def write(number: int) -> str:
        with Memory.open(fresh.root) as memory:
            return str(memory.insert(f"Crate {number} holds {number} lemons.").result.revision)

    async def heard() -> tuple[list[list[str]], set[str]]:
        streams = [fresh.web._news() for _ in range(app.MOST_LIVE)]
        for news in streams:
            assert (await anext(news))["event"] == "ready"

        async def listen(news: Any) -> list[str]:
            return [json.loads((await anext(news))["data"])["id"] for _ in range(writers)]

        listening = [asyncio.ensure_future(asyncio.wait_for(listen(news), 200)) for news in streams]
        loop, pool = asyncio.get_running_loop(), ThreadPoolExecutor(writers)
        written = await asyncio.gather(*(loop.run_in_executor(pool, write, n) for n in range(writers)))
        told = list(await asyncio.gather(*listening))
        for news in streams:
            await news.aclose()
        return told, {*written}

    told, written = asyncio.run(heard())
    assert len(written) == writers
    for ids in told:
        assert {*ids} == written and len(ids) == writers
        assert ids == told[0], "each hears them in the order of the history"
    known = fresh.memory.store.history.head()
    revised(fresh.memory, 70)
    assert len(app._since(fresh.bank, known)) == 70, "more than one page of the log"
    assert len(app._since(fresh.bank, "0" * 40)) == 1, "a history that was rewritten"


def test_no_more_than_eight_pages_are_told(fresh: Browser) -> None:
    async def asked() -> list[Any]:
        return [await fresh.web._live(Request({"type": "http"})) for _ in range(app.MOST_LIVE + 2)]

    refused = asyncio.run(asked())[-2:]  # also of those that ask at once, before a stream has begun
    assert [each.status_code for each in refused] == [503, 503]
    assert fresh.get("/live").status_code == 503
    fresh.web.live = 0
    fresh.web.stopping.set()
    assert fresh.get("/live").status_code == 200 and fresh.web.live == 0


def test_the_command_serves_opens_again_and_stops(tmp_path: Path) -> None:
    place = Place(new_bank(tmp_path / "bank").root)
    out = tmp_path / "out"
    with out.open("w") as file:
        served = place.begun("from ua_memory.cli.app import main\nmain(['web', '--no-open'])")
        del file
    try:
        until(
            lambda: (place.local / "web.json").is_file() and place.run("web", "--no-open", daemon="off").out,
            30,
        )
        again = place.run("web", "--no-open", daemon="off")
        url = re.findall(r"http://\S+", again.out)[0]
        assert httpx.get(url).status_code == 200 and httpx.get(url).status_code == 401
        assert httpx.get(url.partition("/enter")[0] + "/").status_code == 401
        assert (place.local / "web.json").stat().st_mode & 0o777 == 0o600
        assert place.run("web", "--write", daemon="off").code == 2, "it runs read-only"
    finally:
        stopped = place.run("web", "--stop", daemon="off")
    assert stopped.out == "Stopped.\n"
    assert served.wait() == 0
    assert place.run("web", "--stop", daemon="off").out == "No page runs for this bank.\n"


def test_a_connection_without_a_request_is_closed(fresh: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither silence nor a byte now and then keeps one of the few connections; a web socket is no way in."""
    monkeypatch.setattr(app, "SLOWEST", 1)
    served, at = fresh.web.served, listen(0)
    port = at.getsockname()[1]
    thread = threading.Thread(target=app.serve, args=(served, fresh.link, at, 8.0))
    monkeypatch.setattr(asyncio.SelectorEventLoop, "add_signal_handler", lambda *_: None)
    thread.start()

    def talks(begin: str, drip: str = "") -> str:
        with socket.create_connection(("127.0.0.1", port)) as talking:
            talking.sendall(begin.encode())
            talking.settimeout(0.3)
            told = b""
            for _ in range(20):
                try:
                    if not (new := talking.recv(1 << 16)):
                        return told.decode()
                    told += new
                except TimeoutError:
                    talking.sendall(drip.encode())
                except ConnectionError:
                    return told.decode()
        raise AssertionError("it is open still")

    host = f"Host: 127.0.0.1:{port}\r\n"
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n"
    assert talks("") == ""
    assert talks("GET / HTTP/1.1\r\nX: ", "x") == ""
    assert " 401 " in talks(f"GET / HTTP/1.1\r\n{host}\r\n")
    assert " 403 " in talks(f"POST / HTTP/1.1\r\n{host}Content-Length: 99\r\n\r\n", "x")
    assert "content-security-policy" in talks(f"GET /live HTTP/1.1\r\n{host}{upgrade}\r\n")
    thread.join()


def test_memory_is_given_back_once_nobody_asks(fresh: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "RESTS", 0.3)
    monkeypatch.setattr(asyncio.SelectorEventLoop, "add_signal_handler", lambda *_: None)
    rested: list[float] = []
    served = replace(fresh.web.served, rest=lambda: rested.append(time.monotonic()))
    began, at = time.monotonic(), listen(0)
    app.serve(served, fresh.link, at, 1.5)
    assert len(rested) == 1 and rested[0] - began > 0.3


def test_a_damaged_note_of_the_port_is_none(tmp_path: Path) -> None:
    for text in ('{"port": "x"}', '{"pid": 1, "port": 99999, "write": false}', "[1]", "{}"):
        (tmp_path / "web.json").write_text(text)
        assert 0 <= int(web._read_state(tmp_path).get("port", 0)) < 1 << 16


def test_it_ends_when_nobody_asks_any_more(tmp_path: Path) -> None:
    place = Place(new_bank(tmp_path / "bank").root)
    served = place.begun(
        "from ua_memory.cli import web\nfrom ua_memory.cli.app import main\n"
        "web.IDLE = 1.0\nmain(['web', '--no-open'])"
    )
    assert served.wait() == 0


def test_what_the_page_loads_is_in_the_package() -> None:
    for name in render.STATIC:
        assert render.static(name)
    script = render.static("page.js").decode()
    assert "eval" not in script and "http://" not in script.replace("http://www.w3.org", "")


# -- searching in a terminal -------------------------------------------------------------------------------


def test_a_search_is_typed_and_its_hit_chosen(filled: Path) -> None:
    """`search -i`: words as they are typed, arrows, what a hit rests on, and its id at the end."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 90, 0, 0))
    env = {**os.environ, "UA_MEMORY_DAEMON": "off", "TERM": "xterm-256color"}
    argv = ["--bank", str(filled), "search", "-i", "--kind", "world"]
    process = forking().begun(argv, filled, env, [theirs] * 3)
    os.close(theirs)
    shown = ""

    def sees(text: str) -> bool:
        nonlocal shown
        with contextlib.suppress(OSError):  # it has ended, and all that it showed was read
            if text not in shown and select.select([ours], [], [], 0.1)[0]:
                shown += os.read(ours, 1 << 16).decode("utf-8", "replace")
        return text in shown

    def types(keys: str, then: str) -> None:
        nonlocal shown
        shown = ""
        os.write(ours, keys.encode())
        until(lambda: sees(then), 30)

    until(lambda: sees("Ctrl-Y print its id"), 30)
    types("\x1b[200~ali\nce\r\x1b[201~" + "\x15alice", "moved the API")
    types("\x1b[B", "▶")
    types("\x1b[A", "▶")
    types("\r", "Any key goes back")
    assert "from an agent, in python" in shown
    types("\x1b", "by words")
    shown = ""
    os.write(ours, b"\x19")
    until(lambda: sees("memory/") or re.search(r"\^\w{10}", shown) is not None, 30)
    assert process.wait(20) == 0
    os.close(ours)
    done = Place(filled).run("search", "-i", "alice", daemon="off")
    assert done.code == 2 and "needs a terminal" in done.err
