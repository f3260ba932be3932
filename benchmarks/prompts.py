"""When a prompt is given something unasked: fit and check `prompt` in `ua_memory/data/answers.json`.

    prompts.py --stories FILE --banks DIR [--banks DIR]… [--write FILE]

A story has tasks that need something said in its sessions, and tasks on what was never said. Each is asked of
the story's bank in each DIR (one of sessions alone, one of which has 150 other statements besides), as a hook
does it; so are the tasks of three other stories in its language. What `recall.search.prompt_features` says
is fitted to whether a task needs something. How much a bigger bank must match better (SIZE) is not learned
from two sizes but set, so that both are about equally quiet.

Printed, for weights fitted without the story asked and for all: of each DIR the share of those that are given
nothing (`quiet`), of tasks that are given what they need (`hook`), and the tokens of what is given.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from answers import logistic

from ua_memory.hooks.capture import EXTRA_HITS
from ua_memory.hooks.context import without_project_name
from ua_memory.memory import Memory
from ua_memory.recall import search

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
FEATURES = ("match", "foreign", "shared")
SIZE = -0.22
QUIET = 0.88
"""The share of tasks on what was never said that are given nothing: the bias is moved so."""
OTHERS = 0.25
"""The weight of a task of another story: some of them are met by chance."""


@dataclass(frozen=True)
class Task:
    """A task asked of a bank: its features, whether it needs something said there, and what it is given."""

    story: str
    banks: Path
    kind: str
    features: dict[str, float]
    met: bool
    tokens: float


def tasks(stories: Sequence[Any], banks: Path) -> list[Task]:
    rows = []
    for story in stories:
        root = banks / story["name"] / "bank"
        others = [one for one in stories if one["lang"] == story["lang"] and one is not story][:3]
        asked = [(one["prompt"], "needs", one["must"]) for one in story["plants"] if not one["superseded_by"]]
        asked += [(one["prompt"], "absent", []) for one in story["absent"]]
        asked += [(one["prompt"], "other", []) for other in others for one in other["plants"][:8]]
        memory = Memory.open(root, now=lambda: NOW)
        memory.refresh()
        limit = memory.config.search_limit + EXTRA_HITS
        for text, kind, must in asked:
            query = without_project_name(text, story["project"])
            answer = memory.search_many([query], limit=limit)[0]
            if answer.hits:
                features = dict(search.prompt_features(answer.hits, query, answer.items))
                given = search.prompt_hits(answer.hits, query, memory.config)
                met = any(carries(root, hit, must) for hit in given) if must else False
                tokens = sum(len(hit.snippet) for hit in given) / 4
                rows.append(Task(story["name"], banks, kind, features, met, tokens))
        memory.close()
    return rows


def carries(root: Path, hit: search.Hit, must: Sequence[str]) -> bool:
    lines = (root / hit.item.path).read_text("utf-8").splitlines()[hit.item.line - 1 : hit.item.end]
    return all(re.search(each, "\n".join([*lines, hit.snippet]), re.IGNORECASE) for each in must)


def fit(rows: Sequence[Task]) -> dict[str, float]:
    """The weights of a logistic model, with the size and the bias that are set."""
    table = np.array([[row.features[name] for name in FEATURES] for row in rows])
    needs = np.array([row.kind == "needs" for row in rows], dtype=float)
    weights = np.array([OTHERS if row.kind == "other" else 1.0 for row in rows])
    own, _ = logistic(table, needs, weights)
    found = {**dict(zip(FEATURES, own.round(2).tolist(), strict=True)), "size": SIZE, "bias": 0.0}
    absent = sorted(score(row, found) for row in rows if row.kind == "absent")
    return {**found, "bias": -round(absent[int(QUIET * len(absent))], 2)}


def given(row: Task, weights: dict[str, float]) -> bool:
    return score(row, weights) >= 0


def score(row: Task, weights: dict[str, float]) -> float:
    return weights["bias"] + sum(weights[name] * value for name, value in row.features.items())


def report(name: str, rows: Sequence[Task], passed: Sequence[bool]) -> None:
    for banks in dict.fromkeys(row.banks for row in rows):
        mine = [(row, on) for row, on in zip(rows, passed, strict=True) if row.banks == banks]
        quiet = {
            kind: np.mean([not on for row, on in mine if row.kind == kind]) for kind in ("absent", "other")
        }
        needing = [(row, on) for row, on in mine if row.kind == "needs"]
        print(
            f"{name:12} {banks.name:12} quiet {quiet['absent']:.3f}  others' {quiet['other']:.3f}"
            f"  hook {np.mean([on and row.met for row, on in needing]):.3f}"
            f"  tokens {np.mean([on * row.tokens for row, on in needing]):.0f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stories", type=Path, required=True)
    parser.add_argument("--banks", type=Path, action="append", required=True)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    stories = json.loads(options.stories.read_text("utf-8"))
    rows = [row for banks in options.banks for row in tasks(stories, banks)]
    apart = {story["name"]: fit([row for row in rows if row.story != story["name"]]) for story in stories}
    report("other stories", rows, [given(row, apart[row.story]) for row in rows])
    weights = fit(rows)
    report("all stories", rows, [given(row, weights) for row in rows])
    print(json.dumps(weights))
    if options.write:
        made = json.loads(options.write.read_text("utf-8")) | {"prompt": weights}
        options.write.write_text(json.dumps(made) + "\n", "utf-8")


if __name__ == "__main__":
    main()
