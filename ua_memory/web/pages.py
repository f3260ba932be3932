"""The pages: the commands that each takes its data from, and its template.

A page shows only what commands print with `--json`. Its footer shows its main command, and `.json` after its
address returns the JSON of that command. Values from an address are passed after `--`, or as
`--option=value`, so that they cannot be read as options.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import groupby
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from ua_memory.errors import ChangedOnDisk, UaMemoryError, Usage

DAYS, PER_DAY = 14, 12
"""Days on the start page, and facts of each day."""
WEEKS = 53
"""Weeks in the heat map."""
MOST_LISTED = 400
"""Facts on one page."""
LONGEST_QUERY = 400
"""Characters of a query."""
GRAPH = 80
"""Names on the graph page."""
LONGEST_LINE = 2000
"""Characters of a line; longer lines are truncated."""
LINES, MOST_OF_FILE = 500, 60_000
"""Lines and characters of a file on one page."""
MOST_CHANGES = 100
"""Changed statements of a revision."""
REVISIONS = 60
NEWEST = ("log", "-n", str(REVISIONS))
"""The command for one page of the history. Other pages use the same one, since its result is cached."""
COUNTS = ("list", "--counts", "-n", "60")
"""The command that counts what there is, for the menus of the days."""
FILTERS = ("kind", "tag", "source", "session", "person")
"""Filters of a list: parameters of the address and options of `ua-memory list`."""


Query = Mapping[str, str]


class Failed(UaMemoryError):
    """A command of a page failed; `exit_code` is that of the command."""

    def __init__(self, code: int, error: Mapping[str, Any]) -> None:
        what = str(error.get("message") or "the command failed")
        super().__init__(what, where=error.get("where"), hint=error.get("mend"))
        self.exit_code = code


class BankPages(Protocol):
    """The commands and searches that pages use."""

    def ask(self, *argv: str, fails: bool = True) -> dict[str, Any]:
        """Run a command with `--json` and return its output. If it fails: Failed, or {} without `fails`."""

    def by_words(self, query: str, filters: Query) -> dict[str, Any]:
        """Search by words only; the result is that of `search --json --explain`."""

    def by_meaning(self, query: str, filters: Query) -> dict[str, Any] | None:
        """Search by the daemon. If none is running, start one and return None."""

    def held(self) -> Sequence[str]:
        """The files from which many facts disappeared at once, to be confirmed."""

    def today(self) -> str:
        """Today's ISO date in the bank's timezone."""


@dataclass(frozen=True)
class Shown:
    """A page: its template, its data (the response to `.json`), the command of that data, more values."""

    template: str
    data: Mapping[str, Any]
    command: tuple[str, ...]
    more: Mapping[str, Any] = field(default_factory=dict)


Page = Callable[[BankPages, Query], Shown]


def shown(bank: BankPages, template: str, *words: str, **more: Any) -> Shown:
    """A page with a command's `--json` output as data. Failed."""
    return Shown(template, bank.ask(*words), words, more)


def rows(bank: BankPages, name: str, *argv: str) -> list[dict[str, Any]]:
    """The list `name` in a command's `--json` output; [] if it fails."""
    found: list[dict[str, Any]] = bank.ask(*argv, fails=False).get(name, [])
    return found


def result_or_error(bank: BankPages, *argv: str) -> dict[str, Any]:
    """Run a command with `--json` and return its output, or {error} if it fails."""
    try:
        return bank.ask(*argv)
    except Failed as error:
        return {"error": {"message": error.what, "where": error.where, "mend": error.hint}}


def options(query: Query, names: Sequence[str] = FILTERS) -> list[str]:
    """The filters in an address as command options."""
    return [f"--{name}={query[name]}" for name in names if query.get(name)]


# -- days --------------------------------------------------------------------------------------------------


