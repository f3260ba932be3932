"""Learn which sentences are worth keeping: `UA_SHARED=../shared python benchmarks/worth.py [--write]`.

The labels: the shared transcripts by hash (`tests/data/labels.tsv`, `benchmarks/data/worth.tsv`), the stories
of `promise/dev.json` by what must be known of them, and conversations that were made up for this
(`benchmarks/data/worth_talks.txt`). The short items of one list are one sentence, as they are when they are
weighed, and worth keeping if one of them is. One logistic model for what a person says and one for an
assistant, with a ridge penalty, by Newton's method. Printed: AUC, and precision at as many as are worth
keeping, of each source while all others were trained on, and of the `test` sources by the weights of the
`train` ones alone.
`--write` writes weights that were learned from all sources to `ua_memory/data/worth.json`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import labelled

from ua_memory.clients.turns import Role, Turn
from ua_memory.retain import extract as extraction
from ua_memory.retain.extract import Context, Sentence

HERE = Path(__file__).parent
WEIGHTS = HERE.parent / "ua_memory" / "data" / "worth.json"
STORIES = labelled.SESSIONS.parent / "promise" / "dev.json"
TEST = frozenset(
    ["ae4a77f8-aedd-4bc1-888f-c94edc91af04.jsonl", "night-ops", "thesis", "sante-papa", "zaiko-site"]
)
"""The shared sources that are not trained on; a made-up conversation says so itself."""
RIDGE = 1.0


@dataclass(frozen=True)
class Example:
    """One sentence in its place, with its label."""

    source: str
    language: str
    test: bool
    who: str
    text: str
    seen: dict[str, float]
    stands: bool
    """Whether it is a statement at all: what is none is never kept."""
    rule: bool
    good: bool

    @property
    def real(self) -> bool:
        """Whether it comes from a recorded session, not from a story or a talk that was made up."""
        return self.source.endswith(".jsonl")


@dataclass(frozen=True)
class Place:
    """A sentence as it is weighed, where it was said; `parts` are the items, where it is a short list."""

    turn: Turn
    sentence: Sentence
    context: Context
    parts: tuple[Sentence, ...]


class _Places(extraction.Extraction):
    """Notes every sentence with its place in the conversation, and weighs none."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Place] = []

    def _score_turn(self, number: int, turn: Turn, context: Context) -> None:
        said = extraction.sentences(turn.text)
        weighed = list(extraction.join_lists(said))
        ends = [*(one.index for one in weighed), len(said)][1:]
        self.found += [
            Place(turn, one, context, tuple(said[one.index : end]))
            for one, end in zip(weighed, ends, strict=True)
        ]


def placed(turns: Sequence[Turn]) -> list[Place]:
    places = _Places()
    for turn in turns:
        places.add(turn)
    places.best()
    return places.found


def example(source: str, language: str, test: bool, place: Place, good: bool) -> Example:
    sentence, context = place.sentence, place.context
    who = "person" if context.person else "assistant"
    stands = extraction.is_statement(sentence, context.person)
    rule = context.person and extraction.standing_rule(sentence.text)
    seen = extraction.features(sentence, context)
    return Example(source, language, test, who, sentence.text, seen, stands, rule, good)


def transcripts() -> Iterator[Example]:
    """The sentences of the shared transcripts; what neither file names is not worth keeping."""
    good = {label.key for label in labelled.labels() if label.good}
    known = {label.key for label in labelled.labels()}
    for line in (HERE / "data" / "worth.tsv").read_text(encoding="utf-8").splitlines():
        file, _, rest = line.partition("\t")
        if not line.startswith("#") and (file, *rest.split("\t")[:2]) not in known:
            good.add((file, *rest.split("\t")[:2]))  # type: ignore[arg-type]
    for path in labelled.transcripts():
        seen = set()
        for place in placed(labelled.turns(path)):
            keys = {(path.name, place.turn.id, labelled.digest(part.text)) for part in place.parts}
            if not keys & seen:
                yield example(path.name, "en", path.name in TEST, place, bool(keys & good))
            seen |= keys


