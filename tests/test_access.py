"""What a door may reach: no path out of the bank, no file open to others, no key in a process list."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from banks import Bank
from fake_model import FakeModel
from guards import REACHED
from terminal import MORNING, Shell, new_shell

from ua_memory.cli.app import VERBS
from ua_memory.cli.daemon import _make_caller
from ua_memory.daemon import spawn as detached
from ua_memory.daemon import spawn as starting
from ua_memory.errors import UaMemoryError
from ua_memory.index import vectors as chroma
from ua_memory.mcp import tools as mcp_server
from ua_memory.mcp.memory_tool import MemoryTool, MemoryToolError
from ua_memory.mcp.tools import permitted_file
from ua_memory.memory import Memory
from ua_memory.text.wording import BY_COMMAND, untrusted

SOURCE = Path(__file__).parents[1] / "ua_memory"
CANARY = "the canary sings outside"
PATHS = (
    "../outside.md", "memory/../../outside.md", "memory/../../../outside.md", "/outside.md", "{outside}",
    "memory/link.md", "memory/folder/outside.md", "memory/x\0/../../outside.md",
    "memory/" + "a" * 5000 + ".md", "memory/" + "../" * 900 + "outside.md", "~/outside.md", "file://{outside}",
    "memory/.git/../../../outside.md",
    "memory\\..\\..\\outside.md", "memory/%2e%2e/%2e%2e/outside.md", "./../outside.md", "",
    "memory/..\u2215..\u2215outside.md", "memory/\uff0e\uff0e\uff0foutside.md", "memory/link.md.",
    "../outside.md\0.md", "memory/%252e%252e%252foutside.md", "MEMORY/LINK.MD", ".GIT/config",
    "memory/\ud800.md", "\ud800", "memory//link.md", "memory/./link.md", "memory/li\u200bnk.md",
)  # fmt: skip
"""Ways to a file beside the bank; `link.md` and `folder` are symbolic links there."""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A bank with links that lead out, which no test may follow."""
    there = new_shell(tmp_path_factory.mktemp("access"))
    outside = there.home / "outside.md"
    outside.write_text(f"- {CANARY}\n")
    (there.cwd / "memory").mkdir(exist_ok=True)
    (there.cwd / "memory/link.md").symlink_to(outside)
    (there.cwd / "memory/folder").symlink_to(there.home)
    return there


def opened(shell: Shell) -> Memory:
    return Memory.open(shell.cwd, now=lambda: MORNING, door="test")


def _tried(work: Callable[[], object]) -> str:
    """What a call answers, or how it refuses; any other exception is a bug."""
    try:
        return str(work())
    except (UaMemoryError, MemoryToolError) as error:
        return str(error)


def _by_memory(memory: Memory, path: str) -> list[str]:
    calls: list[Callable[[], object]] = [
        lambda: memory.get(path).text, lambda: memory.get(f"{path}:1-2").text,
        lambda: memory.history.log(path), lambda: memory.history.blame(path),
        lambda: memory.history.why(path), lambda: memory.pages.create(path, "x", "y"),
        lambda: memory.pages.get(path), lambda: memory.models.get(path), lambda: memory.history.diff(path),
        lambda: memory.retain("Tea is green.", document_id=path).path if path else "",
    ]  # fmt: skip
    return [_tried(call) for call in calls]


def _by_mcp(memory: Memory, path: str) -> list[str]:
    caller = mcp_server.Caller(folders=(memory.store.bank.root / "memory",))
    asked: list[tuple[str, dict[str, Any]]] = [
        ("memory_get", {"path": path}), ("get_page", {"id": path}), ("ingest_file", {"file_path": path}),
        ("ingest", {"title": path, "content": "Tea is green."}),
        ("create_page", {"id": path, "name": "x", "source_query": "y"}), ("delete_page", {"id": path}),
    ]  # fmt: skip
    said = [mcp_server.call_tool(memory, tool, given, caller)[0] for tool, given in asked]
    for uri in (f"memory://page/{path}", f"memory://day/{path}", f"memory://core/{path}", path):
        said.append(str(mcp_server.answer_request(memory, {"read": uri}, caller)))
    return said


