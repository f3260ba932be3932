"""A group chat with strangers is given only what was said in it, and what it says is not the owner's."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from terminal import Done, Shell, new_shell

import ua_memory
from ua_memory.clients import openclaw

GROUP, OTHER = "telegram:group:-1001", "telegram:group:-1002"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = new_shell(tmp_path, UA_MEMORY_DAEMON="off")
    shell.write("MEMORY.md", "# Memory\n\n## Me\n\nNoor has an allergy to walnuts.\n")
    shell.ok("insert", "Alice will sell the kiln to Bob in May")
    shell.ok("pages", "create", "kiln", "--query", "What is known of the kiln?")
    return shell


def hook(shell: Shell, event: str, session: str, group: str = "", **more: Any) -> Done:
    told = {"hook_event_name": event, "session_id": session, "transcript_path": "", "cwd": str(shell.cwd)}
    return shell("hook", "--client", "openclaw", stdin=json.dumps({**told, "group": group, **more}))


def says(shell: Shell, session: str, group: str, text: str) -> None:
    hook(shell, "Stop", session, group, prompt=text, last_assistant_message="Noted, thank you.")
    hook(shell, "SessionEnd", session, group, reason="clear")
    shell.ok("flush")


KILN, COURSE = "Will Alice sell the kiln to Bob?", "When does the glaze course begin?"
PROMPT = "When does the glaze course begin? Will Alice sell the kiln to Bob?"
SAID = "We agreed that the glaze course begins on 3 March 2027 in the old barn."


def test_a_group_begins_with_nothing_of_the_owner_s(shell: Shell) -> None:
    assert "walnuts" in hook(shell, "SessionStart", "d", source="startup").out
    for source in ("startup", "resume", "clear", "compact"):
        assert hook(shell, "SessionStart", "g", GROUP, source=source).out == ""


@pytest.mark.parametrize("named", [-1001, 7.5, True, [GROUP], {"id": 7}, " "])
def test_a_group_that_is_named_by_no_text_is_a_group(shell: Shell, named: object) -> None:
    told = {"hook_event_name": "SessionStart", "session_id": "g", "cwd": str(shell.cwd), "source": "startup"}
    for group, owner in ((named, False), (False, True), (None, True)):
        out = shell("hook", "--client", "openclaw", stdin=json.dumps({**told, "group": group})).out
        assert ("walnuts" in out) == owner


def test_a_group_is_told_only_what_was_said_in_it(shell: Shell) -> None:
    assert "sell the kiln" in hook(shell, "UserPromptSubmit", "d", prompt=KILN).out
    assert hook(shell, "UserPromptSubmit", "g", GROUP, prompt=KILN).out == ""
    says(shell, "g", GROUP, SAID)
    shell.write("ua-memory.toml", (shell.cwd / "ua-memory.toml").read_text() + 'autoRecallTags = ["x"]\n')
    own = "".join(
        hook(shell, "UserPromptSubmit", "g2", GROUP, prompt=one).out for one in (KILN, COURSE, PROMPT)
    )
    assert "glaze course begins" in own and "sell the kiln" not in own and "walnuts" not in own
    for prompt in (KILN, COURSE, PROMPT):
        assert hook(shell, "UserPromptSubmit", "o", OTHER, prompt=prompt).out == ""


def test_the_owner_alone_may_see_all(shell: Shell) -> None:
    says(shell, "g", GROUP, SAID)
    assert "glaze course begins" in hook(shell, "UserPromptSubmit", "d", prompt=COURSE).out
    assert "sell the kiln" in hook(shell, "UserPromptSubmit", "d", prompt=KILN).out


def test_what_a_group_says_is_no_word_of_the_owner_s(shell: Shell) -> None:
    says(shell, "g", GROUP, SAID)
    hit = shell.ok("search", "glaze course", "--json").json["results"][0]
    assert hit["origin"] == "web" and f"group:{GROUP}" in (shell.cwd / hit["path"]).read_text()
    says(shell, "d", "", SAID)  # the owner says it, too: now it stands for itself
    assert shell.ok("search", "glaze course", "--json").json["results"][0]["origin"] == "person"
    says(shell, "o", OTHER, SAID)  # and another group, which is to know it as its own
    for group in (GROUP, OTHER):
        assert "glaze course" in hook(shell, "UserPromptSubmit", "g2", group, prompt=COURSE).out


def test_a_model_that_reads_a_group_has_no_hand_on_core_memory() -> None:
    from ua_memory.retain.subagent import SubagentResult, _SubagentRun

    session = _SubagentRun([], None, None, SubagentResult())  # type: ignore[arg-type]
    assert session.tools(core=True).keys() - session.tools(core=False).keys() == {
        "core_memory_replace", "get_core_memory_blocks",
    }  # fmt: skip
    assert session._grounded_tags([f"group:{GROUP}"]) == ()


@pytest.mark.parametrize(
    ("key", "machine"),
    [
        ("agent:main:telegram:group:-1001", "group chat"), ("agent:main:discord:channel:c1", "group chat"),
        ("agent:main:telegram:group:-1:topic:3", "group chat"), ("agent:main:main", ""),
        ("agent:main:telegram:direct:77", ""), ("agent:main:subagent:1", "sub-agent"),
        ("agent:main:cron:1", "cron"),
    ],
)  # fmt: skip
def test_an_import_of_sessions_leaves_groups_out(key: str, machine: str) -> None:
    assert openclaw.automatic_speaker(key) == machine


# -- OpenClaw's plugin ---------------------------------------------------------------------------------------

DRIVER = """
import plugin, { group } from "./index.js";
const on = {}, tools = {};
let corpus, capability;
const agent = { resolveAgentWorkspaceDir: () => process.cwd() };
const runtime = { config: { current: () => ({}) }, agent };
const api = {
  runtime,
  on: (name, handler) => (on[name] = handler),
  registerMemoryCorpusSupplement: (found) => (corpus = found),
  registerMemoryCapability: (found) => (capability = found),
  registerTool: (make, { names: [name] }) => (tools[name] = make),
};
plugin.register(api);
const main = "agent:main:main", room = "agent:main:telegram:group:-1001";
const said = [];
const turn = async (ctx, text, trigger = "user") => {
  ctx = { trigger, workspaceDir: process.cwd(), ...ctx };
  said.push((await on.before_prompt_build({ prompt: text, messages: [] }, ctx)) ?? null);
  await on.agent_end({ messages: [{ role: "assistant", content: `answer to ${text}` }] }, ctx);
};
on.subagent_spawned({}, { childSessionKey: "agent:main:subagent:1", requesterSessionKey: main });
on.subagent_spawned({}, { childSessionKey: "agent:main:subagent:2", requesterSessionKey: room });
const call = (toolName, sessionKey, params = {}) =>
  Boolean(on.before_tool_call({ toolName, params }, { toolName, sessionKey })?.block);
