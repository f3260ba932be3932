"""Rerank candidates by late interaction between the words of the query and of the items."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence, Set
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, get_args

from ua_memory.index import embedding
from ua_memory.index import items as index_items
from ua_memory.index.items import IndexItem
from ua_memory.index.terms import is_english, is_unspaced
from ua_memory.recall.arms import DateRange, MatchPart, ParsedQuery, Part, QueryWord, Ranked
from ua_memory.text import questions
from ua_memory.text.calendar import A_MONTH
from ua_memory.text.names import numerals
from ua_memory.text.patterns import Phrases

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ua_memory.index.embedding import EmbeddedQuery


# -- pseudo-relevance feedback -----------------------------------------------------------------------------
# Candidates that are unlike the best hits are penalised (pseudo-relevance feedback, Rocchio 1971): a question
# about "activities" matches the hike by that word, and the museum only since it is like the hike.
#
#     offset   vector of a text minus the mean of all candidates, normalised
#     target   mean of the offsets of the best FEEDBACK_HITS, normalised,
#              + FEEDBACK_QUERY_WEIGHT * the offset of the query
#     like     cosine of offset and target; 0 for a text without a vector
#     penalty  FEEDBACK_PENALTY * (like - mean of like over the best), at most 0; 0 for the best
#
# The mean is subtracted since all candidates are similar to the query, which does not tell them apart.


if TYPE_CHECKING:
    Table = NDArray[np.float32]

FEEDBACK_HITS = 5
"""Hits that are assumed to be relevant."""
FEEDBACK_QUERY_WEIGHT = 0.5
"""The weight of the query in the target: the best hits may be wrong."""
FEEDBACK_PENALTY = 0.2
"""The maximum penalty. With 0.1 to 0.3, 4 to 8 hits and a query weight of 0.5 to 1, R@2000t is 94.2 to 95.6
on the two development conversations, without it 93.7."""


def feedback_penalties(query: Table, rows: Table, raw: Table) -> Table:
    """(n,) the penalties of n candidates, 0 or less. `query` (d,) and `rows` (n, d) are vectors of length 1,
    zero for texts without one; `raw` (n,) are the candidates' scores, ties by place."""
    import numpy as np

    penalties = np.zeros(len(rows), dtype=np.float32)
    embedded = np.asarray(rows.any(axis=1))
    order = np.argsort(-np.round(raw, 6), kind="stable")
    first, rest = order[:FEEDBACK_HITS], order[FEEDBACK_HITS:]
    known = first[embedded[first]]
    if not len(known) or not len(rest):
        return penalties
    mean = rows.sum(axis=0) / np.float32(embedded.sum())
    target = _normalized(_normalized(rows[known] - mean).mean(axis=0))
    target = target + FEEDBACK_QUERY_WEIGHT * _normalized(query - mean)
    # (row - mean) @ target / |row - mean|, without a second table of that size
    norms = np.sqrt(np.maximum(1 - 2 * (rows @ mean) + mean @ mean, 1e-6))
    like = embedded * (rows @ target - mean @ target) / norms / max(float(np.linalg.norm(target)), 1e-6)
    penalties[rest] = FEEDBACK_PENALTY * np.minimum(like[rest] - like[known].mean(), 0)
    return penalties


def _normalized(rows: Table) -> Table:
    """A row or rows scaled to length 1; zero rows stay zero."""
    import numpy as np

    scaled: Table = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-6)
    return scaled


# -- late interaction --------------------------------------------------------------------------------------
# How well an item and its neighbours match each word of the query:
#
#     own        m = mean, over the word's tokens, of the best similarity with any token of the item
#     neighbours m = max of own and a fraction of the neighbours' own, under the same heading
#     item       s = mean of m weighted by the words' rarity
#                    + 0.06 if it is about somebody the query names
#                    + 0.06 if it is of the days the query asks about, + 0.5 if it asks for nothing else
#                    + up to 0.14, - up to 0.06 for the similarity of the whole texts
#                    - up to 0.2 for being unlike the best five (pseudo-relevance feedback)
#     score      s scaled to 0 to 1, so that 0.35 is between good hits and others
#
# A reply ("Yes, last Tuesday!") has none of the words of its question, so a question before it counts 0.9. In
# conversations the turns before and after count 0.8, the one before that 0.65; elsewhere neighbours are less
# related, 0.5. Names must occur in the item itself, since a neighbour may be about somebody else. Identifiers
# and words unknown to the model are matched by their stems, and so are new texts without token vectors.


