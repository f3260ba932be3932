"""Extracts names from a text without a model: proper names, handles, identifiers, paths, hosts, addresses.

Facts and queries use the same rules, so that their names match. In doubt a word is no name.
"""

from __future__ import annotations

import calendar
import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from ua_memory.text.patterns import data_text, language_words, late, stem_words
from ua_memory.text.wording import goes_on

_LISTS = tomllib.loads(data_text("name_words.toml"))


def _either(kind: str) -> str:
    """A pattern for the words of a list, each of which may be a pattern itself."""
    return f"(?:{'|'.join(_LISTS[kind].split())})"


ORDINARY = frozenset(_LISTS["ordinary"].split())
"""Words that are capitalised only because they begin a sentence."""

_CODE = late(r"`[^`]*`|\S*://\S+|\S*[/\\]\S*(?<!;)")
_CODE_SIGNS = frozenset("`/\\")
"""Of these each match of `_CODE` has one. Most texts have none, and the pattern is slow."""
_CAPITALISED = r"[A-ZÀ-ÖØ-Þ](?=[\w'’]*[a-z])(?:['’]?\w)*"
"""A word with a small letter in it. It matches in one way: where a word could in several, a row of them would
take exponential time."""
_TITLE_WORDS = rf"{_CAPITALISED}(?: {_CAPITALISED}){{0,9}}"
_ROLE = (
    r"(?!(?:[A-Z]\w* )*(?:Head|Director|President|Manager|Member|Founder|Chair|Lead|Owner|Secretary|Mayor)"
    r" of)"
)
"""A role before "of" is no part of a title; what follows is a name of its own."""
_CAPITALISED_RUN = late(
    rf"(?<![\w\0]){_ROLE}(?:The {_TITLE_WORDS} of(?: the)?|{_TITLE_WORDS} of the) {_TITLE_WORDS}|"
    rf"(?<![\w\0])(?:[A-Z]\w*\.(?:io|com|org|dev|ai|net|js)\b|{_CAPITALISED}|[A-Z]{{2,}}\d*)"
    r"(?:[ -](?:[A-ZÀ-ÖØ-Þ](?=\w*[a-z])\w*|[A-Z]{2,}\d*"
    r"|(?!0\d)\d+(?:\.\d+)*(?![\w%]|[.,]\d| (?:[mµk]?g|m?l|cm|\d))))*"
)
_BEFORE_CAPITAL = late(
    r"(?:^|[.!?:;–—|]\s*|[(\[\"“‘„«»]|(?<!\w)'|\s-\s+|\d[.)]\s+|\[[ xX/>-]\]|\n\s*[>*+-]?)$"
)
NO_NAMES = frozenset(_LISTS["no_names"].split())
NO_NAMES |= {*calendar.month_name, *calendar.month_abbr, *calendar.day_name, *calendar.day_abbr}
NO_NAMES |= {f"{day}s" for day in calendar.day_name}
NO_NAMES |= {word.upper() for word in ORDINARY if len(word) > 3}  # said AGAIN, loudly
_COMMON_NOUN = late(_either("german_nouns"))
"""A German noun before a name or number: "Freundin Ines", "Kundennummer 12"."""
_ABSTRACT_NOUN = late(r"(?!Samsung|Hartung|Hornung)\w{4,}(?:ung|[hk]eit|schaft)(?:en)?|\w{3,}tät")
"""A German noun that is no name alone; "Universität Wien" is one."""
_OF_NOUNS = _either("german_of_nouns")
_GERMAN_NOUN = late(rf"{_OF_NOUNS} [A-ZÄÖÜ][a-zäöüß]+(?: |$)")
_GERMAN_DETERMINER = late(rf"(?<!\w){_OF_NOUNS} (?:[a-zäöüß]{{3,}}e[mnrs]? )?$")
"""A German article (`zum` has one), possessive or number. The word after it is a noun, and all nouns are
capitalised."""

