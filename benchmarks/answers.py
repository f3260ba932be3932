"""What a score means: fit and check the weights of `ua_memory/data/answers.json`.

    answers.py [--talk FILE]… [--person DIR]… [--stories FILE --banks DIR]… [--cache FILE] [--write FILE]

Every question is asked of a bank; what `recall.calibration.features` says of its first hit is set against
whether one of the first three has the answer. `answers.md`, which is shipped, is a made-up bank with
questions and with others that nothing there answers. More sources are the user's own copies: talks (see
`ranking.py`), a person's bank with its `questions.json`, stories with the banks that were made of them. A
talk is asked as people write to a search box too, without the small words, and what the other talk is asked,
with the names exchanged; a story what the next one is asked.

Printed, of each source: the figures of weights fitted to all the others, then those of the weights fitted to
all. `--cache` keeps the features, which take some minutes, `--write` writes the weights.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ua_memory.index.terms import STOP_WORDS, clean
from ua_memory.memory import Memory
from ua_memory.recall import calibration
from ua_memory.recall.arms import ParsedQuery, Ranked

HERE = Path(__file__).parent
THERE = 0.65
"""The share of questions with an answer that is assumed, whatever a source has."""
LEAST = 0.34
"""The chance, with this share, from which on a query counts as answered: the last that keeps 88 of 100 right
answers of a person's bank. The bias is moved so that it becomes `calibration.ANSWER_THRESHOLD`."""
DOUBT = 2.0
"""Weight of the L2 penalty, over features brought to one spread."""
ASK = 10
"""Hits of a question that are looked at."""
EVERYTHING = ("score", "fifth", "words", "session", "when", "every", "names", "rest")
WORDS = EVERYTHING[:5]


class Question(NamedTuple):
    """A question, its kind, and whether a hit, with its file's lines, has the answer; None: nothing has."""

    text: str
    kind: str
    right: Callable[[Any, str], bool] | None


# -- asking ------------------------------------------------------------------------------------------------


def asked(root: Path, now: datetime, questions: Sequence[Question], source: str) -> list[dict[str, Any]]:
    """The features of each question, with and without a model."""
    found: dict[str, Mapping[str, float]] = {}
    plain = calibration.answer_probability

    def watched(query: ParsedQuery, hits: Sequence[Ranked]) -> float:
        if hits and hits[0].score and not (query.window and query.window.only):
            # Of the first hit; then of the others.
            found.setdefault(query.text, calibration.features(query, hits))
        return plain(query, hits)

    rows = []
    memory = Memory.init(root, now=lambda: now)
    memory.refresh()
    vars(calibration)["answer_probability"] = watched
    try:
        for by_words in (False, True):
            found.clear()
            texts = [one.text for one in questions]
            answers = memory.search_many(texts, limit=ASK, by_words=by_words)
            for one, answer in zip(questions, answers, strict=True):
                if (seen := found.get(clean(one.text))) is None:
                    continue
                right = [bool(one.right and one.right(hit, lines(root, hit))) for hit in answer.hits]
                row = {
                    "q": one.text,
                    "kind": one.kind,
                    "source": source,
                    "late": not by_words,
                    "features": dict(seen),
                }
                rows.append(row | {"right": right, "absent": one.right is None, "bank": root.name})
    finally:
        vars(calibration)["answer_probability"] = plain
        memory.close()
    return rows


def lines(root: Path, hit: Any) -> str:
    """The lines that a hit names, and its text."""
    path = Path(hit.item.path)
    try:
        text = (path if path.is_absolute() else root / path).read_text("utf-8").splitlines()
    except OSError:
        text = []
    return "\n".join([*text[hit.item.line - 1 : hit.item.end], hit.item.text])


def has(words: str) -> Callable[[Any, str], bool]:
    return lambda hit, text: words in text


# -- sources -----------------------------------------------------------------------------------------------


