"""`init`, `status`, `verify`, `doctor`, `index`, `stats`, `bench`, `config`, `trust`."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ua_memory import bench, caller, config, discovery, paths
from ua_memory.caller import Call, is_person
from ua_memory.cli import app
from ua_memory.cli.app import argument, flag, option
from ua_memory.cli.history import entries
from ua_memory.daemon import spawn
from ua_memory.discovery import LOGS, SETTINGS, USER
from ua_memory.errors import ProblemsFound, UaMemoryError, Usage
from ua_memory.index.filters import parse_since
from ua_memory.index.outside import OutsideFiles
from ua_memory.llm.ledger import Ledger
from ua_memory.mcp import relay
from ua_memory.memory import Memory
from ua_memory.upkeep.audit import newest_revision
from ua_memory.upkeep.init import set_setting
from ua_memory.views import bank as views
from ua_memory.views import output
from ua_memory.views.output import Screen, emit_json, note, progress, show_result

if TYPE_CHECKING:
    from ua_memory.memory import Status
    from ua_memory.store.draft import Result


# -- init ------------------------------------------------------------------------------------------------
# `ua-memory init`: make a bank.


@app.verb(opens_bank=False)
def init(
    call: Call,
    path: str | None = argument(
        None, "The folder (default: the bank found from here, or ~/ua-memory).", None
    ),
    source: str | None = option(
        "--from ADDRESS", "Clone the bank of this remote into an empty folder, for a second machine."
    ),
) -> None:
    """Create a memory bank.

    An empty folder becomes its own git repository. Inside another repository the history is
    kept in a separate one. Existing files stay as they are. A second run changes nothing.
    """
    root, default = _init_root(call, path, new=source is not None)
    cloned = None
    if source is not None:
        from ua_memory.upkeep.sync import clone

        folder = call.cwd / source
        if folder.suffix == ".tar" and folder.is_file():
            hint = f"ua-memory init {root}; cd {root}; ua-memory import archive {folder}"
            raise Usage("an archive is not a git repository", where=source, hint=hint)
        cloned = clone(root, caller.remote_address(call, source))
    made = [] if (root / "memory").is_dir() else ["memory/"]
    first = Memory.init(root, now=call.now, timezone="" if source else system_timezone(call), door="cli")
    done = first.init_result
    assert done is not None
    loaded = caller.settings_of(call, done.bank.root)  # of which only now is known whose they are
    caller.tell_untrusted(call, loaded)
    with Memory.open(done.bank.root, config=loaded, now=call.now, door="cli") as memory:
        notes = [*done.result.notes, *_init_notes(call, memory, default)]
        status = memory.status()
        steps = views.next_steps(empty=True, client=_new_client(call))
        if cloned:
            steps = [("ua-memory sync", "as often as you like")]
        here = caller.bank_here(call)
        if here is None or not here.samefile(root):
            steps.insert(0, (shlex.join(["cd", str(root)]), "commands find this bank from there"))
        found = views.NewBank(status, loaded.id, loaded.timezone, (*done.made, *made), notes, cloned, steps)
        show_result(call, found, views.init_json, views.show_init)


def _init_root(call: Call, path: str | None, *, new: bool) -> tuple[Path, bool]:
    """The folder for `init`, and whether it is the default bank's."""
    if path is not None:
        return paths.absolute(call, path), False
    found = paths.named(call) or (None if new else paths.found(call))
    return (found, False) if found else (paths.default_bank(call.home), True)


def system_timezone(call: Call) -> str:
    """The IANA name of the caller's time zone, by `TZ` or the link /etc/localtime; empty if neither says."""
    given = call.env.get("TZ", "").removeprefix(":")
    if not given:
        try:
            given = str(Path("/etc/localtime").resolve())
        except OSError:
            return ""
    name = given.rpartition("zoneinfo/")[2]
    return name if name not in ("", "localtime", "Factory") and config.is_zone(name) else ""


def _init_notes(call: Call, memory: Memory, default: bool) -> Iterator[str]:
    """Notes of `init`: that this is the default bank, and how many markdown files will not be searched."""
    root = memory.store.bank.root
    if default and call.cwd.resolve() != root:
        here = "for one in this folder: ua-memory init ."
        yield f"{root} is the default bank, used wherever there is no other; {here}"
    if unread := OutsideFiles(memory.store).count_unindexed():
        files = "1 markdown file is" if unread == 1 else f"{unread:,} markdown files are"
        bank = "" if paths.found(call) == root else f" --bank {shlex.quote(str(root))}"
        others = [one for one in memory.config.extra_paths if not (root / one).resolve().is_relative_to(root)]
        value = shlex.quote(json.dumps([".", *others], ensure_ascii=False))
        command = f"ua-memory{bank} config set extraPaths {value}"
        yield f"{files} outside of memory/ and will not be searched; to include this folder: {command}"