_JOINT = late(r" (?:d[aeiou]|dos|del|del(?:la|le|lo)|dei|degli|de l[ao]s?) ")
"""What joins the words of a name in the Romance languages, as in Hospital da Luz; not `das` and `des`, which
are German articles, too."""
_ENGLISH = late(r"(?i)(?<!\w)(?:the|is|are|to|and|with|can|could|did|does|will|would|should|what|how)(?!\w)")

GERMAN = late(rf"(?i)(?<!\w){_either('german')}(?!\w)")
"""The small words of German."""

LABELS = frozenset(_LISTS["labels"].split())
"""Words before a colon that are no speaker."""


def names(text: str) -> tuple[str, ...]:
    """The proper names of a sentence, each once, in order: capitalised words, but not the first word.

    Code, paths and URLs hold none. A word that opens a sentence counts only as part of a longer name.
    """
    found: dict[str, None] = {}
    german = GERMAN.search(text) is not None and not _ENGLISH.search(text)
    for words, opens in _capitalised_runs(text):
        first = opens and (len(words) == 1 or _is_opener(words[0]))
        words = words[1:] if first else words
        found.setdefault(_trim_name(_without_nouns(words) if german else words))
    found.pop("", None)
    return tuple(found)


def _capitalised_runs(text: str) -> Iterator[tuple[list[str], bool]]:
    """Each run of capitalised words outside of code, paths and URLs, and whether it opens a sentence. Runs
    joined as in "Hospital da Luz" are one, unless the first is a single word that opens a sentence, or each
    is a name of several words."""
    run, opens, end = list[str](), False, 0
    for words, first, at, to in _plain_runs(text):
        joined = _JOINT.fullmatch(text, end, at) if len(run) > opens and run[-1] not in NO_NAMES else None
        if joined and 1 in (len(run), len(words)) and (joined[0] != " do " or not _ENGLISH.search(text)):
            run += [*joined[0].split(), *words]
        else:
            if run:
                yield run, opens
            run, opens = words, first
        end = to
    if run:
        yield run, opens


def _plain_runs(text: str) -> Iterator[tuple[list[str], bool, int, int]]:
    """Each run of capitalised words, whether it opens a sentence, and its place. A title ("Lord of the
    Rings") is one, without its article, and does not merely open a sentence."""
    plain = text if _CODE_SIGNS.isdisjoint(text) else _CODE.sub(lambda m: "\0" * len(m[0]), text)
    for match in _CAPITALISED_RUN.finditer(plain):
        words, near = match[0].split(" "), plain[max(0, match.start() - 32) : match.start()]
        opens = is_opening(near.rstrip(" "), match[0])
        if _GERMAN_NOUN.match(match[0]):
            words, opens = words[2:], False
        elif (
            _GERMAN_DETERMINER.search(near)
            and words[0].isalpha()
            and not (words[0][1:2].isupper() or _JOINT.match(plain, match.end()))
        ):
            words = words[1:] if len(words) == 1 or words[1][0].isdigit() else words
        if "of" in words:
            words, opens = words[words[0] == "The" or (opens and _is_opener(words[0])) :], False
        yield words, opens, match.start(), match.end()


def is_opening(before: str, word: str) -> bool:
    """Whether a word after the text `before` begins a sentence, clause or list item, so that its capital says
    nothing."""
    goes = before[-2:-1].isalpha() and goes_on(before, word)
    return not goes and _BEFORE_CAPITAL.search(before[-3:]) is not None


def _trim_name(words: list[str]) -> str:
    """A run of words as a name, without words that are no part of one; '' if nothing is left."""
    while words and words[-1] in NO_NAMES:
        words = words[:-1]
    while words and (words[0] in NO_NAMES or _COMMON_NOUN.fullmatch(words[0])):
        words = words[1:]
    if len(words) == 1 and _ABSTRACT_NOUN.fullmatch(words[0]):
        return ""
    name = re.sub(r"['’]s?$", "", " ".join(words))
    return name if len(name) > 1 and not name[0].isdigit() else ""


