"""A bank's status, checks, statistics, costs and settings, and the benchmarks: as text and as JSON."""

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
from ua_memory.retain.queue import UPKEEP_JOB, UPKEEP_STEPS
from ua_memory.text.wording import dollars
from ua_memory.views import output, retain
from ua_memory.views.output import Screen, Styled, ago, count, fields, json_value

if TYPE_CHECKING:
    from pathlib import Path

    from ua_memory.bench import BenchReport, Probe, ProbeFigures, ProbeResult, ProbeRun
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

FILE_PURPOSES = {
    "MEMORY.md": "core memory: given to every session",
    "memory/": "daily logs, one file a day",
    "ua-memory.toml": "its settings",
}
"""What each file of a new bank is for."""


NextStep = tuple[str, str]
"""A command, and what it is for."""


def next_steps(*, empty: bool, held: bool = False, waiting: int = 0, client: str = "") -> list[NextStep]:
    """Up to three commands to suggest. `held`: facts disappeared; `waiting`: entries of the queue; `client`:
    an agent on this machine that ua-memory is not installed in."""
    found = [("ua-memory status", "facts disappeared: restore them, or confirm the deletion")] if held else []
    if empty:
        found.append(('ua-memory insert "We left Heroku for Fly.io: its price doubled"', "remember a fact"))
        found.append(('ua-memory search "why did we leave Heroku"', "search for it"))
    else:
        found.append(("ua-memory search WORDS", "search the memory"))
    if waiting:
        found.append(("ua-memory queue list", f"{count(waiting, 'conversation or text')} not read yet"))
    if client or empty:
        found.append((f"ua-memory install {client or 'claude-code'}", "set up memory in your agent"))
    more = (("ua-memory today", "what was remembered today"), ("ua-memory status", "the bank's state"))
    return [*found, *(each for each in more if each[0] not in dict(found))][:3]


def _show_steps(screen: Screen, steps: Sequence[NextStep], *, more: bool = False) -> None:
    """Print suggested commands; `more` adds how to list all."""
    screen.heading("Next:")
    wide = max(output.cell_width(command) for command, _ in steps) + 4 + max(len(says) for _, says in steps)
    if wide <= screen.width or not screen.is_terminal:
        screen.rows([[f"  {command}", (says, "faint")] for command, says in steps])
    else:
        for command, says in steps:
            screen.item("  ", command)
            screen.item("    ", (says, "faint"))
    if more:
        screen.heading("ua-memory help lists all commands.")


LAST_LENGTH = 100
"""Characters of the newest revision's summary that are shown."""


def show_overview(
    screen: Screen, root: Path, files: int, newest: Revision | None, last: str, now: datetime,
    steps: Sequence[NextStep],
) -> None:  # fmt: skip
    """Print where the bank is, its number of files, its newest revision, and suggested commands."""
    rows: list[list[Styled]] = [[("Bank", "strong"), (str(root), "path")]]
    rows.append([("Files", "strong"), f"{files:,}"])
    if newest:
        last = textwrap.shorten(last, LAST_LENGTH, placeholder=" …")
        rows.append([("Last", "strong"), f"{ago(newest.when.astimezone(now.tzinfo), now)}, {last}"])
    screen.rows(rows)
    _show_steps(screen, steps, more=True)


def show_no_bank(screen: Screen, default: Path) -> None:
    """Print that there is no bank, and how to make one."""
    screen.line(f"There is no memory bank here or above, and none at {default}.")
    steps = [
        ("ua-memory init", f"create one at {default}, for all projects"),
        ("ua-memory init .", "create one in this folder, for this project"),
    ]
    _show_steps(screen, steps, more=True)


@dataclass(frozen=True, slots=True)
class NewBank:
    """A bank that `init` made or found. `made`: the files created; `cloned`: the clone, if it came from
    one."""

    status: Status
    id: str
    timezone: str
    made: tuple[str, ...]
    notes: Sequence[str]
    cloned: CloneResult | None
    steps: Sequence[NextStep] = ()


