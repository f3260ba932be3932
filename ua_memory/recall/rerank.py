"""Late interaction: how well each item answers the single words of the query, with feedback."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence, Set
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from ua_memory.index import embedding
from ua_memory.index import items as index_items
from ua_memory.index.items import IndexItem
from ua_memory.index.terms import is_english, is_unspaced
from ua_memory.recall.arms import DateRange, ParsedQuery, QueryWord, Ranked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ua_memory.index.embedding import EmbeddedQuery


# -- feedback ----------------------------------------------------------------------------------------------
# What the best hits have in common: candidates that are less like them fall behind.
#
# A question about "activities" finds the hike by that word, and the museum by nothing but being like the
# hike. What the best few of a first order say is taken for more of the query (pseudo-relevance feedback;
# Rocchio 1971):
#
#     away     of a text's vector, what sets it apart from the mean of all candidates, brought to length 1
#     aim      mean of `away` over the best FIRST, brought to length 1, and QUERY times that of the query
#     like     cosine of `away` and `aim`; 0 for a text that has no vector yet
#     gain     ALIKE * (like - mean of like over the best FIRST), at most 0; 0 for those themselves
#
# Apart from the mean, since all candidates are like the query: what they share tells none of them from
# another. The best stay where they are, as good or as bad as they are: what is believed of them cannot make
# them better.


if TYPE_CHECKING:
    Table = NDArray[np.float32]

FIRST = 5
"""Hits that are taken for right."""
QUERY = 0.5
"""What the query itself counts beside them: they may be wrong."""
ALIKE = 0.2
"""What a candidate loses that is like none of this. From 0.1 to 0.3, with 4 to 8 hits and 0.5 to 1 times the
query, R@2000t is 94.2 to 95.6 on the two development conversations, 93.7 without."""


def gains(query: Table, rows: Table, raw: Table) -> Table:
    """(n,) what each of n candidates gains, which is 0 or less. `query` and `rows` (n, d) are vectors of
    length 1, zeros where there is none; `raw` are the candidates' scores, ties by place."""
    import numpy as np

    gained = np.zeros(len(rows), dtype=np.float32)
    there = np.asarray(rows.any(axis=1))
    order = np.argsort(-np.round(raw, 6), kind="stable")
    first, rest = order[:FIRST], order[FIRST:]
    known = first[there[first]]
    if not len(known) or not len(rest):
        return gained
    mean = rows.sum(axis=0) / np.float32(there.sum())
    aim = _unit(_unit(rows[known] - mean).mean(axis=0)) + QUERY * _unit(query - mean)
    # (row - mean) @ aim / |row - mean|, without a second table of that size
    far = np.sqrt(np.maximum(1 - 2 * (rows @ mean) + mean @ mean, 1e-6))
    like = there * (rows @ aim - mean @ aim) / far / max(float(np.linalg.norm(aim)), 1e-6)
    gained[rest] = ALIKE * np.minimum(like[rest] - like[known].mean(), 0)
    return gained


def _unit(rows: Table) -> Table:
    """Rows, or one, brought to length 1; zeros stay zeros."""
    import numpy as np

    brought: Table = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-6)
    return brought


# -- rerank ------------------------------------------------------------------------------------------------
# Late interaction: how well an item, with those beside it, answers each word of the query.
#
#     own      m = the best match of the word's tokens with any token of the item, a mean over the word's
#     tokens
#     beside   m = the best of its own and, fainter, of what stands beside it under the same heading
#     item     s = mean of m over the words, rare ones weighing more, + 0.06 if it is about whom the query
#     names
#              and + 0.06 if it is of the days that it means; + 0.5 if these are all that is asked for;
#              and up to 0.14 more, or 0.06 less, for what it means as a whole;
#              less up to 0.2 for being unlike the five that are best so far (`feedback`)
#     score    s placed between 0 and 1, so that 0.35 parts good hits from others
#
# A reply ("Yes, last Tuesday!") has none of the words that its question has: a question before it counts
# 0.9. In a talk anything before counts 0.8, what stands after 0.8, and two before 0.65; elsewhere
# neighbours are less related, 0.5. Who is named must be named in the item itself: a neighbour speaks of
# somebody else. Identifiers and words that the model does not know go by their letters, and so does all of
# a text that was written a moment ago and has no tokens yet.


