"""`init`, `status`, `verify`, `doctor`, `index`, `stats`, `bench`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory import bench, caller
from ua_memory import config as config_module
from ua_memory import paths as paths_module
from ua_memory.bench import draw_cost, drawable
from ua_memory.cli import app
from ua_memory.cli.history import entries
from ua_memory.daemon import protocol
from ua_memory.daemon.spawn import holder, runs
from ua_memory.errors import ProblemsFound, UaMemoryError
from ua_memory.index.outside import OutsideFiles
from ua_memory.llm.ledger import Ledger
from ua_memory.llm.model import PRICES_AS_OF
from ua_memory.memory import Memory
from ua_memory.text.wording import dollars
from ua_memory.upkeep.doctor import Check
from ua_memory.views import flushed, output
from ua_memory.views.output import Piece, Screen, ago, count, emit, note, parse_day, progress

if TYPE_CHECKING:
    from ua_memory.bench import BenchReport, MeanRow, Ranking
    from ua_memory.caller import Call
    from ua_memory.knowledge.observations import ObservationCounts
    from ua_memory.llm.ledger import Spent, Totals
    from ua_memory.memory import Status
    from ua_memory.upkeep.audit import Stats
    from ua_memory.upkeep.purge import Unfinished
    from ua_memory.upkeep.sync import CloneResult


# -- init --------------------------------------------------------------------------------------------------
# `ua-memory init`: make a bank.


init_app = app.new()
SAYS = {
    "MEMORY.md": "core memory: given to every session",
    "memory/": "daily logs, one file a day",
    "ua-memory.toml": "its settings",
}


@init_app.command(cls=app.Verb)
def init(
    ctx: typer.Context,
    path: Annotated[
        str | None,
        typer.Argument(
            help="The folder (default: the bank found from here, or ~/ua-memory).", show_default=False
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="ADDRESS",
            show_default=False,
            help="Clone the bank of this remote into an empty folder, for a second machine.",
        ),
    ] = None,
    as_json: app.Json = False,
    bank: app.Bank = None,
) -> None:
    """Create a memory bank.

    An empty folder becomes its own git repository. Inside another repository the history is kept apart from
    it. Existing files stay as they are. A second run changes nothing.
    """
    call = caller.call_of(ctx)
    root, default = _root(call, path, new=source is not None)
    if source is not None and (call.cwd / source).exists():  # a folder, from where the caller stands
        source = str((call.cwd / source).resolve())
    cloned = None
    if source is not None:
        from ua_memory.upkeep.sync import clone

        cloned = clone(root, source)
    folder = (root / "memory").is_dir()
    first = Memory.init(root, now=call.now, timezone="" if source else system_timezone(call), door="cli")
    config = caller.settings_of(call, first.store.bank.root)  # of which only now is known whose they are
    memory = Memory.open(first.store.bank.root, config=config, now=call.now, door="cli")
    memory.founded = first.founded
    caller.tell_untrusted(call, config)
    made = [*(memory.founded.made if memory.founded else ()), *(() if folder else ("memory/",))]
    if call.as_json:
        emit(call, _shape(memory, made, _notes(call, memory, default)) | (_cloned(cloned) if cloned else {}))
    elif cloned:
        _tell_cloned(call, memory, cloned, _notes(call, memory, default))
    else:
        _tell_init(call, memory, made, _notes(call, memory, default))
    memory.close()


def _cloned(done: CloneResult) -> dict[str, object]:
    return {"from": done.address, "branch": done.branch, "revisions": done.revisions, "files": done.files}


def _tell_cloned(call: Call, memory: Memory, done: CloneResult, notes: list[str]) -> None:
    screen = Screen(call)
    screen.line(
        "Cloned the memory bank from ", (done.address, "path"), " into ", (memory.status().root, "path"), "."
    )
    what = f"{count(done.files, 'file')}, {count(done.revisions, 'revision')}, branch {done.branch}"
    screen.line(f"  {what}; the next search builds the index")
    for text in (*done.notes, *notes):
        note(call, text)
    screen.line()
    screen.line("Next:")
    screen.line("  ua-memory sync   whenever you like")


def _root(call: Call, path: str | None, *, new: bool) -> tuple[Path, bool]:
    """The folder, and whether it is the default one, which nobody has named."""
    if path is not None:
        return caller.absolute(call, path), False
    meant = caller.named(call) or (None if new else caller.found(call))
    return (meant, False) if meant else (paths_module.default_bank(call.home), True)


def system_timezone(call: Call) -> str:
    """The IANA name of the caller's time zone, by `TZ` or the link /etc/localtime; empty if neither says."""
    given = call.env.get("TZ", "").removeprefix(":")
    if not given:
        try:
            given = str(Path("/etc/localtime").resolve())
        except OSError:
            return ""
    name = given.rpartition("zoneinfo/")[2]
    return name if name not in ("", "localtime", "Factory") and config_module.is_zone(name) else ""


