"""A bank as a whole: its state, checks, counts, costs and settings, and the search benchmark."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from shlex import quote
from typing import TYPE_CHECKING, Any

from ua_memory import config as config_module
from ua_memory.config import sensitive
from ua_memory.discovery import SETTINGS
from ua_memory.errors import NotFound
from ua_memory.llm.model import PRICES_AS_OF, is_subscription
from ua_memory.retain.queue import UNASKED, UPKEEP
from ua_memory.text.wording import dollars
from ua_memory.views import flushed, output
from ua_memory.views.output import Piece, Screen, ago, count, fields, plain

if TYPE_CHECKING:
    from pathlib import Path

    from ua_memory.bench import BenchReport, Probe, ProbeFigures, ProbeRun, Ranking
    from ua_memory.config import Config
    from ua_memory.git.repository import Revision
    from ua_memory.index.sync import Refresh
    from ua_memory.llm.ledger import Spent, Totals
    from ua_memory.memory import Status
    from ua_memory.records import Problem
    from ua_memory.retain.queue import JobRun
    from ua_memory.upkeep.audit import Stats
    from ua_memory.upkeep.doctor import Check
    from ua_memory.upkeep.purge import Unfinished
    from ua_memory.upkeep.sync import CloneResult


# -- init ------------------------------------------------------------------------------------------------

SAYS = {
    "MEMORY.md": "core memory: given to every session",
    "memory/": "daily logs, one file a day",
    "ua-memory.toml": "its settings",
}
"""What each file of a new bank is for."""


NextStep = tuple[str, str]
"""A command, and what it is for."""


def next_steps(*, empty: bool, held: bool = False, waiting: int = 0, client: str = "") -> list[NextStep]:
    """Three commands that somebody may want next. `client` is one that has no memory yet."""
    found = [("ua-memory status", "facts disappeared: bring them back, or confirm it")] if held else []
    if empty:
        found.append(('ua-memory insert "We left Heroku for Fly.io: its price doubled"', "remember a fact"))
        found.append(('ua-memory search "why did we leave Heroku"', "find it again"))
    else:
        found.append(("ua-memory search WORDS", "find what is remembered"))
    if waiting:
        found.append(("ua-memory queue list", f"{count(waiting, 'conversation or text')} not read yet"))
    if client or empty:
        found.append((f"ua-memory install {client or 'claude-code'}", "set up memory in your agent"))
    more = (("ua-memory today", "what was remembered today"), ("ua-memory status", "the bank's state"))
    return [*found, *(each for each in more if each[0] not in dict(found))][:3]


def _show_steps(screen: Screen, steps: Sequence[NextStep], *, more: bool = False) -> None:
    """What to do next, and with `more` what tells of all commands."""
    screen.heading("Next:")
    wide = max(output.cells(command) for command, _ in steps) + 4 + max(len(says) for _, says in steps)
    if wide <= screen.width or not screen.fancy:
        screen.rows([[f"  {command}", (says, "faint")] for command, says in steps])
    else:
        for command, says in steps:
            screen.item("  ", command)
            screen.item("    ", (says, "faint"))
    if more:
        screen.heading("ua-memory help lists all commands.")


LAST = 100
"""Characters that are shown of what the newest revision did."""


def show_overview(
    screen: Screen, root: Path, files: int, newest: Revision | None, last: str, now: datetime,
    steps: Sequence[NextStep],
) -> None:  # fmt: skip
    """Where the bank is, its files, what its newest revision did, and what to do next."""
    rows: list[list[Piece]] = [[("Bank", "strong"), (str(root), "path")], [("Files", "strong"), f"{files:,}"]]
    if newest:
        last = textwrap.shorten(last, LAST, placeholder=" …")
        rows.append([("Last", "strong"), f"{ago(newest.when.astimezone(now.tzinfo), now)}, {last}"])
    screen.rows(rows)
    _show_steps(screen, steps, more=True)


def show_no_bank(screen: Screen, default: Path) -> None:
    """That there is none, and how to make one."""
    screen.line(f"There is no memory bank here or above, and none at {default}.")
    steps = [
        ("ua-memory init", f"make one at {default}, for everything"),
        ("ua-memory init .", "make one in this folder, for this project"),
    ]
    _show_steps(screen, steps, more=True)


@dataclass(frozen=True, slots=True)
class NewBank:
    """A bank that `init` made or found: how it stands, what was made, and the clone it came from, if any."""

    status: Status
    id: str
    timezone: str
    made: tuple[str, ...]
    notes: Sequence[str]
    cloned: CloneResult | None
    steps: Sequence[NextStep] = ()


def init_shape(one: NewBank) -> dict[str, Any]:
    """What was made, as JSON."""
    cloned = one.cloned and fields(one.cloned, "address as from", "branch", "revisions", "files")
    names = ("status.root as bank", "id", "status.own", "status.trail", "timezone", "made", "notes")
    return fields(one, *names) | (cloned or {})


def show_init(screen: Screen, one: NewBank) -> None:
    """What was made, and what to do next."""
    if one.cloned:
        return _show_cloned(screen, one, one.cloned)
    root = (one.status.root, "path")
    if not one.made:
        screen.line(root, " is already a memory bank. Nothing was changed.")
    else:
        screen.line("Created a memory bank in ", root, ".")
        table: list[list[Piece]] = [[(f"  {name}", "path"), SAYS.get(name, "")] for name in one.made]
        where = (
            "its own git repository" if one.status.own else f"a separate repository, in {one.status.trail}"
        )
        screen.rows([*table, ["  history", where]])
    screen.note(*one.notes)
    if one.made:
        _show_steps(screen, one.steps)
    return None


def _show_cloned(screen: Screen, one: NewBank, done: CloneResult) -> None:
    where = (one.status.root, "path")
    screen.line("Cloned the memory bank from ", (done.address, "path"), " into ", where, ".")
    what = f"{count(done.files, 'file')}, {count(done.revisions, 'revision')}, branch {done.branch}"
    screen.line(f"  {what}; the next search builds the index")
    screen.note(*done.notes, *one.notes)
    _show_steps(screen, one.steps)


# -- status ----------------------------------------------------------------------------------------------


HELD = ("confirm: ua-memory status --accept", "restore: ua-memory undo")


@dataclass(frozen=True, slots=True)
class JobView:
    """A job's last run, and when the next one is: at `next`, or `why` not."""

    name: str
    last: JobRun | None
    next: datetime | None = None
    why: str = ""