EXACT = 0.8
"""What a word counts that is there by its letters: the best match that two tokens reach."""
OVER = 0.8
"""What one counts that stands in a tag, a heading or the title over the text: what the text is about."""
BEFORE, ASKED, AFTER, EARLIER, NEAR = 0.8, 0.9, 0.8, 0.65, 0.5
LIFT = 0.06
"""What an item gains that is about whom the query names, and once more one of the days that it means."""
ALONE = 0.5
"""What the days give where the query says nothing else: more than a word of the date can."""
REACH = (-3, -2, -1, 1, 2, 3)
"""Places around a candidate that are looked at: those it helps, and what helps those."""
FLOOR, RANGE, PLACED = 0.1, 0.65, 0.8
"""Where the scale begins, how far it goes and how it bends. On the development conversations the best hit for
ten queries about something else reaches 0.24, 99 of 100 right answers 0.32; 0.28 becomes 0.35."""

FOREIGN = 0.8
"""What a match counts in a query that is not English: to the model any two texts of another language are
alike, so the words go by their letters, too."""
MEANING, UNRELATED = 0.2, 0.3
"""What the cosine of the whole query and the whole text counts beside its words, and that of unrelated texts.
Not of a turn of a talk, whose meaning is in the turns around it: there R@5 would be 80.0 instead of 82.7."""

UNMET, MET, LEAST_MET = 0.3, 0.65, 0.05
"""The best match of a word that is not met, and of one that is; and the least that counts as one."""

KIND = 0.1
"""What an item gains that has the kind of answer that is asked for: a time, an amount, a number."""
_CLOCK = (
    r"\b\d{1,2}[:.h]\d\d\b|\b\d{1,2} ?(?:am|pm|uhr|h|o'clock)\b"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
)
_MONEY = (
    r"[€$£¥]\s?\d|\d\s?(?:k\s)?"
    r"(?:€|\$|£|¥|円|eur(?:os?)?\b|dollars?\b|usd\b|chf\b|pounds?\b|yen\b|credits?\b)"
)
_NUMBER = r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen)\b"
_KINDS = [
    (re.compile(asked, re.IGNORECASE), re.compile(answer, re.IGNORECASE))
    for asked, answer in (
        (
            r"\bwhat time\b|\btime\W*$|\bwhen (?:is|are|do|does|can|should|will)\b|\bopening (?:time|hour)",
            _CLOCK,
        ),
        (r"\b(?:how much|pay|price|costs?|fee|rent|budget|salary|(?<!in )charges?|worth)\b", _MONEY),
        (r"\b(?:how many|(?:phone )?number|port|version|limit|code|pin|iban|size|weighs?|tall)\b", _NUMBER),
    )
]
"""What a query asks for by its words, and what a text has that answers it."""

PARTS = ("words", "beside", "named", "when", "meaning", "alike", "every", "names", "rest", "kind")
"""What a hit's score is made of, in the order of `rerank`'s columns."""
PLACE = attrgetter("path", "seq")
NONE: frozenset[str] = frozenset()


class Stems(NamedTuple):
    """Those of the query's stems, by item, that stand in its text and what belongs to it (read only where
    words go by their letters), and in what stands over it."""

    within: dict[str, frozenset[str]]
    over: dict[str, frozenset[str]]