# -- overview ----------------------------------------------------------------------------------------------
# `ua-memory` alone: where the bank is, and what to do next.


def overview(call: Call) -> None:
    """Print where the bank is and what to do next: `ua-memory` without a verb."""
    if paths.named(call) is None and caller.bank_here(call) is None:
        return views.show_no_bank(Screen(call), paths.default_bank(call.home))
    with caller.opened(call, lenient=True) as memory:
        seen, waiting = memory.store.survey(), len(memory.queue.list())
        newest, damage = newest_revision(memory.store)
        last = entries(memory, [newest])[0].sentence if newest and not damage else ""
        empty = not any(file.path.startswith(f"{LOGS}/") for file in seen.files)
        steps = views.next_steps(empty=empty, held=bool(seen.held), waiting=waiting, client=_new_client(call))
        root, now = memory.store.bank.root, memory.store.now()
        views.show_overview(Screen(call), root, len(seen.files), newest, last, now, steps)
    return None


def _new_client(call: Call) -> str:
    """A client on this machine that ua-memory is not installed in; '' if there is none."""
    from ua_memory.cli import install

    return next(install.clients_without_memory(call), "")


# -- status ------------------------------------------------------------------------------------------------
# `ua-memory status`: how the bank stands.


@app.verb(lenient=True)
def status(
    call: Call,
    memory: Memory,
    accept: bool = flag("--accept", "Confirm that the facts that disappeared were deleted on purpose."),
    quick: bool = flag("--quick", "Only the fast checks: no problems, observations or proposals."),
) -> None:
    """Show the state of the bank: edits, held facts, unfinished writes, size of core memory."""
    held = memory.status(quick=True).held if accept else None
    if held is not None:
        done = f"confirmed: {', '.join(held)}" if held else "nothing to accept"
        Screen(call).note(*memory.store.adopt(accept=True).notes, done)
    found = memory.status(quick=quick)
    daemon = spawn.status(memory.store.bank.root, call.env)
    watch = (daemon or {}).get("watch", {})
    jobs = views.job_views(found, memory.config, daemon, memory.store.now())
    if call.as_json:
        return emit_json(call, views.status_json(found, watch, jobs, held))
    last = _newest_entry(memory, found)
    return views.show_status(Screen(call), found, last, watch, jobs, memory.store.now())


def _newest_entry(memory: Memory, found: Status) -> str:
    """The newest revision's entry in the log."""
    if found.head is None:
        return ""
    with contextlib.suppress(UaMemoryError):  # a damaged history still has its newest revision's name
        return entries(memory, [found.head])[0].sentence
    return found.head.subject


# -- verify ------------------------------------------------------------------------------------------------
# `ua-memory verify`: check everything that must hold.


@app.verb()
def verify(
    call: Call,
    memory: Memory,
    quick: bool = flag("--quick", "Only check the index and the newest revision."),
) -> None:
    """Check the files, the ids, the history and the index.

    Prints `file:line: message` for each problem; the exit code is 12 if there are any. --quick takes seconds
    in a bank of any size: it trusts the index for files that have not changed, and skips quoted words,
    forgotten ids that a person typed again, older revisions and the index itself.
    """
    health = memory.health
    found, unchecked = (health.quick(), ()) if quick else health.verified(lambda what: progress(call, what))
    files = len(memory.store.survey().files)
    show_result(call, found, views.problems_json, views.show_problems, unchecked, files)
    if found:
        raise typer.Exit(ProblemsFound.exit_code)


# -- doctor ------------------------------------------------------------------------------------------------
# `ua-memory doctor`: what is wrong around the bank, and mending it.


@app.verb(lenient=True)
def doctor(
    call: Call,
    memory: Memory,
    mend: bool = flag("--mend", "Repair what can be repaired."),
    quick: bool = flag("--quick", "Leave out the whole history and index."),
) -> None:
    """Find and repair problems around the bank.

    Looks at git, the disk, unfinished writes, the history, the index, the embedding model and the
    daemon. The exit code is 12 if problems remain.
    """
    from ua_memory.upkeep.doctor import Check

    checks = [
        *memory.health.doctor(mend=mend, quick=quick),
        *spawn.daemon_checks(memory.store.bank, call.env),
    ]
    if wrong := relay.unknown_names(memory.config.mcp_tools, relay.read_tool_data()):
        hint = f"correct mcp.tools in {memory.config.sources['mcp_tools']}"
        checks.append(Check("mcp.tools", False, wrong, hint))
    show_result(call, checks, views.checks_json, views.show_checks)
    if not all(check.ok for check in checks):
        raise typer.Exit(ProblemsFound.exit_code)