def job_views(
    found: Status, config: Config, daemon: Mapping[str, Any] | None, now: datetime
) -> Sequence[JobView]:
    """How the work stands that is done unasked; `daemon` is what it says of itself, None if none answers."""
    nobody = "memory is switched off" if not config.enabled else "" if daemon else "no daemon runs"
    said, rest = daemon or {}, timedelta(minutes=config.daemon_upkeep_minutes)
    unasked: datetime | str = now + rest if said.get("upkeep") else NO_MODEL
    if not rest:
        unasked = "off: daemon.upkeep_minutes is 0"
    elif said.get("flushing") == UPKEEP:
        unasked = "running"
    flush = (nobody or _next_flush(found, said, now)) if found.waiting else "nothing waits"
    told = {"sync": "only when asked: ua-memory sync", "flush": flush}
    each = []
    for job, last in found.jobs.items():
        then = told.get(job, nobody or unasked)
        if isinstance(then, datetime) and job in UNASKED and last:
            same = found.head is not None and last.head == found.head.id
            then = "nothing new since then" if same else max(then, last.again or then)
        each.append(JobView(job, last, *((then, "") if isinstance(then, datetime) else (None, then))))
    return each


def _next_flush(found: Status, daemon: Mapping[str, Any], now: datetime) -> datetime | str:
    tries = [one for one in found.waiting if not one.aside]
    if not tries:
        return "set aside: ua-memory queue retry"
    if all(one.modelled is not False for one in tries) and not daemon.get("model"):
        return NO_MODEL
    return min(max(one.tried.again or now, now) for one in tries)


