"""Secrets that come through a door: gone before anything is written, indexed, logged, queued or sent."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from banks import git
from fake_model import FakeModel
from scripted_model import keep
from secret_plants import Plant, makers, pem
from terminal import Shell, new_shell

from ua_memory.mcp import tools as mcp_server
from ua_memory.mcp.memory_tool import MemoryTool
from ua_memory.memory import Memory

KINDS = ("gh…p_", "sk-…ant-api03-", "AK…IA", "jwt", "slack", "sk_…live_")
"""Makers of the plants that each door is given, besides a password and a private key."""
Door = Callable[[Shell, str, Path], None]


def planted(seed: int) -> tuple[str, list[str]]:
    """A text with a secret of each kind in it, and the secrets."""
    rng, made = Random(seed), makers()
    found = [made[name][1](rng) for name in KINDS]
    said = "; ".join(f"the key number {n} is {secret}" for n, secret in enumerate(found))
    word = f"hunter{seed}22x"
    key = pem(rng)
    return f"We decided on Fly.io today: {said}; password: {word}\n\n{key}", [
        *found,
        word,
        key.split("\n")[3],
    ]


def transcript(text: str, folder: Path) -> Path:
    """A client's own file, which is not ours to clean."""
    rows = [
        {"type": "user", "uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, "sessionId": "5f0c",
         "timestamp": f"2026-11-21T09:0{n}:00Z", "cwd": "/srv", "version": "2.1.0",
         "message": {"role": "user", "content": f"{text} ({n})"}} for n in range(2)
    ]  # fmt: skip
    file = folder / "talk.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def memory(shell: Shell) -> Memory:
    return Memory.open(shell.cwd, now=lambda: shell.time, door="test")


def asked(shell: Shell, *argv: str, stdin: str = "", reply: Any = None) -> None:
    """A command with a model that repeats what it read; no request may hold a secret."""
    with FakeModel(*([reply] if reply else []), {"text": "done"}) as fake:
        shell(*argv, stdin=stdin, ANTHROPIC_BASE_URL=fake.url, ANTHROPIC_API_KEY="sk-ant-test")
    (shell.home / "requests.json").write_text(json.dumps(fake.bodies))


def _hook(shell: Shell, text: str, outside: Path) -> None:
    event = {"session_id": "5f0c", "transcript_path": str(transcript(text, outside)), "cwd": str(shell.cwd)}
    for name in ("UserPromptSubmit", "PreCompact", "Stop", "SessionEnd"):
        more = {"hook_event_name": name, "prompt": text, "trigger": "auto", "reason": "exit"}
        shell("hook", stdin=json.dumps({**event, **more}))


def _mcp(shell: Shell, text: str, outside: Path) -> None:
    (outside / "d.md").write_text(text)
    caller = mcp_server.Caller("codex", text[:80], folders=(outside,))
    given: list[tuple[str, dict[str, Any]]] = [
        ("archival_memory_insert", {"content": text, "tags": [text.split()[-1]]}),
        ("archival_memory_search", {"query": text}), ("recall", {"query": text}),
        ("core_memory_replace", {"section": "Keys", "value": text.split("\n\n")[0]}),
        ("create_page", {"id": "keys", "name": text[:90], "source_query": text.split("\n")[0]}),
        ("update_page", {"id": "keys", "source_query": "again " + text.split("\n")[0]}),
        ("ingest", {"title": text[:300].split("\n")[0], "content": text}),
        ("ingest_file", {"file_path": "d.md"}),
        ("retain", {"content": text, "context": text, "tags": ["keys"]}), ("reflect", {"query": text}),
        ("memory_search", {"query": text}), ("get_page", {"id": text[:100]}), (text[:50], {}),
    ]  # fmt: skip
    with memory(shell) as there:
        for name, arguments in given:
            if name in mcp_server.TOOLS:
                mcp_server.call_tool(there, name, arguments, caller)


def _tool(shell: Shell, text: str, _: Path) -> None:
    with memory(shell) as there:
        tool, note = MemoryTool(there), {"path": "/memories/keys.md"}
        tool.call({"command": "create", "file_text": f"- tea\n- {text}", **note})
        tool.call({"command": "insert", "insert_line": 0, "insert_text": text, **note})
        tool.call({"command": "str_replace", "old_str": "- tea", "new_str": text, **note})


def _import(shell: Shell, text: str, outside: Path) -> None:
    folder = outside / "clawd"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "2026-02-03.md").write_text(f"- {text.split(chr(10))[0]}\n\n{text}\n")
    (folder / "MEMORY.md").write_text(f"## Keys\n\n{text.split(chr(10))[0]}\n")
    shell.ok("import", "openclaw", str(folder))


def _flush(shell: Shell, text: str, outside: Path) -> None:
    file = str(transcript(text, outside))
    line = text.split("\n")[0]
    asked(shell, "flush", file, "--force", "--wait", reply={"calls": [keep(line, line)]})
    shell("flush", file, "--force", "--session", "other")


