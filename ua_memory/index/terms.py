"""Split texts and queries into search terms; correct spelling; find inflected forms in languages besides
English."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import islice, pairwise

from ua_memory.text.patterns import data_text, language_words, late, stem_words, without_accents
from ua_memory.text.questions import AT_THE_MOMENT, BEFORE_NOW, PHRASES, begins_question

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias


# -- tokenization ------------------------------------------------------------------------------------------
# Texts and queries are split into the same terms.
#
# SQLite's tokenizer lowercases, strips accents and stems; this module decides before it what a word is.
# Identifiers (`UA_TRUNCATION_THRESHOLD`, `src/foo.py`, `getUserName`) are indexed both in parts and whole.
# Chinese, Japanese, Thai and other scripts without spaces are indexed as overlapping pairs of characters and
# as single characters. Queries are split before they reach FTS5, so that they contain no operators.


LONGEST_WORD = 100
"""Characters of a word; longer ones are truncated."""

MOST_TERMS = 2000
"""Distinct terms of a query; a longer one was pasted by accident."""

MOST_REPEATS = 8
"""Identifiers of a query, and parts of each, that are repeated (`Query.repeats`)."""

_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u0e01-\u0e3a\u0e40-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17e0-\u17e9"
)
"""Scripts with few or no spaces: Chinese, Japanese, Korean, Thai, Lao, Burmese, Khmer."""
_ASCII_RUN = re.compile(r"[A-Za-z0-9]+")
_JOINED = re.compile(r"(?<![^\W_])[^\W_]++(?:[_/.\-@:\\]+[^\W_]++)+")
_SEPARATORS = re.compile(r"[\W_]+")
_HUMP = re.compile(r"[A-Z](?:(?<=[a-z0-9][A-Z])|(?<=[A-Z][A-Z])(?=[a-z]))")
"""A capital that begins a word within a word."""
_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r'"([^"]*)"|“([^”]*)”|„([^“”]*)[“”]')

_CLITIC = re.compile(r"(?<=\w)['’](?:s|t|ll|re|ve|m|d)\b", re.IGNORECASE)
"""English clitics: the s of "Bob's" would be a rare, hence highly weighted term in a small bank."""

ELISION = late(
    r"\b(?:j['’](?:ai|avais|étais|y|en)|c['’](?:est|était|étaient|è|era)|qu['’](?:ils?|elles?|on|une?|est|a)"
    r"|[mtsnl]['’](?:as?|ai|ont|est|sont|avai[st]|étai[st]|en|y|ho|ha|hai|hanno)|d['’]une?|(?:dov|cos|com|quand)['’]è)\b"
    r"|\b(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|un|d?all|[dn]ell|sull|quest|dov|cos|com)['’](?=[^\W\d_])",
    re.IGNORECASE,
)
"""What French, Italian, Portuguese and Catalan shorten before a vowel (`l'`, `qu'`, `dell'`), with a pronoun
or auxiliary verb after it: `j'ai`, `c'est`, `d'un`."""

_INVERTED = late(
    r"\b(?!rendez-)\w+-(?:(?:t-)?(?:ils?|elles?|je|tu|nous|vous|moi)|t-on)\b"
    r"|\b(?:est-ce|(?:peu|doi|di|fai|sai|voi|veu|es|étai|avai|pourrai|devrai)t-on)\b",
    re.IGNORECASE,
)
"""A French verb with the pronoun behind it, `est-il` or `a-t-on`: no identifier, and seldom in a text."""

IDLE = late(
    rf"\b(?:{AT_THE_MOMENT}|{BEFORE_NOW}|(?:right )?now(?=\W*\Z)"
    r"|(?:a(?:ura|vait)?|(?:aur)?ont) (?:eu )?lieu)\b",
    re.IGNORECASE,
)
"""Phrases of questions that say nothing of what it is about: `a lieu` is in a text by chance."""

_LINKS = frozenset("da das de degli dei del della delle dello des di dos du van vom von".split())  # noqa: SIM905
"""What joins two nouns in Romance languages, German and Dutch, and says nothing between them in a query of
any other: `IBAN di Audiolab`."""

_ENGLISH = """
a about am an and any are as at be been but by can could did do does for from had has have he her
him his how i if in into is it its me my no not of on or our she should so some than that the their
them then there these they this those to us was we were what when where which who whom whose why
will with would you your
"""
STOP_WORDS = frozenset(_ENGLISH.split())
"""English stop words; dropped from a query that has other words."""

_SMALL_TALK = frozenset(
    """