const before = {
  keys: JSON.parse(process.argv[2]).map((sessionKey) => group({ sessionKey })),
  blocked: [
    call("ua-memory__recall", main), call("ua-memory__recall", room), call("read", room),
    call("tool_call", room, { id: "ua-memory__archival_memory_search" }),
    call("ua-memory__recall", undefined),
    call("ua-memory__recall", "agent:main:subagent:1"), call("ua-memory__recall", "agent:main:subagent:2"),
    call("ua-memory__recall", "agent:main:subagent:9"),
  ],
};
await turn({ sessionId: "d", sessionKey: main, chatId: "77" }, "direct");
await turn({ sessionId: "g", sessionKey: room }, "in the group");
await turn({ sessionId: "c", sessionKey: "agent:main:cron:1" }, "nightly", "cron");
on.before_dispatch({ sessionKey: main, isGroup: true }, { conversationId: "slack:channel:C9" });
await turn({ sessionId: "d", sessionKey: main, channel: "slack", chatId: "c9" }, "routed");
await turn({ sessionId: "d", sessionKey: main, chatId: "77" }, "direct again");
await on.session_end({ sessionId: "d", sessionKey: main, sessionFile: "/t.jsonl", reason: "new" });
await on.session_end({ sessionId: "g", sessionKey: room, sessionFile: "/g.jsonl", reason: "idle" });