def init_json(one: NewBank) -> dict[str, Any]:
    cloned = one.cloned and fields(one.cloned, "address as from", "branch", "revisions", "files")
    names = ("status.root as bank", "id", "status.own", "status.history as trail", "timezone", "made")
    return fields(one, *names, "notes") | (cloned or {})


def show_init(screen: Screen, one: NewBank) -> None:
    """Print what `init` made, and suggested commands."""
    if one.cloned:
        return _show_clone(screen, one, one.cloned)
    root, existed = (one.status.root, "path"), one.made == ("memory/",)
    if not one.made:
        screen.line(root, " is already a memory bank.", "" if one.notes else " Nothing was changed.")
    else:
        # Where only the folder was missing, the bank's files had been deleted, and are restored.
        screen.line("Completed the" if existed else "Created a", " memory bank in ", root, ".")
        rows: list[list[Styled]] = [[(f"  {name}", "path"), FILE_PURPOSES.get(name, "")] for name in one.made]
        screen.rows([*rows, ["  history", _history_text(one.status)]])
    screen.note(*one.notes)
    if one.made and not existed:
        _show_steps(screen, one.steps)
    return None


def _history_text(found: Status) -> str:
    return "its own git repository" if found.own else f"a separate repository, in {found.history}"


def _show_clone(screen: Screen, one: NewBank, done: CloneResult) -> None:
    where = (one.status.root, "path")
    screen.line("Cloned the memory bank from ", (done.address, "path"), " into ", where, ".")
    what = f"{count(done.files, 'file')}, {count(done.revisions, 'revision')}, branch {done.branch}"
    screen.line(f"  {what}; the next search builds the index")
    screen.note(*done.notes, *one.notes)
    _show_steps(screen, one.steps)


# -- status ----------------------------------------------------------------------------------------------


HELD_HINTS = ("confirm: ua-memory status --accept", "restore: ua-memory undo")


@dataclass(frozen=True, slots=True)
class JobView:
    """A background job: its last run, and when it runs `next`, or `why` it will not."""

    name: str
    last: JobRun | None
    next: datetime | None = None
    why: str = ""


def job_views(
    found: Status, config: Config, daemon: Mapping[str, Any] | None, now: datetime
) -> Sequence[JobView]:
    """The state of each background job. `daemon` is the daemon's own status, None if none answers."""
    blocked = "memory is switched off" if not config.enabled else "" if daemon else "no daemon runs"
    reported, interval = daemon or {}, timedelta(minutes=config.daemon_upkeep_minutes)
    upkeep: datetime | str = now + interval if reported.get("upkeep") else NO_MODEL
    if not interval:
        upkeep = "off: daemon.upkeep_minutes is 0"
    elif reported.get("flushing") == UPKEEP_JOB:
        upkeep = "running"
    flush = (blocked or _next_flush(found, reported, now)) if found.waiting else "the queue is empty"
    known = {"sync": "only on request: ua-memory sync", "flush": flush}
    views = []
    for job, last in found.jobs.items():
        next_run = known.get(job, blocked or upkeep)
        if isinstance(next_run, datetime) and job in UPKEEP_STEPS and last:
            same = found.head is not None and last.head == found.head.id
            next_run = "nothing has changed since" if same else max(next_run, last.again or next_run)
        when, why = (next_run, "") if isinstance(next_run, datetime) else (None, next_run)
        views.append(JobView(job, last, when, why))
    return views


def _next_flush(found: Status, daemon: Mapping[str, Any], now: datetime) -> datetime | str:
    entries = [one for one in found.waiting if not one.set_aside]
    if not entries:
        return "set aside: ua-memory queue retry"
    if all(one.for_model is not False for one in entries) and not daemon.get("model"):
        return NO_MODEL
    return min(max(one.attempts.retry_at or now, now) for one in entries)


NO_MODEL = "the daemon has no model"
MODEL_KEY_HINT = (
    "hint: to let it use a model, run `ua-memory daemon restart --with-key` in a shell that has your key, or"
    " configure a logged-in client (docs/model.md)"
)
"""The daemon has only the keys that it was started with, so the shell may have one that it lacks."""


