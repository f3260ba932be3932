"""A query as an agent makes it, and what of it a person asked: the same for every door.

What reaches memory is often more than was typed: a prompt with reminders, recalled memory and a channel's
envelope in it, a slash command that a client expanded, a pasted log. The words that were typed win over all
that. Read for every prompt: nothing is imported that costs.
"""

from __future__ import annotations

SKIP = "skip"
MACHINES = (
    "(no content)",
    "A new session was started",
    "Another language model started",
    "Caveat: The messages",
    "Pre-compaction memory flush",
    "Read HEARTBEAT.md",
)
"""How a prompt of one line begins that no person typed, and that has none of SIGNS."""
SIGNS = "<[/\n"
"""What something stands between, or after, that was not typed. A prompt without any is asked as it is."""


class Wanted:
    """What is looked for: `text`, '' where nothing is, and `why` it was skipped or condensed; `long` if that
    was for its length."""

    __slots__ = ("long", "text", "why")

    def __init__(self, text: str, why: str = "", long: bool = False) -> None:
        self.text, self.why, self.long = text, why, long

    @property
    def skipped(self) -> bool:
        """Whether nothing is to be looked for, and a reason is said."""
        return not self.text and bool(self.why)


def read_query(raw: str, behavior: str = SKIP, longest: int = 2000) -> Wanted:
    """What a query asks for. One of more than `longest` characters is skipped, or condensed. Never raises."""
    if len(raw) <= longest and not any(sign in raw for sign in SIGNS) and not raw.startswith(MACHINES):
        return Wanted(raw)  # as nearly all are
    from ua_memory import prompts  # 7 ms for its patterns

    text = prompts.was_typed(raw)
    if not text:
        said = "not searched: a client or memory itself wrote all of the query"
        return Wanted("", said if raw.strip() else "")
    found = prompts.command(text)
    if found:
        name, text = found
        if not text:
            return Wanted("", f"not searched: /{name} is a command without words to search for")
    if len(text) <= longest:
        return Wanted(text)
    size = f"a query of {len(text):,} characters, where {longest:,} are the most (recall.longest_query)"
    if behavior == SKIP:
        return Wanted("", f"not searched: {size}; ask less, or set recall.long_query_behavior", long=True)
    text = prompts.condensed(text)
    return Wanted(text, f"{size}, condensed to “{text}”", long=True)
