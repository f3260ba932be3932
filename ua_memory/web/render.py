"""Render data as HTML: templates, markdown, links, and data for SVG. All HTML is made here."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from difflib import SequenceMatcher
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from ua_memory.text.wording import shorten
from ua_memory.views.output import printable
from ua_memory.web.pages import LINES, WEEKS, address, map_start, plan_hash

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

STATIC = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""{name: media type} of the static files; no others are served."""
LINES_EACH = 4
"""Edges of a name in a graph, besides the one to the hub."""
_CITED = re.compile(r"!?\[\[([^\]\[|#\n]*)#\^([A-Za-z0-9-]{1,64})(?:\|[^\]\[\n]*)?\]\]")
_NAMED = re.compile(r"!?\[\[([^\]\[|#\n]{1,80})(?:#[^\]\[|\n]*)?(?:\|([^\]\[\n]+))?\]\]")
_CALLOUT = re.compile(r"\A\[!([\w-]+)\][+-]?")
_LINK = re.compile(r"!?\[([^\]\[\n]+)\]\([^()\s]+\)")
_MATH = re.compile(r"\$\$[^$]+\$\$|\$(?![\s$])[^$\n]+(?<![\s\\])\$(?!\d)")
_FRONT_MATTER = re.compile(r"\A---\n(.*?\n)---(?:\n|\Z)", re.DOTALL)
_OWN_COMMENT = re.compile(r"^<!-- (?:through|tags|chunk): .*-->\n?", re.MULTILINE)
_MARKUP = re.compile(
    r"\*\*|(?<!\w)__|__(?!\w)"
    r"|^[ \t]*(?:>[ \t]*)+(?:\[![\w-]+\][+-]?)?|^[ \t]*(?:```|~~~).*$|^[ \t]*\|?[ :|-]*--[ :|-]*$",
    re.MULTILINE,
)
"""Emphasis, quotes and callouts, fences of code, and the second line of a table."""
_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
_ID, _ITS_ID = (re.compile(rf"\^([a-z2-7]{{10}}){end}") for end in (r"(?![\w-])", r"(?!\S)"))
_SESSION_TURN = re.compile(r"t-[0-9a-f]{8}\Z")


def static(name: str) -> bytes:
    """The bytes of a static file."""
    return (resources.files("ua_memory.web") / "static" / name).read_bytes()