def _shape(memory: Memory, made: list[str], notes: list[str]) -> dict[str, object]:
    status = memory.status()
    return {
        "bank": status.root,
        "id": memory.config.id,
        "own": status.own,
        "trail": status.trail,
        "timezone": memory.config.timezone,
        "made": made,
        "notes": notes,
    }


def _notes(call: Call, memory: Memory, default: bool) -> list[str]:
    """What init says beside its result: which bank that is if nobody named one, and what it does not read."""
    import json
    import shlex

    root, notes = memory.store.bank.root, list(memory.founded.result.notes if memory.founded else ())
    if default and call.cwd.resolve() != root:
        notes.append(
            f"{root} is the default bank, used wherever there is no other; for one in this folder: "
            "ua-memory init ."
        )
    if count := OutsideFiles(memory.store).unread():
        files = "1 markdown file is" if count == 1 else f"{count:,} markdown files are"
        bank = "" if caller.found(call) == root else f" --bank {shlex.quote(str(root))}"
        others = [
            path for path in memory.config.extra_paths if not (root / path).resolve().is_relative_to(root)
        ]
        value = shlex.quote(json.dumps([".", *others], ensure_ascii=False))
        notes.append(
            f"{files} outside of memory/ and will not be searched; to include this folder: "
            f"ua-memory{bank} config set extraPaths {value}"
        )
    return notes


def _tell_init(call: Call, memory: Memory, made: list[str], notes: list[str]) -> None:
    screen, status = Screen(call), memory.status()
    if not made:
        screen.line((status.root, "path"), " is already a memory bank. Nothing was changed.")
    else:
        screen.line("Created a memory bank in ", (status.root, "path"), ".")
        table: list[list[Piece]] = [[(f"  {name}", "path"), SAYS.get(name, "")] for name in made]
        where = "its own git repository" if status.own else f"kept apart, in {status.trail}"
        screen.rows([*table, ["  history", where]])
    for text in notes:
        note(call, text)
    if made:
        screen.line()
        screen.line("Next:")
        screen.line("  ua-memory insert ", ('"We left Heroku for Fly.io because the price doubled"', "match"))
        screen.line("  ua-memory search ", ('"why did we leave Heroku"', "match"))


# -- status ------------------------------------------------------------------------------------------------
# `ua-memory status`: how the bank stands.


status_app = app.new()