def days(bank: BankPages, query: Query) -> Shown:
    """The newest days, or those up to `before`, and the heat map."""
    words = ["list", "--by-date", "-n", str(MOST_LISTED), *options(query)]
    if before := query.get("before"):
        words.append(f"--until={before}")
    found, today = bank.ask(*words), bank.today()
    listed = found["results"]
    about = [(row.get("when") or row.get("day") or "")[:10] for row in listed]  # `list` sorts by this
    oldest = min(sorted({each for each in about if each <= today}, reverse=True)[:DAYS], default="")
    listed = listed[: sum(each >= oldest for each in about)]
    by_day = groupby(sorted(listed, key=_said_on, reverse=True), key=_said_on)
    groups = [(day, list(each)) for day, each in by_day]
    dated = [day for day, _ in groups if day]
    every = _counted(bank, map_start(today).isoformat(), today)
    given = options(query)
    counted = _counted(bank, dated[-1], dated[0], *given) if dated else []
    full = {row["day"]: row for row in counted}
    last = about[len(listed) - 1] if found["total"] > len(listed) > 0 else ""
    more = {
        "groups": [(day, each[:PER_DAY], _at_least(full.get(day), len(each))) for day, each in groups],
        "days": every, "today": today, "filters": _plain(query), "counts": bank.ask(*COUNTS, fails=False),
        "older": _before(last) if last else "", "held": bank.held(),
    }  # fmt: skip
    return Shown("days.html", found, tuple(words), more)


def map_start(today: str) -> date:
    """The Monday on which the heat map begins."""
    end = date.fromisoformat(today)
    return end - timedelta(days=end.weekday() + 7 * (WEEKS - 1))


def _counted(bank: BankPages, since: str, until: str, *given: str) -> list[dict[str, Any]]:
    """The number of facts of each day; [] if the filters do not support counting."""
    words = ("list", "--days", "-n", str(7 * WEEKS), f"--since={since}", f"--until={until}", *given)
    return rows(bank, "days", *words)


def _at_least(counted: dict[str, Any] | None, listed: int) -> dict[str, Any]:
    """What was counted of a day, of which so many are listed: also notes, and what is about it."""
    found = counted or {"facts": 0, "sessions": 0}
    return {**found, "facts": max(found["facts"], listed)}


def fact_count(bank: BankPages) -> str:
    """How many facts there are, for the header."""
    many = bank.ask("list", "--kind=fact", "-n", "1", fails=False).get("total")
    return "" if many is None else f"{many:,} {'fact' if many == 1 else 'facts'}"


def _plain(query: Query) -> dict[str, str]:
    return {name: value for name, value in query.items() if name in FILTERS and value}


def _said_on(row: Mapping[str, Any]) -> str:
    return str(row.get("day") or "")


def _before(day: str) -> str:
    """The day before a date; a month or a year counts as its first day."""
    return (date.fromisoformat(f"{day}-01-01"[:10]) - timedelta(days=1)).isoformat()


def day(bank: BankPages, query: Query) -> Shown:
    """All facts recorded on a day or about it, its sessions, and the revisions made on it."""
    day = query["day"]
    words = ("list", "--retired", "-n", str(MOST_LISTED), f"--day={day}")
    begun = rows(bank, "sessions", "sessions", "list", f"--since={day}")
    written = rows(bank, "revisions", "log", "-n", str(PER_DAY), f"--since={day}", f"--until={day}")
    more = {"sessions": [one for one in begun if one["name"].startswith(day)], "revisions": written}
    return shown(bank, "day.html", *words, *options(query), day=day, filters=_plain(query), **more)


def sessions(bank: BankPages, query: Query) -> Shown:
    """The list of sessions."""
    return shown(bank, "sessions.html", "sessions", "list", *options(query, ("project", "since")))


def session(bank: BankPages, query: Query) -> Shown:
    """The turns of one session, and the facts extracted from it."""
    facts = rows(bank, "results", "list", f"--session={query['name']}", "-n", str(MOST_LISTED), "--retired")
    return shown(bank, "session.html", "sessions", "get", "--", query["name"], facts=facts)


# -- search ------------------------------------------------------------------------------------------------


