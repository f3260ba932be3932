"""Make `ua_memory/data/german_nouns.txt`: `python benchmarks/nouns.py`.

It needs the packages german-nouns (nouns of the German Wiktionary) and wordfreq in an environment of its own.
Kept are the stems of common nouns that are no names, neither rare nor made of two others.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from importlib.resources import files
from pathlib import Path

import Stemmer
from wordfreq import zipf_frequency

TABLE = Path(__file__).parents[1] / "ua_memory" / "data" / "german_nouns.txt"
NOUN = re.compile("[A-ZÄÖÜ][a-zäöüß]{2,}")
NO_NOUNS = ("Vorname", "Eigenname", "Toponym", "Abkürzung", "Affix", "Gebundenes")
SHORT_NAMES = (TABLE.parent / "short_names.txt").read_text("utf-8").lower()
NO_NAMES = """abend art bad baum bild boden buch bücher fuß gang geld größe haar haus häuser hund leid liste
markt mauer menge mutter nähe ort plan rad regen runde sinn steuer straße summe system tier volk wahl weg welt
zimmer zug züge"""
"""Nouns that are the names of villages as well."""
RAREST = 2.8
"""The least frequency of a noun: the logarithm of how often it is said in a thousand million words."""
MORE_NAMES = """access deutsche docker excel linux perl python signal silke swift tara teams windows zoom
arnold bauer baumann beck becker berger bergmann böhm brandt braun busch dietrich engel fischer frank fuchs
graf groß haas hahn hartmann heinrich herrmann hofmann horn huber jäger jung kaiser keller klein koch köhler
könig krämer kraus krüger kuhn lang lange lehmann ludwig maier martin mayer meier meyer möller müller neumann
otto peters pfeiffer pohl richter roth sauer schäfer schmid schmidt schmitt schneider scholz schreiber
schröder schubert schulte schulz schumacher schuster schwarz seidel simon sommer stein thomas vogel vogt voigt
wagner walter weber weiß werner winkler winter wolf zimmermann ziegler
bank burg café gymnasium hochschule hospital hotel institut klinik kloster museum praxis restaurant schloss
schule sparkasse stiftung theater universität verein verlag"""
"""Names that are common nouns as well: products, frequent surnames, and what a name begins with."""
SHORTEST_TAIL = 5
"""Characters of the last part of a compound that tells it is one."""

stem = Stemmer.Stemmer("german").stemWord


def forms() -> tuple[set[str], set[str]]:
    """The forms of common nouns, and the stems of names."""
    nouns, names = set[str](), set(map(stem, f"{MORE_NAMES} {SHORT_NAMES}".split()))
    with files("german_nouns").joinpath("nouns.csv").open(encoding="utf-8") as table:
        for row in csv.DictReader(table):
            given = {
                form for key, form in row.items() if key == "lemma" or "singular" in key or "plural" in key
            }
            given = {form for form in given if NOUN.fullmatch(form)}
            if any(sign in row["pos"] for sign in NO_NOUNS):
                names |= {stem(form.lower()) for form in given}
            else:
                nouns |= given
    return nouns, names - set(map(stem, NO_NAMES.split()))


def main() -> None:
    nouns, names = forms()
    heard = defaultdict[str, float](float)
    for form in nouns:
        heard[stem(form.lower())] = max(heard[stem(form.lower())], zipf_frequency(form.lower(), "de"))
    kept = {each for each, rate in heard.items() if rate >= RAREST and len(each) > 2 and each not in names}
    simple = (
        each for each in kept
        if not any(each[at:] in kept for at in range(3, len(each) - SHORTEST_TAIL + 1))
    )  # fmt: skip
    TABLE.write_text("\n".join(sorted(simple)) + "\n", "utf-8")


if __name__ == "__main__":
    main()