@app.verb(status_app, lenient=True)
def status(
    call: Call,
    memory: Memory,
    accept: Annotated[
        bool, typer.Option("--accept", help="Confirm that facts which disappeared are gone.")
    ] = False,
) -> None:
    """Show the state of the bank: edits, held facts, unfinished writes, size of core memory."""
    held = memory.status().held if accept else ()
    result = memory.store.adopt(accept=True) if accept else None
    if result is not None:
        for text in result.notes:
            note(call, text)
        note(call, f"accepted: {', '.join(held)}" if held else "nothing was held")
    found = memory.status()
    watch = _watch(call, memory)
    here = memory.store.bank
    signs = (here.root / "memory/observations", here.pending / "consolidation-batch.json")
    beliefs = memory.observations.counts() if any(map(os.path.exists, signs)) else None
    if call.as_json:
        more: dict[str, Any] = {"watch": watch} if watch else {}
        more |= {"accepted": list(held)} if accept else {}
        more |= {"beliefs": asdict(beliefs)} if beliefs else {}
        purges = _purges(memory)
        more |= {"purges": [asdict(one) for one in purges]} if purges else {}
        emit(call, status_shape(found) | more)
    else:
        _tell_status(call, memory, found, watch, beliefs)


def _watch(call: Call, memory: Memory) -> dict[str, str]:
    """How the bank's daemon hears of changes; empty where none runs."""
    asked = protocol.status(memory.store.bank.root, call.env) or {}
    return {key: asked["watch"][key] for key in ("mode", "why") if key in asked.get("watch", {})}


def status_shape(found: Status) -> dict[str, Any]:
    whole, *blocks = found.budgets
    return {
        "bank": found.root,
        "trail": found.trail,
        "own": found.own,
        **({"head": output.revision(found.head)} if found.head else {}),
        "files": found.files,
        "edited": list(found.edited),
        "held": list(found.held),
        "pending": list(found.pending),
        "waiting": [flushed.waiting_shape(one) for one in found.waiting],
        "core": {**output.budget(whole), "blocks": {block.name: output.budget(block) for block in blocks}},
        **({"damage": found.damage} if found.damage else {}),
        "settings": list(found.settings),
        "problems": found.problems,
        "index": dict(found.index),
    }


def _tell_status(
    call: Call, memory: Memory, found: Status, watch: dict[str, str], beliefs: ObservationCounts | None
) -> None:
    screen = Screen(call)
    rows: list[tuple[str, Piece]] = [
        ("Bank", (found.root, "path")),
        ("History", "its own git repository" if found.own else f"kept apart, in {found.trail}"),
        ("Damage", (f"{found.damage}\nhint: ua-memory doctor" if found.damage else "", "bad")),
        ("Last", _last(found, memory, relative=screen.fancy)),
        ("Files", f"{found.files:,}"),
        ("By hand", (_listed(found.edited, "edited and not committed yet"), "warn")),
        ("Held", (_listed(found.held, "facts disappeared", *HELD), "bad")),
        (
            "Pending",
            ("\n".join([*found.pending, "hint: ua-memory doctor"]) if found.pending else "", "warn"),
        ),
    ]
    rows.append(("Waiting", (_waiting(found), "warn")))
    rows.append(("Settings", ("\n".join(found.settings), "bad")))
    if beliefs:
        said = f"{count(beliefs.observations, 'observation')}, {count(beliefs.waiting, 'fact')} to consider"
        said += f", {beliefs.aside} set aside" if beliefs.aside else ""
        rows.append(("Beliefs", said))
        said = f"{count(beliefs.posted, 'fact')} posted on {beliefs.since}"
        rows.append(("Batch", f"{said}: ua-memory consolidate collects" if beliefs.posted else ""))
    whole, *blocks = found.budgets
    rows.append(("Core", f"{whole.used:,} of {whole.limit:,} tokens in {count(len(blocks), 'block')}"))
    rows += [("", (budget.warning, "warn")) for budget in found.budgets]
    problems: Piece = (f"{found.problems}; ua-memory verify lists them", "bad") if found.problems else "none"
    rows += [("Problems", problems), ("Index", _index(dict(found.index)))]
    rows.append(("Purge", ("\n".join(map(_purge, _purges(memory))), "bad")))
    deaf = f"no events ({watch.get('why')}): the daemon polls the files"
    rows.append(("Watch", (deaf if "why" in watch else "", "warn")))
    screen.rows([[(name, "strong"), said] for name, said in rows if said and said[0]])