def _job_json(job: JobView) -> dict[str, Any]:
    last = job.last
    ran = last and {"at": last.at.isoformat(timespec="seconds"), **fields(last, "result", "failed")}
    after = {"next": job.next.isoformat(timespec="seconds")} if job.next else {"why": job.why}
    return {**({"last": ran} if ran else {}), **after}


def _job_line(job: JobView, now: datetime, *, relative: bool, reason_shown: bool = False) -> Styled:
    """`consolidate: 4 hours ago, 2 created, of 9 facts; next not before 14:32`. `reason_shown` leaves out why
    it failed, which is shown elsewhere."""
    next_run = f"next not before {job.next.astimezone(now.tzinfo):%H:%M}" if job.next else job.why
    if job.last is None:
        return f"{job.name}: not run yet; {next_run}"
    failed = "failed: " if job.last.failed else ""
    result = "failed" if failed and reason_shown else failed + job.last.result
    last_run = f"{_time_text(job.last.at, now, relative=relative)}, {result}"
    line = f"{job.name}: {last_run}; {next_run}"
    return (line, "warn") if failed else line


def status_json(
    found: Status, watch: Mapping[str, Any], jobs: Sequence[JobView], accepted: Sequence[str] | None
) -> dict[str, Any]:
    """A bank's status as JSON. `watch` says how its daemon watches the files, and is empty if none runs;
    `accepted` has the files whose disappeared facts were confirmed."""
    watched = {key: watch[key] for key in ("mode", "why") if key in watch}
    whole, *blocks = found.budgets
    return {
        **fields(found, "root as bank", "history as trail", "own", ("head?", output.revision_json)),
        **fields(found, "files", "edited", "held", "pending", ("waiting", retain.waiting_json)),
        "jobs": {job.name: _job_json(job) for job in jobs},
        "core": output.budget_json(whole) | {"blocks": {one.name: output.budget_json(one) for one in blocks}},
        **fields(found, "damage?", "settings", "problems", "index"),
        **({"watch": watched} if watched else {}),
        **({} if accepted is None else {"accepted": list(accepted)}),
        **fields(found, "beliefs?", "proposals", "purges?"),
    }


def show_status(
    screen: Screen, found: Status, last: str, watch: Mapping[str, Any], jobs: Sequence[JobView], now: datetime
) -> None:
    """Print a bank's status. `last` describes its newest revision; `watch` is as for `status_json`."""
    pending = "\n".join([*found.pending, "hint: ua-memory doctor"]) if found.pending else ""
    rows: list[tuple[str, Styled]] = [
        ("Bank", (found.root, "path")),
        ("History", _history_text(found)),
        ("Damage", (f"{found.damage}\nhint: ua-memory doctor" if found.damage else "", "bad")),
        ("Last", _last_text(found, last, now, relative=screen.is_terminal)),
        ("Files", f"{found.files:,}"),
        ("Edited", (_list_paths(found.edited, "not committed yet"), "warn")),
        ("Held", (_list_paths(found.held, "facts disappeared", *HELD_HINTS), "bad")),
        ("Pending", (pending, "warn")),
        ("Waiting", (_waiting_text(found), "warn")),
    ]
    shown = [job for job in jobs if job.last or job.name in UPKEEP_STEPS]
    told = {"flush"} if any(one.reason for one in found.waiting) else set()
    work = [_job_line(job, now, relative=screen.is_terminal, reason_shown=job.name in told) for job in shown]
    work += [(MODEL_KEY_HINT, "warn")] if any(job.why == NO_MODEL for job in shown) else []
    rows += [("" if number else "Jobs", said) for number, said in enumerate(work)]
    rows.append(("Settings", ("\n".join(found.settings), "bad")))
    if beliefs := found.beliefs:
        said = f"{beliefs.observations:,}; {count(beliefs.waiting, 'fact')} to consider"
        said += f", {beliefs.aside} set aside" if beliefs.aside else ""
        rows.append(("Observations", said))
        if beliefs.posted:
            said = f"{count(beliefs.posted, 'fact')} submitted on {beliefs.since}"
            rows.append(("Batch", f"{said}: ua-memory consolidate collects the answers"))
    whole, *blocks = found.budgets
    rows.append(("Core", f"{whole.used:,} of {whole.limit:,} tokens in {count(len(blocks), 'block')}"))
    rows += [("", (budget.warning, "warn")) for budget in found.budgets]
    proposed = f"{count(found.proposals, 'proposal')} for core memory: ua-memory core proposals"
    rows.append(("Proposed", proposed if found.proposals else ""))
    problems: Styled = (f"{found.problems}; ua-memory verify lists them", "bad") if found.problems else "none"
    problems = "not checked" if found.problems is None else problems
    rows += [("Problems", problems), ("Index", _index_text(dict(found.index)))]
    rows.append(("Purge", ("\n".join(map(_purge_text, found.purges)), "bad")))
    polling = f"no events ({watch.get('why')}): the daemon polls the files"
    rows.append(("Watch", (polling if "why" in watch else "", "warn")))
    screen.rows([[(name, "strong"), said] for name, said in rows if said and said[0]])