def made_up(work: Path) -> list[dict[str, Any]]:
    """The bank of `answers.md` and its questions."""
    root, page, questions = work / "made-up", "", list[Question]()
    (root / "memory").mkdir(parents=True)
    (root / "MEMORY.md").write_text("# Memory\n", "utf-8")
    for line in (HERE / "answers.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            page = line[3:]
        elif line.startswith("- ") and page:
            with (root / "memory" / f"{page}.md").open("a", encoding="utf-8") as file:
                file.write(f"{line}\n" if file.tell() else f"# {page}\n\n{line}\n")
        elif line.startswith("? "):
            text, _, words = line[2:].partition(" | ")
            questions.append(Question(text, "own", has(words)))
        elif line.startswith("! "):
            questions.append(Question(line[2:], "absent", None))
    return asked(root, datetime(2026, 6, 20, 12, tzinfo=UTC), questions, "made-up")


def talks(work: Path, files: Sequence[Path]) -> list[dict[str, Any]]:
    """Conversations: their own questions, and those of the one before."""
    every = [json.loads(file.read_text("utf-8")) for file in files]
    rows = []
    for number, one in enumerate(every):
        root, at = work / one["name"], dict[tuple[str, int], str]()
        (root / "memory").mkdir(parents=True)
        (root / "MEMORY.md").write_text("# Memory\n", "utf-8")
        days: dict[str, list[str]] = {}
        for session in one["sessions"]:
            day = days.setdefault(session["when"][:10], [f"# {session['when'][:10]}", ""])
            day += [f"## {session['when'][11:16]}", ""]
            for turn in session["turns"]:
                day.append(f"- **{turn['speaker']}**: {' '.join(turn['text'].split())}")
                at[f"memory/{session['when'][:10]}.md", len(day)] = turn["id"]
            day.append("")
        for name, written in days.items():
            (root / "memory" / f"{name}.md").write_text("\n".join(written), "utf-8")
        questions = list(_own(one, at))
        if len(every) > 1:
            names = list(zip(_speakers(every[number - 1]), _speakers(one), strict=False))
            for other in every[number - 1]["questions"][::2]:
                text = str(other["q"])
                for theirs, ours in names:
                    text = text.replace(theirs, ours)
                questions += [Question(text, "other's", None), Question(_short(text), "other's", None)]
        rows += asked(root, datetime(2026, 11, 23, 12, tzinfo=UTC), questions, "talks")
    return rows


def _own(talk: Mapping[str, Any], at: Mapping[tuple[str, int], str]) -> Any:
    for one in talk["questions"]:
        if one["category"] != 5:  # adversarial: whose turns are named, and answer nothing
            wanted = set(one["evidence"])

            def right(hit: Any, _: str, wanted: set[str] = wanted) -> bool:
                return any(
                    at.get((hit.item.path, n)) in wanted for n in range(hit.item.line, hit.item.end + 1)
                )

            yield Question(one["q"], "own", right)
            yield Question(_short(one["q"]), "short", right)


def _speakers(talk: Mapping[str, Any]) -> list[str]:
    return sorted({turn["speaker"] for session in talk["sessions"] for turn in session["turns"]})


def _short(text: str) -> str:
    return " ".join(word for word in re.findall(r"[\w'-]+", text) if word.casefold() not in STOP_WORDS)


def person(work: Path, folder: Path, source: str, others: Sequence[str]) -> list[dict[str, Any]]:
    """A person's bank; also asked what others are asked."""
    root = work / source
    shutil.copytree(folder / "bank", root)
    questions = []
    for one in json.loads((folder / "questions.json").read_text("utf-8")):
        groups = one["gold"][:1] if one["kind"] == "two-step" else one["gold"]
        gold = [each for group in groups for each in group]

        def right(hit: Any, text: str, gold: Any = gold) -> bool:
            return any(hit.item.path == one["path"] and one["contains"] in text for one in gold)

        questions.append(Question(one["q"], one["kind"], right if gold else None))
    questions += [Question(text, "other's", None) for text in others]
    return asked(root, datetime(2026, 11, 23, 12, tzinfo=UTC), questions, source)


def stories(work: Path, file: Path, banks: Path, source: str) -> list[dict[str, Any]]:
    """Sessions of work; what is asked of each, the tasks that need it, and what the next one is asked."""
    every, rows = json.loads(file.read_text("utf-8")), []
    for number, one in enumerate(every):
        root, other = work / source / one["name"], every[(number + 1) % len(every)]
        shutil.copytree(banks / one["name"] / "bank", root, symlinks=True)
        questions = []
        for plant in one["plants"]:
            if plant["superseded_by"]:
                continue

            def right(hit: Any, text: str, must: Any = plant["must"]) -> bool:
                return all(re.search(each, text, re.IGNORECASE) for each in must)

            questions += [Question(plant[name], "own", right) for name in ("question", "question2")]
            questions.append(Question(plant["prompt"], "task", right))
        for absent in one["absent"]:
            questions += [
                Question(absent["question"], "absent", None),
                Question(absent["prompt"], "task", None),
            ]
        if other["lang"] == one["lang"]:
            for plant in other["plants"][:6]:
                questions += [
                    Question(plant["question"], "other's", None),
                    Question(plant["prompt"], "task", None),
                ]
        rows += asked(root, datetime(2026, 11, 24, 12, tzinfo=UTC), questions, source)
    return rows


# -- fitting -----------------------------------------------------------------------------------------------


class Data:
    """Rows as arrays: features by column, whether one of the first three hits is right, the rows' weights."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
        self.rows, self.names = rows, names
        self.table = np.array([[row["features"][name] for name in names] for row in rows])
        self.right = np.array([any(row["right"][:3]) for row in rows], dtype=float)
        self.first = np.array([any(row["right"][:1]) for row in rows], dtype=float)
        self.absent = np.array([row["absent"] for row in rows])
        self.source = np.array([row["source"] for row in rows])
        self.group = np.array([row["source"] + "-task" * (row["kind"] == "task") for row in rows])
        self.kind = np.array([row["kind"] for row in rows])

    def weights(self, chosen: np.ndarray) -> np.ndarray:
        """Each source, tasks apart, weighs the same, and has the share of answers that is assumed."""
        found = np.zeros(len(self.rows))
        for group in set(self.group[chosen]):
            for absent, share in ((True, 1 - THERE), (False, THERE)):
                some = chosen & (self.group == group) & (self.absent == absent)
                found[some] = share / max(some.sum(), 1)
        found *= 300 / found.sum()
        return found

    def fit(self, chosen: np.ndarray) -> dict[str, float]:
        """The weights of a logistic model, by Newton's method."""
        own, bias = logistic(self.table[chosen], self.right[chosen], self.weights(chosen)[chosen])
        bias += odds(calibration.ANSWER_THRESHOLD) - odds(LEAST)
        fitted = {"bias": bias, **dict(zip(self.names, own, strict=True))}
        return {name: round(float(value), 3) for name, value in fitted.items()}

    def chances(self, weights: Mapping[str, float]) -> Any:
        found = weights["bias"] + self.table @ np.array([weights[name] for name in self.names])
        chances: Any = 1 / (1 + np.exp(-found))
        return chances

    def figures(self, chances: np.ndarray, some: np.ndarray) -> str:
        """What chances say of some rows: AUC against what is absent and what is wrong, and what passes."""
        there, gone = some & (self.right > 0), some & self.absent
        cells = [f"n {some.sum():4}", f"auc {auc(chances[some], ~self.absent[some]):.3f}"]
        cells.append(f"right {auc(chances[some], self.right[some] > 0):.3f}")
        kept = (chances[there] >= calibration.ANSWER_THRESHOLD).sum()
        cells.append(f"kept {kept / max((some & ~self.absent).sum(), 1):.3f}")
        cells.append(f"of {self.right[some & ~self.absent].mean():.3f}")
        cells.append(
            f"refused {(chances[gone] < calibration.ANSWER_THRESHOLD).mean() if gone.any() else np.nan:.3f}"
        )
        for low, high in ((0, 0.35), (0.35, 0.5), (0.5, 1.01)):
            band = some & (chances >= low) & (chances < high)
            share = f"{self.first[band].mean():.2f}/{self.right[band].mean():.2f}" if band.any() else "-"
            cells.append(f"{low:g}: {share} of {band.sum()}")
        return "  ".join(cells)


def logistic(table: np.ndarray, right: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """The weight of each column and the bias of a logistic model, by Newton's method."""
    mean, spread = table.mean(axis=0), table.std(axis=0) + 1e-6
    rows = np.c_[(table - mean) / spread, np.ones(len(table))]
    penalty, found = np.diag([DOUBT] * table.shape[1] + [1e-6]), np.zeros(rows.shape[1])
    for _ in range(30):
        sure = 1 / (1 + np.exp(-rows @ found))
        slope = rows.T @ (weights * (right - sure)) - penalty @ found
        found += np.linalg.solve((rows.T * (weights * sure * (1 - sure))) @ rows + penalty, slope)
    own = found[:-1] / spread
    return own, float(found[-1] - own @ mean)


def odds(chance: float) -> float:
    return float(np.log(chance / (1 - chance)))


def auc(chances: np.ndarray, right: np.ndarray) -> float:
    """The chance that a right one has the higher chance."""
    good, bad = chances[right][:, None], chances[~right][None]
    return float(((good > bad) + (good == bad) / 2).mean()) if good.size and bad.size else float("nan")


def report(data: Data) -> dict[str, float]:
    """Print the figures; the weights fitted to all."""
    everything = np.ones(len(data.rows), dtype=bool)
    weights = data.fit(everything)
    chances = {"other sources": np.zeros(len(data.rows)), "all sources": data.chances(weights)}
    for source in sorted(set(data.source)):
        mine = data.source == source
        if not mine.all():
            chances["other sources"][mine] = data.chances(data.fit(~mine))[mine]
    for name, found in chances.items():
        print(f"fitted to {name}")
        for group in sorted(set(data.group)):
            print(f"  {group:14} {data.figures(found, data.group == group)}")
        for source in sorted(one for one in set(data.source) if one.startswith("person")):
            plain = (data.source == source) & np.isin(data.kind, ["ordinary", "absent"])
            print(f"  {source + ', plain':14} {data.figures(found, plain)}")
            asks = (data.source == source) & (data.kind != "other's")
            print(f"  {source + ', asks':14} {data.figures(found, asks)}")
    return weights


def collected(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of all sources that are given."""
    with tempfile.TemporaryDirectory(prefix="answers-") as scratch:
        work = Path(scratch)
        rows = made_up(work)
        rows += talks(work, options.talk)
        for number, (file, banks) in enumerate(zip(options.stories, options.banks, strict=True), 1):
            rows += stories(work, file, banks, f"stories{number}")
        others = [row["q"] for row in rows if row["kind"] == "own" and row["late"]][::4]
        for number, folder in enumerate(options.person, 1):
            rows += person(work, folder, f"person{number}", others)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("--talk", "--person", "--stories", "--banks"):
        parser.add_argument(name, type=Path, action="append", default=[])
    for name in ("--cache", "--write"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args()
    if options.cache and options.cache.exists():
        rows = json.loads(options.cache.read_text("utf-8"))
    else:
        rows = collected(options)
        if options.cache:
            options.cache.write_text(json.dumps(rows), "utf-8")
    made: dict[str, Any] = {}
    for name, names in (("late", EVERYTHING), ("words", WORDS)):
        print(f"== {name}")
        chosen = [
            row
            for row in rows
            if row["late"] == (name == "late") and (name == "words" or "every" in row["features"])
        ]
        made[name] = report(Data(chosen, names))
    print(json.dumps(made, indent=1))
    if options.write:
        options.write.write_text(json.dumps(made, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