HELD = ("confirm: ua-memory status --accept", "restore: ua-memory undo")


def _listed(paths: tuple[str, ...], says: str, *more: str) -> str:
    return "\n".join([f"{', '.join(paths)}: {says}", *more]) if paths else ""


def _purges(memory: Memory) -> Sequence[Unfinished]:
    """Purges that are not finished. Nothing of them is loaded where there was none."""
    return memory.purges.unfinished() if (memory.store.bank.state / "purges.json").exists() else ()


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
        f"{count(len(one.turns), 'turn')} of {one.session.client}"
        + (f": {flushed.waiting_why(one)}" if one.reason else ", still open" if one.open else "")
        for one in found.waiting
    ]
    return "\n".join([*lines, "to flush them: ua-memory queue retry"]) if lines else ""


def _last(found: Status, memory: Memory, *, relative: bool) -> str:
    """The newest revision: how long ago for a person, the time for a script."""
    if found.head is None:
        return ""
    now = memory.store.now()
    then = found.head.when.astimezone(now.tzinfo)
    moment = ago(then, now) if relative else f"{then:%Y-%m-%d %H:%M}"
    says = found.head.subject
    with contextlib.suppress(UaMemoryError):  # a damaged history still has its newest revision's name
        says = entries(memory, [found.head], None, set())[0].says
    return f"{moment}, {found.head.id[:7]} {says}"


def _index(found: dict[str, object]) -> str:
    """What the index says of itself, in words: `ready, 12 items, 3 files, vectors ready`."""
    said = [str(found.pop("state", "ready"))]
    if said == ["behind"]:
        said = ["out of date; the next search updates it"]
    counted = [f"{found.pop(key)} {key}" for key in ("items", "files") if key in found]
    return ", ".join([*said, *counted, *(f"{key} {value}" for key, value in found.items())])


# -- verify ------------------------------------------------------------------------------------------------
# `ua-memory verify`: check everything that must hold.


verify_app = app.new()


@app.verb(verify_app)
def verify(call: Call, memory: Memory) -> None:
    """Check the files, the ids, the history and the index.

    Prints `file:line: message` for each problem; the exit code is 12 if there are any.
    """
    found, unchecked = memory.health.verified()
    files = len(memory.store.survey().files)
    if call.as_json:
        emit(
            call,
            {
                "problems": [{"path": p.path, "line": p.line, "message": p.message} for p in found],
                "unchecked": [{"path": p.path, "message": p.message} for p in unchecked],
                "files": files,
            },
        )
    else:
        screen = Screen(call)
        for one in unchecked:
            note(call, f"{one.path}: {one.message}")
        for problem in found:
            screen.item([(f"{problem.path}:{problem.line}:", "path"), " "], problem.message)
        if not found:
            screen.line(("No problems", "good"), f" in {count(files, 'file')}.")
        else:
            note(call, f"{count(len(found), 'problem')} in {count(files, 'file')}")
    if found:
        raise typer.Exit(ProblemsFound.exit_code)


# -- doctor ------------------------------------------------------------------------------------------------
# `ua-memory doctor`: what is wrong around the bank, and mending it.


doctor_app = app.new()