def _by_tool(memory: Memory, path: str) -> list[str]:
    tool, said = MemoryTool(memory), []
    for given in (path, f"/memories/{path}", path.replace("memory/", "/memories/")):
        for more in (
            {"command": "view"}, {"command": "create", "file_text": "x"}, {"command": "delete"},
            {"command": "str_replace", "old_str": CANARY, "new_str": "x"},
            {"command": "insert", "insert_line": 0, "insert_text": "x"},
        ):  # fmt: skip
            said.append(_tried(lambda more=more, given=given: tool.call({"path": given, **more})))
        move = {"command": "rename", "old_path": given, "new_path": "/memories/stolen.md"}
        said.append(_tried(lambda move=move: tool.call(move)))
    return said


def _by_command(shell: Shell, path: str) -> list[str]:
    if "\0" in path or "\ud800" in path:  # no process can be given one
        return []
    argvs = [("get", path), ("log", path), ("blame", path), ("why", path), ("pages", "get", path)]
    return [done.out + done.err for done in (shell(*argv) for argv in argvs)]


@pytest.mark.few(8)
@pytest.mark.parametrize("path", PATHS, ids=range(len(PATHS)))
def test_no_path_leads_out_through_any_door(shell: Shell, path: str) -> None:
    """I63"""
    path = path.format(outside=shell.home / "outside.md")
    before = sorted(str(one) for one in shell.home.iterdir())
    with opened(shell) as memory:
        said = [*_by_memory(memory, path), *_by_mcp(memory, path), *_by_tool(memory, path)]
    said += _by_command(shell, path)
    assert not [answer for answer in said if CANARY in answer]
    assert (shell.home / "outside.md").read_text() == f"- {CANARY}\n"
    assert sorted(str(one) for one in shell.home.iterdir()) == before
    stray = [
        p for p in shell.cwd.iterdir() if p.name not in (".git", "memory", "ua-memory.toml", "MEMORY.md")
    ]
    assert not stray


def test_what_is_searched_ends_at_links_too(shell: Shell) -> None:
    """I63"""
    assert CANARY not in shell("search", "canary sings outside").out


def test_a_hard_link_is_never_written_through(tmp_path: Path) -> None:
    shell = new_shell(tmp_path)
    outside = shell.home / "theirs.md"
    outside.write_text("# 2026-11-21\n")
    day = shell.cwd / "memory/2026-11-21.md"
    day.parent.mkdir(exist_ok=True)
    os.link(outside, day)
    shell.ok("insert", "Tea is green.")
    assert outside.read_text() == "# 2026-11-21\n" and "green" in day.read_text()
    assert day.stat().st_ino != outside.stat().st_ino


@pytest.mark.parametrize(
    "given", ["../b.md", "/etc/hosts", "a\0b", "x/../../b.md", ".env", "link.md", "a" * 9000]
)
def test_an_agent_may_ingest_from_its_own_folder_alone(tmp_path: Path, given: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "b.md").write_text(CANARY)
    (project / ".env").write_text(CANARY)
    (project / "link.md").symlink_to("../b.md")
    with pytest.raises(UaMemoryError):
        permitted_file(given, (project,))


USED = """
insert Alice moved the API to Fly.io because the price doubled.
insert Bob drinks tea.
insert Alice lives in Porto.
search tea
list --tag drinks
today
yesterday
retire ^k7m2q9x4tb
vouch ^k7m2q9x4tb
recall why Fly
explain who
core replace User Noor, a nurse
get MEMORY.md
edit MEMORY.md
open --print
ingest ../notes/one.md
retain ../notes/one.md
flush ../talk.jsonl --force
consolidate
observations list
opinions list
pages create tea --query 'who drinks tea'
pages refresh tea
reflect who drinks tea
models list
entities alias Alice Ali
directives create 'Be brief'
log
diff
why memory/2026-11-21.md:5
blame MEMORY.md
undo
redo
forget --query porto --yes
forget --query tea --yes --purge --backup ../purged.bundle
git gc --quiet
status
stats
queue list
watch list
verify
scan --history
config
config set search.limit 7
trust --yes
index rebuild
sessions list
daemon status
daemon list
web --stop
import markdown ../notes
sync --remote ../remote.git
export ../bank.tar
doctor
init
search price
hook --help
install --help
uninstall --help
prune-recall-messages --help
completion bash
mcp --help
bench --help
"""
"""Every verb. Those that write into a client's files, or stay, show their help."""