look looks looking good great nice fine perfect cool awesome sounds ok okay yes yep yeah no nope sure please
thanks thank thx go going ahead on continue proceed keep do again next done right exactly gut super passt
weiter ja jo nein klar danke bitte mach mache machen weitermachen los nächste nächsten nächstes genau
einverstanden bien parfait oui non vas allez merci accord vale sí si sigue hazlo adelante bueno gracias
claro sim pode faz isso obrigado obrigada certo beleza va bene fai grazie avanti graag prima doe maar verder
bedankt dank dankjewel je hoor oké ga door zo alles wel top precies klopt goed fijn helemaal gang laat nee
perfetto perfetta così procedi pure vai vada fallo continua prosegui esatto lascia stare andiamo dai capito
mooi geweldig fantastisch opnieuw keer probeer proberen alsjeblieft ficou ótimo excelente perfeita valeu
combinado tenta novo vez favor ti ringrazio benissimo ottimo ottima chiaro fatto giusto accordo facciamo mille
confermo ah oh beaucoup continuer bon comme perfecto acuerdo vielen gerne perfeito assim continuar let
hello hi hey hallo moin bonjour bonsoir salut ça hola buenas olá ola oi ciao buongiorno buonasera salve hoi
tal así dale listo genial mil muchas tudo bem tutto
願い 願 続け 続 進め 進 次 了解 承知 大丈 丈夫 完璧 最高 素晴 晴ら 助か 助 谢谢 继续 好 好的 可以 辛苦 苦
""".split()  # noqa: SIM905
)
"""Words of prompts that only greet, approve or tell an agent to go on."""

_SPECIAL = (
    _HUMP, re.compile(r"[_\0]"), re.compile(r"[/.\-@:\\](?<=\w.)[/.\-@:\\]*\w"),
    re.compile(rf"\w{{{LONGEST_WORD + 1}}}"),
)  # fmt: skip
"""One of them matches an ASCII text that needs more than FTS5's own tokenization. Each begins with a set of
characters, and is fast for that."""


class Query:
    """A parsed query: `terms` are OR-ed, each of `phrases` (words in order) is required. `repeats` has each
    identifier once per part, so that the whole counts as much as its parts. `forms` has other words of the
    bank by which a term is searched, too. `spoken` are the languages it may be in.

    Not a dataclass: importing `dataclasses` would take a fifth of the time of a hook that opens no bank.
    """

    __slots__ = ("forms", "phrases", "repeats", "spoken", "terms")

    def __init__(
        self,
        terms: tuple[str, ...],
        phrases: tuple[tuple[str, ...], ...] = (),
        repeats: tuple[str, ...] = (),
        forms: Mapping[str, tuple[str, ...]] | None = None,
        spoken: tuple[str, ...] = (),
    ) -> None:
        self.terms, self.phrases, self.repeats, self.forms = terms, phrases, repeats, forms or {}
        self.spoken = spoken

    @property
    def every_term(self) -> tuple[str, ...]:
        """The terms and their other forms, without duplicates."""
        others = (form for term in self.terms for form in self.forms.get(term, ()))
        return tuple(dict.fromkeys([*self.terms, *others])) if self.forms else self.terms


def clean(text: str) -> str:
    """The text as valid UTF-8 for SQLite and the tokenizer: lone surrogates become U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


@cache
def _run() -> re.Pattern[str]:
    """Compiled lazily: it takes 5 ms, which a hook with an ASCII prompt does not need."""
    return re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")


@cache
def _cjk_run() -> re.Pattern[str]:
    return re.compile(rf"[{_CJK}]+")


def _runs(text: str) -> list[str]:
    """The runs of letters and digits in a text; CJK characters and others are separate runs."""
    return [text[start:end] for start, end in spans(text)]


def spans(text: str) -> list[tuple[int, int]]:
    """The (start, end) of each run of letters and digits; CJK characters and others are separate runs."""
    return [match.span() for match in (_ASCII_RUN if text.isascii() else _run()).finditer(text)]


def query_spans(text: str) -> list[tuple[int, int, bool]]:
    """[(start, end, whether it is a small word)] of each run of a query. Those of Japanese are cut where the
    script changes, those of Chinese around their small words: "本の名前は" is about 本 and 名前, and a pair
    across them, such as の名, is in a text by chance."""
    if not is_unspaced(text):
        return [(start, end, False) for start, end in spans(text)]
    cuts, small = _japanese() if _KANA.search(text) else _chinese()
    return [
        (*each.span(), small.fullmatch(text, *each.span()) is not None)
        for start, end in spans(text)
        for each in cuts.finditer(text, start, end)
    ]


def query_words(text: str) -> list[str]:
    """The words of one of the `query_spans`; of a verb or adjective also the sign that all its forms have."""
    found = words(text)
    return [*found, text[0]] if _INFLECTED.fullmatch(text) else found


def content_words(text: str) -> list[str]:
    """The words of a text, without Japanese and Chinese small words."""
    if not is_unspaced(text):
        return words(text)
    pieces = (text[start:end] for start, end, small in query_spans(text) if not small)
    return [word for piece in pieces for word in query_words(piece)]


_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_KANA = late("[ぁ-ゖ]")
_INFLECTED = late(f"[{_HAN}][ぁ-ゖ]")


