"""Where each client keeps its settings on this machine, and what of ours goes there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.cli import context
from ua_memory.cli.installing import command_of
from ua_memory.errors import Usage

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.clients.settings import Target

DATA = Path(__file__).parent.parent / "data" / "plugins"


def claude_code(call: Call, *, project: bool = False, plugin: str | None = None, own: bool = False) -> Target:
    """Claude Code: the person's settings, the folder's, or a plugin; with `own` its own memory, too."""
    from ua_memory.clients import claude_settings

    if (plugin is not None) + project + own > 1:
        raise Usage("one of --project, --plugin and --auto-memory at a time")
    if plugin is not None:
        from ua_memory import __version__

        folder = str(context.absolute(call, plugin))
        return claude_settings.plugin(
            folder, command_of(call, shared=True), __version__, _texts("claude-code")
        )
    if project:
        return claude_settings.project(str(call.cwd), command_of(call, shared=True))
    home = _folder(call, "CLAUDE_CONFIG_DIR", ".claude")
    state = (home if call.env.get("CLAUDE_CONFIG_DIR") else call.home) / ".claude.json"
    found = claude_settings.target(str(home), str(state), command_of(call))
    if not own:
        return found
    folder = str(context.bank_root(call) / "memory" / "claude-code")
    return found._replace(pieces=(*found.pieces, claude_settings.auto_memory(str(home), folder)))


def codex(call: Call) -> Target:
    """Codex: the person's settings."""
    from ua_memory.clients import codex_settings

    return codex_settings.target(str(_folder(call, "CODEX_HOME", ".codex")), command_of(call))


def pi(call: Call) -> Target:
    """pi: the person's settings."""
    from ua_memory.clients import pi_settings

    home = _folder(call, "PI_CODING_AGENT_DIR", ".pi/agent")
    return pi_settings.target(str(home), command_of(call), _texts("pi")["ua-memory.ts"])


def openclaw(call: Call) -> Target:
    """OpenClaw: the person's settings and a plugin."""
    from ua_memory.clients import openclaw_settings

    state = _folder(call, "OPENCLAW_STATE_DIR", ".openclaw")
    file = context.absolute(call, call.env.get("OPENCLAW_CONFIG_PATH") or f"{state}/openclaw.json")
    return openclaw_settings.target(str(file), str(state), command_of(call), _texts("openclaw"))


def hermes(call: Call) -> Target:
    """Hermes: a memory provider."""
    from ua_memory.clients import hermes_settings

    home = str(_folder(call, "HERMES_HOME", ".hermes"))
    return hermes_settings.target(home, command_of(call), _texts("hermes"))


def _texts(client: str) -> dict[str, str]:
    """The files that come with us for a client: text by name. `.in` hides Python from our own tools."""
    folder = DATA / client
    files = (each for each in sorted(folder.rglob("*")) if each.is_file())
    names = {each.relative_to(folder).as_posix().removesuffix(".in"): each for each in files}
    return {name: file.read_text("utf-8") for name, file in names.items()}


def _folder(call: Call, variable: str, usual: str) -> Path:
    """The folder that a variable of the client's names, else the usual one in the caller's home."""
    return context.absolute(call, call.env.get(variable) or f"~/{usual}")