def _every_verb_used(root: Path) -> Path:
    """The state folder of a bank in which every verb was used, with a model and without."""
    talk = {"type": "user", "uuid": "u1", "sessionId": "s1", "timestamp": "2026-11-21T08:00:00Z"}
    said = {"role": "user", "content": "I am allergic to peanuts, please remember that for every order."}
    (root.parent / "talk.jsonl").write_text(json.dumps({**talk, "message": said}) + "\n")
    (root.parent / "notes").mkdir()
    (root.parent / "notes/one.md").write_text("# One\n\n- We moved to Fly because the price doubled.\n")
    subprocess.run(["git", "init", "-q", "--bare", str(root.parent / "remote.git")], check=True)
    shell = Shell(root.parent.resolve(), root.resolve(), {"PATH": os.environ["PATH"], "EDITOR": "true"})
    shell.ok("init", str(root))
    (root / "memory/2026-11-20.md").write_text("## 10:00\n\n- Tea is hot ^k7m2q9x4tb\n")
    with FakeModel({"text": "nothing"}) as fake:
        key = {"ANTHROPIC_API_KEY": "sk-test", "ANTHROPIC_BASE_URL": fake.url}
        shell("retain", "--wait", "-", stdin="Carol moved to Berlin.", **key)
        shell.ok("model", "test", **key)
    used = [tuple(shlex.split(line)) for line in USED.strip().split("\n")]
    assert {name for group in VERBS.values() for name in group} == {"model", *(argv[0] for argv in used)}
    failed = {argv: done for argv in used if (done := shell(*argv)).code}
    assert not failed
    return Bank(root).store.bank.state


@pytest.mark.few(1)
@pytest.mark.parametrize("mask", [0, pytest.param(0o022, marks=pytest.mark.slow)])  # 0 leaves more open
@pytest.mark.parametrize("place", ["own", "beside"])
def test_all_that_is_kept_beside_the_bank_is_its_owners(tmp_path: Path, mask: int, place: str) -> None:
    """I67. Whichever verb writes it; and git, where the trail lies there."""
    root = tmp_path / "project/bank"
    root.mkdir(parents=True)
    if place == "beside":
        subprocess.run(["git", "init", "-q", str(root.parent)], check=True)
    before = os.umask(mask)
    try:
        state = _every_verb_used(root)
        made = [state, *state.parent.rglob("*")] if place == "beside" else [state, *state.rglob("*")]
        modes = {str(path): stat.S_IMODE(path.lstat().st_mode) for path in made}
        doctor = Shell(root.parent.resolve(), root.resolve())("doctor").out
    finally:
        os.umask(before)
    assert len(modes) > 20 and not {path: oct(mode) for path, mode in modes.items() if mode & 0o077}
    assert next(row for row in doctor.splitlines() if " privacy " in row).startswith("ok")


def test_an_older_trail_that_lies_open_is_closed_and_stays_so(tmp_path: Path) -> None:
    """I67"""
    root = tmp_path / "project/bank"
    root.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root.parent)], check=True)
    shell = Shell(root.parent.resolve(), root.resolve(), {"PATH": os.environ["PATH"]})
    shell.ok("init", str(root))
    there = Bank(root).store
    there.history.run("config", "--unset", "core.sharedRepository")
    for path in there.bank.git_dir.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert "others may use trail.git" in shell("doctor").out
    assert "privacy" in shell("doctor", "--mend").out
    shell.ok("insert", "Tea is green.")
    open_ones = [str(p) for p in there.bank.state.rglob("*") if stat.S_IMODE(p.lstat().st_mode) & 0o077]
    assert not open_ones