def stories() -> Iterator[Example]:
    """A sentence is worth keeping if it carries part of what must be known of its turn."""
    for story in json.loads(STORIES.read_text(encoding="utf-8")):
        must: dict[tuple[str, int], list[str]] = {}
        for plant in story["plants"]:
            must.setdefault((plant["session"], plant["turn"]), []).extend(plant["must"])
        for session in story["sessions"]:
            roles: dict[str, Role] = {"user": "person", "assistant": "assistant"}
            turns = [Turn(str(n), roles[t["role"]], t["text"]) for n, t in enumerate(session["turns"])]
            for place in placed(turns):
                wanted = must.get((session["id"], int(place.turn.id)), [])
                good = any(re.search(one, place.sentence.text, re.IGNORECASE) for one in wanted)
                yield example(story["name"], story["lang"], story["name"] in TEST, place, good)


def talks() -> Iterator[Example]:
    text = (HERE / "data" / "worth_talks.txt").read_text(encoding="utf-8")
    for part in re.split(r"^= ", text, flags=re.MULTILINE)[1:]:
        head, *lines = part.splitlines()
        name, language, split = head.split()
        turns, marks = _turns(lines)
        for place in placed(turns):
            good = any(_marked(part.quote, marks[place.turn.id]) for part in place.parts)
            yield example(name, language, split == "test", place, good)


def _marked(quote: str, marks: Sequence[tuple[str, bool]]) -> bool:
    """The mark of the line that a sentence stands in; of the first where lines without a stop are one."""
    return next(mark for line, mark in marks if quote in line or line.removeprefix("- ") in quote)


def _turns(lines: Sequence[str]) -> tuple[list[Turn], dict[str, list[tuple[str, bool]]]]:
    roles: dict[str, Role] = {"P": "person", "A": "assistant", "T": "tool"}
    said: list[tuple[Role, list[str]]] = []
    marks: dict[str, list[tuple[str, bool]]] = {}
    for line in lines:
        if line in roles:
            said.append((roles[line], []))
        else:
            said[-1][1].append(line[2:])
            marks.setdefault(str(len(said)), [])
            if text := " ".join(line[2:].split()):
                marks[str(len(said))].append((text, line[0] == "+"))
    return [Turn(str(n), role, "\n".join(text)) for n, (role, text) in enumerate(said, 1)], marks


# -- learning ----------------------------------------------------------------------------------------------


def learn(some: Sequence[Example]) -> dict[str, dict[str, float]]:
    """Weights in log-odds for each speaker, of what is weighed at all."""
    found = {}
    for who in ("person", "assistant"):
        rows = [one for one in some if one.who == who and one.stands and not one.rule]
        names = sorted({name for one in rows for name in one.seen})
        at = {name: n for n, name in enumerate(names)}
        seen = np.zeros((len(rows), len(names)))
        for n, one in enumerate(rows):
            for name, value in one.seen.items():
                seen[n, at[name]] = value
        good = np.array([one.good for one in rows], float)
        found[who] = {
            name: round(float(w), 3) for name, w in zip(names, _newton(seen, good, at["bias"]), strict=True)
        }
    return found


def _newton(seen: np.ndarray, good: np.ndarray, bias: int) -> np.ndarray:
    penalty = np.full(seen.shape[1], RIDGE)
    penalty[bias] = 0.01
    weights = np.zeros(seen.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-seen @ weights))
        slope = seen.T @ (good - chance) - penalty * weights
        bend = (seen * (chance * (1 - chance))[:, None]).T @ seen + np.diag(penalty)
        step = np.linalg.solve(bend, slope)
        weights += step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def chance(one: Example, weights: dict[str, dict[str, float]]) -> float:
    if one.rule:
        return 1.0
    if not one.stands:
        return 0.0
    total = sum(weights[one.who].get(name, 0.0) * value for name, value in one.seen.items())
    return float(1 / (1 + np.exp(-total)))