SHOWN_PATHS = 3
"""Paths that `status` lists; the rest are counted."""


def _list_paths(paths: tuple[str, ...], state: str, *more: str) -> str:
    named, rest = ", ".join(paths[:SHOWN_PATHS]), len(paths) - SHOWN_PATHS
    named += f" and {count(rest, 'other file')}" if rest > 0 else ""
    return "\n".join([f"{named}: {state}", *more]) if paths else ""


def _purge_text(one: Unfinished) -> str:
    """How to finish a purge."""
    if not one.done:
        hint = "ua-memory sync" if one.sync else "ua-memory forget --purge"
        return f"was interrupted: {hint} finishes it"
    remove = f"rm {quote(one.backup)}"
    return f"of {one.on} is not finished: the old history is in {one.backup}\nonce you are sure: {remove}"


def _waiting_text(found: Status) -> str:
    """Conversations that no flush has read, each with the reason where one failed."""
    lines = [
        f"{retain.waiting_text(one)} of {one.session.client}"
        + (f": {retain.waiting_reason(one)}" if one.reason else ", still open" if one.open else "")
        for one in found.waiting
    ]
    return "\n".join([*lines, "to flush them: ua-memory queue retry"]) if lines else ""


def _last_text(found: Status, says: str, now: datetime, *, relative: bool) -> str:
    """When the newest revision was made (`relative`: how long ago), its id and what it did."""
    if found.head is None:
        return ""
    return f"{_time_text(found.head.when, now, relative=relative)}, {found.head.id[:7]} {says}"


def _time_text(then: datetime, now: datetime, *, relative: bool) -> str:
    then = then.astimezone(now.tzinfo)
    return ago(then, now) if relative else f"{then:%Y-%m-%d %H:%M}"


def _index_text(found: dict[str, object]) -> str:
    """The index's status in words: `ready, 12 items, 3 files, vectors ready`."""
    state = str(found.pop("state", "ready"))
    said = ["out of date" if state == "behind" else state]
    if said != ["ready"] and "; " not in state:  # "none yet; the next search builds it"
        said = [f"{said[0]}; the next search updates it"]
    if why := found.pop("why", None):
        said = [f"not usable ({why}); ua-memory index rebuild"]
    counts = ((noun, found.pop(f"{noun}s", None)) for noun in ("item", "file"))
    counted = [count(number, noun) for noun, number in counts if isinstance(number, int)]
    more = (f"{key} {'incomplete' if value == 'behind' else value}" for key, value in found.items())
    return ", ".join([*said, *counted, *more])


# -- verify and doctor -----------------------------------------------------------------------------------


def problems_json(problems: Sequence[Problem], unchecked: Sequence[Problem], files: int) -> dict[str, Any]:
    """The result of `verify` as JSON; `unchecked` could not be checked, `files` is how many were."""
    rows = [fields(each, "path", "message") for each in unchecked]
    return {"problems": json_value(problems), "unchecked": rows, "files": files}