def test_no_key_stands_in_a_process_list(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments can be read by every user of the machine; keys travel in the environment or on a socket, and
    a daemon keeps none at all."""
    seen: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr("subprocess.Popen", lambda argv, env, **_: seen.append((argv, env)))
    env = {"ANTHROPIC_API_KEY": "sk-ant-secret", "UA_MEMORY_CHROMA_TOKEN": "token-secret", "PATH": "/bin"}
    with opened(shell) as memory:
        log = detached.start_detached(memory.store.bank, env)
        starting.start_daemon(memory.store.bank, env)
    (behind, _), (daemon, theirs) = seen
    assert "secret" not in " ".join([*behind, *daemon, *theirs.values()])
    assert "secret" not in Path(log).read_text()


@pytest.mark.parametrize("name", [*sorted(BY_COMMAND), "", "codex"])
def test_no_client_passes_for_a_terminal(shell: Shell, name: str) -> None:
    """What a person ingests at a terminal is theirs; a client may call itself whatever it likes."""
    call: Any = type(
        "Call", (), {"env": {}, "reads_terminal": False, "model": lambda *_: None, "cwd": shell.cwd}
    )()
    with opened(shell) as memory:
        caller = _make_caller(call, memory, {"client": name})
    assert caller.client == (name if name == "codex" else "mcp")
    assert untrusted("import", caller.client)


# -- the network ---------------------------------------------------------------------------------------------

COMMANDS = """
set -e
ua() { "$PY" -m ua_memory --bank "$HOME/bank" "$@"; }
ua init "$HOME/bank"; ua insert "Tea is green"; ua retain - <<< "We moved to Fly because the price doubled."
ua search tea; ua recall "why Fly"; ua consolidate; ua pages create tea --query "which tea"
ua reflect "which tea"; ua doctor; ua verify; ua scan --history; ua stats
"""


def _may_unshare() -> bool:
    asked = ["unshare", "-rn", "true"]
    return bool(shutil.which("unshare")) and subprocess.run(asked, capture_output=True).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not _may_unshare(), reason="no network namespace may be made here")
def test_every_command_works_where_there_is_no_network_at_all(tmp_path: Path) -> None:
    """I64"""
    ours = str(SOURCE.parent)
    env = {**os.environ, "PY": sys.executable, "HOME": str(tmp_path), "PYTHONPATH": ours}
    done = subprocess.run(["unshare", "-rn", "bash", "-c", COMMANDS], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and "green" in done.stdout, done.stderr
    assert "minilm" in done.stdout, "the embedding model came with the installation"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_no_system_call_of_any_process_leaves_the_machine(tmp_path: Path) -> None:
    """I64. The guard of these tests sees what Python does; this sees C code, and children of any kind."""
    trace = tmp_path / "trace"
    env = {**os.environ, "PY": sys.executable, "HOME": str(tmp_path), "PYTHONPATH": str(SOURCE.parent)}
    libraries = '"$PY" -c "import anthropic, chromadb, mcp, onnxruntime, tiktoken, tokenizers"'
    calls = ["strace", "-f", "-qq", "-o", str(trace), "-e", "trace=socket,connect,sendto,sendmsg,sendmmsg"]
    done = subprocess.run(
        [*calls, "bash", "-c", f"{COMMANDS}\n{libraries}"], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0 and "green" in done.stdout, done.stderr
    seen = trace.read_text().splitlines()
    assert seen and not [
        line for line in seen
        if "sa_family=AF_INET" in line and not re.search(r'"127\.0\.0\.1"|"::1"', line)
    ]  # fmt: skip


def test_no_dependency_calls_home(tmp_path: Path) -> None:
    """I64. Chroma, onnxruntime and the tokenizer at work: what leaves the machine is noted in REACHED, which
    fails any test, also where whoever tried has swallowed the refusal."""
    shell = new_shell(tmp_path)
    shell.ok("insert", "Tea is green.")
    assert "semantic" in shell.ok("search", "which tea", "--explain").out and not REACHED
    chosen = chroma.import_chromadb()[1]
    assert chosen.anonymized_telemetry is False and not chosen.chroma_otel_collection_endpoint
    calling = ("huggingface_hub", "posthog", "opentelemetry.exporter", "segment", "sentry_sdk")
    assert not [name for name in sys.modules if name.startswith(calling)]
    switched = {
        "onnxruntime.disable_telemetry_events()": "index/embedding.py",
        '"ORT_DISABLE_TELEMETRY": "1"': "cli/fast.py",
        "open_telemetry=False": "llm/client.py",
    }
    assert not [name for how, name in switched.items() if how not in (SOURCE / name).read_text("utf-8")]
    # A program that uses `Memory` starts without the command line's settings.
    home, env = tmp_path / "program", {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE.parent)}
    code = "from ua_memory.index.embedding import Embedder; Embedder().texts(['which tea'])"
    subprocess.run([sys.executable, "-c", code], env={**env, "HOME": str(home)}, check=True)
    assert not list(home.rglob("*"))