@cache
def _japanese() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """(what is one piece of a Japanese text, which of them are small words). Of the kana behind a sign of a
    verb or adjective (決め in 決めました) the first belongs to it, and up to two may stand before small words
    (りました in 変わりました)."""
    little = "|".join(language_words()["unspaced"]["japanese"].split())
    pieces = (
        rf"[ァ-ヺー]+|[{_HAN}]{{2,}}|[{_HAN}](?:(?![はがをにのでとへもやかねよ])[ぁ-ゖ])?"
        rf"|[ぁ-ゖ]{{2,}}?(?=[はがをにのでとも](?![ぁ-ゖ]))|[ぁ-ゖ]+|[^\Wぁ-ヺー{_HAN}]+"
    )
    ending = rf"(?:(?<=[{_HAN}])|(?<=[{_HAN}][ぁ-ゖ]))[ぁ-ゖ]{{1,2}}"
    return re.compile(pieces), re.compile(rf"(?:{ending})?(?:{little})*+")


@cache
def _chinese() -> tuple[re.Pattern[str], re.Pattern[str]]:
    little = "|".join(language_words()["unspaced"]["chinese"].split())
    return re.compile(rf"{little}|(?:(?!{little})\w)+"), re.compile(little)


def is_unspaced(text: str) -> bool:
    """Whether a text contains characters of a script without spaces."""
    return not text.isascii() and _cjk_run().search(text) is not None


def _is_cjk(run: str) -> bool:
    return not run.isascii() and _cjk_run().match(run) is not None


def words(text: str) -> list[str]:
    """The words of a text in order; a CJK run of two or more characters as its overlapping pairs."""
    text = _HUMP.sub(r" \g<0>", text if text.isascii() else unicodedata.normalize("NFKC", text))
    if text.isascii():
        return [word[:LONGEST_WORD] for word in _ASCII_RUN.findall(text.casefold())]
    found: list[str] = []
    for run in _runs(text):
        if not _is_cjk(run):
            found.append(run[:LONGEST_WORD].casefold())
        else:
            letters = _without_marks(run)
            found.extend(letters[i : i + 2] for i in range(max(len(letters) - 1, min(len(letters), 1))))
    return found


def _without_marks(run: str) -> str:
    """A run without combining vowel and tone marks, which FTS5 takes for separators."""
    return "".join(letter for letter in run if unicodedata.category(letter) not in ("Mn", "Mc"))


def distinct_words(indexed_text: str) -> frozenset[str]:
    """The distinct words of a text returned by `fts_text`."""
    return frozenset(_WORD.findall(indexed_text.casefold()))


def compound_terms(text: str) -> list[str]:
    """The terms of a text besides its words: whole identifiers, single CJK characters."""
    text = unicodedata.normalize("NFKC", text)
    found = [whole for whole, _ in _identifiers(text)]
    for run in () if text.isascii() else _runs(text):
        if _is_cjk(run):
            found.extend(_without_marks(run) if len(run) > 1 else ())
    return found


def _identifiers(text: str) -> Iterator[tuple[str, str]]:
    """Yield (identifier as one word, as written) from an NFKC-normalised text."""
    for match in _JOINED.findall(text):
        yield _SEPARATORS.sub("_", match).casefold()[:LONGEST_WORD], match
    for run in _runs(text) if _HUMP.search(text) else ():
        if not _is_cjk(run) and _HUMP.search(run):
            yield run[:LONGEST_WORD].casefold(), run


def _repeats(query: str) -> Iterator[str]:
    for whole, text in islice(_identifiers(unicodedata.normalize("NFKC", query)), MOST_REPEATS):
        yield from [whole] * min(len(words(text)), MOST_REPEATS)


def fts_text(text: str) -> str:
    """The text to index with FTS5: its words and compound terms, separated by spaces. A text that FTS5 would
    tokenize in the same way, as most, is returned unchanged."""
    if text.isascii() and not any(each.search(text) for each in _SPECIAL):
        return text
    return " ".join([*words(text), *compound_terms(text)])


def _without_clitics(query: str) -> str:
    """A query without clitics, elisions and idle phrases, unless there is nothing else."""
    query = rest if _WORD.search(rest := IDLE.sub(" ", query)) else query
    query = _INVERTED.sub(lambda verb: re.sub("-(?:t-)?", " ", verb[0]), query) if "-" in query else query
    if "'" not in query and "’" not in query:
        return query
    rest = _CLITIC.sub(" ", ELISION.sub(" ", query))
    return rest if _WORD.search(rest) else query


def all_words_query(query: str) -> Query:
    """A query that requires all words, in any order; identifiers, CJK runs and quotations are phrases. Stop
    words are dropped unless there are no others."""
    query = clean(query)
    quoted = ["".join(groups) for groups in _QUOTED.findall(query)]
    parts = [*quoted, *_without_clitics(_QUOTED.sub(" ", query)).split()]
    phrases = list(dict.fromkeys(phrase for phrase in (tuple(words(part)) for part in parts) if phrase))
    required = [phrase for phrase in phrases if not STOP_WORDS.issuperset(phrase)] or phrases
    return Query((), tuple(required))


