"""What starting up costs: `--help` and `import ua_memory` load nothing heavy.

A command line that answers in the time an interpreter takes to start is a promise; one import at the top of
a module breaks it without a failing test, unless it is this one.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from banks import new_bank

from ua_memory import discovery
from ua_memory.memory import Memory

HEAVY = {
    "anthropic",
    "chromadb",
    "frontmatter",
    "git",
    "httpx",
    "matplotlib",
    "mcp",
    "numpy",
    "onnxruntime",
    "pydantic",
    "jinja2",
    "rich",
    "starlette",
    "tiktoken",
    "tokenizers",
    "watchdog",
    "yaml",
}

LOADED = """
import atexit, json, os, sys
tell = lambda: print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
atexit.register(tell)
"""


def top_level_modules(code: str, *argv: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after running `code` with these arguments."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOADED + code, *argv],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    "argv", [["--help"], ["--version"], ["search", "--help"], ["insert", "--help"]], ids=" ".join
)
def test_help_loads_nothing_heavy(argv: list[str]) -> None:
    code = "from ua_memory.cli.fast import main\nsys.argv[0] = 'ua-memory'\nsys.exit(main())"
    assert top_level_modules(code, *argv) & HEAVY == set()


def test_importing_the_package_loads_nothing() -> None:
    extra = top_level_modules("import ua_memory") - top_level_modules("import __future__")
    assert extra == {"ua_memory"}


def test_a_process_that_loaded_chroma_still_does_what_was_left_for_its_end() -> None:
    code = (
        "import atexit, sys\nfrom ua_memory.cli import app\nsys.modules['chromadb'] = sys\n"
        "atexit.register(print, 'at the end')\nprint('before')\napp.exit_process(3)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "before\nat the end\n", "")


def test_exports_are_loaded_when_asked_for() -> None:
    import ua_memory

    assert "Memory" in dir(ua_memory)
    assert ua_memory.Memory.__name__ == "Memory"
    assert ua_memory.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="NoSuchThing"):
        _ = ua_memory.NoSuchThing


def test_opening_a_bank_loads_no_index() -> None:
    # yaml is allowed here: reading front matter needs it, and it takes a few milliseconds.
    loaded = top_level_modules("from ua_memory import Memory")
    assert loaded & ((HEAVY - {"frontmatter", "yaml"}) | {"typer"}) == set()


SLOW = {"dataclasses", "inspect", "pathlib", "tomllib", "typing"}
"""Parts of the standard library that take a third of the time of a hook where no daemon runs."""


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_a_hook_without_a_daemon_loads_no_slow_module(tmp_path: Path, event: str) -> None:
    bank = new_bank(tmp_path / "bank")
    bank.insert("Wir haben den Fluss nach dem Frühling gesehen")
    time.sleep(0.06)
    with Memory(bank.again()) as memory:
        memory.search_many(["x"], by_words=True)
    code = (
        "left = os._exit\nos._exit = lambda code: (tell(), left(code))\n"
        "from ua_memory.hooks import context\ncontext.RACY_NS = 0\n"  # keep settings just written
        "from ua_memory.cli.fast import main\nmain()"
    )
    words = ("--bank", str(bank.root), "hook")
    told = {
        "session_id": "a1",
        "cwd": "/",
        "hook_event_name": event,
        "prompt": "wo ist der fluss im frühling",
    }
    env = {**os.environ, "UA_MEMORY_DAEMON": "off"}
    first, second = (
        subprocess.run(
            [sys.executable, "-P", "-c", LOADED + code, *words],
            input=json.dumps({**told, "session_id": session}), capture_output=True, text=True, timeout=60,
            check=True, env=env,
        )
        for session in ("a1", "a2")
    )  # fmt: skip
    assert ("Fluss" in second.stdout) == (event == "UserPromptSubmit"), first.stdout + second.stdout
    assert set(json.loads(second.stderr.splitlines()[-1])) & SLOW == set()


# -- private names -----------------------------------------------------------------------------------------


def test_the_c_parts_of_the_standard_library_are_what_the_public_modules_give() -> None:
    assert discovery.blake2b is hashlib.blake2b
    plain = discovery.unix_socket()
    assert (plain.family, plain.type) == (socket.AF_UNIX, socket.SOCK_STREAM)
    assert issubclass(socket.socket, type(plain))
    plain.close()
    text = 'a "b" \\ \n \udcff é 🙂'
    assert discovery.json_string(text) == json.dumps(text)
    value = {"a": [1.5, None, True, -3, text], "b": {}}
    assert discovery.read_json(json.dumps(value)) == json.loads(json.dumps(value)) == value
