"""The providers: who answers for an endpoint, and clients' own programs as a model."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import tomllib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ua_memory import config
from ua_memory.errors import KeyRejected, ModelUnavailable, RequestRejected, UaMemoryError, checked
from ua_memory.llm.client import (
    Claude,
    MeteredModel,
    ModelRequest,
    OpenAIModel,
    StreamedReply,
    add_message,
    clean_message,
)
from ua_memory.llm.ledger import Estimate, Ledger, Limits, Meter, estimate_of
from ua_memory.llm.model import PROGRAMS, Endpoint, Model, ModelOrEndpoint, Reply, check_model, prompt, user
from ua_memory.store.store import Store
from ua_memory.text.noise import escape_tags


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """Result of a test request: the reply, its time in seconds, and its cost."""

    provider: str
    reply: Reply
    seconds: float
    cost: Estimate


@checked
class ModelAccess:
    """Opens models for the parts of a bank."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @contextmanager
    def open(self, model: ModelOrEndpoint, usd: float | None = None) -> Iterator[Model | None]:
        """Open an endpoint for one run, metered by the bank's limits and ledger, and by `usd` if that is
        less. Models are passed through."""
        check_model(model)
        if not isinstance(model, Endpoint):
            yield model
            return
        own = self._store.config
        run_usd = own.run_usd if usd is None else min(usd, own.run_usd)
        limits = Limits(own.run_tokens, run_usd, own.day_tokens, own.day_usd)
        self._store.make_state()
        meter = Meter(Ledger(self._store.bank.local), limits, self._store.now)
        with PROVIDERS[model.provider](model, meter, patterns=own.redact) as opened:
            yield opened

    def try_out(self, endpoint: Endpoint) -> ModelTrial:
        """Send a test request. Raises what `Model.ask` raises."""
        began = time.monotonic()
        with self.open(endpoint) as model:
            assert model is not None, "an endpoint opens"
            asked = [user("Say in one short sentence that you can.")]
            system = "You are asked whether you can be reached."
            reply = model.ask(system, asked, purpose="test", max_tokens=2_000)
        cost = estimate_of(endpoint, reply.usage.prompt, [reply.usage])
        return ModelTrial(endpoint.provider, reply, time.monotonic() - began, cost)


# -- programs ----------------------------------------------------------------------------------------------
# A client's program answers each request in one run, by its owner's subscription and without a key.
#
# By default it is an agent with tools, hooks, its owner's instructions, and a transcript. The options below
# turn all of that off (measured: Claude Code 2.1.330, Codex 0.169). It runs in a temporary folder, which is
# deleted afterwards, and with our own hooks disabled.


TIME_LIMIT = 600.0
"""The time limit of an answer, in seconds: a long segment takes two or three minutes."""
ABANDONED_AFTER = 2 * TIME_LIMIT
"""The age in seconds from which a folder counts as left by a killed process."""
FOLDER_PREFIX = "ua-memory-model-"


class ProgramModel(MeteredModel):
    """A program that answers one request a run. Its failures are not retried: it has done that itself."""

    one_shot = True

    @abstractmethod
    def _run(self, folder: Path, system: str, prompt: str) -> dict[str, Any]:
        """Run the program and return a message of the Messages API with its output as text."""

    def _receive(self, request: ModelRequest, max_tokens: int, answer: StreamedReply) -> None:
        tools = request.body.get("tools", ())
        system = "\n\n".join(block["text"] for block in request.body.get("system", ()))
        system += prompt("program") + json.dumps(tools, ensure_ascii=False) if tools else ""
        with _private_folder() as folder:
            message = self._run(folder, system, _prompt(request.body["messages"]))
        text = message["content"][0]["text"]
        if tools and "calls" in (found := _first_object(text) or {}):
            message["content"] = _blocks(found)
            message["stop_reason"] = "tool_use" if len(message["content"]) > 1 else "end_turn"
        add_message(message, answer)

    def _program(self) -> str:
        """The path of the program. ModelUnavailable if there is none."""
        name, env = PROGRAMS[self._endpoint.provider], self._endpoint.env
        # Its installer uses ~/.local/bin, which a service's PATH seldom has.
        places = os.pathsep.join((env.get("PATH", os.defpath), f"{env.get('HOME', '')}/.local/bin"))
        if found := shutil.which(name, path=places):
            return found
        hint = "install it, or name another provider: ua-memory config set provider … --user"
        raise ModelUnavailable(f"the program {name} is not on the PATH", hint=hint)

    def _execute(
        self, words: Sequence[str], folder: Path, prompt: str, env: Mapping[str, str]
    ) -> tuple[str, str]:
        """Run the program and return its output and errors. Its whole process group is killed at the end."""
        program = self._program()
        try:
            process = subprocess.Popen(
                [program, *words], cwd=folder, text=True,
                env={**env, "UA_MEMORY_ENABLED": "0", "TMPDIR": str(folder)},
                encoding="utf-8", errors="replace", start_new_session=True, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            what = f"{program} cannot be run: {error.strerror}"
            raise ModelUnavailable(what, hint="reinstall it") from error
        with process:
            try:
                return process.communicate(prompt, timeout=TIME_LIMIT)
            except subprocess.TimeoutExpired as error:
                what = f"{PROGRAMS[self._endpoint.provider]} gave no answer within {TIME_LIMIT:g} s"
                raise ModelUnavailable(what, hint="try again later") from error
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)

    def _message(self, text: str, stop: object, usage: Mapping[str, Any]) -> dict[str, Any]:
        content = [{"type": "text", "text": text}]
        return {"model": self.name, "content": content, "stop_reason": stop or "end_turn", "usage": usage}

    def _failure(self, status: int | None, said: str) -> UaMemoryError:
        """The error for a program's message, by the HTTP status that it got."""
        name = PROGRAMS[self._endpoint.provider]
        what = f"{name} gave no answer" + (f": {clean_message(said, self._endpoint)}" if said.strip() else "")
        if status in (401, 402, 403) or re.search(r"not logged in|log ?in again|/login", said, re.I):
            return KeyRejected(what, hint=f"log in with {name}, and try again")
        if status and status < 500 and status not in (408, 409, 429):
            model = self._endpoint.model or "its own default"
            return RequestRejected(what, hint=f"UA_MEMORY_MODEL is {model}: does {name} have it?")
        return ModelUnavailable(what, hint="try again later")