STEM_MATCH = 0.8
"""The match of a word by its stem: the highest that two tokens reach."""
HEADING_MATCH = 0.8
"""The match of a word in a tag, heading or title of the item."""
BEFORE, QUESTION_BEFORE, AFTER, EARLIER, NEIGHBOUR = 0.8, 0.9, 0.8, 0.65, 0.5
"""The fractions of neighbours' matches: in a conversation the turn before, a question before (anywhere), the
turn after, two before; elsewhere."""
BOOST = 0.06
"""The bonus for being about somebody the query names, and for being of the days it asks about."""
ONLY_DAYS_BOOST = 0.5
"""The bonus for the days if the query asks for nothing else."""
NEIGHBOUR_STEPS = (-3, -2, -1, 1, 2, 3)
"""Offsets of the turns that are scored with a candidate: those it lends to, and those that lend to them."""
SCORE_FLOOR, SCORE_RANGE, SCORE_EXPONENT = 0.1, 0.65, 0.8
"""The scaling of scores. On the development conversations the best hits for ten unrelated queries reach 0.24
unscaled, 99 of 100 right answers 0.32; 0.28 becomes 0.35."""

FOREIGN_WEIGHT = 0.8
"""The factor on similarities for queries that are not English: the model finds any two texts of another
language similar, so words are matched by their stems, too."""
MEANING_WEIGHT, UNRELATED_COSINE = 0.2, 0.3
"""The weight of the cosine of query and text, and the cosine of unrelated texts. Not for turns of
conversations, whose meaning depends on others: R@5 would be 80.0 instead of 82.7."""

UNMATCHED, MATCHED, LEAST_MATCH = 0.3, 0.65, 0.05
"""The best match of a word that does not occur, and of one that does; the minimum in a harmonic mean."""

KIND_BOOST = 0.1
"""The bonus for containing the kind of answer that is asked for: a time, an amount, a number."""
ANSWERS = Phrases("answer_phrases.txt", re.IGNORECASE, month=A_MONTH, numeral="|".join(numerals()))
_KINDS = "time", "when", "sum", "number"
"""The kinds of answers: for each how a query asks for it, in English and abroad, and how a text states it."""

by_place = attrgetter("path", "seq")


class Stems(NamedTuple):
    """{item key: the query's stems in its text, heading and tags} (only where words are matched by stems),
    and {item key: those in its headings, tags and names}."""

    text: dict[str, frozenset[str]]
    heading: dict[str, frozenset[str]]