def environment() -> Environment:
    """The Jinja environment: it escapes HTML and makes control and bidirectional characters visible."""
    from jinja2 import Environment, PackageLoader

    made = Environment(
        loader=PackageLoader("ua_memory.web"), autoescape=True, finalize=_finalized, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {
        "markdown": markdown, "fact_url": fact_url, "file_url": file_url, "name_url": name_url,
        "shell": shell, "session_url": session_url, "turn_url": turn_url, "weekday": weekday,
        "number": number, "first_line": first_line, "with_links": with_links,
    }  # fmt: skip
    made.globals |= {
        "heat_map": heat_map, "wheel": wheel, "hunks": hunks, "plan_hash": plan_hash, "address": address,
        "word_diff": word_diff, "bars": bars,
    }  # fmt: skip
    return made


def _finalized(value: object) -> object:
    from markupsafe import Markup

    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


# -- addresses ---------------------------------------------------------------------------------------------


def fact_url(row: Mapping[str, Any]) -> str:
    """The page of a result row of a command: a session, a line of a file outside the bank, of which `why`
    knows nothing, or a record by its id or else its place."""
    path = str(row["path"])
    if row.get("source") == "sessions":
        return session_url(path.rpartition("/")[2].removesuffix(".md"))
    if path.startswith("/"):
        return file_url(path, int(row.get("startLine") or 1))
    if row.get("id"):
        return f"/f/{quote(str(row['id']), safe='')}"
    return f"/at/{quote(path)}:{int(row.get('startLine') or 1)}"


def file_url(path: str, line: int = 0) -> str:
    """The page of a file; its source view if a line is given."""
    begin = f"&from={line - LINES // 10}" if line > LINES // 2 else ""
    return f"/files/{quote(path)}" + (f"?view=source{begin}#L{line}" if line else "")


def name_url(name: str) -> str:
    """The page of a name. A name that ends in `.json` gets a slash, since `.json` requests JSON."""
    return f"/names/{quote(name, safe='')}" + ("/" if name.endswith(".json") else "")


def session_url(name: str, turn: str = "") -> str:
    """The page of a session, at a turn if one is given."""
    return f"/sessions/{quote(name, safe='')}" + (f"#{quote(turn, safe='')}" if turn else "")


def turn_url(source: str) -> str:
    """The page of the turn that a quote's source link cites; '' if it cites something else."""
    found = _CITED.fullmatch(source)
    return session_url(found[1], found[2]) if found and _SESSION_TURN.match(found[2]) else ""


# -- text --------------------------------------------------------------------------------------------------


def shell(command: Sequence[str]) -> str:
    """A shell command line; `--` is dropped if no argument after it starts with `-`."""
    at = command.index("--") if "--" in command else len(command)
    if not any(each.startswith("-") for each in command[at + 1 :]):
        command = [*command[:at], *command[at + 1 :]]
    return shlex.join(command)


def weekday(day: str) -> str:
    """The name of an ISO day's weekday; '' for a month or a year."""
    try:
        return f"{date.fromisoformat(day):%A}"
    except ValueError:
        return ""


def number(value: float) -> str:
    """Format a number with thousands separators, and two decimals if it is a float."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def first_line(text: str, most: int = 300) -> str:
    """The text as one line of at most `most` characters, without most of its markup."""
    text = _NAMED.sub(lambda found: found[2] or found[1], _LINK.sub(r"\1", _MARKUP.sub("", text)))
    return shorten(" ".join((_BOXES.get(text[:4], text[:4]) + text[4:]).split()), most)


def with_links(line: str) -> Markup:
    """A line as it is in its file, with links of ids to their facts."""
    from markupsafe import Markup, escape

    return Markup(_ID.sub(r'<a href="/f/\1">^\1</a>', str(escape(printable(line)))))


def markdown(text: str) -> Markup:
    """Render markdown as HTML, without raw HTML; images are links. External links show their host in the
    title. Citations link to their fact or turn, `[[names]]` to their page or day. Formulas and front matter
    are shown as code, a line break as one, and our own comments not at all."""
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import link
    from markupsafe import Markup

    def image(state: Any, silent: bool) -> bool:
        start, is_image = state.pos, state.src.startswith("![", state.pos)
        state.pos += is_image
        found = is_image and link(state, silent)
        state.pos = state.pos if found else start
        return found

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True})
    parser.enable(["table", "strikethrough"]).disable(["html_block", "html_inline"])
    parser.validateLink = _allowed  # type: ignore[method-assign]
    parser.add_render_rule("link_open", _link_open)
    for cell in ("th_open", "td_open"):
        parser.add_render_rule(cell, _cell_open)
    parser.inline.ruler.at("image", image)
    parser.inline.ruler.before("escape", "math", _math)
    parser.inline.ruler.before("link", "brackets", _brackets)
    parser.core.ruler.before("inline", "callouts", _callouts)
    text = _OWN_COMMENT.sub("", _FRONT_MATTER.sub(r"~~~~\n\1~~~~\n", printable(text)))
    return Markup(parser.render(text))


def _math(state: Any, silent: bool) -> bool:
    """A parser rule for inline text: `$…$` and `$$…$$` are code, so that nothing in them is markdown."""
    found = _MATH.match(state.src, state.pos)
    if not found or found.end() > state.posMax:
        return False
    if not silent:
        state.push("code_inline", "code", 0).content = found[0]
    state.pos = found.end()
    return True


def _callouts(state: Any) -> None:
    """A parser rule: `[!note]` at the start of a quote is its title, `[ ]` of a list item a box, and a fact's
    `^id` a link."""
    for before, token in zip(state.tokens, state.tokens[2:], strict=False):
        if token.type == "inline" and before.type == "blockquote_open":
            token.content = _CALLOUT.sub(lambda kind: f"**{kind[1].capitalize()}**", token.content)
        elif token.type == "inline" and before.type == "list_item_open":
            token.content = _BOXES.get(token.content[:4], token.content[:4]) + token.content[4:]
    for token in state.tokens:
        if token.type == "inline":
            token.content = _ITS_ID.sub(r"[^\1](/f/\1)", token.content)


def _cell_open(renderer: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
    """A cell of a table; the policy of the page allows a class, but no style."""
    tokens[at].attrs = {"class": "n"} if "right" in str(tokens[at].attrs.get("style")) else {}
    return str(renderer.renderToken(tokens, at, options, env))


def _brackets(state: Any, silent: bool) -> bool:
    """A parser rule for inline text: `[[…]]` outside of code is a link."""
    cited, named = _CITED.match(state.src, state.pos), _NAMED.match(state.src, state.pos)
    found = cited or named
    if not found or found.end() > state.posMax:
        return False
    if not silent:
        if cited:
            name, block = cited[1].rpartition("/")[2], cited[2]
            numbers = state.env.setdefault("cited", {})
            shown = str(numbers.setdefault(block, len(numbers) + 1))
            url = session_url(name, block) if _SESSION_TURN.match(block) else f"/f/{quote(block, safe='')}"
        else:
            shown, url = found[2] or found[1], name_url(found[1])
            url = f"/days/{found[1]}" if weekday(found[1]) else url
        state.push("link_open", "a", 1).attrs = {"href": url}
        state.push("text", "", 0).content = shown
        state.push("link_close", "a", -1)
    state.pos = found.end()
    return True


def _allowed(url: str) -> bool:
    """Whether a link's target is allowed: a page of ours, http, https or mailto."""
    if url.startswith("/"):
        return not url.startswith(("//", "/\\"))
    return urlsplit(url).scheme in ("http", "https", "mailto")


def _link_open(renderer: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
    href = str(tokens[at].attrs.get("href", ""))
    if not href.startswith("/"):
        tokens[at].attrSet("rel", "noopener noreferrer")
        tokens[at].attrSet("title", urlsplit(href).netloc or href)
        tokens[at].attrSet("class", "out")
    elif re.fullmatch(r"/(?:f/[\w-]+|sessions/[^#]+#t-[0-9a-f]+)", href):
        tokens[at].attrSet("class", "cite")
    return str(renderer.renderToken(tokens, at, options, env))


# -- charts and diffs --------------------------------------------------------------------------------------
# Coordinates of SVG charts, and the lines of diffs, for the templates.


def heat_map(days: Iterable[Mapping[str, Any]], today: str) -> dict[str, Any]:
    """A heat map of the last WEEKS weeks: squares {x, y, day, facts, level 0 to 4}, and labels of months."""
    facts = {str(row["day"]): int(row["facts"]) for row in days}
    end, start = date.fromisoformat(today), map_start(today)
    most = max((facts.get((start + timedelta(n)).isoformat(), 0) for n in range(7 * WEEKS)), default=0)
    squares, months = [], []
    for n in range((end - start).days + 1):
        day = start + timedelta(n)
        many, week = facts.get(day.isoformat(), 0), n // 7
        level = math.ceil(4 * math.log1p(many) / math.log1p(most)) if many else 0
        place = {"x": 12 * week, "y": 12 * (n % 7) + 14}
        squares.append({**place, "day": day.isoformat(), "facts": many, "level": level})
        if day.day == 1:
            months.append({"x": 12 * week, "name": f"{day:%b}"})
    return {"squares": squares, "months": months, "width": 12 * WEEKS}


def wheel(graph: Mapping[str, Any], hub: str = "") -> dict[str, Any]:
    """Layout of a graph: names on a circle, with co-occurring names adjacent and `hub` in the center.

    `names`: {name, count, x, y, turn and left of its label}. `lines`: {one, other, count, path, width}, the
    LINES_EACH strongest of each name."""
    pairs = [(row["one"], row["other"], int(row["count"])) for row in graph.get("together", ())]
    counts = {row["name"]: int(row["count"]) for row in graph.get("entities", ())}
    reach = 190 if hub else 250  # leaves room for labels, which are larger with a hub
    order = _side_by_side([name for name in counts if name != hub], pairs)
    places = {hub: (500.0, 500.0, 0.0)} if hub else {}
    for n, name in enumerate(order):
        turn = 360 * n / len(order)
        x, y = (500 + reach * each(math.radians(turn)) for each in (math.cos, math.sin))
        places[name] = (x, y, turn)
    drawn, lines = Counter[str](), []
    for one, other, weight in pairs:
        (x1, y1, _), (x2, y2, _) = places[one], places[other]
        if hub in (one, other) or max(drawn[one], drawn[other]) < LINES_EACH:
            drawn.update((one, other) if hub not in (one, other) else ())
            pull = min(math.dist((x1, y1), (x2, y2)) / (2 * reach), 1)  # short edges stay near the circle
            x, y = (500 * pull + (a + b) / 2 * (1 - pull) for a, b in ((x1, x2), (y1, y2)))
            path = f"M{x1:.0f} {y1:.0f}Q{x:.0f} {y:.0f} {x2:.0f} {y2:.0f}"
            width = round(0.7 + math.log2(weight), 1)
            lines.append({"one": one, "other": other, "count": weight, "path": path, "width": width})
    names = [
        {"name": name, "count": counts.get(name, 0), "x": round(x), "y": round(y), "left": 90 < turn < 270,
         "turn": round(turn - 180 if 90 < turn < 270 else turn, 1)}
        for name, (x, y, turn) in places.items()
    ]  # fmt: skip
    return {"names": names, "lines": lines}


def _side_by_side(names: Sequence[str], pairs: Iterable[tuple[str, str, int]]) -> list[str]:
    """Order names greedily so that each follows the one that it most often co-occurs with."""
    weights = defaultdict[str, Counter[str]](Counter)
    for one, other, count in pairs:
        weights[one][other] = weights[other][one] = count
    left, order = dict.fromkeys(names), list[str]()
    while left:
        near = weights[order[-1]] if order else Counter[str]()
        order.append(max(left, key=lambda name: near[name]))
        del left[order[-1]]
    return order


def bars(counts: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """Bars for counts of days, or of months, each at its place in time: {when, count, x, height}."""

    def place(when: str) -> int:
        return date.fromisoformat(when).toordinal() if len(when) > 7 else 12 * int(when[:4]) + int(when[5:7])

    most = max((count for _, count in counts), default=0) or 1
    rows: list[dict[str, Any]] = []
    for when, count in counts:
        x = 12 * (place(when) - place(counts[0][0]))
        rows.append({"when": when, "count": count, "x": x, "height": round(40 * count / most, 1)})
    return {"bars": rows, "most": most, "width": rows[-1]["x"] + 10 if rows else 0}


MOST_COMPARED = 2000
"""Words of a statement's two versions that are compared word by word, which takes up to a second."""


def word_diff(before: str, after: str) -> list[tuple[str, str]]:
    """A changed text as pieces: (`del`, `ins` or '' for what stays, text)."""
    old, new = (re.findall(r"\s*\S+|\s+", text) for text in (before, after))
    if len(old) + len(new) > MOST_COMPARED:
        return [("del", before), ("ins", f"\n{after}")]
    found: list[tuple[str, str]] = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        same = kind == "equal"
        found += [] if kind == "insert" else [("" if same else "del", "".join(old[a:b]))]
        found += [] if same or kind == "delete" else [("ins", "".join(new[c:d]))]
    return found


_FILE_HEADERS = ("index ", "--- ", "+++ ", "new file", "deleted file", "similarity", "rename")


def hunks(diff: str) -> list[dict[str, Any]]:
    """Split a unified diff by file: {path, lines: (kind, text)}; kind is add, remove, at or same."""
    found: list[dict[str, Any]] = []
    begin = "diff --git " if diff.startswith("diff --git ") else "--- a/"  # of git, or of a plan
    for line in diff.split("\n"):
        if line.startswith(begin):
            found.append({"path": line.removeprefix("--- a/").rpartition(" b/")[2], "lines": []})
        elif found and not line.startswith(_FILE_HEADERS):
            kind = {"+": "add", "-": "remove", "@": "at"}.get(line[:1], "same")
            found[-1]["lines"].append((kind, line))
    return found