@app.verb(doctor_app, lenient=True)
def doctor(
    call: Call,
    memory: Memory,
    mend: Annotated[bool, typer.Option("--mend", help="Repair what can be repaired.")] = False,
) -> None:
    """Find and repair problems around the bank.

    Looks at git, the disk, unfinished writes, the history, the index, the embedding model and the
    daemon. The exit code is 12 if problems remain.
    """
    checks = [*memory.health.doctor(mend=mend), *_daemon(call, memory)]
    if call.as_json:
        emit(
            call,
            {
                "checks": [
                    {
                        "name": c.name,
                        "ok": c.ok,
                        "seen": c.seen,
                        **({"mend": c.hint} if c.hint and not c.ok else {}),
                        "mended": c.mended,
                    }
                    for c in checks
                ]
            },
        )
    else:
        rows: list[list[Piece]] = []
        for check in checks:
            word: Piece = (
                ("mended", "good") if check.mended else ("ok", "good") if check.ok else ("wrong", "bad")
            )
            rows.append(
                [
                    word,
                    (check.name, "strong"),
                    check.seen + (f"\nhint: {check.hint}" if check.hint and not check.ok else ""),
                ]
            )
        Screen(call).rows(rows)
    if not all(check.ok for check in checks):
        raise typer.Exit(ProblemsFound.exit_code)


def _daemon(call: Call, memory: Memory) -> Iterator[Check]:
    """Whether the bank's daemon answers, if it has one, and whether its watch is alive; without one every
    command does its own work."""
    bank = memory.store.bank
    if not runs(bank.local):
        yield Check("daemon", True, "none runs; the next search starts it")
        return
    found = protocol.status(bank.root, call.env)
    if found is None:
        seen = f"process {holder(bank.local)} runs, but does not answer"
        yield Check("daemon", False, seen, "ua-memory daemon restart")
        return
    yield Check("daemon", True, f"process {found['pid']} answers")
    yield _watch_folders(found["watch"])


def _watch_folders(found: dict[str, Any]) -> Check:
    """Whether the daemon hears of changes. Where it cannot, on a shared file system, that is no fault."""
    if found["mode"] == "events":
        return Check("watch", True, f"{found['folders']} folders by events, heartbeat {found['heartbeat']}")
    why = found["why"]
    limited = "limit" in why
    hint = "raise fs.inotify.max_user_watches and max_user_instances (sysctl)" if limited else ""
    seen = f"no events ({why}); the files are polled"
    return Check("watch", "unheard" in why, seen, hint or "ua-memory daemon restart")


# -- index -------------------------------------------------------------------------------------------------
# `ua-memory index`: the search index, which may be deleted and built anew at any moment.


index_app = app.new(
    no_args_is_help=True,
    help="The search index, which is built from the files and may be deleted at any moment.",
)


@index_app.callback()
def _index_group() -> None:
    """A family although it has one member yet."""


@app.verb(index_app)
def rebuild(call: Call, memory: Memory) -> None:
    """Rebuild the index from the files."""
    with progress(call, "Indexing") as tell:
        done = memory.index.rebuild(progress=tell)
    if call.as_json:
        emit(call, index_shape(done))
        return
    Screen(call).line(
        f"Indexed {count(done.added, 'item')} of {count(done.files, 'file')} in {done.seconds:.1f} s."
    )
    for problem in done.failed:
        note(call, str(problem))
    for text in done.notes:
        note(call, text)
    if done.semantic != "ready":
        note(call, f"keywords only: {done.semantic}")


def index_shape(done: Any) -> dict[str, Any]:
    """What a rebuild did."""
    failed = [{"path": p.path, "line": p.line, "message": p.message} for p in done.failed]
    return {
        "items": done.added,
        "files": done.files,
        "embedded": done.embedded,
        "seconds": round(done.seconds, 3),
        "semantic": done.semantic,
        "failed": failed,
        "notes": list(done.notes),
    }


# -- stats -------------------------------------------------------------------------------------------------
# `ua-memory stats`: what there is, how it grew, and what models cost.


stats_app = app.new()
NAMED = 12
"""Rows of a table that are shown; JSON has all."""


@app.verb(stats_app)
def stats(
    call: Call,
    memory: Memory,
    cost: Annotated[bool, typer.Option("--cost", help="Tokens and money that models used.")] = False,
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="With --cost: from this day on.", show_default=False)
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="With --cost: plot each day by purpose: .png, .svg or .pdf.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show counts, and what models cost."""
    if cost or plot:
        spent = Ledger(memory.store.bank.local).spent(_since(memory, since))
        _draw(call, spent, plot)
        emit(call, shape_of_cost(memory, spent)) if call.as_json else _tell_cost(Screen(call), memory, spent)
    else:
        found = memory.health.stats()
        emit(call, stats_shape(found)) if call.as_json else _tell_stats(Screen(call), found)


