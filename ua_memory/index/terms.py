"""Text into search terms, the same for files and queries; the nearest known word of a misspelt one; and the
other forms of a word in languages besides English."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import islice

from ua_memory.text.patterns import data_text

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias


# -- terms -------------------------------------------------------------------------------------------------
# Text into search terms: the same cut for what is indexed and for what is asked.
#
# SQLite's tokenizer lowers, strips accents and stems; this module decides before it what a word is.
# Identifiers (`UA_TRUNCATION_THRESHOLD`, `src/foo.py`, `getUserName`) stand both in parts and whole.
# Chinese, Japanese, Thai and their like have no spaces to cut at, so their runs become overlapping pairs,
# and each character besides. A query is cut into plain terms before it meets FTS5, so no operator survives.


LONGEST_WORD = 100
"""Characters; what is longer is a blob, found by its beginning."""

MOST_TERMS = 2000
"""Distinct terms read of one query; a longer one was pasted by accident."""

MOST_AGAIN = 8
"""Identifiers of a query, and parts of each, that are counted."""

_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u0e01-\u0e3a\u0e40-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17e0-\u17e9"
)
"""Scripts that set no or few spaces: Chinese, Japanese, Korean, Thai, Lao, Burmese, Khmer."""
_ASCII_RUN = re.compile(r"[A-Za-z0-9]+")
_JOINED = re.compile(r"(?<![^\W_])[^\W_]++(?:[_/.\-@:\\]+[^\W_]++)+")
_SEPARATORS = re.compile(r"[\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PIECE = re.compile(r"\w+")
_QUOTED = re.compile(r'"([^"]*)"|“([^”]*)”|„([^“”]*)[“”]')

_CLITIC = re.compile(r"(?<=\w)['’](?:s|t|ll|re|ve|m|d)\b", re.IGNORECASE)
"""What English hangs onto a word: the s of "Bob's", rare in a small bank, says nothing of what is meant."""

_SMALL_WORDS = """
a about am an and any are as at be been but by can could did do does for from had has have he her
him his how i if in into is it its me my no not of on or our she should so some than that the their
them then there these they this those to us was we were what when where which who whom whose why
will with would you your
"""
STOP = frozenset(_SMALL_WORDS.split())
"""English words that say nothing about which item is meant; dropped from a query that has others."""

_SPECIAL = re.compile(rf"_|[a-z0-9][A-Z]|[A-Z][A-Z][a-z]|\w[/.\-@:\\]+\w|\w{{{LONGEST_WORD + 1}}}|\x00")
"""What makes an ASCII text more than words and what stands between them."""


class Query:
    """A query cut up: `terms` are OR-ed, each of `phrases` (its words in order) is required. `again` has an
    identifier for each of its parts: it counts as much as they do, so that it is not found by them first.
    `forms` has words of the bank by which a term is looked up, too.

    No dataclass: a hook that opens no bank would load them for this one alone, a fifth of its time.
    """

    __slots__ = ("again", "forms", "phrases", "terms")

    def __init__(
        self,
        terms: tuple[str, ...],
        phrases: tuple[tuple[str, ...], ...] = (),
        again: tuple[str, ...] = (),
        forms: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.terms, self.phrases, self.again, self.forms = terms, phrases, again, forms or {}

    @property
    def empty(self) -> bool:
        return not self.terms and not self.phrases

    @property
    def every_term(self) -> tuple[str, ...]:
        """The terms and their other forms, each once."""
        others = (form for term in self.terms for form in self.forms.get(term, ()))
        return tuple(dict.fromkeys([*self.terms, *others])) if self.forms else self.terms


def clean(text: str) -> str:
    """The text as SQLite and the tokenizer can take it: stray bytes become U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


@cache
def _run() -> re.Pattern[str]:
    """Compiled where it is needed: it takes 5 ms, and a hook whose prompt is plain ASCII has none to lose."""
    return re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")


@cache
def _cjk_run() -> re.Pattern[str]:
    return re.compile(rf"[{_CJK}]+")