def show_problems(
    screen: Screen, problems: Sequence[Problem], unchecked: Sequence[Problem], files: int
) -> None:
    """Print a line for each problem."""
    screen.note(*(f"{each.path}: {each.message}" for each in unchecked))
    for problem in problems:
        screen.item([(f"{problem.path}:{problem.line}:", "path"), " "], problem.message)
    if not problems:
        screen.line(("No problems", "good"), f" in {count(files, 'file')}.")
    else:
        screen.note(f"{count(len(problems), 'problem')} in {count(files, 'file')}")


def checks_json(checks: Sequence[Check]) -> dict[str, Any]:
    """The checks of `doctor` as JSON."""
    hints = ((one, () if one.ok else ("hint as mend?",)) for one in checks)
    return {"checks": [fields(one, "name", "ok", "seen", *hint, "mended") for one, hint in hints]}


def show_checks(screen: Screen, checks: Sequence[Check]) -> None:
    """Print the checks of `doctor`, a row each."""
    rows: list[list[Styled]] = []
    for one in checks:
        word: Styled = ("mended", "good") if one.mended else ("ok", "good") if one.ok else ("wrong", "bad")
        hint = f"\nhint: {one.hint}" if one.hint and not one.ok else ""
        rows.append([word, (one.name, "strong"), one.seen + hint])
    screen.rows(rows)


# -- index -----------------------------------------------------------------------------------------------


def show_rebuild(screen: Screen, done: Refresh) -> None:
    """Print how much an index rebuild indexed, and what failed."""
    indexed = f"{count(done.added, 'item')} of {count(done.files, 'file')}"
    screen.line(f"Indexed {indexed} in {done.seconds:.1f} s.")
    screen.note(*map(str, done.failed), *done.notes)
    if done.semantic != "ready":
        screen.note(f"keywords only: {done.semantic}")


def rebuild_json(done: Refresh) -> dict[str, Any]:
    """The result of an index rebuild as JSON."""
    found = fields(done, "added as items", "files", "embedded", "seconds", "semantic", "failed", "notes")
    return found | {"seconds": round(done.seconds, 3)}


# -- statistics and costs ----------------------------------------------------------------------------------


TABLE_ROWS = 12
"""Rows of a table that are shown; `--json` has all."""


def stats_json(found: Stats) -> dict[str, Any]:
    """The statistics as JSON."""
    names = ("files", "bytes", "facts", "revisions", "first?", "last?")
    return fields(found, *names, "kinds", "origins", "clients", "months", "ops")


def show_stats(screen: Screen, found: Stats) -> None:
    """Print the statistics."""
    span = f", from {found.first} to {found.last}" if found.first else ""
    facts, files = count(found.facts, "fact"), count(found.files, "file")
    screen.line(f"{facts} in {files} ({_size_text(found.bytes)}){span}")
    screen.line(count(found.revisions, "revision"))
    tables = {"Month": found.months, "Kind": found.kinds, "Origin": found.origins, "Client": found.clients}
    for title, counts in {**tables, "Revisions": found.ops}.items():
        _show_table(screen, title, counts)


def _show_table(screen: Screen, title: str, counts: Mapping[str, int]) -> None:
    if not counts:
        return
    screen.heading((title, "strong"))
    rows, most = list(counts.items()), max(counts.values())
    shown = rows[-TABLE_ROWS:] if title == "Month" else rows[:TABLE_ROWS]
    bars = (screen.bar(min(number / most, 0.79))[:1] for _, number in shown)
    screen.rows([[f"  {name}", *bar, f"{n:,}"] for (name, n), bar in zip(shown, bars, strict=True)])
    if len(rows) > len(shown):
        screen.line((f"  and {len(rows) - len(shown)} more", "faint"))