def _draw(call: Call, spent: Spent, plot: str | None) -> None:
    """Draw what was spent, if that is wanted and there is any. Usage without matplotlib."""
    if plot is None:
        return
    file = caller.absolute(call, plot)
    drawable(file)
    if spent.by_both:
        draw_cost(spent, file)


def _since(memory: Memory, given: str | None) -> datetime | None:
    from datetime import date

    now = memory.store.now()
    day = parse_day(given, "--since", now.date())
    return datetime.combine(date.fromisoformat(day), time(), now.tzinfo) if day else None


def stats_shape(found: Stats) -> dict[str, Any]:
    return {
        "files": found.files,
        "bytes": found.bytes,
        "facts": found.facts,
        "revisions": found.revisions,
        **({"first": found.first, "last": found.last} if found.first else {}),
        "kinds": dict(found.kinds),
        "origins": dict(found.origins),
        "clients": dict(found.clients),
        "months": dict(found.months),
        "ops": dict(found.ops),
    }


def _tell_stats(screen: Screen, found: Stats) -> None:
    span = f", from {found.first} to {found.last}" if found.first else ""
    screen.line(f"{found.facts:,} facts in {found.files:,} files ({_size(found.bytes)}){span}")
    screen.line(f"{found.revisions:,} revisions")
    tables = {"Month": found.months, "Kind": found.kinds, "Origin": found.origins, "Client": found.clients}
    for title, counts in {**tables, "Revisions": found.ops}.items():
        _table(screen, title, counts)


def _table(screen: Screen, title: str, counts: Mapping[str, int]) -> None:
    if not counts:
        return
    screen.line()
    screen.line((title, "strong"))
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


# -- money ---------------------------------------------------------------------------------------------


def shape_of_cost(memory: Memory, spent: Spent) -> dict[str, Any]:
    config = memory.config
    limits = {name: getattr(config, name) for name in ("run_tokens", "run_usd", "day_tokens", "day_usd")}
    return {
        "total": _totals(spent.total),
        "purposes": {name: _totals(each) for name, each in spent.by_purpose.items()},
        "days": {name: _totals(each) for name, each in spent.by_day.items()},
        "models": {name: _totals(each) for name, each in spent.by_model.items()},
        "limits": limits,
        "pricesAsOf": PRICES_AS_OF,
    }


def _totals(one: Totals) -> dict[str, Any]:
    used = one.usage
    return {
        "requests": one.requests,
        "failed": one.failed,
        **output.usage(used),
        "usd": round(one.usd, 6),
        "unpriced": one.unpriced,
    }


def _tell_cost(screen: Screen, memory: Memory, spent: Spent) -> None:
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
    config = memory.config
    screen.line()
    limits = f"{dollars(config.run_usd)} a run, {dollars(config.day_usd)} a day"
    screen.line(f"Limits: {limits}. Prices of {PRICES_AS_OF}.")
    if spent.total.unpriced:
        screen.line((f"{spent.total.unpriced} requests went to models without a known price.", "faint"))


def _weight(one: Totals, spent: Spent) -> float:
    """What a bar shows: dollars, or tokens where nobody sends a bill."""
    return one.usd if spent.total.usd else float(one.usage.total)


def _row(name: str, one: Totals) -> list[Any]:
    used = one.usage
    new = used.input + used.cache_write
    return [
        name,
        f"{one.requests:,}",
        f"{new:,}",
        f"{used.cache_read:,}",
        f"{used.output:,}",
        dollars(one.usd).removeprefix("$"),
    ]


