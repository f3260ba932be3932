"""What `Memory` thinks about: reflection, the opinions it forms, the directives that bind it.

A part of `Memory`. What it needs is imported when it is used: most commands reflect on nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ua_memory.modelled import Modelled

if TYPE_CHECKING:
    from ua_memory.modelled import Asked as AskedModel
    from ua_memory.opinions import Changed
    from ua_memory.recall.search import Answer, Filters
    from ua_memory.records import Opinion
    from ua_memory.reflect.answering import Session
    from ua_memory.reflect.beliefs import Believed
    from ua_memory.reflect.reflection import Reflection
    from ua_memory.store import Result

NO_MODEL = (
    "without a model this is the evidence, in order, and no answer: one would weigh it and say what it adds "
    "up to (ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for one of your own)"
)
NOT_KEPT = "no opinion was formed: that takes a model"
BEFORE = 5
"""Opinions on a matter that a reflection is shown."""


class Reflections(Modelled):
    """The part of `Memory` that answers questions."""

    def observations(self) -> list[Believed]:
        """The observations that hold, with their freshness; `Believing` has them."""
        raise NotImplementedError

    def reflect(
        self, question: str, *, model: AskedModel = None, budget: str = "low", max_tokens: int = 0,
        schema: Mapping[str, Any] | None = None, context: str = "", filters: Filters | None = None,
        keep_opinion: bool = False,
    ) -> Reflection:  # fmt: skip
        """Answer a question from memory: mental models first, then observations, then facts, all cited.

        `budget` is low, mid or high: turns, hits and tokens. `max_tokens` bounds the answer's text, `schema`
        is a JSON schema for a structured answer beside it, `filters` what may be found at all. With
        `keep_opinion` what the model comes to think is written to memory/opinions.md; else nothing is.
        Without a model the evidence is returned; where there is none, no model is asked.

        Raises Usage for a question, budget or schema that is none, and what the model raises: then there is
        no answer, and nothing was kept.
        """
        from ua_memory.errors import Usage
        from ua_memory.reflect.answering import answer
        from ua_memory.reflect.keeping import write
        from ua_memory.reflect.reflection import DONT_KNOW, Reflection, in_order
        from ua_memory.reflect.stance import Stance

        if not question.strip():
            raise Usage("there is no question", mend='ua-memory reflect "why did we leave Heroku"')
        session = self._session(question.strip(), budget, max_tokens, schema, context, filters, keep_opinion)
        layers = session.gather()
        pieces = tuple(in_order(session.found.pieces.values()))
        left = tuple(session.found.notes)
        if model is None or not pieces:
            notes = [*left, *([] if model else [NO_MODEL, *([NOT_KEPT] if keep_opinion else [])])]
            text = "" if pieces else DONT_KNOW
            return Reflection(question, text, evidence=pieces, path=tuple(session.path), notes=tuple(notes))
        stance = Stance.of(self.config)
        system = stance.system(session.asked.size.answer * 2 // 3, keep_opinion)
        with self._asking(model) as asked:
            assert asked is not None
            done = answer(asked, session, session.opening(layers, stance), system)
        opinions = write(self.store, session.proposals, question=question, door=self.door)
        return replace(done, opinions=opinions, notes=(*left, *done.notes))

    def _session(
        self, question: str, budget: str, max_tokens: int, schema: Mapping[str, Any] | None, context: str,
        filters: Filters | None, keep: bool,
    ) -> Session:  # fmt: skip
        from ua_memory import opinions
        from ua_memory.errors import Usage
        from ua_memory.recall.search import Filters
        from ua_memory.redaction import redact
        from ua_memory.reflect.answering import Session
        from ua_memory.reflect.evidence import Found
        from ua_memory.reflect.reflection import SIZES, Asked
        from ua_memory.reflect.shaped import shape

        if budget not in SIZES:
            raise Usage(f"no budget {budget!r}", mend=f"one of {', '.join(SIZES)}")
        size = SIZES[budget] if max_tokens <= 0 else replace(SIZES[budget], answer=max_tokens)
        base = filters or Filters()
        found = Found(
            self.store, self._found, lambda text: redact(text, self.config.redact).text,
            self.store.now().date(), base, self.observations,
        )  # fmt: skip
        holding = tuple(opinions.listed(self.store))
        asked = Asked(
            question, size, context.strip(), shape(schema) if schema is not None else None, keep,
            self._opinions_on(question, base, holding), holding,
        )  # fmt: skip
        return Session(asked, found)

    def _found(self, query: str, limit: int, filters: Filters) -> Answer:
        answer: Answer = self.search(query, limit=limit, filters=filters)
        return answer

    def _opinions_on(self, question: str, base: Filters, holding: Sequence[Opinion]) -> tuple[Opinion, ...]:
        """The opinions that a search for the question finds: those which what is thought now may change."""
        from ua_memory.reflect.evidence import bears

        if not holding:
            return ()
        where = replace(base, kinds=("opinion", "pattern", "risk"), retired=False)
        ids = [hit.item.id for hit in self._found(question, BEFORE, where).hits if bears(hit)]
        return tuple(one for one in holding if one.id and one.id in ids)

    # -- opinions ----------------------------------------------------------------------------------------

    def opinions(self, *, retired: bool = False) -> list[Opinion]:
        """What the agent thinks; with `retired` also what it thought and dropped."""
        from ua_memory import opinions

        return opinions.listed(self.store, retired=retired)

    def opinion(self, block: str) -> Opinion:
        """The opinion with an id, also a dropped one. NotFound."""
        from ua_memory import opinions

        return opinions.named(self.store, block)

    def opinion_revise(
        self, block: str, *, text: str = "", confidence: float | None = None, because: Sequence[str] = (),
        by_person: bool = False,
    ) -> Changed:  # fmt: skip
        """Change an opinion: its words, its confidence, or more that it rests on (`^id`). NotFound, Usage."""
        from ua_memory import opinions

        return opinions.revise_by_hand(
            self.store, block, text=text, confidence=confidence, because=because,
            day=self.store.now().date().isoformat(), door=self.door, by_person=by_person,
        )  # fmt: skip

    def opinion_drop(self, block: str, why: str = "", *, by_person: bool = False) -> Changed:
        """Retire an opinion: it stays in its file with the day and the reason. NotFound, Usage."""
        from ua_memory import opinions

        day = self.store.now().date().isoformat()
        return opinions.drop_by_hand(self.store, block, why, day=day, door=self.door, by_person=by_person)

    # -- directives --------------------------------------------------------------------------------------

    def direct(self, text: str, *, by_person: bool = False) -> tuple[tuple[str, ...], Result]:
        """Add a hard rule for reflect to ua-memory.toml: (all rules, what was done). Usage, Malformed."""
        from ua_memory import directives

        rules, result = directives.add(self.store, text, door=self.door, by_person=by_person)
        self.config = replace(self.config, directives=rules)
        return rules, result

    def redirect(self, number: int, text: str, *, by_person: bool = False) -> tuple[tuple[str, ...], Result]:
        """Put another rule in the place of this number: (all rules, what was done). NotFound, Usage."""
        from ua_memory import directives

        rules, result = directives.change(self.store, number, text, door=self.door, by_person=by_person)
        self.config = replace(self.config, directives=rules)
        return rules, result

    def directive(self, number: int) -> str:
        """The rule of this number, from 1. NotFound."""
        from ua_memory import directives

        return directives.named(self.config.directives, number)

    def undirect(self, number: int, *, by_person: bool = False) -> tuple[str, Result]:
        """Take the rule of this number (from 1) out: (it, what was done). NotFound, Malformed."""
        from ua_memory import directives

        gone, rules, result = directives.remove(self.store, number, door=self.door, by_person=by_person)
        self.config = replace(self.config, directives=rules)
        return gone, result