def _without_nouns(words: list[str]) -> list[str]:
    """A run of capitalised words of a German sentence, from its first word that is no common noun; none where
    only a number is left. A name such as Hospital da Luz stays."""
    if any(word[0].islower() for word in words):
        return words
    start = next(
        (n for n, word in enumerate(words) if word.isupper() or not _is_german_noun(word)), len(words)
    )
    return [] if start and words[start:] and words[start][0].isdigit() else words[start:]


def _is_german_noun(word: str) -> bool:
    """Whether a word is a form of a common German noun, or a compound that ends in one."""
    stem = stem_words("german", [word.casefold()])[0]
    return any(stem[at:] in _german_nouns() for at in (0, *range(3, len(stem) - 4)))


@cache
def _german_nouns() -> frozenset[str]:
    return frozenset(data_text("german_nouns.txt").split())


def _is_opener(word: str) -> bool:
    """Whether a capitalised word is likely to be so only because a sentence begins with it."""
    small = word.casefold()
    return small in ORDINARY or small in foreign_stop_words() or word.endswith(("ed", "ing"))


_QUERY_WORDS = frozenset(_LISTS["querying"].split())
"""Words that begin a question or an order without being a name."""
_URL = r"(?i:[a-z][a-z0-9+.-]*://[^\s<>\"'`]+)"
_ADDRESS = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_NUMBERED_HOST = r"\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:/\d+)?"
_HOST = rf"(?i:(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+{_either('hosts')}(?::\d+)?)"
_PATH = r"(?:~|\.{1,2})?/[\w.@~+-]+(?:/[\w.@~+-]*)*|[\w.@~+-]+(?:/[\w.@~+-]+)+|[A-Za-z]:\\[\w.\\ -]*[\w.]"
_FILE = rf"[\w-]+\.{_either('files')}"
_HANDLE = r"@[A-Za-z][\w-]*(?:\.\w+)*"
_IDENTIFIER = (
    r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)*\(\)|[A-Za-z]\w*(?:_\w+)+|_\w+|[a-z]+(?:[A-Z][a-z0-9]*)+"
    r"|(?:[A-Z][a-z0-9]+){2,}|[A-Z]{2,}-\d+|#\d{2,}|[A-Z]{4,}\d*"
)
_MARKED_NAMES = tuple(
    re.compile(rf"(?<![\w@/.\\-])(?:{pattern})(?![\w@])")
    for pattern in (_URL, _ADDRESS, _NUMBERED_HOST, _FILE, _HOST, _PATH, _HANDLE, _IDENTIFIER)
)
_QUOTED_CODE = late(r"`([^`\n]+)`")
_LINKED = late(r"\[\[([^\]|#^\n]+)(?:[#^|][^\]\n]*)?\]\]")
LONGEST_NAME = 200
_BLOB = late(rf"\S{{{LONGEST_NAME + 1},}}")
"""Text without spaces that is longer than any name; the patterns would be slow on it."""
_NO_NAME = late(r"(?:and/or|w/o|n/a|his/her|he/she|either/or|yes/no|on/off|[\d/]+)")
_CYRILLIC = late(r"(?<=[^.!?\s] )([А-ЯЁІЇЄҐ][а-яёіїєґ'’-]+(?: [А-ЯЁІЇЄҐ][а-яёіїєґ'’-]+)*)")
"""Names in Cyrillic, except the first word of a sentence."""
_ADDRESSED = late(
    r"(?<![一-龯々お御])(?![奥嫁孫娘父母兄姉叔伯爺婆婿赤坊医客皆神王](?:さん|様|ちゃん)|息子|編集|担当|[今昨明]日|[先今来毎][日週月年]|[这那一各])"
    r"([一-龯々]{2,4}(?<![者師員屋長店社方手])(?:[ぁ-ん]{2,3}?)?(?=さん|様|氏|くん|ちゃん|先生|小姐|女士|老师)"
    r"|[一-龯](?=さん|先生|小姐|女士|老师)|(?<![ァ-ヴー])[ァ-ヴー]{2,12}(?=さん|様|氏|くん|ちゃん|先生))"
    r"|(?<![가-힣])([가-힣]{2,4})(?= ?(?:씨|님)(?![가-힣]{3}))"
)
"""A Japanese, Chinese or Korean name, told by how somebody is addressed: 佐藤様, 王小姐, 김민수 씨."""
_UNSPACED = "ぁ-ヺー一-龯々"
_GLUED = late(
    rf"\[\[[^\]\n]*\]\]|`[^`\n]*`|(?<=[A-Za-z0-9])(?=[{_UNSPACED}])|(?<=[{_UNSPACED}])(?=[A-Za-z0-9@])"
)
"""Where a name in Latin letters meets Japanese or Chinese, without a blank; links and code are left alone."""
_OPENING = late(r"^[^\w@/\[`]*([A-ZÀ-ÖØ-Þ][\w'’-]*)")


