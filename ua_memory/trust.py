"""Whose words may speak for the house: what a tool or the web said, and what an agent ingested, may not.

Such facts are found, behind equal ones and with a label. They do not become beliefs, pages or core memory
before a person has vouched for them: by `origin: person` below the line, or an import or ingest by command.
Read by every hook: nothing is imported that costs.
"""

from __future__ import annotations

BY_COMMAND = frozenset({"terminal", "cli", "watch", "hindsight"})
"""Clients under whose names a person's own command imports. No agent may call itself so."""
IMPORTED = "memory/imported/"
"""Where `import` puts copies of files; their headings name whoever wrote there."""
CAME = {"web": "from the web", "tool": "from a tool", "import": "imported by an agent"}


def untrusted(origin: str | None, client: str | None, path: str = "") -> bool:
    """Whether nobody of the house has said or vouched for it. What a person imports or ingests by command
    counts as theirs, and what an agent says in its own words as the agent's."""
    if origin not in CAME:
        return False
    by_agent = client not in (None, "", *BY_COMMAND) and not path.startswith(IMPORTED)
    return origin != "import" or by_agent


def label(origin: str, is_untrusted: bool) -> str:
    """What is said behind a recalled line that nobody of the house has said: let its reader weigh it."""
    return f"; untrusted: {CAME.get(origin, origin)}" if is_untrusted else ""
