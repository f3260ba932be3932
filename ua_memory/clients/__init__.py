"""The clients: agents' programs whose hooks and transcripts we read. A new one is a name here and its file.

Loaded for every prompt: the file of a client, named like it, is loaded when it is used.
"""

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from ua_memory.clients.settings import Client

NAMES = ("claude-code", "cursor", "codex", "pi", "opencode", "openclaw", "gemini", "hermes")
"""In the order of `install --help`."""
VARIABLES = {
    "CLAUDECODE": "claude-code", "CODEX_": "codex", "PI_": "pi", "OPENCLAW_": "openclaw",
    "HERMES_": "hermes", "GEMINI_CLI": "gemini-cli", "OPENCODE": "opencode", "CURSOR_AGENT": "cursor",
}  # fmt: skip
"""How a variable begins that a client sets for the commands it runs, and the name under which they insert."""
CLAUDE_EVENTS = {
    "SessionStart": "start", "UserPromptSubmit": "prompt", "Stop": "stop", "StopFailure": "stop",
    "SubagentStop": "subagent", "PreCompact": "compact", "SessionEnd": "end",
}  # fmt: skip
EVENTS = {
    "codex": {**CLAUDE_EVENTS, "Interrupt": "stop"},
    "gemini": {"SessionStart": "start", "BeforeAgent": "prompt", "AfterAgent": "stop", "SessionEnd": "end"},
}
"""{name of an event that memory handles: its kind (`hooks.events.Event`)} of clients whose names for them
differ from Claude Code's."""


def load() -> "dict[str, Client]":
    """Every client, by its name."""
    from importlib import import_module

    return {name: import_module(f"ua_memory.clients.{name.replace('-', '_')}").CLIENT for name in NAMES}
