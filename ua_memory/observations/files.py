"""Which file of `memory/observations/` a belief goes to: what a person would look for it under.

Obsidian opens `[[Alice]]` with the file of that name, so the beliefs on Alice stand in `Alice.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ua_memory import markdown
from ua_memory.names import ORDINARY, names
from ua_memory.paths import DATED

FOLDER = "memory/observations"
REST = "General"
_UNFIT = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|#^\[\]]+')
_LONGEST = 80
_SUBJECT = re.compile(r"([A-Z][\w.-]*\w)(?:'s)? (?:is|was|has|had|did|will|[a-z]+s)\b")
"""What a sentence is about that begins with it: `Alice chooses`, not `Create Gumroad`."""


def file_for(
    text: str, entities: Iterable[str], scope: str, there: Iterable[str], told: Sequence[str] = ()
) -> str:
    """The path for a new belief, named after its main entity: the first that its text names, else the first
    there is. Else after what its text begins with as its subject, else the name in it that most of its facts
    have (their texts are `told`), else its scope, else General.

    `there` are the files that exist: one that differs in letter case alone is the one.
    """
    plain = text.casefold()
    given = list(entities)
    main = [name for name in given if name.casefold() in plain] or given
    flat = [each.casefold() for each in told]

    def rank(name: str) -> tuple[int, bool]:  # what opens a sentence may be a verb: "Ask Alice"
        return -sum(name.casefold() in each for each in flat), text.startswith(name)

    drawn = sorted(names(text), key=rank)
    subject = _SUBJECT.match(text)
    opens = [subject[1]] if subject and subject[1].casefold() not in ORDINARY else []
    chosen = next(filter(None, map(_fit, (*main[:1], *opens, *drawn[:1], scope))), REST)
    known = {path.casefold(): path for path in there}
    path = f"{FOLDER}/{chosen}.md"
    return known.get(path.casefold(), path)


def title(path: str) -> list[str]:
    """The lines a new file begins with."""
    return [f"# {path.rpartition('/')[2].removesuffix('.md')}", ""]


def _fit(name: str) -> str:
    """A name as every file system takes it, and no log's: a day in front would make it one."""
    plain = " ".join(_UNFIT.sub(" ", markdown.readable(name)).split()).strip(". ")[:_LONGEST].strip(". ")
    return f"On {plain}" if DATED.match(plain) else plain