def apart(text: str) -> str:
    """A text with a blank between Latin words and Japanese or Chinese ones: Lumen Press の表紙."""
    return text if text.isascii() else _GLUED.sub(lambda at: at[0] or " ", text)


def entities(query: str) -> tuple[str, ...]:
    """The names in a query, each once, in order of place, without a capitalised first word that is no name.

    Besides proper names: `[[wikilinks]]`, `code`, URLs, mail addresses, hosts, paths, handles (`@alice`) and
    identifiers (`UA_TRUNCATION_THRESHOLD`, `readQuery`, `ABC-123`, `#42`).
    """
    found: list[tuple[int, str]] = []
    rest = _BLOB.sub(lambda match: " " * len(match[0]), apart(query))
    for pattern in (_LINKED, _QUOTED_CODE, *_MARKED_NAMES):
        for match in pattern.finditer(rest):
            name = (match[1] if pattern.groups else match[0]).strip().rstrip(".,;:!?")
            if len(name) > 1 and not _NO_NAME.fullmatch(name) and name not in NO_NAMES:
                found.append((match.start(), name))
        rest = pattern.sub(lambda match: "\0" * len(match[0]), rest)
    found += [(max(rest.find(name), 0), name) for name in map(_strip_query_word, names(rest)) if name]
    found += [(match.start(1), match[1]) for match in _CYRILLIC.finditer(rest)]
    found += [(match.start(), match[1] or match[2]) for match in _ADDRESSED.finditer(rest)]
    found += _first_name(rest, {name for _, name in found})
    return tuple(dict.fromkeys(name for _, name in sorted(found, key=lambda each: each[0])))


def _strip_query_word(name: str) -> str:
    """A name without a leading query word: `Summarize Alice` becomes Alice."""
    first, _, rest = name.partition(" ")
    return rest if rest and first.casefold() in _QUERY_WORDS else name


@cache
def _openers() -> frozenset[str]:
    """Words that begin a question, an order or a statement without being a name, in all languages."""
    tables = (language_words()["sure"], language_words()["doubtful"])
    foreign = {word for table in tables for words in table.values() for word in words.split()}
    return ORDINARY | _QUERY_WORDS | foreign.difference(_LISTS["named"].split())


def _first_name(query: str, known: set[str]) -> list[tuple[int, str]]:
    """(place, name) of the first word if it is a name: questions often begin with one."""
    match = _OPENING.match(query)
    if not match:
        return []
    word = re.sub(r"['’]s?$", "", match[1])
    ordinary = word.casefold() in _openers() or not _trim_name([word]) or word.endswith("ing")
    part = any(word in name.split() for name in known)
    return [] if ordinary or part or len(word) < 2 else [(match.start(1), word)]