# -- index -------------------------------------------------------------------------------------------------
# `ua-memory index`: the search index, which may be deleted and built anew at any moment.


_INDEX_HELP = "The search index, which is built from the files and may be deleted at any moment."
index_app = app.family("index", _INDEX_HELP)
index_app.callback()(lambda: None)  # a family although it has one member yet


@app.verb(index_app)
def rebuild(call: Call, memory: Memory) -> None:
    """Rebuild the index from the files."""
    with progress(call, "Indexing") as tell:
        done = memory.index.rebuild(progress=tell)
    show_result(call, done, views.rebuild_json, views.show_rebuild)


# -- stats -------------------------------------------------------------------------------------------------
# `ua-memory stats`: what there is, how it grew, and what models cost.


@app.verb()
def stats(
    call: Call,
    memory: Memory,
    cost: bool = flag("--cost", "Tokens and money that models used."),
    since: str | None = option("DATE", "With --cost: from this day on."),
    plot: str | None = option("--plot FILE", "With --cost: plot each day by purpose: .png, .svg or .pdf."),
) -> None:
    """Show counts, and what models cost."""
    if not cost and not plot:
        return show_result(call, memory.health.stats(), views.stats_json, views.show_stats)
    spent = Ledger(memory.store.bank.local).spent(parse_since(since, memory.store.now()))
    if plot:
        bench.drawable(file := paths.absolute(call, plot))
        if spent.by_both:
            bench.draw_cost(spent, file)
    return show_result(call, spent, views.costs_json, views.show_costs, memory.config)


# -- bench -------------------------------------------------------------------------------------------------
# `ua-memory bench`: how good the search is, on the user's own copies of data sets.


bench_app = app.family("bench")


@app.verb(bench_app, opens_bank=False)
def recall(
    call: Call,
    file: list[str] = argument("FILE...", "LoCoMo, LongMemEval, or JSON lines."),
    limit: int = option("--limit -n N", "Results per question.", 50, min=1, max=1000),
    sample: int | None = option("N", "Ask at most N questions of each file, evenly spread.", min=1),
    plot: str | None = option("FILE", "Plot recall against tokens: .png, .svg or .pdf."),
) -> None:
    """Score search on conversations whose questions name their evidence.

    Each conversation becomes a bank of its own in a temporary folder; yours is not touched. BM25 and grep
    answer the same questions for comparison. Formats and figures: docs/bench.md.
    """
    picture = paths.absolute(call, plot) if plot else None
    if picture:
        bench.drawable(picture)
    files = [bench.read(paths.absolute(call, each)) for each in file]
    with progress(call, "Asking") as tell:
        report = bench.measure(files, limit=limit, sample=sample, now=call.now, progress=tell)
    if picture:
        bench.draw(report, picture)
    show_result(call, report, views.bench_json, views.show_bench)
    if picture:
        note(call, f"plot: {picture}")


@app.verb(bench_app)
def probes(
    call: Call,
    memory: Memory,
    ids: list[str] | None = argument("[^ID...]", "With --add: what it should find.", None),
    add: str = option("--add QUERY", "Add a question to probes.md instead.", ""),
) -> None:
    """Ask your own questions and see whether they find what they should.

    They are in probes.md in the bank's folder, a line each: - why did we leave Heroku? → ^k7m2q9x4tb
    Compared with the run before, the exit code is 12 if something is no longer found.
    """
    asked = bench.Probes(memory)
    if add or ids:
        added = asked.add(add, *(ids or ()))
        return show_result(call, added, output.json_value, views.show_added_probe)
    with progress(call, "Asking") as tell:
        run = asked.run(tell)
    show_result(call, run, views.probes_json, views.show_probes)
    if run.lost:
        raise typer.Exit(ProblemsFound.exit_code)
    return None


# -- config and trust --------------------------------------------------------------------------------------
# The settings, where each comes from, and which of a bank's count.


