"""Hypothesis strategies for every kind of record, with texts made to break a parser."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ua_memory.records import (
    KINDS,
    ORIGINS,
    CoreBlock,
    Entity,
    Fact,
    MentalModel,
    Observation,
    Opinion,
    Page,
    Passage,
    Proof,
    Quote,
    SourceDocument,
    Tombstone,
    Was,
)

NASTY = [
    "\n",
    "\n\n",
    "  ",
    "\t",
    "    ",
    "\r",
    "\r\n",
    "\x85",
    "\u2028",
    "\ufeff",
    "\x00",
    "\x7f",
    "\xa0",
    "\\",
    "- ",
    "* ",
    "+ ",
    "1. ",
    "2) ",
    "# ",
    "## ",
    "## [SYSTEM]",
    "> ",
    "---",
    "===",
    "***",
    "- - -",
    "--",
    "```",
    "~~~",
    "```python",
    "````",
    "`",
    "<!--",
    "-->",
    "<!-- x -->",
    "<!-- through: a/b/c -->",
    "| a | b |",
    "^",
    "^id",
    "^k7m2q9x4tb",
    "#",
    "#infra",
    "#12",
    "#a/b",
    "#é",
    "[[A]]",
    "[[2026-11-21#^k7]]",
    "]]",
    "|",
    '"',
    "- origin: person",
    "- when: 2026-01-01",
    "- kind: risk",
    "- proof: x",
    "- tags: [",
    "- was: x (2020)",
    "where:",
    "\n  - origin: person",
    "\n- origin: agent",
    "\n  ^id",
    "\n## [SYSTEM]\n",
    "\n```\n- x ^id\n```\n",
    "---\na: b\n---\n",
    "&#10;",
    "&#x41;",
    "&amp;",
    "&",
    "&#",
    "#38;",
    "&#0;",
    "&#1114112;",
    "5) x",
    "1\\. x",
    "\\-",
    "\\#infra",
    "\\^id",
    "[ ] ",
    "[x] ",
    "a",
    "b",
    " ",
    " ",
    ",",
    ", ",
    "(",
    ")",
    " (",
    '" (',
    "é",
    "日本",
    "🙂",
    "é",
    "007",
    ":",
    "٠",
]
CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXTS = st.one_of(
    st.lists(st.sampled_from(NASTY), max_size=9).map("".join),
    st.text(CHARACTERS, max_size=30),
    st.lists(st.one_of(st.sampled_from(NASTY), st.text(CHARACTERS, max_size=4)), max_size=8).map("".join),
)
FULL = TEXTS.filter(bool)
IDS = st.text("abcdefghijklmnopqrstuvwxyz234567-", min_size=1, max_size=10)
TIMES = st.sampled_from(
    [
        "2026",
        "2026-11",
        "2026-11-19",
        "2026-11-19T14:32",
        "2026-11-19T14:32:05+05:30",
        "2026-11-19/2026-11-21",
    ]
)
TAGS = st.one_of(st.sampled_from(["infra", "a/b", "cwd:/a b", "12", "é", "x_y-z"]), FULL)
PROOFS = st.builds(Proof, TEXTS, IDS, TEXTS)


def _some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def _many(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=3).map(tuple)


FACTS = st.builds(
    Fact,
    text=TEXTS,
    id=_some(IDS),
    kind=st.sampled_from(KINDS),
    when=_some(TIMES),
    where=_some(FULL),
    who=_some(FULL),
    why=_some(FULL),
    cause=_some(FULL),
    importance=_some(st.integers(0, 10)),
    entities=_many(FULL),
    tags=_many(TAGS),
    quotes=_many(st.builds(Quote, TEXTS, _some(TEXTS))),
    seen=_many(FULL),
    was=_many(st.builds(Was, TEXTS, TEXTS)),
    origin=_some(st.sampled_from(ORIGINS)),
    source=_some(FULL),
    retired=_some(FULL),
    flag=_some(FULL),
)
OBSERVATIONS = st.builds(
    Observation,
    text=TEXTS,
    id=_some(IDS),
    proofs=_many(PROOFS),
    since=_some(TIMES),
    last=_some(TIMES),
    trend=_some(FULL),
    scope=_some(FULL),
    was=_many(st.builds(Was, TEXTS, TEXTS)),
    entities=_many(FULL),
    tags=_many(TAGS),
    origin=_some(st.sampled_from(ORIGINS)),
    retired=_some(FULL),
    flag=_some(FULL),
)
OPINIONS = st.builds(
    Opinion,
    text=TEXTS,
    id=_some(IDS),
    kind=st.sampled_from(["opinion", "pattern", "risk"]),
    confidence=_some(st.floats(0, 1)),
    because=_many(PROOFS),
    when=_some(TIMES),
    entities=_many(FULL),
    tags=_many(TAGS),
    retired=_some(FULL),
    flag=_some(FULL),
)
ENTITIES = st.builds(Entity, FULL, _many(FULL), _many(FULL))
TOMBSTONES = st.builds(Tombstone, IDS, FULL, TIMES)


def _is_body(text: str) -> bool:
    lines = text.split("\n")
    return "\r" not in text and (text == "" or bool(lines[0].strip(" \t") and lines[-1].strip(" \t")))


BODIES = TEXTS.filter(_is_body)
VALUES = TEXTS.map(lambda text: text.replace("\r", "")).filter(_is_body) | TEXTS.map(
    lambda text: f"a\r\n{text}b"
)
PAGES = st.builds(Page, FULL, FULL, FULL, _many(TAGS.filter(str.strip)), BODIES)
MODELS = st.builds(MentalModel, FULL, FULL, _many(TAGS.filter(str.strip)), BODIES)
DOCUMENTS = st.builds(SourceDocument, FULL, _some(FULL), _many(FULL.filter(str.strip)))
BLOCKS = st.builds(CoreBlock, st.sampled_from(["Persona", "Who I am", "SYSTEM_RULES"]), VALUES, st.booleans())
PASSAGES = st.builds(Passage, st.text("abc é.", max_size=40).map(lambda text: f"a{text}z"))

PATHS = {
    Fact: "memory/2026-11-21.md",
    Observation: "memory/observations/alice.md",
    Opinion: "memory/opinions.md",
    Entity: "memory/entities.md",
    Tombstone: "memory/forgotten.md",
    Page: "memory/pages/infra.md",
    MentalModel: "memory/models/alice.md",
    SourceDocument: "memory/documents/d.md",
    CoreBlock: "MEMORY.md",
    Passage: "memory/2026-11-21.md",
}
RECORDS = {
    Fact: FACTS,
    Observation: OBSERVATIONS,
    Opinion: OPINIONS,
    Entity: ENTITIES,
    Tombstone: TOMBSTONES,
    Page: PAGES,
    MentalModel: MODELS,
    SourceDocument: DOCUMENTS,
    CoreBlock: BLOCKS,
    Passage: PASSAGES,
}
