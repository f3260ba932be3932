"""`ua-memory why`: what a sentence rests on, down to somebody's own words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from datetime import datetime

    from ua_memory.cli.call import Call
    from ua_memory.cli.format import Piece, Screen
    from ua_memory.memory import BeliefStep, Break, Chain, FactStep, Link, SentenceStep, Written

why_app = verbs.new()


@why_app.command(cls=verbs.Verb)
def why(
    ctx: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            metavar="PAGE:LINE | PATH:LINE | ^ID",
            help="A line of a page or file, or what has an id.",
            show_default=False,
        ),
    ],
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Show what something rests on: observations, facts, verbatim quotes, session and commit.

    Where a link of the chain does not hold, it says so in its place, and the exit code is 4
    (cited, and nowhere) or 12.
    """
    from ua_memory.cli.format import count, emit, note

    with context.opened(ctx) as (call, memory):
        chain = memory.why(target)
        if call.as_json:
            emit(call, _chain(chain))
        else:
            _tell(call, chain, memory.store.now())
    if chain.breaks:
        broken = count(len(chain.breaks), "link")
        note(call, f"{broken} of this chain {'does' if len(chain.breaks) == 1 else 'do'} not hold")
        raise typer.Exit(chain.exit_code)


# -- a tree ------------------------------------------------------------------------------------------------


def _tell(call: Call, chain: Chain, now: datetime) -> None:
    from ua_memory.cli.format import Screen

    tree = _Tree(Screen(call), now)
    for number, step in enumerate(chain.steps):
        if number:
            tree.screen.line()
        tree.step(step, "", "")


class _Tree:
    """A chain drawn downwards: what is said above, what it rests on below it."""

    def __init__(self, screen: Screen, now: datetime) -> None:
        self.screen, self.now = screen, now
        self.told: set[str] = set()

    def step(self, step: SentenceStep | BeliefStep | FactStep, lead: str, below: str) -> None:
        """One step. `lead` stands before its first line, `below` before all others."""
        from ua_memory.memory import BeliefStep, FactStep

        links: tuple[Link, ...] = () if isinstance(step, FactStep) else step.links
        rest = below + ("│ " if links else "  ")
        style = "strong" if not lead else ""
        self._text(step.text, lead, below + ("│ " if links else "  ") if lead else "", style)
        if isinstance(step, FactStep):
            self._fact(step, rest)
        else:
            kind = step.record if isinstance(step, BeliefStep) else "sentence"
            self._line(rest, (f"{kind} ", "faint"), *_cited(step), *self._written(step.written))
            if isinstance(step, BeliefStep) and step.retired:
                self._line(rest, (f"retired: {step.retired}", "warn"))
            if step.fault:
                self._broken(rest, step.fault)
        for number, link in enumerate(links):
            last = number == len(links) - 1
            self._link(link, below + ("└ " if last else "├ "), below + ("  " if last else "│ "))

    def _link(self, link: Link, lead: str, below: str) -> None:
        if link.step is None:
            self._line(lead, (f"^{link.id}", "id"))
        else:
            self.step(link.step, lead, below)
        if link.fault:
            self._broken(below + "  ", link.fault)
        elif link.quote:
            self._text(f"“{link.quote}” stands there", below + "  ", below + "  ", "good")

    def _fact(self, step: FactStep, rest: str) -> None:
        self._line(rest, ("fact ", "faint"), *_cited(step), *self._written(step.written))
        if step.id and step.id in self.told:
            return
        self.told.add(step.id or "")
        for quote in step.quotes:
            source = f" ({quote.source})" if quote.source else ""
            self._text(f"“{quote.text}”{source}", rest, rest, "match")
        said = step.session
        parts = [f"said by {said.origin}"]
        parts += [f"in {said.client}"] if said.client else []
        parts += [f"session {said.session}"] if said.session else []
        parts += [" ".join(filter(None, (said.day, said.time)))] if said.day or said.time else []
        parts += [said.trail] if said.trail else []
        self._text(", ".join(parts), rest, rest, "faint")
        if said.through:
            self._text(f"read through {', '.join(said.through)}", rest, rest, "faint")
        if step.retired:
            self._line(rest, (f"retired: {step.retired}", "warn"))

    def _written(self, written: Written | None) -> list[Piece]:
        if written is None:
            return [("  not committed yet", "warn")]
        when = written.when.astimezone(self.now.tzinfo)
        by = "" if written.author == "ua-memory" else f" by {written.author}"
        return [(f"  {written.op or 'commit'}{by} {when:%Y-%m-%d} ", "faint"), (written.revision[:7], "rev")]

    def _broken(self, rest: str, fault: Break) -> None:
        self._text(f"✗ {fault.message}", rest, rest, "bad")

    def _line(self, lead: str, *pieces: Piece) -> None:
        self.screen.item([(lead, "faint")], *pieces)

    def _text(self, text: str, lead: str, below: str, style: str) -> None:
        """A text of any length with the tree beside each of its lines."""
        import textwrap

        from ua_memory.cli.format import cells

        room = self.screen.width - max(cells(lead), cells(below)) if self.screen.fancy else 10**9
        lines = textwrap.wrap(" ".join(text.split()), max(room, 20), break_long_words=False) or [""]
        for number, line in enumerate(lines):
            self.screen.item([(below if number else lead, "faint")], (line, style) if style else line)


def _cited(step: SentenceStep | BeliefStep | FactStep) -> list[Piece]:
    block = getattr(step, "id", None)
    at: Piece = (f"{step.place.path}:{step.place.line}", "path")
    return [(f"^{block} ", "id"), at] if block else [at]


# -- JSON --------------------------------------------------------------------------------------------------


def _chain(chain: Chain) -> dict[str, Any]:
    return {
        "target": chain.target,
        "steps": [_step(step) for step in chain.steps],
        "breaks": [_break(one) for one in chain.breaks],
    }


def _break(one: Break) -> dict[str, Any]:
    return {"path": one.path, "line": one.line, "cause": one.cause, "message": one.message}


def _step(step: SentenceStep | BeliefStep | FactStep) -> dict[str, Any]:
    from ua_memory.cli import shapes
    from ua_memory.memory import BeliefStep, FactStep

    found: dict[str, Any] = {"step": "sentence", "text": step.text}
    found |= shapes.place(step.place, getattr(step, "id", None))
    found |= {"written": _written(step.written)} if step.written else {}
    if isinstance(step, (BeliefStep, FactStep)):
        found["step"] = "fact" if isinstance(step, FactStep) else step.record
        found |= {"retired": step.retired} if step.retired else {}
    if isinstance(step, FactStep):
        said = step.session
        known = {"client": said.client, "session": said.session, "day": said.day, "time": said.time}
        more = {"trail": said.trail, "through": list(said.through)}
        quotes = [shapes.without_empty({"text": q.text, "source": q.source}) for q in step.quotes]
        return found | {
            "quotes": quotes,
            "said": {"origin": said.origin, **shapes.without_empty({**known, **more})},
        }
    found |= {"fault": _break(step.fault)} if step.fault else {}
    return found | {"proofs": [_link(link) for link in step.links]}


def _link(link: Link) -> dict[str, Any]:
    from ua_memory.cli import shapes

    found = {"quote": link.quote, "fault": _break(link.fault) if link.fault else None}
    return {"id": link.id, **shapes.without_empty(found)} | ({"rests": _step(link.step)} if link.step else {})


def _written(written: Written) -> dict[str, Any]:
    return {
        "revision": written.revision,
        "author": written.author,
        "when": written.when.isoformat(),
        "op": written.op,
        "subject": written.subject,
    }
