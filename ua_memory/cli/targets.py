"""Where each client keeps its settings on this machine, and what of ours goes there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory import regular
from ua_memory.cli import context, homes
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
    home = homes.folder(call, "claude-code")
    if plugin is not None:
        from ua_memory import __version__

        folder = str(context.absolute(call, plugin))
        found = claude_settings.plugin(
            folder, command_of(call, shared=True), __version__, _texts("claude-code")
        )
        return found._replace(twice=_twice(call, home, "plugin"))
    if project:
        found = claude_settings.project(str(call.cwd), command_of(call, shared=True))
        return found._replace(twice=_twice(call, home, found.pieces[0].file))
    state = (home if call.env.get("CLAUDE_CONFIG_DIR") else call.home) / ".claude.json"
    found = claude_settings.target(str(home), str(state), command_of(call))
    found = found._replace(twice=_twice(call, home, found.pieces[0].file))
    if not own:
        return found
    folder = str(context.bank_root(call) / "memory" / "claude-code")
    return found._replace(pieces=(*found.pieces, claude_settings.auto_memory(str(home), folder)))


def _twice(call: Call, home: Path, but: str) -> tuple[tuple[str, str], ...]:
    """What else has Claude Code call our hooks in this folder, and where that stands: all but the hooks in
    the file `but`, or all but the plugin."""
    from ua_memory.clients.claude_settings import set_up
    from ua_memory.clients.json_edit import Broken

    here = call.cwd / ".claude"
    files = dict.fromkeys((home / "settings.json", here / "settings.json", here / "settings.local.json"))
    found = []
    for file in files:
        try:
            ways = set_up(regular.read(file).decode("utf-8-sig"))
        except (OSError, ValueError, Broken):  # none there, or what has it made right says where it is wrong
            continue
        mine = {"hooks": str(file)}  # else a plugin of ours
        found += [(way, str(file)) for way in ways if mine.get(way, "plugin") != but]
    return tuple(found)


def codex(call: Call) -> Target:
    """Codex: the person's settings."""
    from ua_memory.clients import codex_settings

    return codex_settings.target(str(homes.folder(call, "codex")), command_of(call))


def pi(call: Call) -> Target:
    """pi: the person's settings."""
    from ua_memory.clients import pi_settings

    home = homes.folder(call, "pi")
    return pi_settings.target(str(home), command_of(call), _texts("pi")["ua-memory.ts"])


def openclaw(call: Call) -> Target:
    """OpenClaw: the person's settings and a plugin."""
    from ua_memory.clients import openclaw_settings

    state = homes.folder(call, "openclaw")
    file = context.absolute(call, call.env.get("OPENCLAW_CONFIG_PATH") or f"{state}/openclaw.json")
    return openclaw_settings.target(str(file), str(state), command_of(call), _texts("openclaw"))


def hermes(call: Call) -> Target:
    """Hermes: a memory provider."""
    from ua_memory.clients import hermes_settings

    home = str(homes.folder(call, "hermes"))
    return hermes_settings.target(home, command_of(call), _texts("hermes"))


def gemini(call: Call) -> Target:
    """Gemini CLI: the person's settings."""
    from ua_memory.clients import gemini_settings

    return gemini_settings.target(str(call.home / ".gemini"), command_of(call))


def _texts(client: str) -> dict[str, str]:
    """The files that come with us for a client: text by name. `.in` hides Python from our own tools."""
    folder = DATA / client
    files = (each for each in sorted(folder.rglob("*")) if each.is_file())
    names = {each.relative_to(folder).as_posix().removesuffix(".in"): each for each in files}
    return {name: file.read_text("utf-8") for name, file in names.items()}
