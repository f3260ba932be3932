"""How many lies pass the doors of the memory, and how many true statements are refused:
`python benchmarks/lies.py FILE.json`.

The file is a list of objects: `kind` (of a lie), `speaker`, `turn` (all that was said), `quote`, `statement`,
`lie` and `lang`. The doors are those of `tests/test_contradictions.py`: retain, flush, reflect and
consolidate, each with a scripted model that says the statement. `--list` prints the statements, too; without
it only totals are printed, so that a set that must stay unseen can be measured.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from test_contradictions import Claim, consolidated, flushed, reflected, retained

from ua_memory.text.grounding import contradiction, disagreement

DOORS: dict[str, Callable[[Claim], bool]] = {
    "retain": retained, "flush": flushed, "reflect": reflected, "consolidate": consolidated,
}  # fmt: skip


def claims(path: Path) -> list[Claim]:
    return [
        Claim(
            one["kind"] if one["lie"] else "true",
            (("person" if one["speaker"] == "user" else one["speaker"], one["turn"]),),
            one["quote"],
            one["statement"],
        )
        for one in json.loads(path.read_text("utf-8"))
    ]


def wrong(found: Sequence[Claim], door: Callable[[Claim], bool]) -> Iterator[Claim]:
    """The lies that pass a door, and the true statements that it refuses."""
    yield from (claim for claim in found if door(claim) == (claim.kind != "true"))


def speed(found: Sequence[Claim]) -> float:
    """Milliseconds a check takes, the first of all aside: the patterns are compiled then."""
    for one in found:
        disagreement(one.text, [one.quote], one.spoken)
    start = time.perf_counter()
    for one in found:
        disagreement(one.text, [one.quote], one.spoken)
        contradiction(one.text, [one.quote], one.spoken)
    return (time.perf_counter() - start) * 1000 / len(found)


def main(path: str, *options: str) -> None:
    found = claims(Path(path))
    every = Counter(claim.kind for claim in found)
    print(f"{sum(every.values()) - every['true']} lies, {every['true']} true statements")
    for name, door in DOORS.items():
        bad = list(wrong(found, door))
        counts = Counter(claim.kind for claim in bad)
        refused = counts.pop("true", 0)
        kinds = ", ".join(f"{kind} {n} of {every[kind]}" for kind, n in sorted(counts.items()))
        print(f"{name}: {sum(counts.values())} lies pass ({kinds or 'none'}); {refused} true are refused")
        if "--list" in options:
            print(
                "\n".join(f"  {one.kind}: {' | '.join(one.spoken)} «{one.quote}» {one.text}" for one in bad)
            )
    print(f"{speed(found):.2f} ms a statement")


if __name__ == "__main__":
    main(*sys.argv[1:])
