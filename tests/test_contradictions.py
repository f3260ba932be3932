"""Lies and paraphrases at each door of the memory: what reverses its quote is refused, what holds is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from banks import NOON
from scripted_model import DONE, SAID, Scripted, keep

from ua_memory.clients.turns import Turn
from ua_memory.records import Fact, Place
from ua_memory.reflect.evidence import EvidencePiece, check_answer
from ua_memory.reflect.proposals import RefusedProposal, check_proposal
from ua_memory.retain.extract_by_model import ChunkExtractor, TextContext, split_text
from ua_memory.retain.subagent import MemoryView, run_subagent
from ua_memory.text.grounding import disagreement

DATA = Path(__file__).parent / "data" / "claims.tsv"


@dataclass(frozen=True)
class Claim:
    """A statement, the turns it is about as (who, words), and its quote; `kind` is `true`, or how it lies."""

    kind: str
    turns: tuple[tuple[str, str], ...]
    quote: str
    text: str

    @property
    def spoken(self) -> list[str]:
        return [f"{who}: {words}" for who, words in self.turns]


def claims() -> list[Claim]:
    found = []
    for line in DATA.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            kind, said, text = line.split("\t")
            quote = said.split("«")[1].split("»")[0]
            turns = [turn.replace("«", "").replace("»", "").split(": ", 1) for turn in said.split(" | ")]
            found.append(Claim(kind, tuple((who, words) for who, words in turns), quote, text))
    return found


def retained(claim: Claim) -> bool:
    call = "keep", {"facts": [{"what": claim.text, "quote": claim.quote}]}
    drawn = ChunkExtractor(Scripted([call]), TextContext(NOON)).extract(
        split_text("\n\n".join(claim.spoken))[0]
    )
    return any(fact.text == claim.text for fact in drawn.facts)


def flushed(claim: Claim) -> bool:
    said = [Turn(f"t{n}", "assistant" if who == "assistant" else "person",
                 words if who in ("person", "assistant") else f"{who}: {words}", SAID)
            for n, (who, words) in enumerate(claim.turns)]  # fmt: skip
    call = keep(
        claim.text, claim.quote, 1 + next(n for n, turn in enumerate(said) if claim.quote in turn.text)
    )
    found = run_subagent(Scripted([call], DONE), said, MemoryView(lambda query: [], lambda: []), None)
    return any(each.text == claim.text for each in found.candidates)


def reflected(claim: Claim) -> bool:
    pieces = {
        number: EvidencePiece(number, "facts", text, Place("a.md", number, number), said="2026-11-20")
        for number, text in enumerate(claim.spoken, 1)
    }  # fmt: skip
    cited = [number for number, piece in pieces.items() if claim.quote in piece.text]
    answer = check_answer(f"{claim.text} {cited}", pieces, "What is known?", found=True, checked=())
    return not answer.cut


def consolidated(claim: Claim) -> bool:
    facts = {
        f"f{n}": (f"^{n}", Fact(text, place=Place("memory/2026-11-20.md", n, n)))
        for n, text in enumerate(claim.spoken)
    }
    label = next(each for each, (_, fact) in facts.items() if claim.quote in fact.text)
    given = {"do": "create", "text": claim.text, "proofs": [{"fact": label, "quote": claim.quote}]}
    try:
        check_proposal(given, facts, {}, "new")
    except RefusedProposal:
        return False
    return True


@pytest.mark.parametrize(
    ("door", "every"),
    [
        (consolidated, 1),
        *((door, 4) for door in (retained, flushed, reflected)),  # all doors ask the same rules
        *(pytest.param(door, 1, marks=pytest.mark.slow) for door in (retained, flushed, reflected)),
    ],
)
def test_on_the_lines_they_were_written_for_the_rules_hold_their_bar(
    door: Callable[[Claim], bool], every: int
) -> None:
    found = claims()
    lies = [claim for claim in found if claim.kind != "true"]
    true = [claim for claim in found if claim.kind == "true"]
    assert len(lies) > 100 < len(true)
    lies, true = lies[every - 1 :: every], true[every - 1 :: every]
    passed = [f"{claim.kind}: {claim.text}" for claim in lies if door(claim)]
    refused = [claim.text for claim in true if not door(claim)]
    assert len({claim.kind for claim in lies}) == 10
    assert len(passed) <= len(lies) * 5 / 100, passed
    assert len(refused) <= len(true) * 3 / 100, refused


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("Anna wants to sell the shop.", "want to sell the shop"),
        ("Anna is moving to Kiel.", "move to Kiel"),
    ],
)
def test_a_quote_stands_for_the_sentence_it_is_cut_from(text: str, quote: str) -> None:
    said = ["Anna: I do not want to sell the shop. We might move to Kiel."]
    assert disagreement(text, [quote], said)


def test_what_is_said_in_the_quotes_own_words_is_never_refused() -> None:
    for claim in claims():
        assert not disagreement(claim.quote, [claim.quote], claim.spoken)


@pytest.mark.parametrize(
    ("said", "lie", "true"),
    [
        ("Uma: The plumber sealed the pipe.", "Uma sealed the pipe.", "Uma's pipe was sealed."),
        (
            "Uma: The tap still drips at night.",
            "The tap no longer drips at night.",
            "The tap drips at night.",
        ),
        ("Uma: She claims the seal holds.", "The seal holds.", "The seal holds, she says."),
        ("Uma: Red is for gas, blue is for steam.", "Red is for steam.", "Blue is for steam."),
        ("Uma: We painted the blue door.", "Uma plans to paint the blue door.", "Uma painted the door blue."),
        (
            "assistant: The table lacks an index, so the page is slow.",
            "The user found that the table lacks an index.",
            "The table lacks an index.",
        ),
        ("Uma: dont paint this door", "Uma wants this door painted.", "This door should not be painted."),
    ],
)
def test_what_turns_a_statement_is_told_from_what_only_rewords_it(said: str, lie: str, true: str) -> None:
    assert disagreement(lie, [said.partition(": ")[2]], [said])
    assert not disagreement(true, [said.partition(": ")[2]], [said])