def split_query(query: str) -> Query:
    """Parse a query. Never raises; an empty result means that there are no words to search for."""
    query = clean(query)
    phrases: list[tuple[str, ...]] = []
    for match in _QUOTED.finditer(query):
        quoted = next((group for group in match.groups() if group), "")
        phrase = tuple(words(quoted))
        if phrase and phrase not in phrases and len(phrases) < 8:
            phrases.append(phrase[:64])
    plain = _without_clitics(query)
    own = dict.fromkeys(content_words(plain) or words(plain))
    terms = [*(own | dict.fromkeys(compound_terms(plain)))][:MOST_TERMS]
    # A pair of CJK characters is more specific than either; a single one is in many texts.
    specific = [term for term in terms if term in own or not (len(term) == 1 and _is_cjk(term))] or terms
    stop = stop_words(terms)
    specific = [term for term in specific if term not in stop] or specific
    spoken = likely_languages(frozenset(terms))
    return Query(tuple(specific), tuple(phrases), tuple(_repeats(plain)), spoken=spoken)


def specific_words(prompt: str) -> set[str]:
    """The words of a prompt that say what it is about; none if it only greets, approves or says to go on."""
    own = content_words(PHRASES["courtesy"].sub(" ", _without_clitics(prompt)))
    return {*own} - stop_words(own) - _SMALL_TALK


# -- spelling correction -----------------------------------------------------------------------------------
# For a query term that no item has, the nearest word by edit distance that some item has.
#
# A table has each word of the bank under its trigrams (with a space at either end), so that only words with
# common trigrams are read. Those that share enough of them, and begin or end with the same letter, are
# compared by their edit distance: insertions, deletions, substitutions and transpositions. Pure Python,
# without expensive imports.


if TYPE_CHECKING:
    Frequencies: TypeAlias = Callable[[Sequence[str]], Mapping[str, int]]

SHORTEST, LONGEST = 5, 40
"""Letters of a word that is corrected: shorter ones have too many neighbours, longer ones are no words."""

TWO_EDITS_FROM = 9
"""Letters from which on two edits are allowed; below, one."""

CORRECTED = 6
"""Words of a query that are corrected; with more it is in a language that the bank does not have."""

PREFIX_LENGTH, COMPLETIONS = 3, 12
"""Letters from which on a prefix is completed, and the number of its completions."""

CANDIDATES = 200
"""Words whose edit distance is computed, those that share most trigrams."""


def is_correctable(word: str) -> bool:
    """Whether a word may be corrected, or be a correction: not short ones and numbers."""
    return SHORTEST <= len(word) <= LONGEST and sum(map(str.isalpha, word)) >= SHORTEST


def trigrams(word: str) -> set[str]:
    """The trigrams of a word with a space at either end."""
    padded = f" {word} "
    return {padded[n : n + 3] for n in range(len(word))}


def add_spellings(db: sqlite3.Connection, words: Iterable[str]) -> None:
    """Insert words into the table of trigrams. They stay when their last item is deleted; `corrections`
    checks their frequency."""
    rows = [
        (gram, len(word), word)
        for word in sorted(words)
        if is_correctable(word)
        for gram in sorted(trigrams(word))
    ]
    db.executemany("INSERT OR IGNORE INTO grams VALUES (?, ?, ?)", rows)


def nearest_spellings(db: sqlite3.Connection, word: str) -> list[str]:
    """The words of the bank with the smallest edit distance to this one, sorted; [] if none is near enough or
    the word is not correctable."""
    if not is_correctable(word):
        return []
    own, most = sorted(trigrams(word)), 2 if len(word) >= TWO_EDITS_FROM else 1
    # An edit changes three trigrams, a transposition four.
    least = max(1, len(own) - 3 * most - 1)
    rows = db.execute(
        f"SELECT word FROM grams WHERE gram IN ({','.join('?' * len(own))}) AND size BETWEEN ? AND ?"
        " AND (substr(word, 1, 1) = ? OR substr(word, -1) = ?)"
        " GROUP BY word HAVING count(*) >= ? ORDER BY count(*) DESC, word LIMIT ?",
        (*own, len(word) - most, len(word) + most, word[0], word[-1], least, CANDIDATES),
    )
    letters, digits = set(word), _digits(word)
    found: list[tuple[int, str]] = []
    for (other,) in rows:
        if len(letters ^ set(other)) <= 2 * most and _digits(other) == digits:
            distance = edit_distance(word, other, most)
            if 0 < distance <= most:
                most = distance
                found.append((distance, other))
    return [other for distance, other in sorted(found) if distance == most]


def completions(db: sqlite3.Connection, frequencies: Frequencies, prefix: str) -> tuple[str, ...]:
    """The words of the bank with this prefix, the most frequent first, for a query that is being typed. Empty
    if the prefix is itself a word of the bank; words that are not correctable are left out."""
    if len(prefix) < PREFIX_LENGTH or not prefix.isalpha() or frequencies([prefix])[prefix]:
        return ()
    rows = db.execute(
        "SELECT word FROM grams WHERE gram = ? AND word > ? AND word < ?",
        (f" {prefix[:2]}", prefix, f"{prefix}\U0010ffff"),
    )
    counts = frequencies([word for (word,) in rows])
    found = sorted((-counts[word], word) for word in counts if counts[word])
    return tuple(word for _, word in found[:COMPLETIONS])