// Other sessions than those above: into `main` a group was routed.
const [own, their] = ["agent:main:telegram:direct:7", room];
const beside = Boolean(capability) || Object.keys(tools).length;
const found = async (agentSessionKey) => [
  (await corpus.search({ query: "kiln", agentSessionKey })).length,
  Boolean(await corpus.get({ lookup: "memory/x.md", agentSessionKey })),
];
const supplement = [await found(own), await found(their), await found(main), await found(undefined)];
plugin.register({ ...api, config: { plugins: { slots: { memory: "ua-memory" } } } });
const availableTools = new Set(["memory_search"]);
const seen = (sessionKey) => [
  ...Object.keys(tools).filter((name) => tools[name]({ sessionKey, workspaceDir: process.cwd() })),
  ...capability.promptBuilder({ availableTools, agentSessionKey: sessionKey }).slice(0, 1),
];
const { manager } = await capability.runtime.getMemorySearchManager({ agentId: "main" });
const hits = (sessionKey) => manager.search("kiln", { sessionKey }).then((rows) => rows.length);
const slot = {
  plan: capability.flushPlanResolver({}),
  seen: [seen(own), seen(their)],
  blocked: [call("memory_search", own), call("memory_search", their), call("memory_get", undefined)],
  hits: [await hits(own), await hits(their), await hits(undefined)],
  allowed: [
    (await capability.runtime.authorizeSearchHits({ requesterSessionKey: own, hits: [1] })).length,
    (await capability.runtime.authorizeSearchHits({ requesterSessionKey: their, hits: [1] })).length,
  ],
  answered: await tools.memory_search({ sessionKey: own }).execute("1", { query: "kiln" }),
};
console.log(JSON.stringify({ said, beside, supplement, slot, ...before }));
"""
CALLED = """#!/bin/sh
here=$(dirname "$0")
case "$*" in
"mcp --call") grep -q memory_get && cat "$here/got" || cat "$here/found"; exit ;;
stats*) echo '{"files": 2, "facts": 3}'; exit ;;
esac
cat >> "$here/told"; echo >> "$here/told"
echo '{"hookSpecificOutput": {"additionalContext": "given"}}'
"""
ANSWERS = {
    "found": {"results": [{"path": "memory/x.md", "score": 1, "snippet": "the kiln"}]},
    "got": {"status": "ok", "path": "memory/x.md", "text": "x", "from": 1, "lines": 1},
}
KEYS = {
    "agent:main:main": "", "agent:main:telegram:direct:77": "", "agent:main:telegram:acct:dm:77": "",
    "agent:main:slack:direct:U1:thread:9": "", "agent:main:explicit:1": "", "agent:main:dashboard:1": "",
    "agent:main:telegram:group:-1001": "telegram:group:-1001",
    "agent:main:telegram:group:-1001:topic:5": "telegram:group:-1001",
    "agent:main:discord:channel:C1:thread:2": "discord:channel:c1",
    "agent:main:matrix:room:r": "matrix:room:r",
    "agent:main:123@g.us": "123@g.us", "agent:main:direct:group:1": "direct:group:1",
    "agent:main:incident-42": "incident-42", "global": "global", "": "unknown",
    "agent:main:cron:7": None, "cron:7": None, "agent:main:subagent:1": "", "agent:main:subagent:2": None,
    "agent:main:subagent:3": None,
}  # fmt: skip


def test_openclaw_s_plugin_tells_groups_from_direct_chats(tmp_path: Path) -> None:
    node = shutil.which("node")
    if not node:
        pytest.skip("no node here")
    entry = tmp_path / "node_modules" / "openclaw" / "plugin-sdk"
    entry.mkdir(parents=True)
    (entry / "plugin-entry.js").write_text("export const definePluginEntry = (entry) => entry;\n")
    exports = {"name": "openclaw", "type": "module", "exports": {"./plugin-sdk/*": "./plugin-sdk/*.js"}}
    (entry.parent / "package.json").write_text(json.dumps(exports))
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "called").write_text(CALLED)
    (tmp_path / "called").chmod(0o755)
    for name, answer in ANSWERS.items():
        (tmp_path / name).write_text(json.dumps({"failed": False, "text": json.dumps(answer)}))
    source = (Path(ua_memory.__file__).parent / "data/plugins/openclaw/index.js").read_text()
    assert 'COMMAND = ["ua-memory"]' in source
    source = source.replace('COMMAND = ["ua-memory"]', f"COMMAND = {json.dumps([str(tmp_path / 'called')])}")
    (tmp_path / "index.js").write_text(source)
    (tmp_path / "driver.js").write_text(DRIVER)
    done = subprocess.run(
        [node, "driver.js", json.dumps(list(KEYS))], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert dict(zip(KEYS, found["keys"], strict=True)) == KEYS
    assert found["blocked"] == [False, True, False, True, True, False, True, True]
    assert [bool(each) for each in found["said"]] == [True, True, False, True, True]
    assert not found["beside"] and found["supplement"] == [[1, True], [0, False], [0, False], [0, False]]
    slot = found["slot"]
    tools = ["memory_search", "memory_get"]
    assert slot["seen"] == [[*tools, "## Memory Recall"], []] and slot["plan"] is None
    assert slot["blocked"] == [False, True, True]
    assert slot["hits"] == [1, 0, 1] and slot["allowed"] == [1, 0]
    assert slot["answered"]["details"]["results"][0]["snippet"] == "the kiln"
    told = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines() if line]
    rows = [(row["hook_event_name"], row["session_id"], row.get("group"), row.get("prompt")) for row in told]
    group, routed = "telegram:group:-1001", "slack:group:c9"
    assert rows == [
        ("SessionStart", "d", "", None), ("UserPromptSubmit", "d", "", "direct"), ("Stop", "d", "", "direct"),
        ("SessionStart", "g", group, None), ("UserPromptSubmit", "g", group, "in the group"),
        ("Stop", "g", group, "in the group"),
        ("SessionStart", f"d@{routed}", routed, None), ("UserPromptSubmit", f"d@{routed}", routed, "routed"),
        ("Stop", f"d@{routed}", routed, "routed"),
        ("UserPromptSubmit", "d", "", "direct again"), ("Stop", "d", "", "direct again"),
        ("SessionEnd", "d", "", None), ("SessionEnd", f"d@{routed}", routed, None),
        ("SessionEnd", "g", group, None),
    ]  # fmt: skip
    assert [row["transcript_path"] for row in told[-3:]] == ["", "", "/g.jsonl"]


# -- Hermes's provider ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "group"),
    [
        ({}, ""),
        ({"platform": "cli"}, ""),
        ({"platform": "telegram", "chat_type": "dm", "chat_id": "77"}, ""),
        ({"platform": "telegram", "chat_type": "group", "chat_id": "-1001"}, GROUP),
        ({"platform": "discord", "chat_type": "channel", "chat_id": "C1"}, "discord:channel:c1"),
        ({"platform": "api_server"}, "api_server:group:unknown"),
    ],
)
def test_hermes_s_provider_tells_groups_from_direct_chats(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, str], group: str
) -> None:
    for name in ("agent", "agent.memory_provider"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules["agent.memory_provider"], "MemoryProvider", object, raising=False)
    source = Path(ua_memory.__file__).parent / "data/plugins/hermes/__init__.py.in"
    plugin: dict[str, Any] = {"__name__": "ua_memory_provider"}
    exec(compile(source.read_text(), "provider", "exec"), plugin)
    given: list[dict[str, Any]] = []

    def run(words: list[str], text: str, _: float) -> str:
        given.append({"words": words, **json.loads(text)})
        return '{"failed": false, "text": "found", "result": {"tools": []}}'

    plugin["_run"] = run
    provider = plugin["UaMemory"]()
    provider.initialize("s", **told)
    provider.prefetch("what is known?")
    assert [row["group"] for row in given] == [group, group]
    answer = json.loads(provider.handle_tool_call("recall", {"query": "x"}))
    assert ("error" in answer) == bool(group) and len(given) == (2 if group else 3)
    assert provider.get_tool_schemas() == [] and len(given) == (2 if group else 4)