class TokenMatches:
    """Texts held against a query: the best match of each of its tokens with any of theirs.

    `words` are those of the query that count, `weights` what each is worth, 1 together; `spelt` those that
    are looked for by their letters, since the model does not know them well. `any_tokens` is whether any text
    has tokens.
    """

    def __init__(self, asked: ParsedQuery, said: EmbeddedQuery) -> None:
        import numpy as np

        self._said, self.any_tokens, self._english = said, False, is_english(asked.text)
        # In "boat in spring" the vector would look for spring, too; who is called otherwise it does not know.
        alone = asked.window is None and not asked.named.aliases
        self._as_whole = self._english and alone and len(asked.words) > 1
        self.words = [word for word in asked.words if word.stems]
        tokens = [_tokens(asked, word, said) for word in self.words]
        self.spelt = {
            word
            for word, own in zip(self.words, tokens, strict=True)
            if word.whole or not own or not self._english
        }
        weights = np.array([word.weight for word in self.words], dtype=np.float32)
        self.weights: Table = weights / (weights.sum() or 1)
        self._means: Table = np.zeros((len(self.words), len(said.tokens)), dtype=np.float32)
        for number, own in enumerate(tokens):
            self._means[number, own] = (1.0 if self._english else FOREIGN) / max(len(own), 1)
        self._at: dict[str, int] = {}
        self._table: Table = np.zeros((len(said.tokens), 1), dtype=np.float32)
        self.query: Table = said.vector
        self._vectors = [bytes(2 * len(said.vector))]

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those that were not held against it yet, in order."""
        return [name for name in dict.fromkeys(names) if name not in self._at]

    def add(self, texts: Mapping[str, tuple[bytes, bytes]]) -> None:
        """Hold texts against it, by their packed tokens; their vectors are kept for `gains`."""
        import numpy as np

        first, codes = self._table.shape[1], [tokens for _, tokens in texts.values()]
        self._at.update((name, first + n) for n, name in enumerate(texts))
        found = embedding.max_similarities(self._said.tokens, codes)
        self._table = np.concatenate([self._table, found], axis=1)
        self._vectors += [vector for vector, _ in texts.values()]
        self.any_tokens = self.any_tokens or any(codes)

    def unread(self, items: Iterable[IndexItem]) -> list[IndexItem]:
        """Those whose text the model has not read yet, written a moment ago, or does not read well: of a
        script without spaces, whose letters it takes for one word with a name that stands among them."""
        return [item for item in items if item.vhash not in self._at or is_unspaced(item.text)]

    def means(self, names: Sequence[str]) -> Table:
        """(words, texts): of each word's tokens the mean; zeros for a text that nothing is known of."""
        means: Table = self._means @ self._table[:, [self._at.get(name, 0) for name in names]]
        return means

    def vectors(self, items: Sequence[IndexItem]) -> Table:
        """(items, d) their vectors; zeros for a text that has none yet."""
        import numpy as np

        packed = b"".join(self._vectors[self._at.get(item.vhash, 0)] for item in items)
        rows: Table = np.frombuffer(packed, dtype="<f2").reshape(len(items), -1).astype(np.float32)
        return rows

    def meaning(self, items: Sequence[IndexItem], rows: Table) -> Table:
        """(items,) what each with these vectors gains or loses for what it means as a whole."""
        import numpy as np

        if not self._as_whole:
            return np.zeros(len(items), dtype=np.float32)
        counts = rows.any(axis=1) & np.array([not item.speaker for item in items])
        gained: Table = MEANING * counts * (rows @ self.query - UNRELATED)
        return gained


def foremost(
    asked: ParsedQuery,
    items: Sequence[IndexItem],
    kept: TokenMatches,
    stems: Stems,
    most: int,
) -> list[IndexItem]:
    """The best items by their own scores, in order; ties by path and line. For `stems` see `rerank`."""
    import numpy as np

    items = sorted(items, key=PLACE)
    alone = kept.weights @ _own(asked, items, kept, stems)
    alone += _lifts(asked, items).sum(axis=1)
    return [items[n] for n in np.argsort(-np.round(alone, 6), kind="stable")[:most]]