def _waits(shell: Shell, text: str, outside: Path) -> None:
    """A model that cannot be reached: the turns wait in pending/."""
    key = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_API_KEY": "sk-ant-test"}
    shell("flush", str(transcript(text, outside)), "--force", "--wait", **key)
    shell("retain", "-", "--wait", stdin=text, **key)
    assert shell.ok("queue", "list").out.count("failed 1 time") == 2


def _by_command(shell: Shell, text: str, _: Path) -> None:
    line = text.split("\n")[0]
    shell.ok("insert", "-", "--tag", text.split()[-1], "--session", text[:60], stdin=text)
    shell.ok("core", "replace", "Keys", line)
    shell("directives", "add", line)
    shell("pages", "create", "keys", "--query", line)
    shell("entities", "alias", "Alice", line)


def _retain(shell: Shell, text: str, _: Path) -> None:
    asked(shell, "retain", "-", "--wait", "--document-id", text.split("\n")[0][:200], stdin=text)
    shell.ok("retain", "-", stdin=text)


def _reading(shell: Shell, text: str, _: Path) -> None:
    shell.ok("insert", "We decided on Fly.io today.")
    for argv in (("search", text), ("recall", text), ("explain", text), ("get", text[:99]), ("log", text)):
        shell(*argv)
    shell("insert", "x", "--when", text[:90])
    asked(shell, "reflect", text, "--keep")


DOORS: dict[str, Door] = {
    "commands": _by_command,
    "retain": _retain,
    "flush": _flush,
    "what waits": _waits,
    "hook": _hook,
    "mcp": _mcp,
    "memory tool": _tool,
    "import": _import,
    "queries": _reading,
}


def stored(home: Path) -> Iterator[tuple[str, bytes]]:
    """All bytes below a folder, what is packed taken apart: every file, and every object that git has."""
    for file in sorted(home.rglob("*")):
        if file.is_file() and not file.is_symlink():
            data = file.read_bytes()
            yield str(file), data + file.name.encode()
            try:
                yield f"{file} (unpacked)", zlib.decompress(data)
            except zlib.error:
                continue
    for head in home.rglob("HEAD"):
        if (head.parent / "objects").is_dir():
            run = ["git", "--git-dir", str(head.parent), "cat-file", "--batch-all-objects", "--batch"]
            yield f"objects of {head.parent}", subprocess.run(run, capture_output=True, check=True).stdout


def left(home: Path, secrets: list[str]) -> list[str]:
    """Where one of the secrets still stands, however it is written."""
    wanted = [form for s in secrets for form in (s.encode(), s.casefold().encode(), s[16:].encode())]
    return [where for where, data in stored(home) if any(w in data for w in wanted if len(w) > 7)]


@pytest.mark.few(4)
@pytest.mark.parametrize("name", list(DOORS))
def test_no_secret_is_left_behind_a_door(name: str, tmp_path: Path) -> None:
    """I60"""
    shell = new_shell(tmp_path)
    shell.env["UA_MEMORY_EMBEDDING"] = "none"
    outside = tmp_path / "outside"
    outside.mkdir()
    text, secrets = planted(list(DOORS).index(name) + 1)
    DOORS[name](shell, text, outside)
    shell("search", "Fly.io key", UA_MEMORY_EMBEDDING="")
    assert not left(shell.home, secrets)


UNFILLED = """
import sys
from pathlib import Path
import numpy as np
from ua_memory.index import embedding, vectors

embedding.use_one_arena()
vectors.import_chromadb()
read = [bytearray(b"hunter22x " * size) for size in range(1, 20_000, 37)]
kept = read[::7]
del read
opened = vectors.LocalVectors(Path(sys.argv[1]))
opened.upsert({"a": np.full(384, 0.1, np.float32)})
opened.close()
"""


@pytest.mark.skipif("glibc" not in platform.libc_ver(), reason="nothing to ask of this C library")
def test_chroma_writes_no_memory_that_it_did_not_fill(tmp_path: Path) -> None:
    """A secret that redaction took stands in freed memory, and hnswlib writes tables it has only begun."""
    subprocess.run([sys.executable, "-c", UNFILLED, str(tmp_path / "chroma")], check=True)
    (table,) = tmp_path.rglob("data_level0.bin")  # has room for a hundred, and none in it yet
    assert table.stat().st_size > 100_000 and not any(table.read_bytes())
    assert not left(tmp_path, ["hunter22x " * 2])


def test_the_look_finds_what_is_there(tmp_path: Path) -> None:
    """Else the one above would say nothing: a secret by hand is seen in file and trail, and nowhere else."""
    shell = new_shell(tmp_path)
    secret = Plant("github-token", "prose", "", "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345").secret
    shell.write("memory/notes.md", f"a tea {secret}\n")
    shell.ok("search", "tea")
    shell.ok("init", ".")
    where = left(shell.home, [secret])
    assert any(each.endswith("notes.md") for each in where) and any("objects" in each for each in where)
    assert not [each for each in where if "/index/" in each or "/cache/" in each or "/local/" in each]
    assert secret in git(shell.cwd, "show", "HEAD:memory/notes.md")
