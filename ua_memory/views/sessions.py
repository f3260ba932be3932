"""Sessions for a person and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ua_memory.text.wording import counted
from ua_memory.views.output import Screen, agrees, without_empty

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ua_memory.caller import Call
    from ua_memory.knowledge.sessions import SessionFile


def nothing(kept: bool) -> str:
    """What a list without sessions says; `kept` is the setting sessions.keep."""
    return (
        "No sessions yet: hooks and flushes write them." if kept else "No words are kept: sessions.keep is 0."
    )


def shape(one: SessionFile) -> dict[str, Any]:
    """A session without its words."""
    known = {
        "name": one.name, "path": str(one.path), "session": one.session, "client": one.client,
        "project": one.project, "started": one.started, "title": one.title, "outcome": one.outcome,
        "open": one.open, "readBy": one.read_by, "parent": one.parent,
    }  # fmt: skip
    return {**without_empty(known), "turns": len(one.turns)}


def full_shape(one: SessionFile) -> dict[str, Any]:
    """A session and all that was said in it."""
    said = [
        {"id": turn.id, "speaker": turn.speaker, "at": turn.at, "text": turn.text, "startLine": turn.line,
         "endLine": turn.end}
        for turn in one.turns
    ]  # fmt: skip
    return {**shape(one), "turns": said}


def gone_shape(one: SessionFile) -> dict[str, Any]:
    """What says that a session was deleted."""
    return {"deleted": one.name}


def show_row(screen: Screen, one: SessionFile) -> None:
    """One session of a list: when, where, how much, and what about."""
    where = f"  {one.client}{f' · {one.project}' if one.project else ''}  "
    screen.item(
        (one.name, "path"), (where, "faint"), f"{counted(len(one.turns), 'turn')}  ", (one.title, "strong")
    )


def show_session(screen: Screen, one: SessionFile) -> None:
    """What was said, turn by turn."""
    show_row(screen, one)
    for turn in one.turns:
        screen.line()
        screen.line((turn.speaker.title(), "strong"), (f"  {turn.at}", "faint"))
        for line in turn.text.split("\n"):
            screen.line(line)


def confirmed(call: Call, one: SessionFile) -> bool:
    """Whether a person agrees to delete a session."""
    return agrees(call, f"Delete the {counted(len(one.turns), 'turn')} of {one.name}?")


def show_gone(screen: Screen, one: SessionFile) -> None:
    """Say that a session was deleted."""
    screen.line("Deleted: ", (one.name, "path"))


def confirmed_all(call: Call, found: Sequence[SessionFile]) -> bool:
    """Whether a person agrees to delete all sessions."""
    return agrees(call, f"Delete the words of {counted(len(found), 'session')}, and keep none from now on?")


def off_shape(found: Sequence[SessionFile]) -> dict[str, Any]:
    """What says that no words are kept any more."""
    return {"keep": False, "deleted": [one.name for one in found]}


def show_off(screen: Screen, found: Sequence[SessionFile]) -> None:
    """Say that no words are kept any more."""
    screen.line(f"Deleted {counted(len(found), 'session')}; no words are kept from now on.")
