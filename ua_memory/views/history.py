"""The log, forgetting, purging and refreshing for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ua_memory.errors import StillThere
from ua_memory.records import is_generated
from ua_memory.text import redaction
from ua_memory.text.wording import counted
from ua_memory.views import output
from ua_memory.views.output import Piece as Words
from ua_memory.views.output import Screen, commit, count, emit, note, outcome

if TYPE_CHECKING:
    from ua_memory.caller import Call
    from ua_memory.git.repository import Revision
    from ua_memory.reflect.refresh import Price, Proposal, Refreshed, Stale
    from ua_memory.upkeep.forget import Forgotten, Piece
    from ua_memory.upkeep.purge import Purged, Purging


# -- diary -------------------------------------------------------------------------------------------------
# The trail told as a diary: one plain sentence for each thing that was done. Pure: revisions in, sentences
# out.


OURS = "ua-memory"
WORDS = 72
"""Characters of a fact that are told."""
MANY = 4
"""Of so many facts the first words are not told one by one."""
CLIENTS = {"cli": "", "mcp": "An agent over MCP", "python": "A program"}
"""Who is behind what calls itself so; the rest goes by its own name."""
NOBODY = frozenset({"cli", "daemon", "doctor", "editor", "store", ""})
"""Doors that tell nothing of who came through them."""
QUIET = frozenset({"consolidate", "flush", "init", "mend", "merge", "refresh", "settle", "sync"})
"""Work that is told without who asked for it."""
VERBS = {
    "consolidate": "Consolidated", "import": "Imported", "mend": "Mended", "purge": "Purged",
    "reflect": "Reflected", "refresh": "Refreshed", "restore": "Restored", "retain": "Retained",
}  # fmt: skip
DONE = {
    "add": "Added", "change": "Changed", "create": "Created", "delete": "Deleted", "remove": "Removed",
    "set": "Set",
}  # fmt: skip
"""What a subject such as `page: create infra` says was done."""
THINGS = {"config": "setting", "directives": "directive"}


@dataclass(frozen=True)
class DiaryEntry:
    """One line of the diary: when, the revision to take back, the sentence, and whether it was taken back."""

    when: datetime
    revision: str
    says: str
    gone: bool = False


@dataclass(frozen=True)
class _Told:
    one: Revision
    when: datetime
    op: str
    who: str
    session: str
    texts: tuple[str, ...]
    gone: bool

    @property
    def alike(self) -> tuple[Any, ...]:
        """What entries have in common that are told as one."""
        if self.op == "insert" and "seen again" not in self.one.subject:
            return (self.when.date(), self.op, self.who, self.session, self.gone)
        if self.op == "edit":
            return (self.when.date(), self.op, self.who, self.one.paths, self.gone)
        return (self.one.id,)


def entries(
    revisions: Sequence[Revision], brought: Mapping[str, Sequence[Any]], taken_back: set[str],
    zone: tzinfo | None, *, each: bool = False, others: Sequence[Revision] = (),
) -> list[DiaryEntry]:  # fmt: skip
    """Revisions, newest first, as entries; those in a row that are alike are one, unless `each` is wanted.
    `others` are revisions that these took or brought back."""
    told = [_revision_told(one, brought.get(one.id, ()), one.id in taken_back, zone) for one in revisions]
    runs = [[one] for one in told] if each else [list(run) for _, run in groupby(told, lambda one: one.alike)]
    more = [_revision_told(one, brought.get(one.id, ()), False, zone) for one in others]
    known = {each.one.id: each for each in (*more, *told)}
    return [DiaryEntry(run[0].when, run[0].one.id, _sentence(run, known), run[0].gone) for run in runs]


def _revision_told(one: Revision, records: Sequence[Any], gone: bool, zone: tzinfo | None) -> _Told:
    op = one.trailer("Memory-Op")
    heading = next((r.heading for r in records if getattr(r, "heading", None) and r.heading.client), None)
    client = heading.client if heading and one.author == OURS and op in ("insert", "flush") else ""
    session = (heading.session or "") if heading and client else ""
    door = one.trailer("Door")
    behind = client or ("" if door in NOBODY or op in QUIET else door)
    who = one.author if one.author != OURS else CLIENTS.get(behind, behind)
    texts = tuple(dict.fromkeys(short(record.text) for record in records))
    return _Told(one, one.when.astimezone(zone), op, who, session, texts, gone)


def short(text: str) -> str:
    """The first words of a text."""
    words = " ".join(text.split())
    return words if len(words) <= WORDS else f"{words[:WORDS].rsplit(' ', 1)[0].rstrip(',;:.')} …"


def _sentence(run: Sequence[_Told], known: Mapping[str, _Told]) -> str:
    told = run[0]
    match told.op:
        case "insert":
            return _inserted(run)
        case "edit":
            return _edited(run)
        case "flush":
            return _flushed(told)
        case "undo" | "redo":
            return _undone(told, known)
        case "":
            return f"{told.who} committed: {told.one.subject}"
        case "sync":
            return _by(told, "Synced another machine's changes")
        case "core replace":
            verb, _, name = told.one.subject.removeprefix("core: ").partition(" ")
            return _by(told, f"{'Wrote' if verb == 'add' else 'Rewrote'} the core block {name}")
        case "forget":
            ids = told.one.trailers.get("Facts", ())
            named = f" ({', '.join(ids)})" if 0 < len(ids) < MANY else ""
            return _by(told, f"Forgot {told.one.subject.removeprefix('forget: ')}{named}")
        case "init":
            return _by(told, "Created the bank")
    rest = told.one.subject.partition(": ")[2] or told.one.subject
    if told.op in VERBS:
        return _by(told, f"{VERBS[told.op]} {rest}", told.texts)
    thing, (verb, _, name) = told.one.subject.partition(": ")[0], rest.partition(" ")
    if verb in DONE and thing != told.one.subject:
        return _by(told, f"{DONE[verb]} the {THINGS.get(thing, thing)} {name}", told.texts)
    subject = rest if told.op == "merge" else told.one.subject
    return _by(told, subject[:1].upper() + subject[1:], told.texts)


def _by(told: _Told, what: str, texts: Sequence[str] = ()) -> str:
    """`Ann replaced …` where somebody did it, else `Replaced …`."""
    first, _, rest = what.partition(" ")
    person = told.who and not first.endswith(":")
    return f"{told.who} {first.lower()} {rest}{_quoted(texts)}" if person else f"{what}{_quoted(texts)}"


def _inserted(run: Sequence[_Told]) -> str:
    told = run[0]
    who = f"{told.who}, session {told.session}," if told.who and told.session else told.who
    who = who or (f"Session {told.session}" if told.session else "")
    again = "seen again" in told.one.subject
    if len(run) == 1:
        verb = "inserted again" if again else "inserted"
        said = _quoted(told.texts) or " 1 fact, which was forgotten since"
        return f"{who} {verb}{said}" if who else f"{verb.capitalize()}{said}"
    texts = [text for one in reversed(run) for text in one.texts]
    lost = sum(not one.texts for one in run) if texts else 0
    gone = f"; {lost} {'was' if lost == 1 else 'were'} forgotten since" if lost else ""
    what = f"inserted {len(run)} facts from {run[-1].when:%H:%M} on{_quoted(texts)}{gone}"
    return f"{who} {what}" if who else what[0].upper() + what[1:]


def _edited(run: Sequence[_Told]) -> str:
    told = run[0]
    paths = told.one.paths
    what = paths[0] if len(paths) == 1 else counted(len(paths), "file")
    times = f" {len(run)} times from {run[-1].when:%H:%M} on" if len(run) > 1 else ""
    texts = list(dict.fromkeys(text for one in reversed(run) for text in one.texts))
    return f"{told.who} edited {what} by hand{times}{_quoted(texts)}"


def _flushed(told: _Told) -> str:
    number, _, client = told.one.subject.removeprefix("flush: ").partition(" from ")
    session = told.session or told.one.trailer("Session")[:8]
    where = f"{client or 'a conversation'}{f', session {session}' if session else ''}"
    return f"Saved {number} from {where}{_quoted(told.texts)}"


def _undone(told: _Told, known: Mapping[str, _Told]) -> str:
    """What was taken or brought back, as the diary tells of it where it does."""
    verb = "Undid" if told.op == "undo" else "Redid"
    names = told.one.trailers.get("Undoes", ())
    what = told.one.subject.partition(": ")[2].removeprefix("undo: ")
    first = known.get(names[0]) if len(names) == 1 else None
    while first and first.op in ("undo", "redo"):
        first = known.get(first.one.trailer("Undoes"))
    if first:
        said = _sentence([first], known)
        what = said if first.who and said.startswith(first.who) else said[:1].lower() + said[1:]
    return _by(told, f"{verb} {', '.join(name[:7] for name in names)} ({what})")


def _quoted(texts: Sequence[str]) -> str:
    """`: “the first words”`, of several facts the first ones."""
    if not texts:
        return ""
    shown = texts if len(texts) < MANY else texts[: MANY - 2]
    more = f" and {len(texts) - len(shown)} more" if len(shown) < len(texts) else ""
    return f": {', '.join(f'“{text}”' for text in shown)}{more}"


# -- forgotten ---------------------------------------------------------------------------------------------
# What a forgetting does, or has done: for a person, and as JSON. Once it is done, its words are not
# printed: a terminal, and an agent's transcript, would keep them.


SIGNS = {"gone": ("-", "removed"), "revised": ("~", "warn"), "left": ("?", "bad"), "near": (" ", "faint")}


def quoting(found: ForgetResult) -> list[Piece]:
    """The lines of a person that have the words, and stay unless they say otherwise."""
    return [piece for piece in found.plan.left if piece.why == "quotes it"]


def preview(call: Call, found: Forgotten, patterns: Mapping[str, str]) -> None:
    """What would go, be revised and be left, with its words."""
    if call.as_json:
        return emit(call, forgotten_shape(found, patterns, words=True))
    screen, plan = Screen(call), found.plan
    screen.line(("Will be removed:", "strong"))
    _pieces(screen, plan.gone, "gone", patterns)
    if plan.revised:
        screen.line(("Will be revised:", "strong"))
        _pieces(screen, plan.revised, "revised", patterns)
    if plan.left:
        screen.line(("Your own lines, which stay:", "strong"))
        _pieces(screen, plan.left, "left", patterns)
    if found.near:
        screen.line(("Near matches, which stay (forget ^ID removes one):", "strong"))
        _pieces(screen, found.near, "near", patterns)
    for one in found.waiting:
        turns = count(len(one.turns), "turn")
        screen.line(f"Waiting turns of this session are removed too: {turns} ({one.key})")
    if found.touched:
        screen.line(f"Removed from what waits: {', '.join(found.touched)}")
    screen.line(("The history keeps it.", "faint"))


def _pieces(screen: Screen, pieces: Sequence[Piece], kind: str, patterns: Mapping[str, str]) -> None:
    sign, style = SIGNS[kind]
    for piece in pieces:
        text = " ".join(_masked(piece, patterns).split())
        more: list[Words] = [(f"  ^{piece.id}", "id")] if piece.id else []
        screen.item([(f"  {sign} ", style)], text, *more)
        place = f"{piece.place.path}:{piece.place.line}"
        screen.item("      ", (f"{place}  {_named(piece)}", "faint"))


def _name(piece: Piece) -> str:
    """What it is called, so that `why` and `forget --purge` know it again."""
    if piece.id and is_generated(piece.id):
        return f"^{piece.id}"
    return f"{piece.place.path}#^{piece.id}" if piece.id else f"{piece.place.path}:{piece.place.line}"


def _masked(piece: Piece, patterns: Mapping[str, str]) -> str:
    return redaction.redact(piece.text, patterns).text


def _named(piece: Piece) -> str:
    whose = "your " if piece.by_person else ""
    return f"{whose}{piece.what}, {piece.why}"


def show_forgotten(call: Call, done: Forgotten, patterns: Mapping[str, str], *, purging: bool = False) -> int:
    """What was done, and what the search afterwards found; the exit code. With `purging` the history goes
    next."""
    assert done.result
    if call.as_json:
        emit(call, forgotten_shape(done, patterns, words=False))
    else:
        _forgotten_told(call, done, purging)
        for each in done.proof.found:
            note(call, f"it is still in {each.where}")
        if done.proof.found and quoting(done):
            note(call, "your own lines stay: ua-memory forget PATH:LINE removes one")
    return 0 if done.proof.holds else StillThere.exit_code


def _forgotten_told(call: Call, done: ForgetResult, purging: bool) -> None:
    screen, plan = Screen(call), done.plan
    assert done.result
    screen.line("Forgot ", _counted(plan.gone), " (", commit(done.result.revision), ")")
    for kind, pieces in (("gone", plan.gone), ("revised", plan.revised), ("left", plan.left)):
        sign, style = SIGNS[kind]
        for piece in pieces:
            name = _name(piece)
            screen.item([(f"  {sign} ", style)], (name, "id" if piece.id else "path"), f"  {_named(piece)}")
    cleared = done.cleared
    if cleared.pending or done.waiting:
        names = [*cleared.pending, *(one.key for one in done.waiting)]
        screen.line(f"Removed from what waited: {', '.join(names)}")
    looked = ", ".join(
        f"{number} in {'git' if kind == 'trail' else kind}" for kind, number in done.proof.looked.items()
    )
    if done.proof.holds:
        screen.line(("Nothing of it is left", "good"), f": searched {looked}.")
    else:
        screen.line(("Not all of it was removed", "bad"), f": searched {looked}.")
    if not purging:
        screen.line(("The history keeps it; undo restores it.", "faint"))
    more = [f"the next searches rebuild the index ({cleared.left} left)"] if cleared.left else []
    outcome(call, done.result, *more)


def _counted(pieces: Sequence[Piece]) -> str:
    counted: dict[str, int] = {}
    for piece in pieces:
        counted[piece.what] = counted.get(piece.what, 0) + 1
    plurals = {"entity": "entities"}
    parts = (count(number, what, plurals.get(what)) for what, number in counted.items())
    return ", ".join(parts) or "what waited"


def forgotten_shape(found: Forgotten, patterns: Mapping[str, str], *, words: bool) -> dict[str, Any]:
    """As JSON; with its `words` only before it is done."""

    def pieces(given: Sequence[Piece]) -> list[dict[str, Any]]:
        return [
            {"what": piece.what, "why": piece.why, "byPerson": piece.by_person}
            | ({"text": _masked(piece, patterns)} if words else {})
            | output.place(piece.place, piece.id)
            for piece in given
        ]

    plan = found.plan
    done: dict[str, Any] = {}
    if found.result is not None:
        proof = found.proof
        done = {
            "revision": found.result.revision,
            "notes": list(found.result.notes),
            **output.searched(proof),
            "cleared": {
                "pending": list(found.cleared.pending),
                "logLines": found.cleared.logs,
                "embeddings": found.cleared.embeddings,
            },
        }
    return {
        "dryRun": found.result is None,
        "gone": pieces(plan.gone),
        "revised": pieces(plan.revised),
        "left": pieces(plan.left),
        **({"near": pieces(found.near)} if words and found.near else {}),
        "waiting": [{"key": one.key, "turns": len(one.turns)} for one in found.waiting],
        "touched": list(found.touched),
        **done,
    }


# -- purged ------------------------------------------------------------------------------------------------
# `ua-memory forget --purge`: what leaves the history, which branches and tags are rewritten, the backup.


def show_purge(call: Call, planned: Purging) -> None:
    """What a purge would remove and rewrite."""
    screen = Screen(call)
    statements = count(len(planned.ids), "forgotten statement")
    contents = count(len(planned.contents), "version of a file", "versions of files")
    screen.line(("Removed from the history:", "strong"), f" {statements}, out of {contents}")
    screen.line(("Rewritten:", "strong"))
    for ref in planned.refs:
        screen.item([("  ~ ", "warn")], ref.short, (f"  {ref.id[:7]}", "rev"))
    if planned.remotes:
        screen.line(("Removed until the next fetch, as long as the remote has it:", "strong"))
        screen.line(f"  {', '.join(planned.remotes)}")
    if planned.unknown:
        names = ", ".join(f"^{block}" for block in planned.unknown)
        screen.line(
            ("The history has no text of", "warn"), f" {names}: they have left it before, or had no id and"
        )
        screen.line("  more than one line; what it says of these is not found.")
    if planned.citing:
        where = ", ".join(planned.citing)
        screen.line(("Your own lines that cite it, which stay:", "strong"), " ", (where, "path"))
    if planned.around:
        screen.line(("Not rewritten:", "warn"), f" {planned.around}, which has committed files of this bank")
    if planned.own:
        screen.line(("Unreachable objects are deleted too.", "faint"))


def show_purged(call: Call, planned: Purging, made: Purged) -> None:
    """What a purge has rewritten, and what is left for a person to do."""
    screen = Screen(call)
    for name, (old, new) in made.rewrote.items():
        screen.line("Rewrote ", made.short(name), "  ", (old[:7], "rev"), " to ", (new[:7], "rev"))
    if not made.rewrote:
        screen.line("No revision had to be rewritten.")
    proved(call, screen, made.proof, made.revision, made.backup)
    if planned.around:
        note(call, f"{planned.around} has committed files of this bank; its history is yours to rewrite")


def proved(call: Call, screen: Screen, proof: Any, revision: str | None, backup: str) -> None:
    """What the search has found, and where the old history lies."""
    if proof.holds:
        objects = count(proof.looked.get("history", 0), "object")
        where = f", also in the {objects} of the history ("
        screen.line(("Nothing of it is left", "good"), where, commit(revision), ")")
    else:
        screen.line(("Not all of it was removed", "bad"))
        for each in proof.found:
            note(call, f"it is still in {each.where}")
    screen.line("The old history is in ", (backup, "path"))
    rest = ". Until then the purge is not finished."
    screen.line("Once you are sure, delete that: ", (f"rm {backup}", "strong"), rest)


def purge_shape(planned: Purging) -> dict[str, Any]:
    """What a purge would remove and rewrite, as JSON."""
    return {
        "ids": [f"^{block}" for block in planned.ids],
        "refs": [{"name": ref.name, "revision": ref.id} for ref in planned.refs],
        "remotes": list(planned.remotes),
        "unknown": [f"^{block}" for block in planned.unknown],
        **({"around": planned.around} if planned.around else {}),
        **({"citing": list(planned.citing)} if planned.citing else {}),
        "contents": len(planned.contents),
    }


def purged_shape(made: Purged) -> dict[str, Any]:
    """What a purge has rewritten, as JSON."""
    return {
        "rewrote": [{"name": name, "from": old, "to": new} for name, (old, new) in made.rewrote.items()],
        "backup": made.backup,
        "revision": made.revision,
        **output.searched(made.proof),
    }


# -- refreshed ---------------------------------------------------------------------------------------------
# What a refresh of a page did, as a person and as a script read it.


NO_MODEL = (
    "without a model the page lists facts in their own words; a model would write it "
    "(ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for your own server)"
)


def told_price(call: Call, price: RefreshPrice) -> None:
    """What asking will cost, before it is done."""
    cost = "no price known" if price.usd is None else f"about ${price.usd:.2f}, prices of {price.as_of}"
    cost = "no bill: it is on this network" if price.usd == 0 else cost
    note(call, f"{price.model} will read about {price.tokens:,} tokens: {cost}")


def show_refreshed(call: Call, one: RefreshResult) -> None:
    """One page's refresh: why, what changed as a diff, and what became of persons' words."""
    screen, page = Screen(call), one.page
    front: list[Any] = [(page.id, "id"), "  "]
    if not one.why and not one.revision and not one.diff:
        screen.item(front, "nothing has changed for it")
        for text in one.notes:
            note(call, text)
        return
    did = "would be created" if one.full and one.dry_run else "created" if one.full else "refreshed"
    did = "would be refreshed" if one.dry_run and not one.full else did
    where: list[Any] = [" (dry run)"] if one.dry_run else [" (", commit(one.revision), ")"]
    why = f": {one.why or 'asked for'}" if str(one.why) != "never refreshed" else " (first refresh)"
    screen.item(front, f"{did}{why}", *where)
    if one.diff:
        screen.diff(one.diff.removesuffix("\n"))
    else:
        screen.item("  ", ("its text stays as it is", "faint"))
    for fact in one.learnt:
        block = f"  ^{fact.id}" if fact.id else ""
        screen.item([("  + ", "added")], "yours, added as a fact: ", fact.text, (block, "id"))
    for fact in one.flagged:
        screen.item([("  ? ", "warn")], f"memory contradicts it: {fact.text} ", (f"({fact.flag})", "faint"))
    if one.left_out:
        screen.item(
            [("  ! ", "warn")], f"no room for {count(one.left_out, 'more fact')} (max_tokens in its header)"
        )
    _refused(screen, one.by, one.refused)
    for kind, number in one.redacted.items():
        note(call, f"removed before writing: {kind}{f' ({number} times)' if number > 1 else ''}")
    for text in one.notes:
        note(call, text)


def _refused(screen: Screen, by: str, refused: tuple[str, ...]) -> None:
    if refused:
        screen.line((f"Proposed by {by}, and not kept as proposed, or no longer so:", "faint"))
    for text in refused:
        screen.item([("  ? ", "warn")], (text, "faint"))


def show_proposal(call: Call, one: Proposal) -> None:
    """What would be different in a mental model."""
    screen = Screen(call)
    if one.diff:
        screen.diff(one.diff.removesuffix("\n"))
        note(call, "a proposal: nothing was written; edit the file, or: ua-memory models update")
    else:
        screen.line(f"Compared with {count(one.evidence, 'fact')}: nothing to propose.")
    _refused(screen, one.by, one.refused)
    for text in one.notes:
        note(call, text)


# -- JSON ----------------------------------------------------------------------------------------------


def stale(why: StaleReasons) -> dict[str, Any]:
    """Why a page is stale; the names are `^id`, or `path#texthash` of a line without an id."""
    return {
        "is": bool(why),
        "why": str(why),
        "new": list(why.new),
        "edited": list(why.edited),
        "gone": list(why.gone),
        "yours": why.yours,
    }


def refreshed_shape(one: RefreshResult, cost: RefreshPrice | None) -> dict[str, Any]:
    """One page's refresh; `estimate` only where the price was told before."""
    return {
        **({"estimate": price(cost)} if cost else {}),
        "id": one.page.id,
        "path": one.page.place.path,
        "model": one.by,
        "stale": stale(one.why),
        "full": one.full,
        "dryRun": one.dry_run,
        "diff": one.diff,
        "body": one.page.body,
        "learnt": [_fact(fact) for fact in one.learnt],
        "flagged": [_fact(fact) for fact in one.flagged],
        "refused": list(one.refused),
        "leftOut": one.left_out,
        "revision": one.revision,
        "redacted": dict(one.redacted),
        "usage": output.usage(one.usage),
        "notes": list(one.notes),
    }


def _fact(fact: Any) -> dict[str, Any]:
    named = output.place(fact.place, fact.id) if fact.place.path else {}
    return {**named, "text": fact.text, **({"flag": fact.flag} if fact.flag else {})}


def proposal(one: Proposal) -> dict[str, Any]:
    """What would be different in a mental model."""
    return {
        "id": one.model.id,
        "path": one.model.place.path,
        "model": one.by,
        "diff": one.diff,
        "evidence": one.evidence,
        "refused": list(one.refused),
        "usage": output.usage(one.usage),
        "notes": list(one.notes),
    }


def price(one: RefreshPrice) -> dict[str, Any]:
    """What asking would cost."""
    usd = {} if one.usd is None else {"usd": round(one.usd, 4)}
    return {"model": one.model, "tokens": one.tokens, **usd}