def _runs(text: str) -> list[str]:
    """The runs of letters and digits in a text, those without spaces apart from the others."""
    return [text[start:end] for start, end in spans(text)]


def spans(text: str) -> list[tuple[int, int]]:
    """Where the runs of letters and digits in a text stand, those without spaces apart from the others."""
    return [match.span() for match in (_ASCII_RUN if text.isascii() else _run()).finditer(text)]


def is_unspaced(text: str) -> bool:
    """Whether a text has words of a script that sets no spaces."""
    return not text.isascii() and _cjk_run().search(text) is not None


def _is_cjk(run: str) -> bool:
    return not run.isascii() and _cjk_run().match(run) is not None


def words(text: str) -> list[str]:
    """The words of a text in order; a CJK run of two or more characters as its overlapping pairs."""
    text = _HUMP.sub(" ", text if text.isascii() else unicodedata.normalize("NFKC", text))
    if text.isascii():
        return [word[:LONGEST_WORD] for word in _ASCII_RUN.findall(text.casefold())]
    found: list[str] = []
    for run in _runs(text):
        if not _is_cjk(run):
            found.append(run[:LONGEST_WORD].casefold())
        else:
            signs = _signs(run)
            found.extend(signs[i : i + 2] for i in range(max(len(signs) - 1, min(len(signs), 1))))
    return found


def _signs(run: str) -> str:
    """A run without the vowels and tones above and below its letters, which FTS5 takes for blanks."""
    return "".join(sign for sign in run if unicodedata.category(sign) not in ("Mn", "Mc"))


def pieces(indexed_text: str) -> frozenset[str]:
    """The different words of a text that went through `indexed`."""
    return frozenset(_PIECE.findall(indexed_text.casefold()))


def wholes(text: str) -> list[str]:
    """What is to be found besides its words: identifiers in one piece, single CJK characters."""
    text = unicodedata.normalize("NFKC", text)
    found = [whole for whole, _ in _identifiers(text)]
    for run in () if text.isascii() else _runs(text):
        if _is_cjk(run):
            found.extend(_signs(run) if len(run) > 1 else ())
    return found


def _identifiers(text: str) -> Iterator[tuple[str, str]]:
    """(an identifier as one word, as it stands), from a normal text."""
    for match in _JOINED.findall(text):
        yield _SEPARATORS.sub("_", match).casefold()[:LONGEST_WORD], match
    for run in _runs(text) if _HUMP.search(text) else ():
        if not _is_cjk(run) and _HUMP.search(run):
            yield run[:LONGEST_WORD].casefold(), run


def _again(query: str) -> Iterator[str]:
    for whole, text in islice(_identifiers(unicodedata.normalize("NFKC", query)), MOST_AGAIN):
        yield from [whole] * min(len(words(text)), MOST_AGAIN)


def indexed(text: str) -> str:
    """The text as it is handed to FTS5: its words, then its wholes, parted by blanks.

    Most lines are plain: FTS5 cuts those as we would, so they go as they are.
    """
    if text.isascii() and not _SPECIAL.search(text):
        return text
    return " ".join([*words(text), *wholes(text)])


def every_word(query: str) -> Query:
    """A query that only what contains all of its words answers, in any order: the parts of an identifier, a
    run without spaces and what is quoted each in theirs. Small words count where there are no others."""
    query = clean(query)
    quoted = ["".join(groups) for groups in _QUOTED.findall(query)]
    parts = [*quoted, *_CLITIC.sub(" ", _QUOTED.sub(" ", query)).split()]
    phrases = list(dict.fromkeys(phrase for phrase in (tuple(words(part)) for part in parts) if phrase))
    telling = [phrase for phrase in phrases if not STOP.issuperset(phrase)] or phrases
    return Query((), tuple(telling))