# -- bench -------------------------------------------------------------------------------------------------
# `ua-memory bench`: how good the search is, on the user's own copies of data sets.


bench_app = app.new(no_args_is_help=True, help="Measure search on your own conversations.")

SHARES = ("R@5", "tokens@5", "R@10", "tokens@10", "R@20", "tokens@20", "R@2000t", "tokens@2000t")
RANKS = ("ses@5", "nDCG@10", "MRR@10")
STRICT = tuple(f"{what}@{depth}" for depth in ("5", "10", "20", "2000t") for what in ("all", "hit"))


@bench_app.callback()
def _bench_group() -> None:
    """A family although it has one member yet."""


@bench_app.command(cls=app.Verb)
def recall(
    ctx: typer.Context,
    file: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="LoCoMo, LongMemEval, or JSON lines.", show_default=False),
    ],
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, max=1000, help="Results per question.")
    ] = 50,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Ask at most N questions of each file, evenly spread.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Plot recall against tokens: .png, .svg or .pdf.", show_default=False
        ),
    ] = None,
    as_json: app.Json = False,
    bank: app.Bank = None,
) -> None:
    """Score search on conversations whose questions name their evidence.

    Each conversation becomes a bank of its own in a temporary folder; yours is not touched. BM25 and grep
    answer the same questions for comparison. Formats and figures: docs/bench.md.
    """
    call = caller.call_of(ctx)
    picture = caller.absolute(call, plot) if plot else None
    if picture:
        bench.drawable(picture)
    files = [bench.read(caller.absolute(call, each)) for each in file]
    with progress(call, "Asking") as tell:
        report = bench.measure(files, limit=limit, sample=sample, now=call.now, progress=tell)
    if picture:
        bench.draw(report, picture)
    if call.as_json:
        emit(call, bench_shape(report))
        return
    _show(Screen(call), report)
    for text in report.notes:
        note(call, text)
    if picture:
        note(call, f"plot: {picture}")


def bench_shape(report: BenchReport) -> dict[str, Any]:
    """The report as JSON."""
    return {
        "conversations": report.conversations,
        "turns": report.turns,
        "questions": report.questions,
        "unanswered": report.unanswered,
        "limit": report.limit,
        "indexSeconds": report.index_seconds,
        "rankings": [_ranking(one) for one in report.rankings],
        "notes": list(report.notes),
    }


def _ranking(one: Ranking) -> dict[str, Any]:
    return {
        "name": one.name,
        "ms": one.ms,
        "rows": [{"name": row.name, "n": row.n, **row.figures} for row in one.rows],
        "curve": [{"tokens": tokens, "R": recall} for tokens, recall in one.curve],
    }


# -- for people ----------------------------------------------------------------------------------------


def _show(screen: Screen, report: BenchReport) -> None:
    said = [
        count(report.conversations, "conversation"),
        count(report.turns, "turn"),
        f"indexed in {report.index_seconds:.1f} s",
    ]
    left = f"; {count(report.unanswered, 'question')} without evidence left out" if report.unanswered else ""
    screen.line(", ".join(said) + left)
    screen.line()
    _bench_table(screen, report, [*SHARES, *RANKS], len(report.rankings[0].rows))
    totals = [row.name for row in report.rankings[0].rows if row.name in ("all", "adversarial")]
    screen.line()
    screen.line(("All of the evidence (all@), any of it (hit@)", "strong"))
    _bench_table(screen, report, list(STRICT), len(totals))


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
            shown = [_cell(one.rows[number], name) for name in figures]
            cells = [f"{cell:>{width}}" for cell, width in zip(shown, widths, strict=True)]
            screen.line(" ".join([f"{one.name:9}", *cells, f"{one.ms:>6.{2 if one.ms < 100 else 0}f}"]))


def _cell(row: MeanRow, name: str) -> str:
    value = row.figures[name]
    return str(value) if name.startswith("tokens") else f"{value:.1f}"