def search(bank: BankPages, query: Query) -> Shown:
    """Search results by meaning; by words with `by=words`, or if no daemon is running."""
    text = " ".join(query.get("q", "")[:LONGEST_QUERY].split())
    filters = {name: query[name] for name in ("kind", "tag", "source", "since", "until") if query.get(name)}
    given = options(filters, tuple(filters))
    words = ("search", "--explain", *given, "--", text)
    more: dict[str, Any] = {"q": text, "read": {}, "by": "words", "why_not": {}}
    more["target"] = query.get("why", "")
    if not text:
        return Shown("search.html", {"results": [], "answered": False, "notes": []}, words, more)
    found = bank.by_meaning(text, filters) if query.get("by") != "words" else None
    more["by"] = "meaning" if found else "words"
    found = found or bank.by_words(text, filters)
    more["read"] = bank.ask("explain", "--", text, fails=False)
    more |= {"given": {"q": text, **filters}, "facets": _facets(found["results"], {"q": text, **filters})}
    if query.get("why"):
        more["why_not"] = result_or_error(bank, "search", f"--why-not={query['why']}", *given, "--", text)
    return Shown("search.html", found, words, more)


MOST_VALUES = 8
"""Values of a facet."""


def _facets(rows: Sequence[Mapping[str, Any]], given: Query) -> list[tuple[str, list[tuple[str, str, int]]]]:
    """The facets that divide the hits: (name, [(value, address of those hits, how many)])."""
    found = []
    for name in ("kind", "origin", "client", "tag", "year"):
        counts = Counter(value for row in rows for value in _values_of(row, name))
        if any(count < len(rows) for count in counts.values()):
            values = [
                (value, address("/search", given, **_filter_by(name, value)), count)
                for value, count in counts.most_common(MOST_VALUES)
            ]
            found.append((name, values))
    return found


def _values_of(row: Mapping[str, Any], facet: str) -> list[str]:
    if facet == "tag":
        return [tag for tag in row.get("tags", ()) if ":" not in tag]
    value = row.get("day", "")[:4] if facet == "year" else row.get(facet)
    return [value] if value else []


def _filter_by(facet: str, value: str) -> dict[str, str]:
    if facet == "year":
        return {"since": f"{value}-01-01", "until": f"{value}-12-31"}
    return {"source" if facet in ("origin", "client") else facet: value}


# -- records and files -------------------------------------------------------------------------------------


def card(bank: BankPages, query: Query) -> Shown:
    """One record: its lines with context, its sources, what was derived from it, and its authors."""
    target = f"^{query['id']}" if "id" in query else query["place"]
    words = ("why", "--", target)
    chain = bank.ask(*words)
    here = bank.ask("get", "--", target)
    path, line = here["path"], int(here["startLine"])
    # Read the whole file and slice it here: part of a multi-line key would not be recognised and masked.
    first, every = max(line - 5, 1), bank.ask("get", "--", path)["text"].split("\n")
    lines = [each[:LONGEST_LINE] for each in every[first - 1 : int(here["endLine"]) + 5]]
    around = {"startLine": first, "lines": lines}
    authors = [step["written"] for step in chain["steps"] if line == here["endLine"] and step.get("written")]
    if len(authors) != 1:  # git blame is slow, and `why` has run it for the first line
        span = f"{path}:{line}-{here['endLine']}"
        authors = rows(bank, "lines", "blame", "--", span)
    up = bank.ask("why", "--up", "--", target, fails=False)
    more = {"target": target, "here": here, "around": around, "authors": authors, "up": up}
    return Shown("card.html", chain, words, more)