class ClaudeProgram(ProgramModel):
    """Claude Code, run as `claude -p`."""

    def _run(self, folder: Path, system: str, prompt: str) -> dict[str, Any]:
        file = folder / "system.txt"
        file.write_text(system, encoding="utf-8")
        words = [
            "-p", "--safe-mode", "--tools", "", "--strict-mcp-config", "--no-session-persistence",
            "--system-prompt-file", str(file), "--output-format", "json",
        ]  # fmt: skip
        if self._endpoint.model:
            words += ["--model", self._endpoint.model]
        # A key would be used in place of the subscription, and cost money.
        env = {name: value for name, value in self._endpoint.env.items() if name != "ANTHROPIC_API_KEY"}
        env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "2"}
        printed, errors = self._execute(words, folder, prompt, env)
        found = _first_object(printed)
        if found is None or found.get("is_error") or not isinstance(found.get("result"), str):
            said = found.get("result") if found else ""
            status = found.get("api_error_status") if found else None
            raise self._failure(status if isinstance(status, int) else None, said or errors or printed)
        return self._message(found["result"], found.get("stop_reason"), found.get("usage") or {})


class CodexProgram(ProgramModel):
    """Codex, run as `codex exec`."""

    def _run(self, folder: Path, system: str, prompt: str) -> dict[str, Any]:
        env = self._endpoint.env
        theirs = Path(env.get("CODEX_HOME") or f"{env.get('HOME', '')}/.codex")
        home, empty = folder / "home", folder / "empty"
        home.mkdir()
        empty.mkdir()
        (home / "instructions.md").write_text(system, encoding="utf-8")
        settings = _codex_settings(theirs, home)
        (home / "config.toml").write_bytes(settings)
        env = {**env, "CODEX_HOME": str(home)}
        words = ["exec", "--ephemeral", "--skip-git-repo-check", "--sandbox", "read-only", "--json"]
        if self._endpoint.model:
            words += ["--model", self._endpoint.model]
        with _linked_login(theirs / "auth.json", home / "auth.json"):
            if models := _without_tools(self._execute(["debug", "models"], empty, "", env)[0]):
                (home / "models.json").write_text(models, encoding="utf-8")
                named = config.put(settings, "config.toml", "model_catalog_json", str(home / "models.json"))
                (home / "config.toml").write_bytes(named)
            printed, errors = self._execute([*words, "-"], empty, prompt, env)
        rows = [row for line in printed.splitlines() if (row := _first_object(line)) is not None]
        texts = [
            str(row["item"].get("text") or "")
            for row in rows
            if row.get("type") == "item.completed" and row["item"].get("type") == "agent_message"
        ]
        done = next((row for row in rows if row.get("type") == "turn.completed"), None)
        if done is None or not texts:
            wrong = (row for row in rows if "error" in str(row["type"]))
            failed = [str(row.get("message") or row.get("error")) for row in wrong]
            said = failed[-1] if failed else errors or printed
            status = re.search(r"status (\d{3})", said)
            raise self._failure(int(status[1]) if status else None, said)
        used = done.get("usage") or {}
        cached = used.get("cached_input_tokens", 0)
        usage = {
            "input_tokens": used.get("input_tokens", 0) - cached,
            "cache_read_input_tokens": cached,
            "output_tokens": used.get("output_tokens", 0),
        }
        return self._message(texts[-1], "end_turn", usage)