def _size_text(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB" if size >= 100_000 else f"{size / 1000:.1f} kB"


def costs_json(spent: Spent, config: Config) -> dict[str, Any]:
    """What models cost, and the limits that are set, as JSON."""
    limits = {name: getattr(config, name) for name in ("run_tokens", "run_usd", "day_tokens", "day_usd")}
    groups = ("total", "by_purpose as purposes", "by_day as days", "by_model as models")
    shown = fields(spent, *((group, _totals_json) for group in groups))
    return {**shown, "limits": limits, "pricesAsOf": PRICES_AS_OF}


def _totals_json(one: Totals) -> dict[str, Any]:
    usage = {**json_value(one.usage), "usd": round(one.usd, 6)}
    return fields(one, "requests", "failed") | usage | fields(one, "unpriced")


def show_costs(screen: Screen, spent: Spent, config: Config) -> None:
    """Print what models cost, by purpose, model and day."""
    if not spent.total.requests:
        screen.line("No model has been called yet.")
        return
    for title, groups in {"Purpose": spent.by_purpose, "Model": spent.by_model, "Day": spent.by_day}.items():
        head = [(title, "strong"), "requests", "in", "cached", "out", "dollars"]
        most = max(_bar_value(one, spent) for one in groups.values())
        shown = list(groups.items())[-TABLE_ROWS:]
        body = [_costs_row(f"  {name}", one) for name, one in shown]
        rows = [[f"{cell:>9}" if n and isinstance(cell, str) else cell for n, cell in enumerate(row)]
                for row in [head, *body]]  # fmt: skip
        bars = [[], *(screen.bar(min(_bar_value(one, spent) / (most or 1), 0.79), 8)[:1] for _, one in shown)]
        screen.rows([[*row, *bar] for row, bar in zip(rows, bars, strict=True)], gap=1)
        screen.line()
    screen.rows([_costs_row("All", spent.total)])
    screen.line()
    limits = f"{dollars(config.run_usd)} a run, {dollars(config.day_usd)} a day"
    screen.line(f"Limits: {limits}. Prices of {PRICES_AS_OF}.")
    if owned := sum(one.requests for name, one in spent.by_model.items() if is_subscription(name)):
        screen.line((f"{count(owned, 'request')} counted against a subscription.", "faint"))
    if spent.total.unpriced:
        screen.line((f"{spent.total.unpriced} requests went to models without a known price.", "faint"))


def _bar_value(one: Totals, spent: Spent) -> float:
    """What a bar stands for: dollars, or tokens if nothing has a price."""
    return one.usd if spent.total.usd else float(one.usage.total)


def _costs_row(name: str, one: Totals) -> list[Any]:
    used = one.usage
    figures = (one.requests, used.input + used.cache_write, used.cache_read, used.output)
    return [name, *(f"{figure:,}" for figure in figures), dollars(one.usd).removeprefix("$")]


# -- bench -----------------------------------------------------------------------------------------------


RECALL_FIGURES = ("R@5", "tokens@5", "R@10", "tokens@10", "R@20", "tokens@20", "R@2000t", "tokens@2000t")


RANK_FIGURES = ("ses@5", "nDCG@10", "MRR@10")


STRICT_FIGURES = tuple(f"{what}@{depth}" for depth in ("5", "10", "20", "2000t") for what in ("all", "hit"))


def bench_json(report: BenchReport) -> dict[str, Any]:
    """The report as JSON."""
    names = ("conversations", "turns", "questions", "unanswered", "limit", "index_seconds")
    rows = ("rows", lambda row: {**fields(row, "name", "n"), **row.figures})
    curve = ("curve", lambda point: dict(zip(("tokens", "R"), point, strict=True)))
    return fields(report, *names, ("rankings", ("name", "ms", rows, curve)), "notes")


def show_bench(screen: Screen, report: BenchReport) -> None:
    """Print the recall of each ranking, then the share of questions with all or any of the evidence."""
    said = f"{count(report.conversations, 'conversation')}, {count(report.turns, 'turn')}"
    left = f"; {count(report.unanswered, 'question')} without evidence left out" if report.unanswered else ""
    screen.line(f"{said}, indexed in {report.index_seconds:.1f} s{left}")
    screen.line()
    _show_bench_table(screen, report, [*RECALL_FIGURES, *RANK_FIGURES], len(report.rankings[0].rows))
    totals = [row.name for row in report.rankings[0].rows if row.name in ("all", "adversarial")]
    screen.heading(("All of the evidence (all@), any of it (hit@)", "strong"))
    _show_bench_table(screen, report, list(STRICT_FIGURES), len(totals))
    screen.note(*report.notes)


def _show_bench_table(screen: Screen, report: BenchReport, figures: list[str], rows: int) -> None:
    """Print the first `rows` kinds of questions, each with a line per ranking."""
    heads = ["tok" if name.startswith("tokens") else name for name in figures]
    heads = [head.removesuffix("@10") if head in RANK_FIGURES else head for head in heads]
    widths = [4 if head == "tok" else max(len(head), 5) for head in heads]
    cells = [f"{head:>{width}}" for head, width in zip(heads, widths, strict=True)]
    screen.line((" ".join([" " * 9, *cells, f"{'ms':>6}"]), "faint"))
    for number in range(rows):
        row = report.rankings[0].rows[number]
        screen.line((row.name, "strong"), (f", {row.n:,} question{'s' if row.n > 1 else ''}", "faint"))
        for one in report.rankings:
            said = [(name, one.rows[number].figures[name]) for name in figures]
            texts = [str(n) if name.startswith("tokens") else f"{n:.1f}" for name, n in said]
            cells = [f"{cell:>{width}}" for cell, width in zip(texts, widths, strict=True)]
            screen.line(" ".join([f"{one.name:9}", *cells, f"{one.ms:>6.{2 if one.ms < 100 else 0}f}"]))


# -- probes ----------------------------------------------------------------------------------------------


ANSWERED_WITHIN = 10
"""A probe passes if what it should find is among so many hits."""


def show_added_probe(screen: Screen, one: Probe) -> None:
    """Print the probe that was added."""
    ids = ", ".join(f"^{block}" for block in one.ids)
    screen.line("Added to ", (f"probes.md:{one.line}", "path"), f": {one.query}  ", (ids, "id"))


def show_probes(screen: Screen, run: ProbeRun) -> None:
    """Print a run's figures with the change since the last run, and the ranks of each probe."""
    now, last = run.figures, run.last
    r5 = _percent_text(now.r5, last.r5 if last else None)
    r10 = _percent_text(now.r10, last.r10 if last else None)
    screen.line(
        (count(len(run.results), "probe"), "strong"), f", R@5 {r5}, R@10 {r10}, {now.tokens:,} tokens,"
        f" {now.ms:.0f} ms", (f" (last run {last.when:%Y-%m-%d %H:%M})" if last else "", "faint"),
    )  # fmt: skip
    for one in run.results:
        screen.line()
        screen.item([("✓ ", "good") if one.share(ANSWERED_WITHIN) == 1 else ("✗ ", "bad")], one.probe.query)
        for block, rank in one.ranks.items():
            before = one.was.get(block, rank) if one.was else rank
            moved = f" (was {_rank_text(before)})" if before != rank else ""
            gone = "  no longer in the bank" if block in one.missing else ""
            screen.item("  ", (f"^{block}", "id"), f"  {_rank_text(rank)}{moved}{gone}")
            if not gone and (rank is None or rank > ANSWERED_WITHIN):
                why_not = f"ua-memory search --why-not ^{block} {quote(one.probe.query)}"
                screen.item("    ", (why_not, "faint"))
    for name, found, style in (("Gained", run.gained, "good"), ("Lost", run.lost, "bad")):
        if found:
            screen.heading((f"{name}: {len(found)}", style))
    screen.note(*run.notes)


def _percent_text(now: float, last: float | None) -> str:
    """A share in percent, and its change since the last run: `85 (+5)`."""
    change = 0 if last is None else round(100 * (now - last))
    return f"{100 * now:.0f}" + (f" ({change:+d})" if change else "")


def _rank_text(rank: int | None) -> str:
    return f"#{rank}" if rank else "not found"


def probes_json(run: ProbeRun) -> dict[str, Any]:
    """A run of the probes as JSON."""
    lines = ((name, lambda one: one.probe.line) for name in ("gained", "lost"))
    return {
        "probes": [_probe_json(one) for one in run.results],
        **_probe_figures_json(run.figures),
        **fields(run, ("last", _probe_figures_json), *lines, "notes"),
    }


def _probe_json(one: ProbeResult) -> dict[str, Any]:
    was = one.was or {}
    ids = [{"id": block, "rank": rank, "was": was.get(block), "missing": block in one.missing}
           for block, rank in one.ranks.items()]  # fmt: skip
    shares = {"R@5": _percent(one.share(5)), "R@10": _percent(one.share(ANSWERED_WITHIN))}
    more = shares | {"change": _percent(one.change)} | fields(one, "tokens", "ms")
    return {**json_value(one.probe), "ids": ids, **more}


def _probe_figures_json(one: ProbeFigures) -> dict[str, Any]:
    shares = {"R@5": _percent(one.r5), "R@10": _percent(one.r10)}
    return fields(one, "when") | shares | fields(one, "tokens", "ms")


def _percent(share: float) -> float:
    return round(100 * share, 1)


# -- settings --------------------------------------------------------------------------------------------


def setting_rows(loaded: Config, key: str | None) -> list[dict[str, Any]]:
    """The settings as JSON, or only the one called `key`. NotFound if there is none."""
    rows = []
    for one in config_module.settings():
        row = {"key": one.key, "value": json_value(_shown_value(one.name, getattr(loaded, one.name)))}
        row |= {"source": loaded.sources[one.name], "default": json_value(one.default), "says": one.says}
        if one.name in loaded.untrusted:
            row["untrusted"] = json_value(_shown_value(one.name, loaded.untrusted[one.name]))
        rows.append(row | ({"env": one.env} if one.env else {}))
    chosen = [row for row in rows if key in (None, row["key"])]
    if not chosen:
        raise NotFound(f"unknown setting {key!r}", hint="ua-memory config lists them")
    return chosen


def sensitive_rows(root: Path, loaded: Config) -> list[dict[str, Any]]:
    """The sensitive settings in the bank's file as JSON: value, whether trusted, and where paths lead."""
    found = []
    for name, key in sensitive().items():
        value = loaded.untrusted.get(name, getattr(loaded, name))
        if name not in loaded.untrusted and loaded.sources[name] != SETTINGS:
            continue
        shown = json_value(_shown_value(name, value))
        row = {"key": key, "value": shown, "trusted": name not in loaded.untrusted}
        if name in ("extra_paths", "cross_encoder"):
            paths = value if isinstance(value, tuple) else (value,)
            row["leadsTo"] = [os.path.realpath(root / path) for path in paths]
        found.append(row)
    return found


def show_settings(screen: Screen, found: Sequence[Mapping[str, Any]]) -> None:
    """Print settings with their sources."""
    rows: list[list[Styled]] = []
    for one in found:
        set_by = (one["source"], "faint" if one["source"] == "default" else "good")
        rows.append([(one["key"], "strong"), set_by, setting_text(one["value"]) or ("not set", "faint")])
        if "untrusted" in one:
            text = f"{setting_text(one['untrusted'])}\nnot trusted: ua-memory trust"
            rows.append(["", (SETTINGS, "warn"), (text, "warn")])
    screen.rows(rows)


def show_sensitive(screen: Screen, root: Path, loaded: Config) -> None:
    """Print the sensitive settings in the bank's file, and whether they are trusted."""
    rows: list[list[Styled]] = []
    for one in sensitive_rows(root, loaded):
        trusted = ("trusted", "good") if one["trusted"] else ("not trusted", "warn")
        leads = [f"leads to {path}" for path in one.get("leadsTo", ()) if path not in one["value"]]
        rows.append([(one["key"], "strong"), trusted, "\n".join([setting_text(one["value"]), *leads])])
    screen.rows(rows)
    if not rows:
        screen.line("This bank's ua-memory.toml has no sensitive settings.")


def _shown_value(name: str, value: Any) -> Any:
    """A setting's value, without the password in a URL."""
    return re.sub(r"(?<=//)[^/@]*@", "…@", value) if name == "chroma_url" else value


def setting_value_text(value: Any) -> str:
    """A setting's value on one line, as `config set` takes it."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else setting_text(value)


def setting_text(value: Any) -> str:
    """A setting's value for a person; lists and tables have a line for each item."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "\n".join(f"{name} = {text}" for name, text in value.items())
    return "\n".join(value) if isinstance(value, list) else str(value)
