"""How the trail grows: `.git` against the text of a ten-year bank after ten thousand revisions.

The bank has 3,650 daily logs with about a kilobyte of a person's notes each, and facts as a flush writes
them (a sentence, a date, entities, a quote), one a revision. The words are drawn at random, which
compresses worse than anything people write. The fewer revisions are asked for, the fewer days there are.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from figures import Figure, main

from ua_memory.git.repository import MACHINE, SOMEBODY, Commit
from ua_memory.store.store import Store
from ua_memory.upkeep.init import init

SYLLABLES = tuple("ka lo mi ter ran su vel da no pri sto en ur bi ga fo lin che mar ot".split())  # noqa: SIM905


def measure(args: Sequence[str]) -> Iterator[Figure]:
    """[REVISIONS]: 1,000 unless told; the promise is about 10,000."""
    count = int(args[0]) if args else 1000
    rng = random.Random(7)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(6000)]
    with tempfile.TemporaryDirectory() as folder:
        founded = init(Path(folder), timezone="UTC")
        store = Store(founded.bank, founded.config, founded.config.clock())
        first, days = datetime(2016, 1, 1, 9, tzinfo=UTC), max(1, count * 3650 // 10_000)
        logs = {_path(first, n): _notes(rng, words, first + timedelta(days=n)) for n in range(days)}
        store.history.commit([Commit(SOMEBODY, first, "edit: ten years\n", dict(logs))])
        peak = 0.0
        for n in range(count):
            path = _path(first, n * days // count)
            logs[path] += _fact(rng, words, first + timedelta(days=n * days // count))
            trailers = "Memory-Op: insert\nDoor: hook\nSession: 8f2c\n"
            trailers += f"Facts: ^{n:010d}\nRequest: {n:020d}-1349189d\n"
            message = f"insert: 1 fact into {path}\n\n{trailers}"
            store.history.commit([Commit(MACHINE, first, message, {path: logs[path]})])
            store.tidy()
            if n % 250 == 249:
                peak = max(peak, _size(founded.bank.git_dir) / sum(map(len, logs.values())))
        text, trail = sum(map(len, logs.values())), _size(founded.bank.git_dir)
        yield Figure(
            f".git / text after {count:,} revisions",
            trail / text,
            3,
            f"{trail / 1e6:.1f} MB for {text / 1e6:.1f} MB of text; at most {peak:.2f} on the way",
        )


def _path(first: datetime, day: int) -> str:
    return f"memory/{(first + timedelta(days=day)).date().isoformat()}.md"


def _sentence(rng: random.Random, words: list[str], length: int) -> str:
    return " ".join(rng.choices(words, k=length)).capitalize() + "."


def _notes(rng: random.Random, words: list[str], day: datetime) -> bytes:
    lines = "".join(f"- {_sentence(rng, words, 14)}\n" for _ in range(11))
    return f"# {day.date().isoformat()}\n\n{lines}\n## 14:32 · claude-code · session 8f2c\n\n".encode()


def _fact(rng: random.Random, words: list[str], day: datetime) -> bytes:
    name = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz234567", k=10))
    said = f"- {_sentence(rng, words, 12)} #infra ^{name}\n  - when: {day.date().isoformat()}\n"
    named = f"  - entities: [[{rng.choice(words)}]], [[{rng.choice(words)}]]\n"
    return f'{said}{named}  - quote: "{_sentence(rng, words, 9)}" (turn 41)\n'.encode()


def _size(folder: Path) -> int:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())


if __name__ == "__main__":
    main(measure)