class TokenMatches:
    """The similarities between a query's tokens and texts.

    `words` are the query's words with stems, `weights` their weights, which sum to 1; `by_stems` are the
    numbers of those that are matched by stems, since the model does not know them well. `any_tokens`:
    whether any text has token vectors.
    """

    def __init__(self, asked: ParsedQuery, embedded: EmbeddedQuery) -> None:
        import numpy as np

        self._embedded, self.any_tokens, self._english = embedded, False, is_english(asked.text)
        # The vector of "boat in spring" would match spring as well, and it knows no aliases.
        whole = asked.window is None and not asked.named.aliases
        self._use_meaning = self._english and whole and len(asked.words) > 1
        self.words = [word for word in asked.words if word.stems]
        tokens = [_tokens(asked, word, embedded) for word in self.words]
        self.by_stems = {
            number
            for number, (word, own) in enumerate(zip(self.words, tokens, strict=True))
            if word.whole or not own or not self._english
        }
        weights = np.array([word.weight for word in self.words], dtype=np.float32)
        self.weights: Table = weights / (weights.sum() or 1)
        self._averaging: Table = np.zeros((len(self.words), len(embedded.tokens)), dtype=np.float32)
        for number, own in enumerate(tokens):
            self._averaging[number, own] = (1.0 if self._english else FOREIGN_WEIGHT) / max(len(own), 1)
        self._column: dict[str, int] = {}
        self._table: Table = np.zeros((len(embedded.tokens), 1), dtype=np.float32)
        self.query: Table = embedded.vector
        self._vectors = [bytes(2 * len(embedded.vector))]

    def missing(self, names: Iterable[str]) -> list[str]:
        """The text ids that were not added yet, in order."""
        return [name for name in dict.fromkeys(names) if name not in self._column]

    def add(self, texts: Mapping[str, tuple[bytes, bytes]]) -> None:
        """Add {text id: (float16 vector, packed tokens)}."""
        import numpy as np

        first, codes = self._table.shape[1], [tokens for _, tokens in texts.values()]
        self._column.update((name, first + n) for n, name in enumerate(texts))
        found = embedding.max_similarities(self._embedded.tokens, codes)
        self._table = np.concatenate([self._table, found], axis=1)
        self._vectors += [vector for vector, _ in texts.values()]
        self.any_tokens = self.any_tokens or any(codes)

    def without_tokens(self, items: Iterable[IndexItem]) -> list[IndexItem]:
        """The items that have not been embedded yet, or whose script has no spaces: the model reads a name in
        such a text as one word with its surroundings."""
        return [item for item in items if item.vhash not in self._column or is_unspaced(item.text)]

    def word_scores(self, names: Sequence[str]) -> Table:
        """(words, texts): the mean similarity of each word's tokens; zeros for unknown texts."""
        scores: Table = self._averaging @ self._table[:, [self._column.get(name, 0) for name in names]]
        return scores

    def vectors(self, items: Sequence[IndexItem]) -> Table:
        """(items, d) the items' vectors; zeros for unknown texts."""
        import numpy as np

        packed = b"".join(self._vectors[self._column.get(item.vhash, 0)] for item in items)
        rows: Table = np.frombuffer(packed, dtype="<f2").reshape(len(items), -1).astype(np.float32)
        return rows

    def meaning(self, items: Sequence[IndexItem], rows: Table) -> Table:
        """(items,) the bonus or penalty for the cosine of the items' vectors `rows` and the query's."""
        import numpy as np

        if not self._use_meaning:
            return np.zeros(len(items), dtype=np.float32)
        counts = rows.any(axis=1) & np.array([not item.speaker for item in items])
        bonus: Table = MEANING_WEIGHT * counts * (rows @ self.query - UNRELATED_COSINE)
        return bonus


def best_alone(
    asked: ParsedQuery, items: Sequence[IndexItem], matches: TokenMatches, stems: Stems, most: int
) -> list[IndexItem]:
    """The best items without their neighbours, at most `most`; ties by path and line."""
    import numpy as np

    items = sorted(items, key=by_place)
    scores = matches.weights @ _own(asked, items, matches, stems)
    scores += _boosts(asked, items).sum(axis=1)
    return [items[n] for n in np.argsort(-np.round(scores, 6), kind="stable")[:most]]


def rerank(
    asked: ParsedQuery, items: Sequence[IndexItem], matches: TokenMatches, stems: Stems, wanted: Set[str]
) -> list[Ranked]:
    """The items with `wanted` keys, best first, ties by path and line; others only count as neighbours."""
    import numpy as np

    items = sorted(items, key=by_place)
    own = _own(asked, items, matches, stems)
    best = _with_neighbours(matches.words, items, own)
    chosen = [n for n, item in enumerate(items) if item.key in wanted]
    items = [items[n] for n in chosen]
    features = _match_features(asked, matches, best[:, chosen])
    boost = _boosts(asked, items)
    alone, together = (matches.weights @ table[:, chosen] for table in (own, best))
    kind = _kinds(asked, items)
    rows = matches.vectors(items)
    meaning = matches.meaning(items, rows)
    asked_for = KIND_BOOST * np.maximum(kind, 0)
    raw = together + boost.sum(axis=1) + asked_for + meaning
    alike = feedback_penalties(matches.query, rows, raw)
    raw = raw + alike
    order = np.argsort(-np.round(raw, 6), kind="stable")  # the items are in the order of path and line
    scaled = _scaled(raw)
    scores = scaled.astype(float).round(6).tolist()
    table = np.stack([alone, together - alone, *boost.T, meaning, alike, *features, kind], axis=1)
    names: tuple[Part, ...] = get_args(MatchPart)
    parts = [dict(zip(names, row, strict=True)) for row in table.astype(float).round(4).tolist()]
    # `answer_probability` was fitted on English queries for a kind of answer only.
    if asked_for.any() and not any(ANSWERS[f"{kind} asked"].search(asked.text) for kind in _KINDS):
        gains = (scaled - _scaled(raw - asked_for)).astype(float).round(6).tolist()
        parts = [{**own, "form": gain} if gain else own for own, gain in zip(parts, gains, strict=True)]
    return [Ranked(items[n], scores[n], parts[n]) for n in order.tolist()]