_HAS_MARK = late(
    r"[@/\\_#(`.:>A-Z](?:(?<=[@/\\_#(`])|(?<=->)|(?<=\w[.:])[.:]*\w|(?<=[a-z][A-Z])"
    r"|(?<=[A-Z])(?:[a-z0-9]+[A-Z]|[A-Z]{3}|[A-Z]-\d))"
)
"""A character that every marked name has. Words without one, which are most, need no patterns. It begins with
a set of characters, which is fast."""


def name_candidates(text: str) -> dict[str, bool]:
    """The possible names in a statement: {name: whether it is certainly one}.

    Wikilinks are not included. The first word of a sentence may be a name or not ("Rome fell", "Rain fell"):
    it is uncertain, and the caller can decide by its other occurrences.
    """
    text = apart(_BLOB.sub(" ", text) if len(text) > LONGEST_NAME else text)
    seen: dict[str, bool] = {}
    for words, opens in _capitalised_runs(text):
        if not opens or len(words) > 1:
            seen[_trim_name(words[1:] if opens else words)] = True
        if opens and words[0].casefold() not in ORDINARY:
            seen.setdefault(_trim_name(words), False)
    if not text.isascii():
        seen |= dict.fromkeys(_CYRILLIC.findall(text), True)
        seen |= dict.fromkeys(map("".join, _ADDRESSED.findall(text)), True)
    if _HAS_MARK.search(text):
        marked = dict.fromkeys(_marked_names(text), True)
        seen = {name: sure for name, sure in seen.items() if not any(name in one for one in marked)} | marked
    seen.pop("", None)
    return seen


def _marked_names(text: str) -> Iterator[str]:
    if "`" in text:
        yield from (name.strip() for name in _QUOTED_CODE.findall(text))
    words = (word for word in text.split() if not (word.isalpha() and word.islower()))
    rest = " ".join(filter(_HAS_MARK.search, words))
    for pattern in _MARKED_NAMES:
        for found in pattern.findall(rest):
            name = found.rstrip(".,;:!?")
            if len(name) > 1 and not _NO_NAME.fullmatch(name) and name not in NO_NAMES:
                yield name
        rest = pattern.sub(" ", rest)


# -- words -------------------------------------------------------------------------------------------------
# Stop words, and the table of cue words (`data/little_words.toml`).


TERM = late(r"[^\W_]+")
STOP_WORDS = frozenset(_LISTS["stop"].split())


@cache
def _little_table() -> Mapping[str, str]:
    """The table of cue words: {kind: text}."""
    return tomllib.loads(data_text("little_words.toml"))


@cache
def little_words() -> Mapping[str, list[str]]:
    """The table of cue words: {kind: words}; `_` joins the words of a phrase."""
    return {kind: words.split() for kind, words in _little_table().items()}


@cache
def foreign_stop_words() -> frozenset[str]:
    return frozenset(little_words()["light"])


@cache
def numerals() -> Mapping[str, int]:
    """{number word: number} of all languages."""
    rows = (row.split() for row in _little_table()["numerals"].strip().splitlines())
    return {word: int(number) for number, *words in rows for word in words}


# -- coined ------------------------------------------------------------------------------------------------
# Lower-case words that are not English, and so may be names: `esbuild`, `heroku`, `lotte`.
#
# A word is English if it is one of some 20,000 whole words of the bundled tokenizer's table, is derived from
# one by common prefixes and suffixes, or joins two of them. The table has many first names, too; these count
# as English.


