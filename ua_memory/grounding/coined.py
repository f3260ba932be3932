"""Lower-case words that are not English: what a thing is called when nobody gives it a capital.

`esbuild`, `heroku` and `lotte` name something although they do not look like it. A word counts as English if
it is one of the some 20,000 whole words of the bundled tokenizer's table, is made from one by the usual
beginnings and endings, or joins two of them. The table knows many first names too: those pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources

_WORD = re.compile(r"(?<![\w./_`@#:\\-])[a-z]+(?:-[a-z]+)*(?:'s)?(?![\w/_`@\\'-]|[.:]\w)")
_BEGINNINGS = """anti auto co de dis im in inter meta micro mis multi non out over post pre re self semi
sub super un under up"""
_ENDINGS = """ability able al ally ation ations d ed er ers ful ible ied ies ing ion ions ise ised ish ising
ism ist ists ity ive ize ized izes izing less ly ment ments ness or ors r rs s y es"""
_COMMON = """abort adversarial anew annotation append args async asynchronous auth backend backoff
calibrate centric changelog checkout cli comma concise config const contradict cosine cron css cutoff
dataset debug declarative dedupe delete deprecate deps deterministic diff disambiguate divergence embed
emit encode encrypt enqueue env ephemeral flaky frontend granular grep heterogeneous hexadecimal hotfix
idempotency idempotent identifier infra ingest init initialization inject instantiate interop invoke
iterate json latency linter login logout lookup millisecond misconfigure mkdir monorepo mutate
normalization nuance oauth orchestration outage paginate param parse permalink plugin populate postpone
pragma prerequisite propagate recency recompile redo regex repo retry revert rollout sandbox scaffold
sceptical schema serialization shrank simplify snippet stderr stdin stdout struct suffice superfluous
syntactically syscall telemetry temp thrice throughput timeout todo tokenizer truncate tuple typo unify
unsubscribe upsert url usability utils validate verbatim verbose"""
_ADVERB = re.compile(r"[a-z]{3,}(?:ally|antly|ently|ously|ively|arily|edly|fully|ingly|tely)")
_NAMED = """banning barking bearing beijing binding blessing boeing bowling breuning browning canning darling
downing ewing fielding fleming flushing golding harding herring irving keating lansing loving manning messing
nanjing pickering processing reading redding riding sterling stirling starling turing viking wyoming"""
"""Words of the table that look like a verb's form and are as often somebody's name, or a place's."""
_STARTS, _ENDS = _BEGINNINGS.split(), _ENDINGS.split()
_SUBJECT = re.compile(r"'s\b| +(?:and|or|has|had|have|is|was|will|would|can|could|does|did|says?|said)\b")
_COMMON_ENDS = ("d", "ed", "er", "ers", "ing", "ings", "ion", "ions", "ly", "or", "ors", "r", "rs", "s")
_OF_THE_FIELD = frozenset(_COMMON.split())
_SHORTEST, _FOREIGN = 4, 0.34


def coined(text: str) -> Iterator[str]:
    """The lower-case words of an English text that are not English, in order; none in another language's.

    Words of three letters and less are taken for English, as are words with accents for foreign.
    """
    words = [part for match in _WORD.findall(text) for part in match.removesuffix("'s").split("-")]
    words = [word for word in words if len(word) >= _SHORTEST]
    strange = [word for word in words if not _english(word)]
    if len(strange) <= max(2, _FOREIGN * len(words)):
        yield from dict.fromkeys(strange)


def opens(word: str, after: str) -> bool:
    """Whether a capitalised word begins a sentence as ordinary English does: `Working on …`, `Usually …`.

    A verb's -ing form whose verb is a word too, or a long adverb, which no name looks like; not where what
    comes after shows that the word is who the sentence is about (`Harding has …`).
    """
    plain = word.casefold()
    if plain in _NAMED.split() or _SUBJECT.match(after):
        return False
    if plain not in _table():
        return False
    stems = [stem for stem in _without_ending(plain, ("ing",)) if re.search("[aeiou]", stem)]
    return bool(_ADVERB.fullmatch(plain)) or (len(plain) > 5 and not _table().isdisjoint(stems))


@cache
def _table() -> frozenset[str]:
    table = json.loads((resources.files("ua_memory") / "data" / "tokenizer.json").read_text("utf-8"))
    return frozenset(word for word in table["model"]["vocab"] if word.isascii() and word.isalpha())


def _english(word: str) -> bool:
    return _of_the_field(word) or _made(word) or _joined(word)


def _of_the_field(word: str) -> bool:
    """annotations, parsed, debugging; not todoist."""
    return not _OF_THE_FIELD.isdisjoint((word, *_without_ending(word, _COMMON_ENDS)))


def _made(word: str) -> bool:
    """Whether a word of the table stands in it, with at most one beginning and one ending around it."""
    for stem in (word, *_without_ending(word)):
        if stem in _table():
            return True
        for start in _STARTS:
            rest = stem.removeprefix(start)
            if rest != stem and len(rest) >= _SHORTEST and rest in _table():
                return True
    return False


def _without_ending(word: str, endings: Sequence[str] = _ENDS) -> Iterator[str]:
    """planned: plann, plan and planne; tries: try."""
    for ending in endings:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= 3:
            yield from (stem, f"{stem}e", f"{stem}y")
            if len(stem) > 3 and stem[-1] == stem[-2]:
                yield stem[:-1]


def _joined(word: str) -> bool:
    """codebase, whitespace, workarounds."""
    return any(
        word[:at] in _table() and _plain(word[at:]) for at in range(3, len(word) - 3)
    )  # fmt: skip


def _plain(word: str) -> bool:
    return any(
        len(stem) >= _SHORTEST and stem in _table()
        for stem in (word, *(word.removesuffix(ending) for ending in ("s", "ed", "ing", "er")))
    )