def corrections(
    db: sqlite3.Connection, frequencies: Frequencies, unknown: Iterable[str], spoken: Sequence[str] = ()
) -> dict[str, str]:
    """{term that no item has: its correction, '' for a stop word}, without terms that have none. The first
    `CORRECTED` terms are corrected, but not identifiers with digits, names of days and months or foreign stop
    words, nor to these (`pera` is no `pero`); `frequencies` returns the number of items by term. If the
    languages `spoken` are not English, whose words the model knows, only slips (`_is_slip`) are corrected:
    `contrato` is not `contato` misspelt."""
    found: dict[str, str] = {}
    foreign = bool(spoken) and "english" not in spoken
    for term in [term for term in unknown if is_correctable(term) and not _digits(term)][:CORRECTED]:
        if _is_foreign(term):
            continue
        nearest = [word for word in nearest_spellings(db, term) if not foreign or _is_slip(term, word)]
        nearest = [word for word in nearest if word in STOP_WORDS or word not in all_stop_words()]
        counts = frequencies(nearest)
        # Transpositions are likelier than substitutions, the same first letter is likelier than another.
        ranked = [(sorted(word) != sorted(term), word[0] != term[0], -counts[word], word) for word in nearest]
        word = min((each for each in ranked if each[2]), default=("",))[-1]
        if word:
            found[term] = "" if word in STOP_WORDS else str(word)
    return found


_DOUBLED = re.compile(r"(.)\1")


def _is_slip(typed: str, meant: str) -> bool:
    """Whether a word is seldom one of its own: with letters that changed places, are missing or doubled, or
    long."""
    same = sorted(typed) == sorted(meant) or len(typed) < len(meant) or len(typed) >= TWO_EDITS_FROM
    return typed[0] == meant[0] and (same or _DOUBLED.sub(r"\1", typed) == _DOUBLED.sub(r"\1", meant))


def _is_foreign(term: str) -> bool:
    """Whether a term is a name of a day or month in any language, or a small word of another than English."""
    from ua_memory.text.foreign_dates import is_name  # not needed by most queries

    return term in all_stop_words() or is_name(term)


def edit_distance(one: str, other: str, most: int) -> int:
    """The number of insertions, deletions, substitutions and transpositions between two words (optimal string
    alignment); `most` + 1 if it is more than `most`."""
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


# -- identifiers with digits -------------------------------------------------------------------------------
# `E1010` and `E1011` are two things, which a model hardly distinguishes, so they are compared as text.


_WITH_DIGITS = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z0-9_]*[0-9][A-Za-z0-9_]*")
_AMOUNT = re.compile(r"[0-9_]+[A-Za-z]{0,3}|[0-9]+[hx][0-9]+")
_NUMBERED = re.compile(r"(?:\b([^\W\d_]+)[ #-]{1,2}|\A\W*(?=\w+\W*\Z))([0-9]{3,})(?![.,:/-]?\w)")
_PART = re.compile(r"[A-Za-z]|[0-9]+")
_HEX = re.compile("(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{6,}", re.IGNORECASE)
SPACED_LETTERS = 3
"""Letters from which on an identifier may be written with spaces: not `S3`, which is like `its 3`."""


def identifiers(query: str) -> list[str]:
    """The words of a query with letters and digits, without amounts and ordinals (`16GB`, `2nd`, `15h30`)."""
    return [word for word in _WITH_DIGITS.findall(query) if not _AMOUNT.fullmatch(word)]


def numbered(query: str) -> list[str]:
    """The numbers of a query with the word before, unless that is a stop word: `ticket 4711`; ` 4711` for
    one alone."""
    stop = stop_words(words(query))
    return [f"{name} {n}" for name, n in _NUMBERED.findall(query) if name.casefold() not in stop]


def is_about_another(text: str, wanted: Sequence[str]) -> bool:
    """Whether a text has one of these identifiers with other digits (`p95` for `p99`, any hash for a hash),
    and none of that kind itself. `iPhone 15` is `iphone15`, `H.264` is `h264`."""
    own = {_kind(word) for word in wanted if has_identifier(text, word)}
    return any(kind not in own and _has(text, kind) for kind in map(_kind, wanted))


def has_identifier(text: str, word: str) -> bool:
    """Whether a text has an identifier, however its parts are joined; `error 1010` is also `error E1010`."""
    name, space, number = word.rpartition(" ")
    return _has(text, _PREFIXED.format(name, number) if space else r"[\W_]?".join(word.replace("_", "")))


_PREFIXED = "{}[ #:-]{{0,2}}[a-z]{{0,5}}-?{}"


def _kind(word: str) -> str:
    """The regular expression of the identifiers that differ from one in digits only."""
    name, space, number = word.rpartition(" ")
    if space:
        return _PREFIXED.format(name, f"[0-9]{{{len(number)}}}")
    if _HEX.fullmatch(word):
        return _HEX.pattern
    parts = _PART.findall(word.casefold())
    joint = "[ _-]?" if sum(map(str.isalpha, parts)) >= SPACED_LETTERS else "[_-]?"
    return joint.join("[0-9]+" if part.isdigit() else part for part in parts)