_WORD = late(r"(?<![\w./_`@#:\\-])[a-z]+(?:-[a-z]+)*(?:'s)?(?![\w/_`@\\'-]|[.:]\w)")
_ADVERB = late(r"[a-z]{3,}(?:ally|antly|ently|ously|ively|arily|edly|fully|ingly|tely)")
_PREFIXES, _SUFFIXES = _LISTS["beginnings"].split(), _LISTS["endings"].split()
_ABSTRACT = late(r"[a-z]{3,}(?:tion|sion|ness|ment|ance|ence|ity|ings|ed)")
_COMPLEMENT = late(r" (?:of|to|among|between|about|for|with) ")
"""Words after a noun, and seldom after a name."""
_SUBJECT = late(r"'s\b| +(?:and|or|has|had|have|is|was|will|would|can|could|does|did|says?|said)\b")
_INFLECTIONS = ("s", "es", "ed", "d", "ing", "ies", "ly")
_COMPARATIVES = ("er", "r", "ier", "est", "iest")
_COMMON_ENDS = ("d", "ed", "er", "ers", "ing", "ings", "ion", "ions", "ly", "or", "ors", "r", "rs", "s")
_TECHNICAL = frozenset(_LISTS["of_the_field"].split())
_SHORTEST, _FOREIGN = 4, 0.34


def coined_words(text: str) -> Iterator[str]:
    """The lower-case words of an English text that are not English, in order; none of other languages' texts.

    Words of up to three letters count as English, and words with accents are skipped.
    """
    words = [part for match in _WORD.findall(text) for part in match.removesuffix("'s").split("-")]
    words = [word for word in words if len(word) >= _SHORTEST and not word.endswith(("ed", "ing", "ness"))]
    strange = [word for word in words if not _is_english(word)]
    if not is_foreign(text) and len(strange) <= max(2, _FOREIGN * len(words)):
        yield from dict.fromkeys(strange)


def is_foreign(text: str) -> bool:
    light = [word.casefold() for word in TERM.findall(text)]
    return sum((word in foreign_stop_words()) - (word in STOP_WORDS) for word in light) > 0


def opens_sentence(word: str, after: str) -> bool:
    """Whether a capitalised first word is ordinary English and no name: `Working on …`, `Usually …`.

    True for the -ing form of a verb and for a long adverb; False if the text `after` it shows that the word
    is the subject (`Harding has …`).
    """
    plain = word.casefold()
    if plain in _LISTS["named"].split() or _SUBJECT.match(after):
        return False
    if _ABSTRACT.fullmatch(plain) and _is_english(plain):
        return True
    if plain not in _tokenizer_words():
        return False
    if (plain in _lexicon() and _COMPLEMENT.match(after)) or (plain[-1] == "s" and plain[:-1] in _lexicon()):
        return True
    stems = [stem for stem in _strip_endings(plain, ("ing",)) if re.search("[aeiou]", stem)]
    if plain.endswith("ly"):
        stems.append(plain[:-2])
    return bool(_ADVERB.fullmatch(plain)) or (len(plain) > 5 and not _tokenizer_words().isdisjoint(stems))


@cache
def _tokenizer_words() -> frozenset[str]:
    """The ASCII words of the bundled tokenizer's table."""
    table = json.loads(data_text("tokenizer.json"))
    return frozenset(word for word in table["model"]["vocab"] if word.isascii() and word.isalpha())


def _is_english(word: str) -> bool:
    return _is_technical(word) or _is_derived(word) or _is_compound(word) or _is_inflected(word)


def _is_inflected(word: str) -> bool:
    """bakes, as baking is in the table."""
    stems = {stem.removesuffix("e") for stem in _strip_endings(word, ("s", "es"))}
    forms = {stem + end for stem in stems if len(stem) > 2 for end in ("ing", "ed", "ation")}
    return not _tokenizer_words().isdisjoint(forms)


def _is_technical(word: str) -> bool:
    """annotations, parsed, debugging; not todoist."""
    return not _TECHNICAL.isdisjoint((word, *_strip_endings(word, _COMMON_ENDS)))


def _is_derived(word: str) -> bool:
    """Whether it is a word of the table with at most one prefix and one suffix."""
    for stem in (word, *_strip_endings(word)):
        if stem in _tokenizer_words():
            return True
        for start in _PREFIXES:
            rest = stem.removeprefix(start)
            if rest != stem and len(rest) >= _SHORTEST and rest in _tokenizer_words():
                return True
    return False