NO_MODEL = "the daemon has no model"
GIVE_MODEL = (
    "hint: `ua-memory daemon restart --with-key` in a shell that has your key, or name a logged-in client"
    " (docs/model.md); `ua-memory consolidate` and `flush` use the model of the shell that calls them"
)
"""No command passes its key on to the daemon, so it may lack one that its owner's shell has."""


def _job_shape(job: JobView) -> dict[str, Any]:
    last = job.last
    ran = last and {"at": last.at.isoformat(timespec="seconds"), **fields(last, "result", "failed")}
    after = {"next": job.next.isoformat(timespec="seconds")} if job.next else {"why": job.why}
    return {**({"last": ran} if ran else {}), **after}


def _job(job: JobView, now: datetime, *, relative: bool, told: bool = False) -> Piece:
    """`consolidate: 4 hours ago, 2 created, of 9 facts; next not before 14:32`. `told`: why it failed is said
    elsewhere."""
    after = f"next not before {job.next.astimezone(now.tzinfo):%H:%M}" if job.next else job.why
    if job.last is None:
        return f"{job.name}: not run yet; {after}"
    failed = "failed: " if job.last.failed else ""
    result = "failed" if failed and told else failed + job.last.result
    said = f"{_moment(job.last.at, now, relative=relative)}, {result}"
    line = f"{job.name}: {said}; {after}"
    return (line, "warn") if failed else line


def status_shape(
    found: Status, watch: Mapping[str, Any], jobs: Sequence[JobView], accepted: Sequence[str] | None
) -> dict[str, Any]:
    """How a bank stands, as JSON. `watch` is how its daemon hears of changes, empty where none runs;
    `accepted` the files whose disappeared facts were confirmed to be gone."""
    watched = {key: watch[key] for key in ("mode", "why") if key in watch}
    whole, *blocks = found.budgets
    return {
        **fields(found, "root as bank", "trail", "own"),
        **({"head": output.revision(found.head)} if found.head else {}),
        **fields(found, "files", "edited", "held", "pending"),
        "waiting": [flushed.waiting_shape(one) for one in found.waiting],
        "jobs": {job.name: _job_shape(job) for job in jobs},
        "core": {**output.budget(whole), "blocks": {block.name: output.budget(block) for block in blocks}},
        **fields(found, "damage?", "settings", "problems", "index"),
        **({"watch": watched} if watched else {}),
        **({} if accepted is None else {"accepted": list(accepted)}),
        **fields(found, "beliefs?", "proposals", "purges?"),
    }


def show_status(
    screen: Screen, found: Status, last: str, watch: Mapping[str, Any], jobs: Sequence[JobView], now: datetime
) -> None:
    """How a bank stands; `last` is what its newest revision did, `watch` as `status_shape` has it."""
    pending = "\n".join([*found.pending, "hint: ua-memory doctor"]) if found.pending else ""
    rows: list[tuple[str, Piece]] = [
        ("Bank", (found.root, "path")),
        ("History", "its own git repository" if found.own else f"a separate repository, in {found.trail}"),
        ("Damage", (f"{found.damage}\nhint: ua-memory doctor" if found.damage else "", "bad")),
        ("Last", _last(found, last, now, relative=screen.fancy)),
        ("Files", f"{found.files:,}"),
        ("By hand", (_listed(found.edited, "edited and not committed yet"), "warn")),
        ("Held", (_listed(found.held, "facts disappeared", *HELD), "bad")),
        ("Pending", (pending, "warn")),
        ("Waiting", (_waiting(found), "warn")),
    ]
    shown = [job for job in jobs if job.last or job.name in UNASKED]
    told = {"flush"} if any(one.reason for one in found.waiting) else set()
    work = [_job(job, now, relative=screen.fancy, told=job.name in told) for job in shown]
    work += [(GIVE_MODEL, "warn")] if any(job.why == NO_MODEL for job in shown) else []
    rows += [("" if number else "Work", said) for number, said in enumerate(work)]
    rows.append(("Settings", ("\n".join(found.settings), "bad")))
    if beliefs := found.beliefs:
        said = f"{count(beliefs.observations, 'observation')}, {count(beliefs.waiting, 'fact')} to consider"
        said += f", {beliefs.aside} set aside" if beliefs.aside else ""
        rows.append(("Beliefs", said))
        if beliefs.posted:
            said = f"{count(beliefs.posted, 'fact')} submitted on {beliefs.since}"
            rows.append(("Batch", f"{said}: ua-memory consolidate collects the answers"))
    whole, *blocks = found.budgets
    rows.append(("Core", f"{whole.used:,} of {whole.limit:,} tokens in {count(len(blocks), 'block')}"))
    rows += [("", (budget.warning, "warn")) for budget in found.budgets]
    proposed = f"{count(found.proposals, 'proposal')} for core memory: ua-memory core proposals"
    rows.append(("Proposed", proposed if found.proposals else ""))
    problems: Piece = (f"{found.problems}; ua-memory verify lists them", "bad") if found.problems else "none"
    problems = "not looked for" if found.problems is None else problems
    rows += [("Problems", problems), ("Index", _index(dict(found.index)))]
    rows.append(("Purge", ("\n".join(map(_purge, found.purges)), "bad")))
    deaf = f"no events ({watch.get('why')}): the daemon polls the files"
    rows.append(("Watch", (deaf if "why" in watch else "", "warn")))
    screen.rows([[(name, "strong"), said] for name, said in rows if said and said[0]])