def _scaled(raw: Table) -> Table:
    import numpy as np

    scaled: Table = np.clip((raw - SCORE_FLOOR) / SCORE_RANGE, 0, 1) ** SCORE_EXPONENT
    return scaled


def _match_features(asked: ParsedQuery, matches: TokenMatches, best: Table) -> tuple[Table, Table, Table]:
    """Features that distinguish answers from texts that share some words, each (items,): the harmonic mean of
    the matches of all words but stop words, so that a missing one counts; the mean match of names of the
    bank, 0 to 1 (1 without names); and the mean match of the other words."""
    import numpy as np

    weights = matches.weights * np.array([word.specific for word in matches.words])
    if not weights.any():
        weights = matches.weights
    named = np.array(asked.are_names(matches.words))
    of_names, of_others = weights * named, weights * ~named
    every: Table = weights.sum() / (weights @ (1 / np.clip(best, LEAST_MATCH, 1)))
    names = of_names @ np.clip((best - UNMATCHED) / (MATCHED - UNMATCHED), 0, 1) / (of_names.sum() or 1)
    return (
        every,
        names if of_names.any() else np.ones_like(every),
        of_others @ best / of_others.sum() if of_others.any() else every,
    )


def _tokens(asked: ParsedQuery, word: QueryWord, embedded: EmbeddedQuery) -> list[int]:
    """The rows of a word's tokens; [] if it is not in the model's (English) vocabulary."""
    letters = unicodedata.normalize("NFKD", asked.text[word.start : word.end])
    if not all(letter.isascii() or unicodedata.combining(letter) for letter in letters):
        return []
    own = [n for n, (start, end) in enumerate(embedded.spans) if word.start <= start and end <= word.end]
    return own if all(embedded.known[n] for n in own) else []


def _own(asked: ParsedQuery, items: Sequence[IndexItem], matches: TokenMatches, stems: Stems) -> Table:
    """(words, items): how well each item, without its neighbours, matches each word."""
    import numpy as np

    own = matches.word_scores([item.vhash for item in items])
    with_stems = [(n, item, have) for n, item in enumerate(items) if (have := stems.text.get(item.key))]
    untokenized = {item.key for item in matches.without_tokens(item for _, item, _ in with_stems)}
    words_of: dict[str, list[int]] = {}
    for w, word in enumerate(matches.words):
        for stem in {*word.stems, word.whole}:
            words_of.setdefault(stem, []).append(w)
    for n, item, have in with_stems:
        for w in {w for stem in have for w in words_of[stem]}:
            if w in matches.by_stems or item.key in untokenized:
                own[w, n] = max(own[w, n], STEM_MATCH * _stem_share(matches.words[w], have))
    for w, word in enumerate(matches.words):
        others = _aliases(asked, word)
        if others:
            own[w] = np.maximum(own[w], [STEM_MATCH * index_items.mentions(item, others) for item in items])
    if asking := questions.phone_words([_typed(asked, word) for word in matches.words]):
        have_one = np.array([questions.has_phone_number(item.text) for item in items], dtype=np.float32)
        own[asking] = np.maximum(own[asking], STEM_MATCH * have_one)
    for n, item in enumerate(items):
        for w, word in enumerate(matches.words) if item.key in stems.heading else ():
            own[w, n] = max(own[w, n], HEADING_MATCH * _stem_share(word, stems.heading[item.key]))
    return own


