"""A forgetting: worked out, written as one revision, cleared away beside the files, and proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from ua_memory import statements, tombstones
from ua_memory.errors import Held, NotFound, TooLarge, Usage
from ua_memory.forgetting import choosing, waiting
from ua_memory.forgetting.changing import Changing
from ua_memory.forgetting.clearing import Clearing
from ua_memory.forgetting.derived import Deriving
from ua_memory.forgetting.owners import Owners
from ua_memory.forgetting.plan import Piece, Plan, Target
from ua_memory.forgetting.searching import Searched
from ua_memory.forgetting.waiting import Cleared
from ua_memory.forgetting.words import Needle, needles, unsaid
from ua_memory.index.terms import every_word
from ua_memory.store import Result, Store

if TYPE_CHECKING:
    from ua_memory.config import Config
    from ua_memory.index.sync import Index
    from ua_memory.retain.queue import Waiting

__all__ = ["Forgetting", "Forgotten", "Piece"]

MOST = 1000
"""Statements that one query may mean."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a forgetting does, or has done: the plan, what waits and goes with it, and once it is done the
    revision, what was cleared away beside the files, and the search that proves it."""

    plan: Plan
    waiting: tuple[Waiting, ...] = ()
    touched: tuple[str, ...] = ()
    """Keys of what waits and has the words somewhere; they are taken out of it."""
    result: Result | None = None
    cleared: Cleared = field(default_factory=Cleared)
    proof: Searched = field(default_factory=Searched)
    sought: tuple[Needle, ...] = ()
    """The texts, for a purge that follows."""
    near: tuple[Piece, ...] = ()
    """What a search for the same words finds besides, which stays."""


class Bank(Protocol):
    """What a forgetting needs of the bank that it works in."""

    store: Store
    config: Config
    door: str

    @property
    def index(self) -> Index: ...
    def search(self, query: str, *, limit: int | None = None) -> Any: ...
    def entity(self, name: str) -> Any: ...


class Forgetting(Clearing):
    """Forgetting in one bank."""

    def __init__(self, memory: Bank) -> None:
        super().__init__(memory.store, lambda: memory.index)
        self.memory, self.config, self.door = memory, memory.config, memory.door

    def forget(
        self, *targets: str, query: str = "", session: str = "", entity: str = "", limit: int | None = None,
        dry_run: bool = False, take: bool = False,
    ) -> Forgotten:  # fmt: skip
        """See `Forgets.forget`."""
        with self.alone():
            self.end_begun()
            chosen, session, near = self._chosen(targets, query, session, entity, limit)
            waits = [one for _, one in waiting.of_session(self.store, session)] if session else []
            if not chosen and not waits:
                where = query or session or entity
                raise NotFound("nothing of this is known", where=where, mend="ua-memory search")
            plan = self._plan(chosen, take)
            sought = self._sought(plan)
            touched = tuple(waiting.waits(self.store, sought))
            found = Forgotten(plan, tuple(waits), touched, sought=sought, near=near)
            if dry_run:
                return found
            begun = self.begin((one.id for one in plan.burials), plan.ids, sought, session)
            result = self._write(plan, session, waits)
            cleared, proof = self.end(begun, sought, plan.ids, session)
            return replace(found, result=result, cleared=cleared, proof=proof)

    # -- what is meant -----------------------------------------------------------------------------------

    def _chosen(
        self, targets: Sequence[str], query: str, session: str, entity: str, limit: int | None
    ) -> tuple[list[Target], str, tuple[Piece, ...]]:
        """What is meant, the session as it is called, and what is near a query and not meant."""
        ways = sum(map(bool, (targets, query.strip(), session, entity)))
        if ways != 1:
            raise Usage(
                "name what is to be forgotten in one way" if ways else "nothing is named",
                mend="ua-memory forget ^id, or --query, --session or --entity",
            )
        found: list[Target] = []
        near: tuple[Piece, ...] = ()
        if targets:
            found = [each for given in targets for each in choosing.target(self.store, given)]
        elif query:
            found, near = self._with_words(query, limit)
        elif session:
            said = choosing.sessions(self._texts())
            session = choosing.session(session, said, waiting.sessions(self.store))
            meant = [name for name in said if waiting.is_session(name, session)]
            found = [choosing.of(fact) for name in meant for fact in said[name]]
        else:
            portrait = self.memory.entity(entity)
            names = (portrait.known.name, *portrait.known.aliases)
            known = {f"^{item.ref}" if item.id else item.text for item in portrait.items}
            found = choosing.entity(self._texts(), names, known)
        return list({each.place: each for each in found}.values()), session, near

    def _with_words(self, query: str, limit: int | None) -> tuple[list[Target], tuple[Piece, ...]]:
        """What contains all words of a query, at most `limit`, the best first; and what else a search for it
        finds. NotFound where nothing contains them, TooLarge where more than `MOST` do."""
        index, words = self.memory.index, every_word(query)
        index.refresh(vectors=False)  # all files, however long it takes: what is not read is not found
        hits = self.memory.search(query).hits
        keys = [hit.key for hit in index.words.search(words, MOST + 1)] if words.phrases else []
        if len(keys) > MOST:
            raise TooLarge(f"more than {MOST} statements contain this", where=query, mend="add a word")
        found = choosing.containing(self._texts(), index.words.get(keys), words) if keys else []
        if not found:
            raise NotFound(
                "nothing contains all of these words", where=query,
                mend="ua-memory search finds what is like it, and ua-memory forget ^ID takes one",
            )  # fmt: skip
        taken = {(t.place.path, row) for t in found for row in range(t.place.line, t.place.end + 1)}
        near = (
            item for item in (hit.item for hit in hits)
            if taken.isdisjoint((item.path, row) for row in range(item.line, item.end + 1))
        )  # fmt: skip
        return found[:limit], tuple(map(choosing.piece, near))

    def _texts(self) -> dict[str, bytes]:
        return dict(statements.texts(self.store))

    def _plan(self, chosen: Sequence[Target], take: bool) -> Plan:
        seen = self.store.survey()
        if held := sorted(seen.held):
            raise Held(
                "facts are gone all at once, and nobody has said whether that was meant", where=held[0],
                mend="ua-memory status --accept, or ua-memory undo",
            )  # fmt: skip
        texts = self._texts()
        owners = Owners(self.store, texts)
        today = self.store.now().date()
        deriving = Deriving(texts, chosen, owners.ours, today, take=take, patterns=self.config.redact)
        return Changing(deriving).plan()

    def _sought(self, plan: Plan) -> tuple[Needle, ...]:
        """What must be nowhere afterwards: the texts, their secrets, and of what goes with them that which
        nothing says any more that stays."""
        sure = needles(plan.texts, self.config.redact)
        after = {**self._texts(), **{path: new or b"" for path, (_, new) in plan.files.items()}}
        return (*sure, *unsaid(plan.also, sure, after.values(), self.config.redact))

    # -- doing it ----------------------------------------------------------------------------------------

    def _write(self, plan: Plan, session: str, waits: Sequence[Waiting]) -> Result:
        """One revision, whose message has ids and counts."""
        from ua_memory.retain import through

        with self.store.revision("forget", door=self.door) as draft:
            plan.carry_out(draft)
            tombstones.bury(self.store, draft, plan.burials, self.store.now().date().isoformat())
            draft.facts = [f"^{one.id}" for one in plan.burials]
            marks = [through.mark(one.session, one.turns[-1].id) for one in waits if one.turns]
            draft.trailers |= {through.TRAILER: marks} if marks else {}
            draft.even_if_empty = bool(marks)
            draft.subject = f"forget: {told(plan)}"
        return draft.result


def told(plan: Plan) -> str:
    """`1 fact, 2 observations; 1 revised`: what goes and what is changed, in numbers."""
    counted: dict[str, int] = {}
    for piece in plan.gone:
        counted[piece.what] = counted.get(piece.what, 0) + 1
    parts = [f"{number} {_word(what, number)}" for what, number in counted.items()]
    gone = ", ".join(parts) or "nothing that was written"
    return f"{gone}; {len(plan.revised)} revised" if plan.revised else gone


def _word(what: str, number: int) -> str:
    if what == "text":
        return "passage" if number == 1 else "passages"
    return {"entity": "entities"}.get(what, f"{what}s") if number != 1 else what
