"""How many of a model's statements are kept as they are: `python benchmarks/statements.py [--list]`.

`data/statements.jsonl` has what a large model, which did not know the checks, wrote of the first sessions of
twelve stories (`data/stories`), and false statements of eleven kinds by another one. A scripted model gives
them to the flush's sub-agent. `--list` prints the true ones that are not kept, and the false ones that are.

`data/pairs.jsonl` has free paraphrases of short exchanges, and false statements on them. They are checked
against the whole exchange.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from scripted_model import DONE, Scripted, keep

from ua_memory.clients.turns import Turn
from ua_memory.retain.subagent import MemoryView, run_subagent
from ua_memory.text.grounding import disagreement, ungrounded_claims

DATA = Path(__file__).parent / "data"


def conversations() -> dict[str, list[Turn]]:
    """{story: the turns of its first session}, 50 seconds apart."""
    found = {}
    for file in sorted((DATA / "stories").glob("*.json")):
        for story in json.loads(file.read_text("utf-8")):
            session = story["sessions"][0]
            at = datetime.fromisoformat(session["when"].replace("Z", "+00:00"))
            found[story["name"]] = [
                Turn(f"t{n}", "person" if one["role"] == "user" else "assistant", one["text"],
                     at + timedelta(seconds=50 * n))
                for n, one in enumerate(session["turns"])
            ]  # fmt: skip
    return found


def answers() -> Iterator[tuple[dict[str, Any], str]]:
    """Each statement with what the sub-agent's tool answered: `kept`, or why not."""
    talks = conversations()
    rows = [json.loads(line) for line in (DATA / "statements.jsonl").read_text("utf-8").splitlines()]
    for (story, _), group in groupby(rows, key=lambda row: (row["story"], "error" in row)):
        given = list(group)
        calls = [
            keep(
                row["statement"],
                row["quote"],
                row["turn"],
                **({"when": row["when"]} if "when" in row else {}),
            )
            for row in given
        ]
        model = Scripted(calls, DONE)
        run_subagent(model, talks[story], MemoryView(lambda _: (), lambda: ()), UTC)
        yield from zip(given, model.told, strict=True)


def checked_pairs() -> Iterator[tuple[str, str, str, str]]:
    """(kind, statement, what was said, `kept` or why not) of each pair."""
    for line in (DATA / "pairs.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        quotes = [turn.partition(": ")[2] for turn in row["said"]]
        for kind, text in (*(("true", each) for each in row["true"]), *row["false"]):
            missing = ", ".join(ungrounded_claims(text, row["said"]))
            yield kind, text, " / ".join(quotes), missing or disagreement(text, quotes, row["said"]) or "kept"


def main(*options: str) -> None:
    report(
        ((row.get("error", "true"), row["statement"], row["quote"], why) for row, why in answers()), options
    )
    report(checked_pairs(), options)


def report(found: Iterable[tuple[str, str, str, str]], options: Sequence[str]) -> None:
    every, kept = Counter[str](), Counter[str]()
    for kind, text, said, answer in found:
        every[kind] += 1
        kept[kind] += answer == "kept"
        if "--list" in options and (answer == "kept") == (kind != "true"):
            print(f"{kind}: {answer}\n   {text}\n   «{said}»")
    print(f"kept as they are: {kept.pop('true')} of {every.pop('true')} true statements,"
          f" {kept.total()} of {every.total()} false ones")  # fmt: skip
    print(
        ", ".join(
            f"{kind} {kept[kind]} of {count}" for kind, count in sorted(every.items(), key=itemgetter(0))
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