def _has(text: str, pattern: str) -> bool:
    return re.search(f"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9])", text, re.IGNORECASE) is not None


# -- inflected forms ---------------------------------------------------------------------------------------
# Inflected forms in German, French, Spanish, Portuguese, Dutch and Italian, by Snowball stems.
#
# FTS5 only has the English stemmer. So a table has the words of texts in these languages (`guess_languages`)
# by their stems, and a query term is also searched by the bank's words of the same stem. In an English bank
# the table is empty.


EXACT_TOKENIZER = "unicode61 remove_diacritics 2 tokenchars '_'"
"""Ignores case and accents, and does not stem."""

TOKENIZER = f"porter {EXACT_TOKENIZER}"

STEMMER_TABLES = (
    f'CREATE VIRTUAL TABLE temp.scratch USING fts5 (word, tokenize = "{TOKENIZER}")',
    "CREATE VIRTUAL TABLE temp.scratch_terms USING fts5vocab (temp, scratch, instance)",
)
"""Temporary tables through which FTS5 stems words."""

LEAST_LETTERS, MOST_FORMS = 3, 24
"""Letters that a word and a stem must have; other forms by which a word is searched."""


def stem_text(db: sqlite3.Connection, text: str) -> list[str]:
    """The stems of a text's words by FTS5, on a connection that has `STEMMER_TABLES`."""
    db.execute("INSERT INTO temp.scratch VALUES (?)", (text,))
    try:
        return [term for (term,) in db.execute("SELECT term FROM temp.scratch_terms ORDER BY offset")]
    finally:
        db.execute("DELETE FROM temp.scratch")


def add_forms(db: sqlite3.Connection, language: str, words: Iterable[str]) -> None:
    """Insert words of a language by their stems. They stay when their last item is deleted."""
    inflected = sorted(word for word in words if _has_forms(word))
    stems = stem_words(language, inflected)
    rows = [(language, stem, word) for word, stem in zip(inflected, stems, strict=True)]
    db.executemany("INSERT OR IGNORE INTO forms VALUES (?, ?, ?)", rows)


def forms(
    db: sqlite3.Connection,
    frequencies: Frequencies,
    fts_stem: Callable[[str], Sequence[str]],
    terms: Sequence[str],
    spoken: Sequence[str] = (),
) -> dict[str, tuple[str, ...]]:
    """{term: other words of the bank that are forms or translations of it, or what it makes with its
    neighbour (boat house, boathouse)} for terms of a query in the languages `spoken`, one word for each stem
    that FTS5 gives them other than the term's. Terms that the bank has in no form are left out.
    `frequencies` returns the number of items by word, `fts_stem` FTS5's stem of a word."""
    languages = _languages(db)
    inflected = [term for term in terms if _has_forms(term) and term not in STOP_WORDS]
    counts, candidates = frequencies(inflected), dict[str, set[str]]()
    for language in languages:
        for term, stem in zip(inflected, stem_words(language, inflected), strict=True):
            sql = "SELECT word FROM forms WHERE language = ? AND stem IN (?, ?) ORDER BY word LIMIT ?"
            rows = db.execute(sql, (language, stem, without_accents(term), MOST_FORMS))
            known = [word for (word,) in rows if word not in all_stop_words()]  # pero is no form of pera
            # A text whose language was not recognised is found if it has the stem itself as a word.
            bare = [stem] if not known and not counts[term] and _has_forms(stem) else []
            together = sum(frequencies([term, *known]).values()) if known else counts[term]
            rare = max(counts[term], together) <= RARE_ITEMS
            compounds = _compounds(db, language, term, stem) if rare else []
            begun = _begun_by(db, language, term, stem) if not (known or compounds or counts[term]) else []
            candidates.setdefault(term, set()).update(bare, compounds, known, begun)
    found: dict[str, tuple[str, ...]] = {}
    for term, words in candidates.items():
        if not words:
            continue
        by_stem = {tuple(fts_stem(word)): word for word in sorted(words, reverse=True)}
        by_stem.pop(tuple(fts_stem(term)), None)
        existing = frequencies(list(by_stem.values())) if by_stem else {}
        others = tuple(sorted(word for word in by_stem.values() if existing[word]))
        if others or counts[term]:
            found[term] = others
    absent = [term for term in inflected if not counts[term] and term not in found]
    translated = _translations(db, absent, spoken, languages) if languages or "english" not in spoken else {}
    for term, words in translated.items():
        if others := tuple(word for word, count in frequencies(sorted(words)).items() if count):
            found[term] = others
    joined = {a + b: (a, b) for a, b in pairwise(terms) if a.isalpha() and b.isalpha()}
    for word, count in frequencies([*joined]).items():
        found |= {part: (*found.get(part, ()), word) for part in joined[word] if count}
    return found