PATHS = 3
"""Paths that `status` names; of more it says how many."""


def _listed(paths: tuple[str, ...], says: str, *more: str) -> str:
    named, rest = ", ".join(paths[:PATHS]), len(paths) - PATHS
    named += f" and {count(rest, 'other file')}" if rest > 0 else ""
    return "\n".join([f"{named}: {says}", *more]) if paths else ""


def _purge(one: Unfinished) -> str:
    """What is left to do of a purge."""
    if not one.done:
        hint = "ua-memory sync" if one.sync else "ua-memory forget --purge"
        return f"was interrupted: {hint} finishes it"
    return (
        f"of {one.on} is not finished: the old history is in {one.backup}\nonce you are sure: rm {one.backup}"
    )


def _waiting(found: Status) -> str:
    """Conversations that no flush has read, each with the reason where one failed."""
    lines = [
        f"{flushed.waiting_what(one)} of {one.session.client}"
        + (f": {flushed.waiting_why(one)}" if one.reason else ", still open" if one.open else "")
        for one in found.waiting
    ]
    return "\n".join([*lines, "to flush them: ua-memory queue retry"]) if lines else ""


def _last(found: Status, says: str, now: datetime, *, relative: bool) -> str:
    """The newest revision: how long ago for a person, the time for a script."""
    if found.head is None:
        return ""
    return f"{_moment(found.head.when, now, relative=relative)}, {found.head.id[:7]} {says}"


def _moment(then: datetime, now: datetime, *, relative: bool) -> str:
    then = then.astimezone(now.tzinfo)
    return ago(then, now) if relative else f"{then:%Y-%m-%d %H:%M}"


def _index(found: dict[str, object]) -> str:
    """What the index says of itself, in words: `ready, 12 items, 3 files, vectors ready`."""
    said = [str(found.pop("state", "ready"))]
    if said == ["behind"]:
        said = ["out of date; the next search updates it"]
    counts = ((noun, found.pop(f"{noun}s", None)) for noun in ("item", "file"))
    counted = [count(number, noun) for noun, number in counts if isinstance(number, int)]
    more = (f"{key} {'incomplete' if value == 'behind' else value}" for key, value in found.items())
    return ", ".join([*said, *counted, *more])


# -- verify and doctor -----------------------------------------------------------------------------------


def verified_shape(problems: Sequence[Problem], unchecked: Sequence[Problem], files: int) -> dict[str, Any]:
    """What `verify` found in so many files, and what could not be checked, as JSON."""
    return {
        "problems": plain(problems),
        "unchecked": [fields(each, "path", "message") for each in unchecked],
        "files": files,
    }