class ConfigGroup(app.Family):
    """The group `config`, in which `config`, `config KEY` and `config get KEY` mean `config list`."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        args = args[1:] if args[:1] == ["get"] else args
        words = [word for word in args if not word.startswith("-")]
        if not {"-h", "--help"} & {*args} and (not words or words[0] not in self.commands):
            args = ["list", *args]
        return super().parse_args(ctx, args)


_CONFIG_HELP = "Settings and their sources. `ua-memory config [KEY]` lists them."
config_app = app.new_app(cls=ConfigGroup, help=_CONFIG_HELP)


@app.verb(config_app, "list", opens_bank=False)
def config_list(
    call: Call,
    key: str | None = argument("[KEY]", "Print only the value of this setting.", None),
) -> None:
    """List the settings and their sources.

    An environment variable overrides your own config.toml (in ~/.config/ua-memory), which overrides the
    bank's ua-memory.toml.
    """
    root = paths.bank_root(call)
    loaded = caller.settings_of(call, root)
    found = views.setting_rows(loaded, key)
    for file, names in ((SETTINGS, loaded.unknown), (USER, loaded.unknown_user)):
        Screen(call).note(*(f"{file} sets {name}, which is not a setting" for name in names))
    everything = {
        "bank": str(root), "user": str(caller.user_file(call)), "settings": found,
        "unknown": list(loaded.unknown), "unknownUser": list(loaded.unknown_user),
    }  # fmt: skip
    emit_json(call, found[0] if key is not None else everything)
    if key is None or call.as_json:  # the JSON says of each which is not trusted
        return views.show_settings(Screen(call), found)
    caller.tell_untrusted(call, loaded)
    return Screen(call).raw(views.setting_text(found[0]["value"]))


@app.verb(config_app, "set", opens_bank=False)
def config_set(
    call: Call,
    key: str = argument("KEY", "The setting."),
    value: list[str] = argument("VALUE...", "Its value; for a list, each item."),
    user: bool = flag("--user", "Write to your own config.toml, for all banks."),
) -> None:
    """Change a setting, and trust it.

    It is written to the bank's ua-memory.toml and committed; comments stay.
    """
    root = paths.bank_root(call)
    name, typed = config.as_typed(key, value, user=user)
    if name == "mcp_tools" and (wrong := relay.unknown_names(typed, relay.read_tool_data())):
        raise Usage(wrong, where=key)
    result: Result | None = None
    if user:
        file = caller.user_file(call)
        before = discovery.read(file) if file.exists() else b""
        config.save(file, config.put(before, str(file), key, typed))
    else:
        with caller.bank_of(call, lenient=True) as memory:
            file = root / SETTINGS
            result = set_setting(memory.store, key, typed, by_person=is_person(call))
        config.trust(root, caller.environment(call), caller.settings_of(call, root, lenient=True), [name])
    loaded = caller.settings_of(call, root, lenient=True)
    more = {"revision": result.revision, "notes": list(result.notes)} if result else {}
    emit_json(call, {**views.setting_rows(loaded, key)[0], "file": str(file), **more})
    screen, done = Screen(call), (" (", output.commit_label(result.revision), ")") if result else ()
    said = f" to {views.setting_value_text(typed)} in "
    screen.line("Set ", (key, "strong"), said, (str(file), "path"), *done)
    if result:
        screen.outcome(result)
    if loaded.sources[name] != file.name:
        note(call, f"{loaded.sources[name]} also sets it, and overrides this file")


@app.verb(opens_bank=False)
def trust(
    call: Call,
    yes: bool = app.Yes,
    revoke: bool = flag("--revoke", "Ignore this bank's settings, without a warning."),
) -> None:
    """Trust the sensitive settings of a bank.

    A bank may come from somebody else. Its settings of endpoints, folders to read and text to leave out
    count only once you have agreed to them here; a changed value must be trusted again.
    """
    root, env = paths.bank_root(call), caller.environment(call)
    loaded = caller.settings_of(call, root)
    if revoke:
        config.distrust(root, env, loaded, wholly=True)
        loaded = caller.settings_of(call, root)
    screen, fresh = Screen(call), bool(loaded.untrusted) and not revoke
    views.show_sensitive(screen, root, loaded)
    if fresh and not yes:
        if not call.reads_terminal or call.as_json:
            raise Usage("there is no terminal to ask", hint="review them, then: ua-memory trust --yes")
        fresh = output.confirm(call, "Trust these settings?", "They stay ignored, without a warning.")
        if not fresh:
            config.distrust(root, env, loaded, wholly=False)
    if fresh:
        config.trust(root, env, loaded)
    now = caller.settings_of(call, root)
    emit_json(call, {"bank": str(root), "settings": views.sensitive_rows(root, now)})
    if fresh:
        screen.line("Trusted. If a value changes, it must be trusted again.")
    elif revoke:
        screen.line("This bank's settings are no longer trusted.")