# -- figures -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    auc: float
    precision: float
    """At as many as are worth keeping."""
    kept: int
    """With the threshold of the product, and how many of these are worth it."""
    right: int
    good: int
    count: int

    def __str__(self) -> str:
        of_kept = self.right / (self.kept or 1)
        return (
            f"AUC {self.auc:.3f}  precision at {self.good}: {self.precision:.2f}   "
            f"kept {self.kept} of {self.count}, precision {of_kept:.2f}, "
            f"recall {self.right / (self.good or 1):.2f}"
        )


def measure(some: Sequence[Example], chances: Sequence[float]) -> Measured:
    values = np.array(chances)
    good = np.array([one.good for one in some], bool)
    order = np.argsort(-values, kind="stable")
    high, low = values[good], values[~good]
    above = (high[:, None] > low[None, :]).mean() + 0.5 * (high[:, None] == low[None, :]).mean()
    kept = values >= np.array([extraction.THRESHOLD[one.who] for one in some])
    count = int(good.sum())
    precision = float(good[order[:count]].mean())
    return Measured(float(above), precision, int(kept.sum()), int((kept & good).sum()), count, len(some))


def report(name: str, some: Sequence[Example], chances: Sequence[float]) -> None:
    pairs = list(zip(some, chances, strict=True))
    stands = [pair for pair in pairs if pair[0].stands]
    print(f"{name}: {measure(some, chances)}")
    if stands and any(one.good for one, _ in stands):
        print(f"    statements only: {measure([one for one, _ in stands], [value for _, value in stands])}")


def crossed(some: Sequence[Example]) -> list[float]:
    """The chance of each by the weights that were learned from all other sources."""
    weights = {
        source: learn([one for one in some if one.source != source]) for source in {e.source for e in some}
    }
    return [chance(one, weights[one.source]) for one in some]


def main(args: Sequence[str]) -> None:
    every = [*transcripts(), *stories(), *talks()]
    train = [one for one in every if not one.test]
    test = [one for one in every if one.test]
    sources = {one.source for one in every}
    print(f"{len(every)} sentences of {len(sources)} sources, {sum(e.good for e in every)} worth keeping")
    chances = crossed(train)
    report("left out one by one", train, chances)
    weights = learn(train)
    tested = [chance(one, weights) for one in test]
    report("never trained on", test, tested)
    pairs = [*zip(train, chances, strict=True), *zip(test, tested, strict=True)]
    for who in ("person", "assistant"):
        some = [pair for pair in pairs if pair[0].real and pair[0].who == who]
        report(f"real transcripts, {who}", [one for one, _ in some], [value for _, value in some])
    for source in sorted(sources):
        some = [pair for pair in pairs if pair[0].source == source]
        told = f"{some[0][0].language} {'test' if some[0][0].test else 'train'}"
        print(f"  {source} {told}: {measure([one for one, _ in some], [value for _, value in some])}")
    if "--errors" in args:
        errors(pairs)
    if "--write" in args:
        data = {"about": "log-odds learned by benchmarks/worth.py", "weights": learn(every)}
        WEIGHTS.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def errors(pairs: Sequence[tuple[Example, float]]) -> None:
    """The sentences on which model and label differ."""
    for one, value in sorted(pairs, key=lambda pair: pair[1]):
        if (value >= extraction.THRESHOLD[one.who]) != one.good:
            who = one.who[0] + " rule" * one.rule
            print(f"{value:.2f} {'+' if one.good else '-'} {who} {one.source[:12]}: {one.text[:110]}")


if __name__ == "__main__":
    os.environ.setdefault("UA_SHARED", str(HERE.parents[1] / "shared"))
    main(sys.argv[1:])