def rerank(
    asked: ParsedQuery,
    items: Sequence[IndexItem],
    kept: TokenMatches,
    stems: Stems,
    wanted: Set[str],
) -> list[Ranked]:
    """The items whose keys are wanted by score, ties by path and line; the others only lend to them. `stems`
    by item are needed where words are `spelt`."""
    import numpy as np

    items = sorted(items, key=PLACE)
    own = _own(asked, items, kept, stems)
    best = _beside(kept.words, items, own)
    chosen = [n for n, item in enumerate(items) if item.key in wanted]
    items = [items[n] for n in chosen]
    met = _met(asked, kept, best[:, chosen])
    lift = _lifts(asked, items)
    alone, together = (kept.weights @ table[:, chosen] for table in (own, best))
    kind = _kinds(asked, items)
    rows = kept.vectors(items)
    meaning = kept.meaning(items, rows)
    raw = together + lift.sum(axis=1) + KIND * np.maximum(kind, 0) + meaning
    alike = gains(kept.query, rows, raw)
    raw = raw + alike
    order = np.argsort(-np.round(raw, 6), kind="stable")  # the items are in the order of path and line
    placed = np.clip((raw - FLOOR) / RANGE, 0, 1) ** PLACED
    scores = placed.astype(float).round(6).tolist()
    parts = (
        np.stack([alone, together - alone, *lift.T, meaning, alike, *met, kind], axis=1)
        .astype(float)
        .round(4)
        .tolist()
    )
    return [Ranked(items[n], scores[n], dict(zip(PARTS, parts[n], strict=True))) for n in order.tolist()]


def _met(asked: ParsedQuery, kept: TokenMatches, best: Table) -> tuple[Table, Table, Table]:
    """What tells an answer from a text that only shares words, of each item: how well all of the query's
    words but the small ones are met (their harmonic mean, so that one that is not counts), how well the names
    among them that the bank knows (from 0 to 1; 1 where there are none), and how well the other words."""
    import numpy as np

    weights = kept.weights * np.array([word.specific for word in kept.words])
    if not weights.any():
        weights = kept.weights
    named = np.array(asked.are_names(kept.words))
    ours, others = weights * named, weights * ~named
    every: Table = weights.sum() / (weights @ (1 / np.clip(best, LEAST_MET, 1)))
    names = ours @ np.clip((best - UNMET) / (MET - UNMET), 0, 1) / (ours.sum() or 1)
    return (
        every,
        names if ours.any() else np.ones_like(every),
        others @ best / others.sum() if others.any() else every,
    )


def _tokens(asked: ParsedQuery, word: QueryWord, said: EmbeddedQuery) -> list[int]:
    """The rows of a word's tokens; none where the model, which is English, does not know it."""
    letters = unicodedata.normalize("NFKD", asked.text[word.start : word.end])
    if not all(sign.isascii() or unicodedata.combining(sign) for sign in letters):
        return []
    own = [n for n, (start, end) in enumerate(said.spans) if word.start <= start and end <= word.end]
    return own if all(said.known[n] for n in own) else []


def _own(asked: ParsedQuery, items: Sequence[IndexItem], kept: TokenMatches, stems: Stems) -> Table:
    """(words, items): how well each item alone answers each word."""
    import numpy as np

    own = kept.means([item.vhash for item in items])
    fresh = {item.key for item in kept.unread(items)}
    spelt = [(n, i.key in fresh, have) for n, i in enumerate(items) if (have := stems.within.get(i.key))]
    for w, word in enumerate(kept.words):
        by_letters = word in kept.spelt
        for n, unread, have in spelt:
            if by_letters or unread:
                own[w, n] = max(own[w, n], EXACT * _letters(word, have))
        others = _called(asked, word)
        if others:
            own[w] = np.maximum(own[w], [EXACT * index_items.mentions(item, others) for item in items])
    for n, item in enumerate(items):  # few stand below something that has a word of the query
        for w, word in enumerate(kept.words) if item.key in stems.over else ():
            own[w, n] = max(own[w, n], OVER * _letters(word, stems.over[item.key]))
    return own