def show_verified(
    screen: Screen, problems: Sequence[Problem], unchecked: Sequence[Problem], files: int
) -> None:
    """A line for each problem."""
    screen.note(*(f"{each.path}: {each.message}" for each in unchecked))
    for problem in problems:
        screen.item([(f"{problem.path}:{problem.line}:", "path"), " "], problem.message)
    if not problems:
        screen.line(("No problems", "good"), f" in {count(files, 'file')}.")
    else:
        screen.note(f"{count(len(problems), 'problem')} in {count(files, 'file')}")


def checks_shape(checks: Sequence[Check]) -> dict[str, Any]:
    """The checks of `doctor` as JSON."""
    said = ("name", "ok", "seen")
    return {
        "checks": [fields(one, *said, *(() if one.ok else ("hint as mend?",)), "mended") for one in checks]
    }


def show_checks(screen: Screen, checks: Sequence[Check]) -> None:
    """The checks of `doctor`, a row each."""
    rows: list[list[Piece]] = []
    for one in checks:
        word: Piece = ("mended", "good") if one.mended else ("ok", "good") if one.ok else ("wrong", "bad")
        hint = f"\nhint: {one.hint}" if one.hint and not one.ok else ""
        rows.append([word, (one.name, "strong"), one.seen + hint])
    screen.rows(rows)


# -- index -----------------------------------------------------------------------------------------------


def show_indexed(screen: Screen, done: Refresh) -> None:
    """What a rebuild did."""
    indexed = f"{count(done.added, 'item')} of {count(done.files, 'file')}"
    screen.line(f"Indexed {indexed} in {done.seconds:.1f} s.")
    screen.note(*map(str, done.failed), *done.notes)
    if done.semantic != "ready":
        screen.note(f"keywords only: {done.semantic}")


def index_shape(done: Refresh) -> dict[str, Any]:
    """What a rebuild did."""
    found = fields(done, "added as items", "files", "embedded", "seconds", "semantic", "failed", "notes")
    return found | {"seconds": round(done.seconds, 3)}


# -- counts and costs --------------------------------------------------------------------------------------


NAMED = 12
"""Rows of a table that are shown; JSON has all."""


def stats_shape(found: Stats) -> dict[str, Any]:
    """The counts as JSON."""
    names = ("files", "bytes", "facts", "revisions", "first?", "last?")
    return fields(found, *names, "kinds", "origins", "clients", "months", "ops")


def show_stats(screen: Screen, found: Stats) -> None:
    """The counts, and tables of them."""
    span = f", from {found.first} to {found.last}" if found.first else ""
    screen.line(f"{found.facts:,} facts in {found.files:,} files ({_size(found.bytes)}){span}")
    screen.line(f"{found.revisions:,} revisions")
    tables = {"Month": found.months, "Kind": found.kinds, "Origin": found.origins, "Client": found.clients}
    for title, counts in {**tables, "Revisions": found.ops}.items():
        _table(screen, title, counts)


def _table(screen: Screen, title: str, counts: Mapping[str, int]) -> None:
    if not counts:
        return
    screen.heading((title, "strong"))
    rows = list(counts.items())
    shown = rows[-NAMED:] if title == "Month" else rows[:NAMED]
    most = max(counts.values())
    screen.rows(
        [["  " + name, *screen.bar(min(number / most, 0.79))[:1], f"{number:,}"] for name, number in shown]
    )
    if len(rows) > len(shown):
        screen.line((f"  and {len(rows) - len(shown)} more", "faint"))