def read_query(query: str) -> Query:
    """Cut a query up. Never raises; an empty result means there is nothing to look for by words."""
    query = clean(query)
    phrases: list[tuple[str, ...]] = []
    for match in _QUOTED.finditer(query):
        quoted = next((group for group in match.groups() if group), "")
        phrase = tuple(words(quoted))
        if phrase and phrase not in phrases and len(phrases) < 8:
            phrases.append(phrase[:64])
    terms = list(dict.fromkeys([*words(_CLITIC.sub(" ", query)), *wholes(query)]))[:MOST_TERMS]
    # A pair of characters says more than either of them, and a single one is in every other text.
    telling = [term for term in terms if not (len(term) == 1 and _is_cjk(term))] or terms
    small = small_words(terms)
    telling = [term for term in telling if term not in small] or telling
    return Query(tuple(telling), tuple(phrases), tuple(_again(query)))


# -- spelling ----------------------------------------------------------------------------------------------
# Words that were meant: for one that no item has, the nearest in spelling that some item has.
#
# Each word of the bank stands in a table under its trigrams (a blank at either end counts), so that a
# lookup reads the few words that share some, and not all. What shares enough, and begins or ends as it
# does, is compared by the edits that it takes: a letter too many, missing or wrong, or two that changed
# places. Nothing is imported that costs.


if TYPE_CHECKING:
    Counted: TypeAlias = Callable[[Sequence[str]], Mapping[str, int]]

SHORTEST, LONGEST = 5, 40
"""Letters of a word that is guessed at: below, half the language is one edit away; above, it is no word."""

LONG = 9
"""From so many letters on two edits are allowed; below, one."""

FEW = 6
"""Words of a query that are guessed at; with more it is no query in the bank's language."""

BEGUN, COMPLETED = 3, 12
"""Letters from which on a word that is being typed is completed, and words that it may become."""

COMPARED = 200
"""Words that are compared letter by letter, those that share most trigrams."""


def is_guessable(word: str) -> bool:
    """Whether a word may be guessed at, or guessed: not the short, nor numbers."""
    return SHORTEST <= len(word) <= LONGEST and sum(map(str.isalpha, word)) >= SHORTEST


def grams(word: str) -> set[str]:
    """The trigrams of a word and the blanks around it."""
    padded = f" {word} "
    return {padded[n : n + 3] for n in range(len(word))}


def add(db: sqlite3.Connection, words: Iterable[str]) -> None:
    """Write down how words are spelt. They stay when their last item goes; `meant` looks what is left."""
    rows = [
        (gram, len(word), word)
        for word in sorted(words)
        if is_guessable(word)
        for gram in sorted(grams(word))
    ]
    db.executemany("INSERT OR IGNORE INTO grams VALUES (?, ?, ?)", rows)


def near(db: sqlite3.Connection, word: str) -> list[str]:
    """The words of the bank that take fewest edits to be this one, all that are equally near. Empty where
    none is near, or where it is not to be guessed at."""
    if not is_guessable(word):
        return []
    own, most = sorted(grams(word)), 2 if len(word) >= LONG else 1
    # An edit spoils three trigrams, two letters that changed places spoil four.
    least = max(1, len(own) - 3 * most - 1)
    rows = db.execute(
        f"SELECT word FROM grams WHERE gram IN ({','.join('?' * len(own))}) AND size BETWEEN ? AND ?"
        " AND (substr(word, 1, 1) = ? OR substr(word, -1) = ?)"
        " GROUP BY word HAVING count(*) >= ? ORDER BY count(*) DESC, word LIMIT ?",
        (*own, len(word) - most, len(word) + most, word[0], word[-1], least, COMPARED),
    )
    letters, digits = set(word), _digits(word)
    found: list[tuple[int, str]] = []
    for (other,) in rows:
        if len(letters ^ set(other)) <= 2 * most and _digits(other) == digits:
            far = edits(word, other, most)
            if 0 < far <= most:
                most = far
                found.append((far, other))
    return [other for far, other in sorted(found) if far == most]


def completions(db: sqlite3.Connection, counted: Counted, start: str) -> tuple[str, ...]:
    """The words of the bank that begin so, which is no word of it, the most frequent first: what somebody is
    typing. Words that are not guessable are left out."""
    if len(start) < BEGUN or not start.isalpha() or counted([start])[start]:
        return ()
    rows = db.execute(
        "SELECT word FROM grams WHERE gram = ? AND word > ? AND word < ?",
        (f" {start[:2]}", start, f"{start}\U0010ffff"),
    )
    many = counted([word for (word,) in rows])
    found = sorted((-many[word], word) for word in many if many[word])
    return tuple(word for _, word in found[:COMPLETED])