def _called(asked: ParsedQuery, word: QueryWord) -> frozenset[str]:
    """What else the one is called whose settled name a word is part of."""
    if not asked.named.aliases:
        return frozenset()
    said = index_items.folded(asked.text[word.start : word.end])
    return frozenset(
        other for name, others in asked.named.aliases.items() if said in name.split() for other in others
    )


def _letters(word: QueryWord, have: frozenset[str]) -> float:
    """The share of a word's stems that an item has; of an identifier, 1 where it stands whole."""
    if word.whole:
        return float(word.whole in have)
    return sum(stem in have for stem in word.stems) / len(word.stems)


def _beside(words: Sequence[QueryWord], items: Sequence[IndexItem], own: Table) -> Table:
    """The best of each item's own and, fainter, of what stands beside it. The items are in file order."""
    import numpy as np

    places: dict[tuple[str, str, str | None], int] = {}
    place = np.array([places.setdefault((i.path, i.heading, i.session), len(places)) for i in items])
    seq = np.array([item.seq for item in items])
    talks = np.array([bool(item.speaker) for item in items])
    asking = np.array([index_items.is_question(item.text) for item in items])
    free = np.array([not word.named for word in words])
    best = own.copy()
    for step in (-2, -1, 1):
        for far in range(1, abs(step) + 1):  # so many rows away stands the item so many places away, if any
            this, other = _rows(len(items), far if step > 0 else -far)
            there = (place[this] == place[other]) & (seq[other] == seq[this] + step)
            both = talks[this] & talks[other]
            faint = {-2: both * EARLIER, 1: np.where(both, AFTER, NEAR * ~asking[other])}.get(step)
            if faint is None:
                faint = np.where(asking[other], ASKED, np.where(both, BEFORE, NEAR))
            lent = own[:, other] * (there * faint).astype(np.float32) * free[:, None]
            best[:, this] = np.maximum(best[:, this], lent)
    return best


def _rows(count: int, step: int) -> tuple[slice, slice]:
    """(these rows, the rows so many further) of all that have one."""
    size = min(abs(step), count)
    head, tail = slice(0, count - size), slice(size, count)
    return (head, tail) if step > 0 else (tail, head)


def _lifts(asked: ParsedQuery, items: Sequence[IndexItem]) -> Table:
    """(items, 2): what each gains for whom the query names, and for its days; most queries do neither."""
    import numpy as np

    if not asked.named.declared and asked.window is None:
        return np.zeros((len(items), 2), dtype=np.float32)
    return np.array([_lift(asked, item) for item in items], dtype=np.float32).reshape(-1, 2)


def _lift(asked: ParsedQuery, item: IndexItem) -> tuple[float, float]:
    who = (item.speaker, *item.entities) if asked.named.declared else ()
    named = any(index_items.folded(name) in asked.named.declared for name in who)
    return LIFT * named, timely(asked.window, item)


def _kinds(asked: ParsedQuery, items: Sequence[IndexItem]) -> Table:
    """(items,) whether each has the kind of answer that is asked for: 1, or -1 where it has not; 0 where no
    kind is asked for."""
    import numpy as np

    kinds = [answer for query, answer in _KINDS if query.search(asked.text)]
    if not kinds:
        return np.zeros(len(items), dtype=np.float32)
    has = [all(kind.search(item.text) for kind in kinds) for item in items]
    return np.where(has, 1.0, -1.0).astype(np.float32)


def timely(window: DateRange | None, item: IndexItem) -> float:
    """The bonus of an item for being within the days that the query means."""
    if window is None or not window.covers(item):
        return 0.0
    return ALONE if window.only else LIFT
