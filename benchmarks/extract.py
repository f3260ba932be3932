"""The flush without a model, on the shared transcripts: `UA_SHARED=../shared python benchmarks/extract.py`.

precision, recall    of the 200 sentences labelled by hand, for each half, and weighted to the whole frame
                     (tests/data/labels.tsv says how; benchmarks/worth.py has the sentences not trained on)
kept, labelled       precision over everything that is kept, each of those sentences having been labelled
facts                per 10,000 words of people and assistants
speed, memory        of the largest transcript, from its bytes to the candidates, in a process of its own
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from figures import Figure, main

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import labelled

from ua_memory.retain.extract import extract

PRECISION, RECALL, PER_SECOND, MEMORY = 0.8, 0.5, 1e6, 300e6
PER_10_000_WORDS = 15
"""Facts that so many words of agents at work may leave."""


def measure(args: Sequence[str]) -> list[Figure]:
    paths = labelled.transcripts()
    if not paths:
        print("     extraction: the shared transcripts are not here (UA_SHARED)")
        return []
    return [*quality(paths), density(paths), *speed(max(paths, key=lambda path: path.stat().st_size))]


def quality(paths: Sequence[Path]) -> Iterator[Figure]:
    """A bar that must be reached is shown as bar ÷ measured, so that less is better as everywhere."""
    drawn = [label for label in labelled.labels() if label.stratum != "K"]
    fate = {key: is_kept for path in paths for key, is_kept in labelled.kept(path)}
    for half in ("tune", "test", "both"):
        some = [label for label in drawn if half in (label.half, "both")]
        told, all_told = labelled.measure(some, fate), labelled.measure(some, fate, labelled.WEIGHTS)
        detail = f"{told.hits:.0f} kept of {told.hits + told.missed:.0f} good, {told.wrong:.0f} wrong"
        for what, bar in (("precision", PRECISION), ("recall", RECALL)):
            value, whole = getattr(told, what), getattr(all_told, what)
            said = f"{value:.2f} ({whole:.2f} weighted to the frame); {detail}"
            yield Figure(f"{what}, {half}", bar / (value or 1e-9), 1.0, said)
    yield _census(fate)


def _census(fate: dict[tuple[str, str, str], bool]) -> Figure:
    known = {label.key: label.good for label in labelled.labels()}
    kept = [key for key, is_kept in fate.items() if is_kept]
    good = sum(known.get(key, False) for key in kept)
    said = (
        f"{good} of {len(kept)} kept sentences; {sum(key not in known for key in kept)} of them not labelled"
    )
    return Figure("precision, all that is kept", PRECISION / (good / (len(kept) or 1) or 1e-9), 1.0, said)


def density(paths: Sequence[Path]) -> Figure:
    facts = total = 0
    each = []
    for path in paths:
        said = labelled.turns(path)
        count, words = len(extract(said)), labelled.words(said)
        facts, total = facts + count, total + words
        each.append(f"{count}/{words}")
    return Figure(
        "facts in 10,000 words", facts * 1e4 / total, PER_10_000_WORDS, "facts/words: " + " ".join(each)
    )


def speed(path: Path) -> Iterator[Figure]:
    """In a process of its own, so that nothing but the flush's reading and extraction is counted."""
    folder = str(Path(__file__).parent)
    script = f"import sys; sys.path.insert(0, {folder!r}); import extract; extract.one({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    seconds, peak = (float(number) for number in done.stdout.split())
    size = path.stat().st_size
    yield Figure(
        "MB a second",
        PER_SECOND * seconds / size,
        1.0,
        f"{size / seconds / 1e6:.1f} MB/s, {size / 1e6:.1f} MB",
    )
    yield Figure("memory", peak / MEMORY, 1.0, f"{peak / 1e6:.0f} MB at most, of {MEMORY / 1e6:.0f}")


def one(path: str) -> None:
    """Seconds and peak bytes of one transcript."""
    from ua_memory.clients.transcripts import read

    start = time.perf_counter()
    with Path(path).open("rb") as stream:
        extract(read(stream))
    unit = 1 if sys.platform == "darwin" else 1024
    print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


if __name__ == "__main__":
    main(measure)
