"""Other people's settings: ours goes in beside what is there, and comes out again to the byte."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ua_memory.clients import claude_code as claude_settings
from ua_memory.clients import codex as codex_settings
from ua_memory.clients import pi as pi_settings
from ua_memory.clients.edit import EditError
from ua_memory.clients.edit import JsonDocument as Document
from ua_memory.clients.settings import AGENTS_LINE, agents_line_piece, mcp_server
from ua_memory.clients.settings import SettingsPiece as Piece

GOLDEN = Path(__file__).parent / "golden" / "settings"
COMMAND = ["/home/noor/.local/bin/ua-memory"]
CLAUDE = claude_settings.claude_target("/h/.claude", "/h/.claude.json", COMMAND)
CODEX = codex_settings.codex_target("/h/.codex", COMMAND)
LOOSE = mcp_server(
    "/h/openclaw.json", ("mcp", "servers"), {"command": COMMAND[0], "args": ["mcp"]}, loose=True
)
PIECES = {
    "claude-hooks": CLAUDE.pieces[0],
    "claude-mcp": CLAUDE.pieces[1],
    "codex-hooks": CODEX.pieces[0],
    "codex-mcp": CODEX.pieces[1],
    "loose-mcp": LOOSE,
    "agents": agents_line_piece("/h/AGENTS.md", "claude-code"),
}
FILES = sorted(file for file in GOLDEN.rglob("*.before*"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_golden_settings(file: Path, golden: Callable[[Path, bytes], None]) -> None:
    """`NAME.before.EXT` in the folder of a piece becomes `NAME.after.EXT`."""
    piece = PIECES[file.parent.name]
    before = file.read_bytes().decode("utf-8")
    after = piece.add(before)
    assert after is not None and after != before
    golden(file.with_name(file.name.replace(".before", ".after")), after.encode("utf-8"))
    assert piece.add(after) == after, "a second time changes nothing"
    if not file.name.startswith("older"):
        assert piece.remove(after) == before, "taken out it is what it was, to the byte"
    assert piece.remove(before) == (before if "older" not in file.name else piece.remove(after))


@pytest.mark.parametrize("name", PIECES)
@pytest.mark.parametrize("before", [None, "", "\n", "\r\n\r\n", "\ufeff"], ids=repr)
def test_what_was_not_there_is_gone_again(name: str, before: str | None) -> None:
    piece = PIECES[name]
    after = piece.add(before)
    assert after and piece.add(after) == after
    assert piece.remove(after) == before
    assert piece.remove(before) == before


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("claude-hooks", '{\n  "a": 1,\n}', 2 if sys.version_info >= (3, 13) else 3),
        ("claude-hooks", '{\n  // mine\n  "a": 1\n}', 2),
        ("claude-hooks", "[]", 1),
        ("claude-hooks", '{\n  "hooks": 3\n}', 2),
        ("claude-hooks", '{\n  "hooks": {\n    "Stop": {}\n  }\n}', 3),
        ("claude-mcp", '{\n\n  "mcpServers": []}', 3),
        ("claude-mcp", "{" * 500, 1),
        ("loose-mcp", "{\n a: 1 b: 2}", 2),
        ("loose-mcp", '{\n "mcp": "x"}', 2),
        ("loose-mcp", "{ /* open", 1),
        ("codex-mcp", "a = 1\nb = = 2\n", 2),
        ("codex-mcp", "\nmcp_servers = {}\n", 2),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(name: str, text: str, line: int) -> None:
    with pytest.raises(EditError) as refused:
        PIECES[name].add(text)
    assert refused.value.line == line


def test_what_its_owner_added_to_ours_stays() -> None:
    hooks, server = CLAUDE.pieces
    text = hooks.add(None)
    assert text is not None
    mine = json.loads(text)
    mine["hooks"]["Stop"][0]["hooks"][0] |= {"timeout": 33, "statusMessage": "remembering"}
    mine["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "say done"})
    changed = json.dumps(mine)
    assert hooks.add(changed) == changed
    left = hooks.remove(changed)
    assert left and json.loads(left) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}
    }
    theirs = '{"mcpServers": {"ua-memory": {"type": "http", "url": "http://127.0.0.1:8"}}}'
    assert server.add(theirs) == server.remove(theirs) == theirs
    old = '{"mcpServers": {"ua-memory": {"command": "/old/ua-memory", "args": ["mcp"], "env": {"A": "b"}}}}'
    new = json.loads(server.add(old) or "")["mcpServers"]["ua-memory"]
    assert new["command"] == COMMAND[0] and new["env"] == {"A": "b"}


def test_a_table_that_its_owner_changed_is_found_and_taken_out_whole() -> None:
    piece = CODEX.pieces[1]
    text = (
        'model = "x"\n\n[mcp_servers."ua-memory"]\n# by hand\ncommand = "ua-memory"\nargs = ["mcp"]\n'
        'required = true\n\n# of the other\n[mcp_servers.other]\ncommand = "o"\n\n'
        '[mcp_servers.ua-memory.env]\nUA_MEMORY_BANK = "/b"\n'
    )
    new = piece.add(text)
    assert new and tomllib.loads(new)["mcp_servers"]["ua-memory"]["command"] == COMMAND[0]
    assert "# by hand" in new and "required = true" in new
    assert piece.remove(new) == 'model = "x"\n\n# of the other\n[mcp_servers.other]\ncommand = "o"\n'
    theirs = '[mcp_servers.ua-memory]\nurl = "http://127.0.0.1:8"\n'
    assert piece.add(theirs) == piece.remove(theirs) == theirs


def test_the_line_is_written_once_and_brought_up_to_date() -> None:
    piece = PIECES["agents"]
    once = piece.add("# Rules\n")
    assert once == f"# Rules\n\n{AGENTS_LINE} <!-- ua-memory -->\n" and piece.add(once) == once
    assert (
        piece.add("- an older wording <!-- ua-memory -->\r\n- b\r\n")
        == f"{AGENTS_LINE} <!-- ua-memory -->\r\n- b\r\n"
    )
    assert piece.remove(once + "- more\n") == "# Rules\n- more\n"


def test_the_shim_of_pi_is_known_by_its_first_line() -> None:
    extension = pi_settings.pi_target("/h", ["/bin/ua-memory", "--bank", 'a "b"']).pieces[0]
    put = extension.add(None)
    assert put and '["/bin/ua-memory", "--bank", "a \\"b\\""]' in put
    assert extension.add("// ua-memory for pi. 0.0.1") == put and extension.remove(put) is None
    with pytest.raises(EditError, match="not our file"):
        extension.remove("export default 1")


# -- any settings at all -----------------------------------------------------------------------------------

names = st.sampled_from(
    ["hooks", "mcpServers", "Stop", "SessionStart", "matcher", "é", "ua-memory", 'a"b', ""]
)
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
trees = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)
hook = st.fixed_dictionaries(
    {"type": st.just("command"), "command": st.sampled_from(["say", "ua-memory-x hook", "x"])}
)
group = st.fixed_dictionaries(
    {"hooks": st.lists(hook, max_size=2)}, optional={"matcher": st.text(max_size=3)}
)
events = st.dictionaries(
    st.sampled_from(["Stop", "SessionEnd", "PreToolUse"]), st.lists(group, max_size=2), max_size=3
)
servers = st.dictionaries(
    st.sampled_from(["other", "git"]), st.fixed_dictionaries({"command": st.text(max_size=4)})
)
settings = st.builds(
    lambda rest, more: rest | more,
    st.dictionaries(names.filter(lambda name: name not in ("hooks", "mcpServers")), trees, max_size=3),
    st.fixed_dictionaries({}, optional={"hooks": events, "mcpServers": servers}),
)


@st.composite
def written(draw: st.DrawFn) -> str:
    """Settings as some editor, some client or some person has written them."""
    indent = draw(st.sampled_from([None, 0, 1, 2, 4, "\t"]))
    separators = draw(st.sampled_from([None, (",", ":"), (", ", " : "), (" , ", ": ")]))
    text = json.dumps(draw(settings), indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    front, end = (
        draw(st.sampled_from(["", "\ufeff", "\n", "  "])),
        draw(st.sampled_from(["", "\n", "\r\n", " \n\n"])),
    )
    return front + text.encode("utf-8", "replace").decode() + end


@given(written(), st.sampled_from(["claude-hooks", "claude-mcp", "codex-hooks", "loose-mcp"]))
def test_put_and_cut_are_each_others_undoing(text: str, name: str) -> None:
    piece = PIECES[name]
    try:
        after = piece.add(text)
    except EditError:
        assert name == "loose-mcp" and "mcp" in text
        return
    assert after is not None and piece.add(after) == after
    assert piece.remove(after) == text
    assert piece.remove(text) == text
    before, now = (json.loads(each.lstrip("\ufeff")) for each in (text, after))
    _only_added(before, now)


def _only_added(before: Any, now: Any) -> None:
    if isinstance(before, dict):
        assert list(before) == [key for key in now if key in before], "the order stays"
        for key in before:
            _only_added(before[key], now[key])
    elif isinstance(before, list):
        assert now[: len(before)] == before
    else:
        assert now == before


lines = st.lists(
    st.sampled_from(
        ["# a", "", "[mcp_servers.other]", 'k = "v"', "[a]", "n = 1", "\t", "[a.b]", "s = '''", "'''"]
    ),
    max_size=8,
)


@given(lines, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_a_table_comes_and_goes(rows: list[str], newline: str, ended: bool) -> None:
    text = newline.join(rows) + (newline if ended else "")
    piece = PIECES["codex-mcp"]
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        with pytest.raises(EditError):
            piece.add(text)
        return
    after = piece.add(text)
    assert after and piece.add(after) == after and piece.remove(after) == text


@given(st.text(alphabet="ab \r\n#", max_size=20))
def test_a_line_comes_and_goes(text: str) -> None:
    piece = PIECES["agents"]
    after = piece.add(text)
    assert after and piece.add(after) == after and piece.remove(after) == text


def test_loose_json_is_read_as_its_client_reads_it() -> None:
    text = "{a: 'it\\'s', // one\n $b: [1, 0x1F, +1,], /* two */ \"c\": {},}"
    assert Document(text, loose=True).value == {"a": "it's", "$b": [1, "0x1F", "+1"], "c": {}}


def test_pieces_name_their_files() -> None:
    assert [Piece(*piece).file for piece in CLAUDE.pieces] == ["/h/.claude/settings.json", "/h/.claude.json"]