_LANGUAGES = ("english", "german", "french", "spanish", "portuguese", "italian", "dutch")
"""The columns of translations.txt."""


@cache
def _dictionary() -> tuple[list[list[list[str]]], frozenset[str]]:
    """The rows of translations.txt, words by column, and the words that are spelt like English ones."""
    _, but, rows = data_text("translations.txt").split("\n\n")
    split = [[part.split(",") for part in row.split("|")] for row in rows.casefold().splitlines()]
    found = [[[word.strip() for word in part] for part in row] for row in split]
    return found, frozenset(but.split()).union(*(row[0] for row in found))


@cache
def _rows_by_word() -> dict[str, list[int]]:
    """{word without accents: the rows of translations.txt that have it in another language than English}."""
    found, (rows, english) = dict[str, list[int]](), _dictionary()
    for number, row in enumerate(rows):
        for word in {word for part in row[1:] for word in part} - english:
            found.setdefault(without_accents(word), []).append(number)
    return found


@cache
def _rows_by_stem(language: str) -> dict[str, list[int]]:
    """{stem: the rows of translations.txt that have it in this language}."""
    found, column = dict[str, list[int]](), _LANGUAGES.index(language)
    for number, row in enumerate(_dictionary()[0]):
        for stem in stem_words(language, row[column]):
            found.setdefault(stem, []).append(number)
    return found


def _translations(
    db: sqlite3.Connection, terms: Sequence[str], spoken: Sequence[str], known: Sequence[str]
) -> dict[str, set[str]]:
    """{term: the words that mean the same in English and the bank's languages `known`}. Unless the languages
    of the query are `spoken`, a foreign term is only read in its basic form."""
    rows = {} if spoken else {term: _rows_by_word().get(without_accents(term), []) for term in terms}
    for source in spoken or ["english"]:
        if source != "english" or known:
            for term, stem in zip(terms, stem_words(source, terms), strict=True):
                own = _rows_by_stem(source).get(stem) or _rows_of_parts(source, term)
                rows[term] = [*rows.get(term, ()), *own]
    found, (every, english) = defaultdict[str, set[str]](set), _dictionary()
    for term, row in ((term, every[number]) for term, own in rows.items() for number in own):
        found[term].update(row[0])
        for target in known:
            words = row[_LANGUAGES.index(target)]
            found[term] |= {*words, *_inflected(db, target, words)} - english
    return found


@cache
def _compound_parts(language: str) -> list[tuple[str, ...]]:
    """The words of each row of translations.txt that may be part of a compound."""
    column = _LANGUAGES.index(language)
    return [tuple(word for word in row[column] if len(word) > LEAST_LETTERS) for row in _dictionary()[0]]


def _rows_of_parts(language: str, compound: str) -> list[int]:
    """The rows of translations.txt with a word that begins or ends a compound: `Zahnarzttermin`."""
    every = enumerate(_compound_parts(language) if language in COMPOUNDING else ())
    return [row for row, parts in every if compound.startswith(parts) or compound.endswith(parts)]