MODEL_SETTINGS = (
    "model", "model_provider", "model_providers", "model_reasoning_effort", "openai_base_url",
    "chatgpt_base_url", "forced_login_method", "forced_chatgpt_workspace_id", "cli_auth_credentials_store",
)  # fmt: skip
"""The owner's settings that say which model answers, and how it is reached."""
WITHOUT_TOOLS: Mapping[str, Any] = {
    "tool_mode": None, "apply_patch_tool_type": None, "multi_agent_version": None,
    "experimental_supported_tools": [],
}  # fmt: skip
"""Keys of a model's description that give it tools which no setting turns off: to run code, to edit files,
to start other agents."""
DISABLED = "shell_tool", "unified_exec", "apps", "plugins", "multi_agent", "goals", "image_generation"


def _codex_settings(theirs: Path, home: Path) -> bytes:
    """A config.toml that has only the model settings of its owner's."""
    try:
        own = tomllib.loads((theirs / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none, or one that Codex cannot read either
        own = {}
    wanted: dict[str, Any] = {key: own[key] for key in MODEL_SETTINGS if key in own}
    wanted |= {
        "model_instructions_file": str(home / "instructions.md"), "web_search": "disabled",
        "project_doc_max_bytes": 0, "features": dict.fromkeys(DISABLED, False),
        "skills": {"bundled": {"enabled": False}},
    }  # fmt: skip
    data = b""
    for key, value in wanted.items():
        data = config.put(data, str(home / "config.toml"), key, value)
    return data


def _without_tools(printed: str) -> str:
    """The catalogue of models that Codex printed, without their tools; '' if it printed none."""
    found = _first_object(printed) or {}
    models = found.get("models")
    if not isinstance(models, list):
        return ""
    return json.dumps({**found, "models": [{**each, **WITHOUT_TOOLS} for each in models]})


@contextmanager
def _linked_login(theirs: Path, ours: Path) -> Iterator[None]:
    """Link the owner's login. A program that renews it replaces the link by a file, which is then the only
    valid login and is saved for the owner."""
    if theirs.exists():
        ours.symlink_to(theirs)
    try:
        yield
    finally:
        if theirs.exists() and ours.is_file() and not ours.is_symlink():
            config.save(theirs, ours.read_bytes())


@contextmanager
def _private_folder() -> Iterator[Path]:
    """A temporary folder for one run. Folders that killed processes have left are deleted, too."""
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        now = folder.lstat()
        for left in folder.parent.glob(f"{FOLDER_PREFIX}*"):
            with suppress(OSError):
                about = left.lstat()
                if about.st_uid == now.st_uid and now.st_mtime - about.st_mtime > ABANDONED_AFTER:
                    shutil.rmtree(left)
        yield folder


def _prompt(messages: Sequence[Mapping[str, Any]]) -> str:
    """The messages as one text: a single one as it is, several each in a block that its text cannot close."""
    texts = [(each["role"], _as_text(each["content"])) for each in messages]
    if len(texts) == 1:
        return texts[0][1]
    names = {"user": "asked", "assistant": "answered"}
    given = ((names[role], text) for role, text in texts if text)
    marked = [f"<{name}>\n{escape_tags(text, *names.values())}\n</{name}>" for name, text in given]
    return "\n\n".join([*marked, "This is the conversation so far. Give your next answer."])


def _as_text(blocks: Sequence[Mapping[str, Any]]) -> str:
    parts = []
    for block in blocks:
        if block["type"] == "text":
            parts.append(block["text"])
        elif block["type"] == "tool_use":
            call = {"tool": block["name"], "input": block["input"]}
            parts.append(json.dumps(call, ensure_ascii=False))
        elif block["type"] == "tool_result":
            content = block.get("content") or ""
            text = content if isinstance(content, str) else _as_text(content)
            parts.append(f"{'Not done' if block.get('is_error') else 'Done'}: {text}")
    return "\n\n".join(parts)


def _first_object(text: str) -> dict[str, Any] | None:
    """The first JSON object in a text; None if there is none."""
    at = text.find("{")
    while at >= 0:
        try:
            found, _ = json.JSONDecoder().raw_decode(text, at)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            return found
        at = text.find("{", at + 1)
    return None


def _blocks(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A program's answer as blocks of a message: its text, then its calls."""
    calls = found.get("calls")
    blocks: list[dict[str, Any]] = [{"type": "text", "text": str(found.get("text") or "")}]
    for number, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict):
            given = call.get("input")
            name = str(call.get("tool") or call.get("name") or "")
            blocks.append({"type": "tool_use", "id": f"call_{number}", "name": name, "input": given})
    return blocks


PROVIDERS: Mapping[str, type[MeteredModel]] = {
    "anthropic": Claude, "openai": OpenAIModel, "claude-code": ClaudeProgram, "codex": CodexProgram,
}  # fmt: skip