def file(bank: BankPages, query: Query) -> Shown:
    """A file from a line on, limited to one page: rendered, or as source with the author of each line."""
    path, first = query["path"], query.get("from", "")
    words = ("get", "--", path)
    found = bank.ask(*words)
    every = found["text"].split("\n")
    start = min(max(int(first) if first.isdecimal() and len(first) < 10 else 1, 1), len(every))
    lines, room = list[str](), MOST_OF_FILE
    for line in every[start - 1 : start - 1 + LINES]:
        lines.append(line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…")
        if (room := room - len(lines[-1])) < 0:
            break
    end, rendered, authors = start + len(lines) - 1, query.get("view") != "source", []
    if not rendered:
        authors = rows(bank, "lines", "blame", "--", f"{path}:{start}-{end}")
    more = {"lines": lines, "start": start, "end": end, "all": len(every), "authors": authors}
    return Shown("file.html", found, words, {**more, "rendered": rendered})


# -- names -------------------------------------------------------------------------------------------------


def names(bank: BankPages, query: Query) -> Shown:
    """All entities, and pairs that may be the same entity."""
    asked, words = bool(query.get("pairs")), ("entities", "list", "-n", str(MOST_LISTED))
    pairs = bank.ask("entities", "list", "--suggest", fails=False) if asked else {}
    return shown(bank, "names.html", *words, pairs=pairs, asked=asked, most=MOST_LISTED)


def name(bank: BankPages, query: Query) -> Shown:
    """One entity: its facts, its days, and the names that occur with it."""
    name = query["name"].removesuffix("/") if query["name"].endswith(".json/") else query["name"]
    words = ("entities", "show", "--limit=100", "--", name)
    found = bank.ask(*words)
    beside = [row["name"] for row in found.get("beside", ())]
    near = bank.ask("entities", "graph", "--", found["name"], *beside, fails=False) if beside else {}
    counts = [(row["when"], row["count"]) for row in found["timeline"]]
    return Shown("name.html", found, words, {"graph": near, "counts": counts})


def graph(bank: BankPages, _query: Query) -> Shown:
    """The most frequent names, and their co-occurrences."""
    words = ("entities", "graph", "-n", str(GRAPH))
    found = bank.ask(*words)
    return Shown("graph.html", found, words, {"graph": found})


# -- pages, beliefs and core memory ------------------------------------------------------------------------


def pages(bank: BankPages, _query: Query) -> Shown:
    """Knowledge pages and mental models."""
    models = rows(bank, "models", "models", "list")
    return shown(bank, "pages.html", "pages", "list", models=models)


def page(bank: BankPages, query: Query) -> Shown:
    """One knowledge page with its citations, why it is stale, and with `plan` what a refresh would change."""
    words = ("pages", "get", "--", query["id"])
    found = bank.ask(*words)
    listed = {each["id"]: each for each in rows(bank, "pages", "pages", "list")}
    asked = bool(query.get("plan"))
    plan = result_or_error(bank, "pages", "refresh", "--dry-run", "--", query["id"]) if asked else {}
    stale = listed.get(query["id"], {}).get("stale")
    more = {"stale": stale, "asked": asked, "plan": plan, "recipe": plan_hash(_recipe(found))}
    return Shown("page.html", found, words, more)


def _recipe(page: Mapping[str, Any]) -> dict[str, Any]:
    return {name: page.get(name) for name in ("name", "query")}


def beliefs(bank: BankPages, _query: Query) -> Shown:
    """Observations with their evidence and earlier wordings, and opinions."""
    opinions = rows(bank, "opinions", "opinions", "list")
    return shown(bank, "beliefs.html", "observations", "list", opinions=opinions)


def core(bank: BankPages, query: Query) -> Shown:
    """Core memory, its budget and the directives. Proposals only with `proposals`, since they need all
    facts."""
    asked = bool(query.get("proposals"))
    proposals = rows(bank, "proposals", "core", "proposals") if asked else []
    rules = bank.ask("directives", "list", fails=False)
    return shown(bank, "core.html", "core", "list", proposals=proposals, asked=asked, rules=rules)


# -- history and status ------------------------------------------------------------------------------------


def diary(bank: BankPages, query: Query) -> Shown:
    """The history, newest first."""
    names = ("op", "by", "text", "since", "until")
    words = (*NEWEST, *options(query, (*names, "before")))
    found = bank.ask(*words)
    by_day = groupby(found["revisions"], key=lambda row: row["when"][:10])
    given = {name: query[name] for name in names if query.get(name)}
    listed = [(day, [list(run) for _, run in groupby(each, key=_run_of)]) for day, each in by_day]
    more = {"days": listed, "given": given, "page_size": REVISIONS, "redoable": _redoable(bank)}
    return Shown("diary.html", found, words, more)


def _run_of(row: Mapping[str, Any]) -> str:
    """A key that is equal for revisions of one kind in a row: `Claude Code inserted:`; other rows have their
    own."""
    says = str(row["says"]).partition("“")[0]
    return says if row["op"] == "insert" else str(row["revision"])


def _redoable(bank: BankPages) -> dict[str, Any]:
    """The undo that `redo` would revert, {} if there is none among the newest revisions."""
    newest = rows(bank, "revisions", *NEWEST)
    gone = {name for row in newest for name in row["trailers"].get("Undoes", ())}
    return next((row for row in newest if row["op"] == "undo" and row["revision"] not in gone), {})


def address(path: str, given: Query, **new: str) -> str:
    """An address with query parameters; `new` changes them, and '' removes one."""
    query = {name: value for name, value in {**given, **new}.items() if value}
    return f"{path}?{urlencode(query)}" if query else path


def revision(bank: BankPages, query: Query) -> Shown:
    """What one revision changed, with `raw` as a diff; with `undo` what undoing it would change now."""
    rev = query["rev"]
    found = shown(bank, "revision.html", "diff", f"--limit={MOST_CHANGES}", "--", rev)
    plan = result_or_error(bank, "undo", "--dry-run", "--", rev) if query.get("undo") else {}
    more = {"one": found.data["log"], "rev": rev, "plan": plan, "raw": bool(query.get("raw"))}
    return replace(found, more={**more, "most": MOST_CHANGES})


def work(bank: BankPages, _query: Query) -> Shown:
    """The queue, the last runs, their cost, and the settings. Checks whose time grows with the bank are in
    `health`."""
    found = shown(bank, "work.html", "status", "--quick")
    unknown = [op for op, job in found.data["jobs"].items() if "last" not in job]  # here; another machine's
    last = {op: rows(bank, "revisions", "log", "--op", op, "-n", "1") for op in unknown}
    waiting = rows(bank, "waiting", "queue", "list")
    cost = bank.ask("stats", "--cost", fails=False)
    settings = rows(bank, "settings", "config", "list")
    spent = [(day, row["usd"]) for day, row in cost.get("days", {}).items() if row["usd"]][-30:]
    more = {"waiting": waiting, "last": last, "cost": cost, "spent": spent, "settings": settings}
    return replace(found, more=more)


def health(bank: BankPages, query: Query) -> Shown:
    """The quick checks of `doctor` and `verify`, and `stats`. With `all`, those that grow with the bank, and
    secrets in the files."""
    whole, words = bool(query.get("all")), ("doctor", "--quick")
    found = result_or_error(bank, "verify", *(() if whole else ("--quick",)))
    secrets = rows(bank, "secrets", "scan") if whole else []
    more = {"stats": bank.ask("stats", fails=False), "found": found, "all": whole, "secrets": secrets}
    return Shown("health.html", bank.ask(*words, fails=False), words, more)


def probes(bank: BankPages, query: Query) -> Shown:
    """Search probes: queries with the fact that each should find. They are run with `run`."""
    words = ("bench", "probes")
    return Shown("probes.html", result_or_error(bank, *words) if query.get("run") else {}, words)


def help_(_bank: BankPages, _query: Query) -> Shown:
    """The keyboard shortcuts."""
    return Shown("help.html", {}, ("web", "--help"))


# -- forms -------------------------------------------------------------------------------------------------
# Each form runs a command whose effect the page has shown. The form sends a hash of what was shown; if it has
# changed meanwhile, nothing is written (ChangedOnDisk). The result is an address to redirect to, or a page.


def plan_hash(plan: Mapping[str, Any]) -> str:
    """A hash of a plan, or of other JSON that a form depends on."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True, default=str).encode()).hexdigest()[:32]


def forget(bank: BankPages, query: Query) -> Shown:
    """The plan of `forget` for a target: what it removes, revises and leaves."""
    target = query.get("target", "").strip()
    words = _forget(query, "--dry-run")
    plan = bank.ask(*words) if target else {}
    more = {"hash": plan_hash(plan), "own": bool(query.get("own")), "count": len(plan.get("gone", ()))}
    return Shown("forget.html", plan, words, {"target": target, **more})


def _forget(query: Query, how: str) -> tuple[str, ...]:
    """The `forget` command for the entered text, which is split like a shell command. Failed."""
    target = query.get("target", "").strip()
    try:
        return ("forget", how, *(["--own-lines"] if query.get("own") else []), "--", *shlex.split(target))
    except ValueError as error:
        raise Failed(Usage.exit_code, {"message": f"cannot be read: {error}", "where": target}) from None


def do_forget(bank: BankPages, form: Query) -> Shown:
    """Run `forget` if the plan is unchanged and its count was typed."""
    plan = forget(bank, form).more
    if plan["hash"] != form.get("hash") or str(plan["count"]) != form.get("count", "").strip():
        raise ChangedOnDisk("the plan has changed, or the count was not typed: nothing was removed")
    done, left = bank.ask(*_forget(form, "--yes")), forget(bank, {})
    return replace(left, more={**left.more, "done": done})


def do_undo(bank: BankPages, form: Query) -> str:
    """Undo a revision if that still changes what was shown."""
    if plan_hash(revision(bank, {"rev": form["rev"], "undo": "1"}).more["plan"]) != form.get("hash"):
        raise ChangedOnDisk("the result of this undo has changed: nothing was written")
    bank.ask("undo", "--", form["rev"])
    return "/diary"


def do_redo(bank: BankPages, form: Query) -> str:
    """Redo the newest undo if it is the one that was shown."""
    if _redoable(bank).get("revision") != form["rev"]:
        raise ChangedOnDisk("there is a newer undo: nothing was written")
    bank.ask("redo")
    return "/diary"


def do_held(bank: BankPages, form: Query) -> str:
    """Restore facts that disappeared at once, or accept their removal, if the files are those shown."""
    if plan_hash({"held": bank.ask("status", "--quick")["held"]}) != form.get("hash"):
        raise ChangedOnDisk("the held files have changed: nothing was written")
    bank.ask(*(("undo",) if form.get("do") == "restore" else ("status", "--accept")))
    return "/work"


def do_core(bank: BankPages, form: Query) -> str:
    """Replace the text of a core block if it is still the one shown."""
    expected = "" if form.get("new") else form["was"]
    bank.ask("core", "replace", f"--expect={expected}", "--", form["name"], form.get("value", ""))
    return "/core"


def do_directive(bank: BankPages, form: Query) -> str:
    """Add a directive, or delete the one with the typed number if it is still the one shown."""
    if form.get("do") == "delete":
        number = form["count"].strip()
        if bank.ask("directives", "get", "--", number)["directive"] != form["rule"]:
            raise ChangedOnDisk("the rules have changed: nothing was deleted")
        bank.ask("directives", "delete", "--", number)
    else:
        bank.ask("directives", "create", "--", form["rule"])
    return "/core"


def do_proposal(bank: BankPages, form: Query) -> str:
    """Accept or reject a proposal for core memory."""
    bank.ask("core", "accept" if form.get("do") == "accept" else "reject", "--", form["id"])
    return "/core?proposals=1"


def do_name(bank: BankPages, form: Query) -> str:
    """Merge two names, make one an alias of the other, or record that they differ."""
    verb = form.get("do", "")
    bank.ask("entities", verb if verb in ("merge", "alias") else "split", "--", form["one"], form["other"])
    return home("name", form)[0]


def _same_text(bank: BankPages, form: Query) -> bool:
    """Whether a record still has the text that was shown with the form."""
    return plan_hash({"text": bank.ask("get", "--", f"^{form['id']}")["text"]}) == form.get("hash")


def do_retire(bank: BankPages, form: Query) -> str:
    """Retire a fact, an observation or an opinion if its text is the one shown."""
    if not _same_text(bank, form):
        raise ChangedOnDisk("its text has changed: nothing was written")
    why, target = form.get("reason", "").strip(), f"^{form['id']}"
    match form.get("record"):
        case "observation":
            bank.ask("observations", "retire", f"--because={why}", "--", target)
        case "opinion":
            bank.ask("opinions", "drop", "--", target, why)
        case _:
            bank.ask("retire", f"--why={why}", "--", target)
    return f"/f/{form['id']}"


def do_vouch(bank: BankPages, form: Query) -> str:
    """Vouch for a record if its text is the one shown and `vouch` was typed."""
    if not _same_text(bank, form) or form["typed"].strip() != "vouch":
        raise ChangedOnDisk("its text has changed, or vouch was not typed: nothing was written")
    bank.ask("vouch", "--", f"^{form['id']}")
    return f"/f/{form['id']}"


def do_queue(bank: BankPages, form: Query) -> str | Shown:
    """Drop a queued entry, or retry it. A retry shows its result, which is stored nowhere."""
    if form.get("do") != "retry":
        bank.ask("queue", "drop", "--", form["key"])
        return "/work"
    done = result_or_error(bank, "queue", "retry", "--", form["key"])
    now = work(bank, {})
    return replace(now, more={**now.more, "done": done})


def do_page(bank: BankPages, form: Query) -> str:
    """Create, update, refresh or delete a knowledge page."""
    match form.get("do"):
        case "refresh":
            bank.ask("pages", "refresh", "--", form["id"])
        case "update":
            if plan_hash(_recipe(bank.ask("pages", "get", "--", form["id"]))) != form.get("hash"):
                raise ChangedOnDisk("the page's name or question has changed: nothing was written")
            recipe = (f"--name={form['name']}", f"--query={form['query']}")
            bank.ask("pages", "update", *recipe, "--", form["id"])
        case "delete":
            if form["typed"].strip() != form["id"]:
                raise Usage("its id was not typed: nothing was deleted")
            bank.ask("pages", "delete", "--", form["id"])
            return "/pages"
        case _:
            bank.ask("pages", "create", f"--query={form['query']}", "--", form["id"])
    return f"/pages/{quote(form['id'], safe='')}"


def do_probe(bank: BankPages, form: Query) -> Shown:
    """Add a search probe: a query and the fact that it should find."""
    done = bank.ask("bench", "probes", f"--add={form['query']}", "--", f"^{form['id']}")
    return replace(probes(bank, {}), more={"done": done})


WRITES: Mapping[str, Callable[[BankPages, Query], str | Shown]] = {
    "forget": do_forget, "undo": do_undo, "redo": do_redo, "held": do_held, "core": do_core,
    "directive": do_directive, "proposal": do_proposal, "name": do_name, "retire": do_retire,
    "vouch": do_vouch, "queue": do_queue, "page": do_page, "probe": do_probe,
}  # fmt: skip
"""{last part of the address: function} of the forms, which exist only with `--write`."""


def home(what: str, form: Query) -> tuple[str, Page, Query]:
    """(address, page, its query) of the page that contains a form; it shows the error if the form fails."""
    got = form.get
    match what:
        case "forget":
            query = {name: got(name, "") for name in ("target", "own")}
            return address("/forget", query), forget, query
        case "undo":
            return f"/diary/{quote(got('rev', ''), safe='')}?undo=1", revision, {**form, "undo": "1"}
        case "redo":
            return "/diary", diary, {}
        case "name" if got("do") == "alias" or got("at"):
            return f"/names/{quote(got('one', ''), safe='')}", name, {"name": got("one", "")}
        case "name":
            return "/names?pairs=1", names, {"pairs": "1"}
        case "retire" | "vouch":
            return f"/f/{quote(got('id', ''), safe='')}", card, {"id": got("id", "")}
        case "queue" | "held":
            return "/work", work, {}
        case "page" if got("do"):
            query = {"plan": "1"} if got("do") == "refresh" else {}
            at = address(f"/pages/{quote(got('id', ''), safe='')}", query)
            return at, page, {**query, "id": got("id", "")}
        case "page":
            return "/pages", pages, {}
        case "probe" if got("query"):
            return address("/search", {}, q=got("query", "")), search, {"q": got("query", "")}
        case "probe":
            return "/bench", probes, {}
    proposals = {"proposals": "1"} if what == "proposal" else {}
    return address("/core", proposals), core, proposals


VIEWS: Mapping[str, Page] = {
    "/": days, "/days/{day}": day, "/search": search, "/f/{id}": card, "/at/{place:path}": card,
    "/files/{path:path}": file, "/names": names, "/names/{name:path}": name, "/graph": graph,
    "/sessions": sessions, "/sessions/{name}": session, "/pages": pages, "/pages/{id}": page,
    "/beliefs": beliefs, "/core": core, "/diary": diary, "/diary/{rev}": revision, "/work": work,
    "/health": health, "/bench": probes, "/forget": forget, "/help": help_,
}  # fmt: skip
"""{route: page}."""