def _inflected(db: sqlite3.Connection, language: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the bank's words of a language that have the stem of one of these words."""
    sql = "SELECT word FROM forms WHERE language = ? AND stem = ? ORDER BY word LIMIT ?"
    for stem in stem_words(language, words):
        yield from (word for (word,) in db.execute(sql, (language, stem, MOST_FORMS)))


_GERMAN = "ver vor aus auf ein ent zer durch unter über wider hinter miss nach emp"
_DUTCH = "ver voor uit aan ont door onder over achter mis toe"
COMPOUNDING = {"german": frozenset(_GERMAN.split()), "dutch": frozenset(_DUTCH.split())}
"""Languages that write compounds as one word, with their prefixes, which do not make a compound."""
RARE_ITEMS = 3
"""Compounds that end in a word are searched if at most this many items have the word itself."""


def _compounds(db: sqlite3.Connection, language: str, term: str, stem: str) -> list[str]:
    """The compounds in the bank that end in this word: `Hausschlüssel` for `Schlüssel`."""
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
    for word, whole in zip(words, stem_words(language, words), strict=True):
        at = word.rfind(own)
        # Snowball cuts more off a long word: `stromrechn`, but `rechnung`.
        if word[:at] not in COMPOUNDING[language] and (whole.endswith(stem) or word[at:] in (own, term)):
            found[whole] = word
    sql = f"SELECT DISTINCT stem FROM forms WHERE language = ? AND stem IN ({', '.join('?' * len(found))})"
    return [found[whole] for (whole,) in db.execute(sql, (language, *found))]


_JOINTS = ("", "s", "e", "n", "en", "es", "er")
"""What stands between the parts of a compound."""
_MEASURES = frozenset(("price", "cost", "number", "date", "appointment"))
"""What a compound may say of the word that it begins with."""


def _begun_by(db: sqlite3.Connection, language: str, term: str, stem: str) -> list[str]:
    """The compounds in the bank of this word, which it lacks, and one for a measure of it: `huurprijs` for
    `huur`."""
    if language not in COMPOUNDING or len(stem) <= LEAST_LETTERS:
        return []
    own = term[: len(stem)]
    rows = db.execute(
        "SELECT word FROM grams WHERE gram = ? AND size >= ? AND word > ? AND word < ?"
        " ORDER BY size, word LIMIT ?",
        (f" {own[:2]}", len(stem) + LEAST_LETTERS, own, f"{own}\U0010ffff", MOST_FORMS),
    )
    every, rows_of, found = _dictionary()[0], _rows_by_stem(language), list[str]()
    for (word,) in rows:
        rest = word.removeprefix(own)
        ends = stem_words(language, [rest.removeprefix(joint) for joint in _JOINTS])
        meant = (row for end in ends for row in rows_of.get(end, ()))
        found += [word] if any(not _MEASURES.isdisjoint(every[row][0]) for row in meant) else []
    return found


def _languages(db: sqlite3.Connection) -> list[str]:
    """The languages in the table of forms."""
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
"""Weekdays that Snowball takes for plurals of other words, such as luna and Marta."""


# -- language detection ------------------------------------------------------------------------------------
# Which of these languages a text may be in, by its stop words and letters.


STRONG, WEAK = 3, 1
"""The weights of words and letters that only one language has, and of those that occur in names and other
languages, too. A language needs the weight of one strong indicator, and more than English has."""

_LETTERS = {
    **dict.fromkeys("äöüß", ("german",)),
    **dict.fromkeys("ñ¿¡", ("spanish",)),
    **dict.fromkeys("ãõ", ("portuguese",)),
    **dict.fromkeys("œù", ("french",)),
    **dict.fromkeys("ìò", ("italian",)),
}


@cache
def _language_weights() -> dict[str, dict[str, int]]:
    """{word: {language: weight}}, including English."""
    english = STOP_WORDS.difference(language_words()["but"]["also_english"].split())
    weights: dict[str, dict[str, int]] = {word: {"english": STRONG} for word in english}
    for weight, kind in ((WEAK, "doubtful"), (STRONG, "sure")):
        for language, words in language_words()[kind].items():
            for word in words.split():
                weights.setdefault(word, {})[language] = weight
    return weights


def guess_languages(words: frozenset[str]) -> list[str]:
    """The languages, by the stemmer's names, that a text with these lower-case words may be in: several with
    equal scores, none for English or without a strong indicator."""
    scores = _language_scores(words)
    letters = _LETTERS.keys() & set("".join(words))
    for language in {language for letter in letters for language in _LETTERS[letter]}:
        scores[language] = scores.get(language, 0) + STRONG
    most = max(scores.values(), default=0)
    if most < STRONG or scores.get("english") == most:
        return []
    return sorted(language for language, score in scores.items() if score == most)


def _language_scores(words: frozenset[str]) -> dict[str, int]:
    """{language: the sum of its weights of these words}."""
    weights, scores = _language_weights(), dict[str, int]()
    for word in words & weights.keys():
        for language, weight in weights[word].items():
            scores[language] = scores.get(language, 0) + weight
    return scores


def likely_languages(words: frozenset[str], least: int = 1) -> tuple[str, ...]:
    """The languages, English too, whose stop words a query has most of, at least the weight `least`."""
    scores = {"english": 0, **_language_scores(words)}
    scores["english"] += len(words & STOP_WORDS) * WEAK
    most = max(scores.values())
    return tuple(language for language, score in scores.items() if score == most) if most >= least else ()


def is_english(text: str) -> bool:
    """Whether a query may be English. It is unless another language scores higher ("tag der feier") or,
    without any stop words, a lower-case word has an accent (names may)."""
    own = frozenset(word.casefold() for word in words(text))
    if likely := likely_languages(own):
        return "english" in likely
    return all(word.isascii() or word[0].isupper() for word in _WORD.findall(text))


def stop_words(words: Iterable[str]) -> frozenset[str]:
    """The stop words of English and of the languages that a query with these words may be in: one that has
    two of its stop words, or one and an accent or a question word in front, and no fewer than of others, or
    as `guess_languages`."""
    ordered = tuple(words)
    own = frozenset(ordered)
    clear = not "".join(own).isascii() or begins_question(" ".join(ordered[:1]))
    likely = guess_languages(own) or likely_languages(own, 1 if clear else 2)
    links = _LINKS.intersection(ordered[1:-1]) if own.isdisjoint(STOP_WORDS) else ()
    return STOP_WORDS.union(links, *map(_stop_words_of, likely if "english" not in likely else ()))


@cache
def all_stop_words() -> frozenset[str]:
    """The stop words of all these languages, without English."""
    return frozenset().union(*map(_stop_words_of, language_words()["sure"]))


def _stop_words_of(language: str) -> frozenset[str]:
    """The stop words of a language, without those that are useful in a search (`say_something`)."""
    every = f"{language_words()['sure'][language]} {language_words()['doubtful'][language]}".split()
    useful = tuple(language_words()["but"]["say_something"].split())
    return frozenset(word for word in every if not word.startswith(useful))