def meant(db: sqlite3.Connection, counted: Counted, unknown: Iterable[str]) -> dict[str, str]:
    """{term that no item has: the word that was meant}, '' for a small word, which says nothing. What has
    none near is left out. FEW are guessed at, in their order; `counted` says how many items have a term."""
    found: dict[str, str] = {}
    for term in [term for term in unknown if is_guessable(term)][:FEW]:
        close = near(db, term)
        many = counted(close)
        # Two letters that changed places are likelier than one taken for another.
        likely = [(sorted(word) != sorted(term), word[0] != term[0], -many[word], word) for word in close]
        word = min((each for each in likely if each[2]), default=("",))[-1]
        if word:
            found[term] = "" if word in STOP else str(word)
    return found


def edits(one: str, other: str, most: int) -> int:
    """The letters to add, drop or change, and neighbours to swap, to turn one word into the other (optimal
    string alignment); `most` + 1 for any more than that."""
    before, row = list[int](), list(range(len(other) + 1))
    for n, letter in enumerate(one, 1):
        last, before, row = before, row, [n]
        for m, sign in enumerate(other, 1):
            cost = min(before[m] + 1, row[m - 1] + 1, before[m - 1] + (letter != sign))
            if n > 1 and m > 1 and letter == other[m - 2] and one[n - 2] == sign:
                cost = min(cost, last[m - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def _digits(word: str) -> str:
    return "".join(sign for sign in word if sign.isdigit())


# -- forms -------------------------------------------------------------------------------------------------
# Other forms of a word in German, French, Spanish, Portuguese, Dutch and Italian: of one Snowball stem.
#
# FTS5 stems as English does. So the words of texts in these languages (`languages`) stand in a table under
# their stems, and a query's word is looked up by the bank's words of its stem, too. A bank in English has an
# empty table.


EXACT = "unicode61 remove_diacritics 2 tokenchars '_'"
"""Reads a word as it stands there, but for case and accents."""

TOKENIZER = f"porter {EXACT}"

SCRATCH = (
    f'CREATE VIRTUAL TABLE temp.scratch USING fts5 (word, tokenize = "{TOKENIZER}")',
    "CREATE VIRTUAL TABLE temp.scratch_terms USING fts5vocab (temp, scratch, instance)",
)
"""Where FTS5 stems what is not to be kept: a connection's own."""

LEAST_LETTERS, MOST_FORMS = 3, 24
"""Letters of a word, and of a stem, that are gone by; other forms by which a word is looked up."""


def cut(db: sqlite3.Connection, text: str) -> list[str]:
    """The stems of a text's words as FTS5 keeps them, over a connection that has `SCRATCH`."""
    db.execute("INSERT INTO temp.scratch VALUES (?)", (text,))
    try:
        return [term for (term,) in db.execute("SELECT term FROM temp.scratch_terms ORDER BY offset")]
    finally:
        db.execute("DELETE FROM temp.scratch")


def add_forms(db: sqlite3.Connection, language: str, words: Iterable[str]) -> None:
    """Write down words of a language under their stems. They stay when their last item goes."""
    fit = sorted(word for word in words if _has_forms(word))
    rows = [(language, stem, word) for word, stem in zip(fit, _stems(language, fit), strict=True)]
    db.executemany("INSERT OR IGNORE INTO forms VALUES (?, ?, ?)", rows)


def forms(
    db: sqlite3.Connection, counted: Counted, cut: Callable[[str], Sequence[str]], terms: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """{term of such a language: other words of the bank that are forms of it}, one of each stem that FTS5
    gives them; none where it gives them the term's. Without what the bank does not have in any form.
    `counted` says how many items have a word, `cut` is FTS5's stem of it."""
    languages = _languages(db)
    fit = [term for term in terms if _has_forms(term) and term not in STOP] if languages else []
    many, near = counted(fit) if fit else {}, dict[str, set[str]]()
    for language in languages:
        for term, stem in zip(fit, _stems(language, fit), strict=True):
            sql = "SELECT word FROM forms WHERE language = ? AND stem IN (?, ?) ORDER BY word LIMIT ?"
            rows = db.execute(sql, (language, stem, _plain(term), MOST_FORMS)).fetchall()
            # What says nothing of its language is found by the stem itself, if that is a word.
            alone = [stem] if not rows and not many[term] and _has_forms(stem) else []
            said = sum(counted([term, *(word for (word,) in rows)]).values())
            compounds = _compounds(db, language, term, stem) if said <= RARE else []
            near.setdefault(term, set()).update(alone, compounds, (word for (word,) in rows))
    found: dict[str, tuple[str, ...]] = {}
    for term, words in near.items():
        if not words:
            continue
        others = {tuple(cut(word)): word for word in sorted(words, reverse=True)}
        others.pop(tuple(cut(term)), None)
        there = counted(list(others.values()))
        kept = tuple(sorted(word for word in others.values() if there[word]))
        if kept or (words and many[term]):
            found[term] = kept
    return found


_GERMAN = "ver vor aus auf ein ent zer durch unter über wider hinter miss nach emp"
_DUTCH = "ver voor uit aan ont door onder over achter mis toe"
COMPOUNDING = {"german": frozenset(_GERMAN.split()), "dutch": frozenset(_DUTCH.split())}
"""Languages that write a compound as one word, and what stands before a word without making it one."""
RARE = 3
"""Items that have a word, at most, where compounds that end in it are looked up: of more there is enough."""


def _compounds(db: sqlite3.Connection, language: str, term: str, stem: str) -> list[str]:
    """The words of the bank that end as this one does, with a word before it: `Hausschlüssel` for
    `Schlüssel`."""
    short = len(term) == LEAST_LETTERS and term.isascii()  # `bar` ends half of all adjectives
    if language not in COMPOUNDING or len(stem) < LEAST_LETTERS or short:
        return []
    own = term[: len(stem)]  # the stem with its accents
    rows = db.execute(
        "SELECT word FROM grams WHERE gram = ? AND size >= ? AND instr(word, ?) > ?"
        " ORDER BY size, word LIMIT ?",
        (own[:3], len(stem) + LEAST_LETTERS, own, LEAST_LETTERS, MOST_FORMS),
    )
    words, found = [word for (word,) in rows], dict[str, str]()
    for word, whole in zip(words, _stems(language, words), strict=True):
        at = word.rfind(own)
        # Snowball cuts more off a long word: `stromrechn`, but `rechnung`.
        if word[:at] not in COMPOUNDING[language] and (whole.endswith(stem) or word[at:] in (own, term)):
            found[whole] = word
    sql = f"SELECT DISTINCT stem FROM forms WHERE language = ? AND stem IN ({', '.join('?' * len(found))})"
    return [found[whole] for (whole,) in db.execute(sql, (language, *found))]


def _languages(db: sqlite3.Connection) -> list[str]:
    """The languages of which the bank has words."""
    found, last = list[str](), ""
    while row := db.execute("SELECT min(language) FROM forms WHERE language > ?", (last,)).fetchone():
        if row[0] is None:
            break
        last = str(row[0])
        found.append(last)
    return found


def _has_forms(word: str) -> bool:
    return LEAST_LETTERS <= len(word) <= LONGEST and word.isalpha() and word not in _INVARIABLE


_INVARIABLE = frozenset("lunes martes miércoles miercoles jueves viernes".split())  # noqa: SIM905
"""What Snowball takes for plurals: of luna, and of Marta."""


def _stems(language: str, words: Sequence[str]) -> list[str]:
    """The stems of words in lower case, without accents: many leave them out."""
    if not words:
        return []
    import Stemmer  # only where a bank has words of such a language

    if language == "portuguese":
        words = [_PLURAL.sub("ão", word) for word in words]
    # Made each time, in 4 µs: one is not to be used by two threads at once.
    return [_plain(stem) for stem in Stemmer.Stemmer(language).stemWords(words)]


_PLURAL = re.compile(r"(?:ões|oes|ães|ao)$")
"""What Snowball leaves of `reuniões`, with and without accents, beside `reunião`."""


def _plain(word: str) -> str:
    """A word without its accents, as FTS5 reads it."""
    if word.isascii():
        return word
    return "".join(sign for sign in unicodedata.normalize("NFKD", word) if not unicodedata.combining(sign))


# -- languages ---------------------------------------------------------------------------------------------
# Which of the languages with forms a text may be in, by its small words and letters.


SURE, DOUBTFUL = 3, 1
"""What a word or letter counts that only these languages have, and one that stands in names and other
languages, too. So much as one sure sign is needed, and more than of English."""

_LETTERS = {
    **dict.fromkeys("äöüß", ("german",)),
    **dict.fromkeys("ñ¿¡", ("spanish",)),
    **dict.fromkeys("ãõ", ("portuguese",)),
    **dict.fromkeys("œù", ("french",)),
    **dict.fromkeys("ìò", ("italian",)),
}


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    """The words of each language: `sure` and `doubtful` ones, and what holds `but` for some."""
    found: dict[str, dict[str, str]] = {}
    for block in data_text("languages.txt").split("\n\n")[1:]:
        heading, _, words = block.partition("\n")
        kind, _, language = heading.partition(" ")
        found.setdefault(kind, {})[language] = words
    return found


@cache
def _weighed_words() -> dict[str, dict[str, int]]:
    """{word: {language: what it counts for that}}, English ones included."""
    signs: dict[str, dict[str, int]] = {
        word: {"english": SURE} for word in STOP.difference(_table()["but"]["also_english"].split())
    }
    for worth, kind in ((DOUBTFUL, "doubtful"), (SURE, "sure")):
        for language, words in _table()[kind].items():
            for word in words.split():
                signs.setdefault(word, {})[language] = worth
    return signs


def languages(words: frozenset[str]) -> list[str]:
    """The languages, as the stemmer calls them, that these words of a text (lower case) may be in: more than
    one where they have the same signs, none for English or where there is no sure sign."""
    found = _signs_of(words)
    letters = {sign for word in words if not word.isascii() for sign in word}
    for language in {language for sign in letters & _LETTERS.keys() for language in _LETTERS[sign]}:
        found[language] = found.get(language, 0) + SURE
    most = max(found.values(), default=0)
    if most < SURE or found.get("english") == most:
        return []
    return sorted(language for language, worth in found.items() if worth == most)


def _signs_of(words: frozenset[str]) -> dict[str, int]:
    """{language: what its small words among these count together}."""
    signs, found = _weighed_words(), dict[str, int]()
    for word in words & signs.keys():
        for language, worth in signs[word].items():
            found[language] = found.get(language, 0) + worth
    return found


def is_english(text: str) -> bool:
    """Whether a query reads as English, as one does that shows no sign of a language: "tag der feier" does
    not, though "der" is no sure sign. A name may have accents, an English word in small letters has none."""
    own = frozenset(word.casefold() for word in words(text))
    found = _signs_of(own)
    english = found.pop("english", 0) + len(own & STOP) * DOUBTFUL
    if english or found:
        return english >= max(found.values(), default=0)
    return all(word.isascii() or word[0].isupper() for word in _PIECE.findall(text))


def small_words(words: Iterable[str]) -> frozenset[str]:
    """The words that say little, in English and in the language that these words of a query may be in."""
    found = set(STOP)
    for language in languages(frozenset(words)):
        found |= _small(language)
    return frozenset(found)


def every_small_word() -> frozenset[str]:
    """The words that say little in any of the languages."""
    return frozenset().union(*map(_small, _table()["sure"]))


def _small(language: str) -> frozenset[str]:
    """Its small words but those that say something themselves."""
    every = f"{_table()['sure'][language]} {_table()['doubtful'][language]}".split()
    beginnings = tuple(_table()["but"]["say_something"].split())
    return frozenset(word for word in every if not word.startswith(beginnings))