def _typed(asked: ParsedQuery, word: QueryWord) -> str:
    return asked.text[word.start : word.end]


def _aliases(asked: ParsedQuery, word: QueryWord) -> frozenset[str]:
    """The other names of the settled name that a word is part of."""
    if not asked.named.aliases:
        return frozenset()
    text = index_items.folded(_typed(asked, word))
    return frozenset(
        other for name, others in asked.named.aliases.items() if text in name.split() for other in others
    )


def _stem_share(word: QueryWord, have: frozenset[str]) -> float:
    """The share of a word's stems that an item has; for an identifier 1 if it has the whole, else 0."""
    if word.whole:
        return float(word.whole in have)
    return sum(stem in have for stem in word.stems) / len(word.stems)


def _with_neighbours(words: Sequence[QueryWord], items: Sequence[IndexItem], own: Table) -> Table:
    """(words, items): the maximum of each item's own matches and the fractions of its neighbours'. The items
    are in file order."""
    import numpy as np

    sections: dict[tuple[str, str, str | None], int] = {}
    section = np.array([sections.setdefault((i.path, i.heading, i.session), len(sections)) for i in items])
    seq = np.array([item.seq for item in items])
    is_turn = np.array([bool(item.speaker) for item in items])
    is_question = np.array([index_items.ends_with_question(item.text) for item in items])
    not_name = np.array([not word.named for word in words])
    # A session's passage has its own surroundings.
    nearby = NEIGHBOUR * np.array([item.record != index_items.SESSION for item in items])
    best = own.copy()
    for step in (-2, -1, 1):
        # Items between may be missing: the neighbour is this many rows away.
        for rows in range(1, abs(step) + 1):
            this, other = _shifted(len(items), rows if step > 0 else -rows)
            adjacent = (section[this] == section[other]) & (seq[other] == seq[this] + step)
            turns = is_turn[this] & is_turn[other]
            weight = {-2: turns * EARLIER, 1: np.where(turns, AFTER, nearby[this] * ~is_question[other])}.get(
                step
            )
            if weight is None:
                weight = np.where(is_question[other], QUESTION_BEFORE, np.where(turns, BEFORE, nearby[this]))
            lent = own[:, other] * (adjacent * weight).astype(np.float32) * not_name[:, None]
            best[:, this] = np.maximum(best[:, this], lent)
    return best


def _shifted(count: int, step: int) -> tuple[slice, slice]:
    """(rows, the rows `step` further), of those that have one."""
    size = min(abs(step), count)
    head, tail = slice(0, count - size), slice(size, count)
    return (head, tail) if step > 0 else (tail, head)


def _boosts(asked: ParsedQuery, items: Sequence[IndexItem]) -> Table:
    """(items, 2): the bonuses for the query's names and for its days."""
    import numpy as np

    if not asked.named.declared and asked.window is None:
        return np.zeros((len(items), 2), dtype=np.float32)
    return np.array([_boost(asked, item) for item in items], dtype=np.float32).reshape(-1, 2)


def _boost(asked: ParsedQuery, item: IndexItem) -> tuple[float, float]:
    who = (item.speaker, *item.entities) if asked.named.declared else ()
    named = any(index_items.folded(name) in asked.named.declared for name in who)
    return BOOST * named, date_boost(asked.window, item)


def _kinds(asked: ParsedQuery, items: Sequence[IndexItem]) -> Table:
    """(items,): 1 if an item contains the kind of answer asked for, -1 if not, 0 if none is asked for."""
    import numpy as np

    kinds = [
        ANSWERS[f"{kind} stated"]
        for kind in _KINDS
        if any(ANSWERS[f"{kind} {how}"].search(asked.text) for how in ("asked", "asked abroad"))
    ]
    if not kinds:
        return np.zeros(len(items), dtype=np.float32)
    has = [all(kind.search(item.text) for kind in kinds) for item in items]
    return np.where(has, 1.0, -1.0).astype(np.float32)


def date_boost(window: DateRange | None, item: IndexItem) -> float:
    """The bonus of an item for being of the days that the query asks about."""
    if window is None or not window.covers(item):
        return 0.0
    return ONLY_DAYS_BOOST if window.only else BOOST
