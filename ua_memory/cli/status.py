"""`ua-memory status`: how the bank stands."""

from __future__ import annotations

import contextlib
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.cli.format import Piece
    from ua_memory.memory import Memory, Standing, Status, Unfinished

status_app = verbs.new()


@status_app.command(cls=verbs.Verb)
def status(
    ctx: typer.Context,
    accept: Annotated[
        bool, typer.Option("--accept", help="Let facts that disappeared by hand be gone.")
    ] = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Show how the bank stands: what is edited, held, pending, how full core memory is."""
    from ua_memory.cli.format import emit, note

    with context.opened(ctx, lenient=True) as (call, memory):
        held = memory.status().held if accept else ()
        result = memory.accept() if accept else None
        if result is not None:
            for text in result.notes:
                note(call, text)
            note(call, f"accepted: {', '.join(held)}" if held else "nothing was held")
        found = memory.status()
        watch = _watch(call, memory)
        here = memory.store.bank
        signs = (here.root / "memory/observations", here.pending / "consolidation-batch.json")
        beliefs = memory.standing() if any(map(os.path.exists, signs)) else None
        if call.as_json:
            more: dict[str, Any] = {"watch": watch} if watch else {}
            more |= {"accepted": list(held)} if accept else {}
            more |= {"beliefs": asdict(beliefs)} if beliefs else {}
            purges = memory.unfinished_purges()
            more |= {"purges": [asdict(one) for one in purges]} if purges else {}
            emit(call, shape(found) | more)
        else:
            _tell(call, memory, found, watch, beliefs)


def _watch(call: Call, memory: Memory) -> dict[str, str]:
    """How the bank's daemon hears of changes; empty where none runs."""
    from ua_memory.daemon import client

    asked = client.status(memory.store.bank.root, call.env) or {}
    return {key: asked["watch"][key] for key in ("mode", "why") if key in asked.get("watch", {})}


def shape(found: Status) -> dict[str, Any]:
    from ua_memory.cli import queue, shapes

    whole, *blocks = found.budgets
    return {
        "bank": found.root,
        "trail": found.trail,
        "own": found.own,
        **({"head": shapes.revision(found.head)} if found.head else {}),
        "files": found.files,
        "edited": list(found.edited),
        "held": list(found.held),
        "pending": list(found.pending),
        "waiting": [queue.shape(one) for one in found.waiting],
        "core": {**shapes.budget(whole), "blocks": {block.name: shapes.budget(block) for block in blocks}},
        **({"damage": found.damage} if found.damage else {}),
        "settings": list(found.settings),
        "problems": found.problems,
        "index": dict(found.index),
    }


def _tell(call: Call, memory: Memory, found: Status, watch: dict[str, str], beliefs: Standing | None) -> None:
    from ua_memory.cli.format import Screen, count

    screen = Screen(call)
    rows: list[tuple[str, Piece]] = [
        ("Bank", (found.root, "path")),
        ("History", "a git repository of its own" if found.own else f"kept apart, in {found.trail}"),
        ("Damage", (f"{found.damage}\nwhat to do: ua-memory doctor" if found.damage else "", "bad")),
        ("Last", _last(found, memory, relative=screen.fancy)),
        ("Files", f"{found.files:,}"),
        ("By hand", (_listed(found.edited, "edited and not committed yet"), "warn")),
        ("Held", (_listed(found.held, "facts disappeared", *HELD), "bad")),
        (
            "Pending",
            ("\n".join([*found.pending, "what to do: ua-memory doctor"]) if found.pending else "", "warn"),
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
    problems: Piece = (f"{found.problems}, see ua-memory verify", "bad") if found.problems else "none"
    rows += [("Problems", problems), ("Index", _index(dict(found.index)))]
    rows.append(("Purge", ("\n".join(map(_purge, memory.unfinished_purges())), "bad")))
    deaf = f"no events ({watch.get('why')}): the daemon looks at the files now and then"
    rows.append(("Watch", (deaf if "why" in watch else "", "warn")))
    screen.rows([[(name, "strong"), said] for name, said in rows if said and said[0]])


HELD = ("confirm: ua-memory status --accept", "restore: ua-memory undo")


def _listed(paths: tuple[str, ...], says: str, *more: str) -> str:
    return "\n".join([f"{', '.join(paths)}: {says}", *more]) if paths else ""


def _purge(one: Unfinished) -> str:
    """What is left to do of a purge."""
    if not one.done:
        mend = "ua-memory sync" if one.sync else "ua-memory forget --purge"
        return f"was cut short: {mend} brings it to its end"
    return (
        f"of {one.on} is not finished: the old history is in {one.backup}\nonce you are sure: rm {one.backup}"
    )


def _waiting(found: Status) -> str:
    """Conversations that no flush has read, each with the reason where one failed."""
    from ua_memory.cli import queue
    from ua_memory.cli.format import count

    lines = [
        f"{count(len(one.turns), 'turn')} of {one.session.client}"
        + (f": {queue.why(one)}" if one.reason else ", which goes on" if one.open else "")
        for one in found.waiting
    ]
    return "\n".join([*lines, "flush them: ua-memory queue retry"]) if lines else ""


def _last(found: Status, memory: Memory, *, relative: bool) -> str:
    """The newest revision: how long ago for a person, the time for a script."""
    from ua_memory.cli.log import entries
    from ua_memory.cli.times import ago
    from ua_memory.errors import UaMemoryError

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
        said = ["behind the files, which the next search makes good"]
    counted = [f"{found.pop(key)} {key}" for key in ("items", "files") if key in found]
    return ", ".join([*said, *counted, *(f"{key} {value}" for key, value in found.items())])