def _strip_endings(word: str, endings: Sequence[str] = _SUFFIXES) -> Iterator[str]:
    """planned: plann, plan and planne; tries: try."""
    for ending in endings:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= 3:
            yield from (stem, f"{stem}e", f"{stem}y")
            if len(stem) > 3 and stem[-1] == stem[-2]:
                yield stem[:-1]


def _is_compound(word: str) -> bool:
    """codebase, whitespace, workarounds."""
    places = range(3, len(word) - 3)
    return any(word[:at] in _tokenizer_words() and _is_base_form(word[at:]) for at in places)


def _is_base_form(word: str) -> bool:
    stems = (word.removesuffix(ending) for ending in ("", "s", "ed", "ing", "er"))
    return any(len(stem) >= _SHORTEST and stem in _tokenizer_words() for stem in stems)


# -- lexicon -----------------------------------------------------------------------------------------------
# Which English words mean the same, are a kind of the other, or the opposite (`data/lexicon.txt`, WordNet).


@cache
def _lexicon() -> Mapping[str, list[str]]:
    """{word: its rows}. Rows are split on use: splitting all is slow."""
    found: dict[str, list[str]] = defaultdict(list)
    for row in data_text("lexicon.txt").splitlines():
        for word in row[2:].split():
            found[word].append(row)
    return found


def in_lexicon(word: str) -> bool:
    """Whether a word is in the table of English words."""
    return word.casefold() in _lexicon()


@cache
def irregular() -> Mapping[str, str]:
    """{irregular form: base form}: `bought` is a form of buy."""
    text = data_text("lexicon.txt")
    rows = (line.split() for line in text.splitlines() if line[0] in "~-")
    return {form: base for _, base, *forms in rows for form in forms}


def is_past(verb: str) -> bool:
    """Whether a word looks like the past tense or past participle of a verb."""
    known = verb in ("had", "did", "were") or any(verb in row[2:] for row in _rows_of(verb, "~"))
    return verb.endswith("ed") or (known and verb[-1] != "s")


def _rows_of(word: str, signs: str) -> Iterator[list[str]]:
    """The rows of the lexicon that have a word."""
    return (row.split() for row in _lexicon().get(word, ()) if row[0] in signs)


def _base_forms(word: str) -> set[str]:
    """The words that a word may be a form of, and itself."""
    compared = () if word in _lexicon() else _COMPARATIVES
    return {word, irregular().get(word, word), *_strip_endings(word, (*_INFLECTIONS, *compared))}


def related(word: str) -> Iterator[str]:
    """The synonyms, hypernyms and hyponyms of a word."""
    further: list[str] = []
    if word in irregular():
        yield irregular()[word]
    for base in _base_forms(word):
        yield from _word_groups()["same"].get(base, ())
        for sign, first, *rest in _rows_of(base, "=>"):
            if sign == "=":
                yield from (first, *rest)
            elif base == first:
                further += rest
            else:
                further.append(first)
    yield from further


@cache
def _word_groups() -> Mapping[str, Mapping[str, list[str]]]:
    """Synonyms and antonyms among the cue words: {"same" or "opposites": {word: the others of its row}}."""
    found: dict[str, dict[str, list[str]]] = {kind: defaultdict(list) for kind in ("same", "opposites")}
    for kind, of in found.items():
        for words in (row.replace("_", " ").split("|") for row in little_words()[kind]):
            for word in words:
                of[word] += [other for other in words if other != word]
    return found


def antonyms(word: str) -> Iterator[str]:
    """The words that mean the opposite of a word."""
    for base in {*_base_forms(word), *_strip_endings(word, _COMPARATIVES)}:
        yield from (other for row in _rows_of(base, "!") for other in row[1:] if other != base)
        yield from _word_groups()["opposites"].get(base, ())