def _size(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB" if size >= 100_000 else f"{size / 1000:.1f} kB"


def costs_shape(spent: Spent, config: Config) -> dict[str, Any]:
    """What models cost, and the settings that limit it, as JSON."""
    limits = {name: getattr(config, name) for name in ("run_tokens", "run_usd", "day_tokens", "day_usd")}
    groups = {"purposes": spent.by_purpose, "days": spent.by_day, "models": spent.by_model}
    return {
        "total": _totals(spent.total),
        **{title: {name: _totals(each) for name, each in group.items()} for title, group in groups.items()},
        "limits": limits,
        "pricesAsOf": PRICES_AS_OF,
    }


def _totals(one: Totals) -> dict[str, Any]:
    usage = {**plain(one.usage), "usd": round(one.usd, 6)}
    return fields(one, "requests", "failed") | usage | fields(one, "unpriced")


def show_costs(screen: Screen, spent: Spent, config: Config) -> None:
    """What models cost: by purpose, model and day."""
    if not spent.total.requests:
        screen.line("No model has been called yet.")
        return
    for title, groups in {"Purpose": spent.by_purpose, "Model": spent.by_model, "Day": spent.by_day}.items():
        head = [(title, "strong"), "requests", "in", "cached", "out", "dollars"]
        most = max(_weight(each, spent) for each in groups.values())
        shown = list(groups.items())[-NAMED:]
        body = [_row(f"  {name}", each) for name, each in shown]
        rows = [[f"{cell:>9}" if n and isinstance(cell, str) else cell for n, cell in enumerate(row)]
                for row in [head, *body]]  # fmt: skip
        bars = [[], *(screen.bar(min(_weight(each, spent) / (most or 1), 0.79), 8)[:1] for _, each in shown)]
        screen.rows([[*row, *bar] for row, bar in zip(rows, bars, strict=True)], gap=1)
        screen.line()
    screen.rows([_row("All", spent.total)])
    screen.line()
    limits = f"{dollars(config.run_usd)} a run, {dollars(config.day_usd)} a day"
    screen.line(f"Limits: {limits}. Prices of {PRICES_AS_OF}.")
    if owned := sum(each.requests for name, each in spent.by_model.items() if is_subscription(name)):
        screen.line((f"{count(owned, 'request')} counted against a subscription.", "faint"))
    if spent.total.unpriced:
        screen.line((f"{spent.total.unpriced} requests went to models without a known price.", "faint"))


def _weight(one: Totals, spent: Spent) -> float:
    """What a bar shows: dollars, or tokens where nobody sends a bill."""
    return one.usd if spent.total.usd else float(one.usage.total)


def _row(name: str, one: Totals) -> list[Any]:
    used = one.usage
    figures = (one.requests, used.input + used.cache_write, used.cache_read, used.output)
    return [name, *(f"{figure:,}" for figure in figures), dollars(one.usd).removeprefix("$")]


# -- bench -----------------------------------------------------------------------------------------------


SHARES = ("R@5", "tokens@5", "R@10", "tokens@10", "R@20", "tokens@20", "R@2000t", "tokens@2000t")


RANKS = ("ses@5", "nDCG@10", "MRR@10")


STRICT = tuple(f"{what}@{depth}" for depth in ("5", "10", "20", "2000t") for what in ("all", "hit"))


def bench_shape(report: BenchReport) -> dict[str, Any]:
    """The report as JSON."""
    names = ("conversations", "turns", "questions", "unanswered", "limit", "index_seconds")
    rankings = [_ranking(one) for one in report.rankings]
    return {**fields(report, *names), "rankings": rankings, **fields(report, "notes")}


def _ranking(one: Ranking) -> dict[str, Any]:
    return {
        **fields(one, "name", "ms"),
        "rows": [{**fields(row, "name", "n"), **row.figures} for row in one.rows],
        "curve": [{"tokens": tokens, "R": recall} for tokens, recall in one.curve],
    }


def show_bench(screen: Screen, report: BenchReport) -> None:
    """A table of all rankings, and one of the stricter figures."""
    said = f"{count(report.conversations, 'conversation')}, {count(report.turns, 'turn')}"
    left = f"; {count(report.unanswered, 'question')} without evidence left out" if report.unanswered else ""
    screen.line(f"{said}, indexed in {report.index_seconds:.1f} s{left}")
    screen.line()
    _bench_table(screen, report, [*SHARES, *RANKS], len(report.rankings[0].rows))
    totals = [row.name for row in report.rankings[0].rows if row.name in ("all", "adversarial")]
    screen.heading(("All of the evidence (all@), any of it (hit@)", "strong"))
    _bench_table(screen, report, list(STRICT), len(totals))
    screen.note(*report.notes)


def _bench_table(screen: Screen, report: BenchReport, figures: list[str], rows: int) -> None:
    """The first rows of each ranking, a row of all rankings together; tokens and time beside the figures."""
    heads = ["tok" if name.startswith("tokens") else name for name in figures]
    heads = [head.removesuffix("@10") if head in RANKS else head for head in heads]
    widths = [4 if head == "tok" else max(len(head), 5) for head in heads]
    cells = [f"{head:>{width}}" for head, width in zip(heads, widths, strict=True)]
    screen.line((" ".join([" " * 9, *cells, f"{'ms':>6}"]), "faint"))
    for number in range(rows):
        row = report.rankings[0].rows[number]
        screen.line((row.name, "strong"), (f", {row.n:,} question{'s' if row.n > 1 else ''}", "faint"))
        for one in report.rankings:
            said = [one.rows[number].figures[name] for name in figures]
            texts = [
                str(n) if name.startswith("tokens") else f"{n:.1f}"
                for name, n in zip(figures, said, strict=True)
            ]
            cells = [f"{cell:>{width}}" for cell, width in zip(texts, widths, strict=True)]
            screen.line(" ".join([f"{one.name:9}", *cells, f"{one.ms:>6.{2 if one.ms < 100 else 0}f}"]))


# -- probes ----------------------------------------------------------------------------------------------


NEAR = 10
"""Within so many hits a question counts as answered."""


def show_probe(screen: Screen, one: Probe) -> None:
    """Say which probe was added."""
    ids = ", ".join(f"^{block}" for block in one.ids)
    screen.line("Added to ", (f"probes.md:{one.line}", "path"), f": {one.query}  ", (ids, "id"))


def show_probes(screen: Screen, run: ProbeRun) -> None:
    """The figures beside those of the run before, and each question with the ranks of what it should find."""
    now, last = run.figures, run.last
    r5, r10 = _figure(now.r5, last.r5 if last else None), _figure(now.r10, last.r10 if last else None)
    screen.line(
        (count(len(run.results), "probe"), "strong"), f", R@5 {r5}, R@10 {r10}, {now.tokens:,} tokens,"
        f" {now.ms:.0f} ms", (f" (last run {last.when:%Y-%m-%d %H:%M})" if last else "", "faint"),
    )  # fmt: skip
    for one in run.results:
        screen.line()
        screen.item([("✓ ", "good") if one.share(NEAR) == 1 else ("✗ ", "bad")], one.probe.query)
        for block, rank in one.ranks.items():
            before = one.was.get(block, rank) if one.was else rank
            moved = f" (was {_rank(before)})" if before != rank else ""
            gone = "  no longer in the bank" if block in one.missing else ""
            screen.item("  ", (f"^{block}", "id"), f"  {_rank(rank)}{moved}{gone}")
            if not gone and (rank is None or rank > NEAR):
                screen.item(
                    "    ", (f"ua-memory search --why-not ^{block} {quote(one.probe.query)}", "faint")
                )
    for name, found, style in (("Gained", run.gained, "good"), ("Lost", run.lost, "bad")):
        if found:
            screen.heading((f"{name}: {len(found)}", style))
    screen.note(*run.notes)


def _figure(now: float, last: float | None) -> str:
    """A share in percent, and what it is more or less than in the run before."""
    change = 0 if last is None else round(100 * (now - last))
    return f"{100 * now:.0f}" + (f" ({change:+d})" if change else "")


def _rank(rank: int | None) -> str:
    return f"#{rank}" if rank else "not found"


def probes_shape(run: ProbeRun) -> dict[str, Any]:
    """A run of the probes as JSON."""
    return {
        "probes": [
            {
                **plain(one.probe),
                "ids": [
                    {"id": block, "rank": rank, "was": one.was.get(block) if one.was else None,
                     "missing": block in one.missing}
                    for block, rank in one.ranks.items()
                ],
                "R@5": _percent(one.share(5)), "R@10": _percent(one.share(NEAR)),
                "change": round(100 * one.change, 1), **fields(one, "tokens", "ms"),
            }
            for one in run.results
        ],
        **_probe_figures(run.figures),
        "last": _probe_figures(run.last) if run.last else None,
        "gained": [one.probe.line for one in run.gained],
        "lost": [one.probe.line for one in run.lost],
        **fields(run, "notes"),
    }  # fmt: skip


def _probe_figures(one: ProbeFigures) -> dict[str, Any]:
    shares = {"R@5": _percent(one.r5), "R@10": _percent(one.r10)}
    return fields(one, "when") | shares | fields(one, "tokens", "ms")


def _percent(share: float) -> float:
    return round(100 * share, 1)


# -- settings --------------------------------------------------------------------------------------------


def setting_rows(loaded: Config, key: str | None) -> list[dict[str, Any]]:
    """Each setting, or the one that is named. NotFound lists what there is."""
    rows = []
    for name, toml, env, says, default in config_module.settings():
        row = {"key": toml, "value": plain(_hidden(name, getattr(loaded, name)))}
        row |= {"source": loaded.sources[name], "default": plain(default), "says": says}
        if name in loaded.untrusted:
            row["untrusted"] = plain(_hidden(name, loaded.untrusted[name]))
        rows.append(row | ({"env": env} if env else {}))
    if key is None:
        return rows
    chosen = [row for row in rows if row["key"] == key]
    if not chosen:
        raise NotFound(f"unknown setting {key!r}", hint="ua-memory config lists them")
    return chosen


def sensitive_rows(root: Path, loaded: Config) -> list[dict[str, Any]]:
    """What the bank's file says of sensitive settings, where paths lead to, and whether it counts."""
    found = []
    for name, key in sensitive().items():
        value = loaded.untrusted.get(name, getattr(loaded, name))
        if name not in loaded.untrusted and loaded.sources[name] != SETTINGS:
            continue
        row = {"key": key, "value": plain(_hidden(name, value)), "trusted": name not in loaded.untrusted}
        if name in ("extra_paths", "cross_encoder"):
            paths = value if isinstance(value, tuple) else (value,)
            row["leadsTo"] = [os.path.realpath(root / path) for path in paths]
        found.append(row)
    return found


def show_settings(screen: Screen, found: Sequence[Mapping[str, Any]]) -> None:
    """Each setting, its source and its value."""
    rows: list[list[Piece]] = []
    for one in found:
        set_by = (one["source"], "faint" if one["source"] == "default" else "good")
        rows.append([(one["key"], "strong"), set_by, setting_text(one["value"]) or ("not set", "faint")])
        if "untrusted" in one:
            text = f"{setting_text(one['untrusted'])}\nnot trusted: ua-memory trust"
            rows.append(["", (SETTINGS, "warn"), (text, "warn")])
    screen.rows(rows)


def show_sensitive(screen: Screen, root: Path, loaded: Config) -> None:
    """The sensitive settings of a bank, and which of them are trusted."""
    rows: list[list[Piece]] = []
    for one in sensitive_rows(root, loaded):
        trusted = ("trusted", "good") if one["trusted"] else ("not trusted", "warn")
        leads = [f"leads to {path}" for path in one.get("leadsTo", ()) if path not in one["value"]]
        rows.append([(one["key"], "strong"), trusted, "\n".join([setting_text(one["value"]), *leads])])
    screen.rows(rows)
    if not rows:
        screen.line("This bank's ua-memory.toml has no sensitive settings.")


def _hidden(name: str, value: Any) -> Any:
    return re.sub(r"(?<=//)[^/@]*@", "…@", value) if name == "chroma_url" else value  # a token stands there


def typed(value: Any) -> str:
    """A value in one line, as `config set` takes it."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else setting_text(value)


def setting_text(value: Any) -> str:
    """A value for a person; of lists and tables a line for each item."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "\n".join(f"{name} = {text}" for name, text in value.items())
    return "\n".join(value) if isinstance(value, list) else str(value)
