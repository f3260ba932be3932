// ua-memory for OpenClaw. Written by `ua-memory install openclaw`, taken away by `ua-memory uninstall openclaw`.
//
// Each event goes to `ua-memory hook` as JSON with the names that Claude Code has for them; what is to be said and
// kept is decided there. What was recalled goes before the prompt of its own turn, core memory behind the system
// prompt. A group chat is named (`group`): it is given only what was said in it, and memory's tools are refused there.
//
// Beside OpenClaw's own memory it is a corpus of that one's search. In the memory slot (`plugins.slots.memory`) it
// takes its place: the two tools, what the prompt says of them, and the search that OpenClaw itself asks.
import { spawn } from "node:child_process";
import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";

const COMMAND = ["ua-memory"];
const SECONDS = { PreCompact: 30, SessionEnd: 3 };

// A gateway has several copies of a plugin and tells the end of a session to another one than its prompts, and it
// awaits some events only (seen with 2026.9.6): what is known of sessions is there once, and one waits for another.
const { known, going, rooms, parents } = (globalThis[Symbol.for("ua-memory")] ??= {
  known: new Map(), // session → its folder, group and core memory
  going: new Map(), // session → its last event
  rooms: new Map(), // session key → the group chats that were routed into that session
  parents: new Map(), // a sub-agent's session key → that of the session it works for
});

const MACHINES = /^(cron|hook|acp|heartbeat)(:|$)/;
const DIRECT = /^(main$|(explicit|dashboard):|([^:]+:){0,2}(direct|dm):[^:]+(:thread:[^:]+)?$)/;
const OTHER = /(^|:)(group|channel|room):|@g\.us$/; // with a word for a person's chat in it, too, it is no such chat
const OURS = /^(mcp__)?ua[-_]memory__/;

// OpenClaw's two tools, with its parameters: ours when we have the slot, else its own.
const whole = { type: "integer", minimum: 1 };
const corpora = { type: "string", enum: ["memory", "wiki", "all", "sessions"] };
const TOOLS = {
  memory_search: {
    label: "Memory Search",
    description:
      "Mandatory recall step: search MEMORY.md and memory/*.md before you answer about earlier work, decisions, dates, " +
      "people, preferences or todos. Returns JSON; then read more with memory_get.",
    parameters: {
      type: "object",
      properties: {
        query: { type: "string" },
        maxResults: whole,
        minScore: { type: "number", minimum: 0 },
        corpus: corpora,
      },
      required: ["query"],
      additionalProperties: false,
    },
  },
  memory_get: {
    label: "Memory Get",
    description: "Read lines of MEMORY.md or of a file in memory/, as memory_search names them. Returns JSON.",
    parameters: {
      type: "object",
      properties: { path: { type: "string" }, from: whole, lines: whole, corpus: corpora },
      required: ["path"],
      additionalProperties: false,
    },
  },
};
const RECALL = [
  "## Memory Recall",
  "Search with memory_search before you answer about earlier work, decisions, dates, people, preferences or todos, and" +
    " read the lines that you need with memory_get. If you remain unsure, say that you looked.",
  "Where it helps the user to check, name the source as it stands in `citation`: path#line.",
  "",
];

/** What a conversation is to memory: "" a direct chat, a name for a group, null what no person speaks in.
 *
 * As OpenClaw itself does before it adds MEMORY.md, by the session's key (its hooks pass no chat type); but what it
 * does not know to be direct is a group here. `session.groupScope: "main"` routes groups into a direct chat's
 * session: then the chat that the message came from decides.
 */
export function group(ctx) {
  const full = (ctx.sessionKey ?? "").toLowerCase();
  const key = full.replace(/^agent:[^:]*:/, "");
  if (key.startsWith("subagent:")) return parents.has(full) && group({ sessionKey: parents.get(full) }) === "" ? "" : null;
  if (MACHINES.test(key)) return null;
  if (!DIRECT.test(key) || OTHER.test(key)) return key.replace(/:(thread|topic):.*$/, "") || "unknown";
  const routed = rooms.get(full);
  const chat = bare(ctx.chatId ?? ctx.channelId);
  return routed && (!chat || routed.has(chat)) ? `${ctx.channel ?? "chat"}:group:${chat || "unknown"}` : "";
}

/** A chat's id without what some events put before it (`telegram:group:-100…`). */
function bare(id) {
  return String(id ?? "").toLowerCase().split(":").pop();
}

/** What a hook answers, as text for the model; "" whatever goes wrong: memory never stands in the way. */
function hook(name, session, cwd, more = {}) {
  const told = { hook_event_name: name, session_id: session, transcript_path: "", cwd, ...more };
  const before = going.get(session) ?? Promise.resolve();
  const answer = before
    .then(() => run(["hook", "--client", "openclaw"], told, cwd, SECONDS[name] ?? 10))
    .then((said) => JSON.parse(said).hookSpecificOutput.additionalContext ?? "")
    .catch(() => "");
  going.set(session, answer);
  answer.then(() => going.get(session) === answer && going.delete(session));
  return answer;
}

/** What `ua-memory WORDS` prints, given `told` as JSON; "" where it cannot be run. */
function run(words, told, cwd, seconds) {
  return new Promise((resolve) => {
    const [command, ...first] = COMMAND;
    const stdio = ["pipe", "pipe", "ignore"];
    const child = spawn(command, [...first, ...words], { cwd, stdio, timeout: 1000 * seconds });
    let said = "";
    child.on("error", () => resolve(""));
    child.stdin.on("error", () => {});
    child.stdout.on("data", (data) => (said += data));
    child.on("close", () => resolve(said));
    child.stdin.end(JSON.stringify(told));
  });
}

/** What one of OpenClaw's two tools answers: an object with the keys that its own have. */
async function asked(tool, given, cwd, session) {
  try {
    const told = { tool, arguments: given, client: "openclaw", session };
    const found = JSON.parse(await run(["mcp", "--call"], told, cwd, 60));
    return found.failed ? { ...nothing(tool), error: found.text } : JSON.parse(found.text);
  } catch {
    return { ...nothing(tool), error: "memory cannot be asked", action: "in a shell: ua-memory doctor" };
  }
}

function nothing(tool) {
  if (tool === "memory_get") return { status: "error", code: "MEMORY_READ_FAILED", text: "" };
  return { results: [], disabled: true, unavailable: true };
}

/** The text of the last assistant message among these. */
function lastSaid(messages) {
  const last = messages.filter((each) => each?.role === "assistant").pop();
  if (typeof last?.content === "string") return last.content.trim();
  const parts = Array.isArray(last?.content) ? last.content : [];
  return parts.filter((part) => part.type === "text").map((part) => part.text).join("\n").trim();
}

/** The workspace of an agent, which is where its bank is looked for. */
function workspace(api, agentId) {
  const config = api.runtime.config.current();
  return api.runtime.agent.resolveAgentWorkspaceDir(config, agentId ?? "main");
}

/** Whether a session is a direct chat of the owner's, and no group was ever routed into it. */
function alone(sessionKey) {
  return group({ sessionKey }) === "" && !rooms.has(String(sessionKey).toLowerCase());
}

/** Memory as one more corpus of OpenClaw's own `memory_search` and `memory_get` (`corpus: "all"`). */
function corpus(api) {
  api.registerMemoryCorpusSupplement({
    async search({ query, maxResults, agentId, agentSessionKey }) {
      if (!alone(agentSessionKey)) return [];
      const given = { query, ...(maxResults && { maxResults }) };
      const { results, error } = await asked("memory_search", given, workspace(api, agentId));
      if (error) throw new Error(error);
      return results.map((each) => ({ ...each, corpus: "ua-memory", source: "ua-memory" }));
    },
    async get({ lookup, fromLine, lineCount, agentId, agentSessionKey }) {
      if (!alone(agentSessionKey)) return null;
      const given = { path: lookup, ...(fromLine && { from: fromLine }), ...(lineCount && { lines: lineCount }) };
      const { status, path, text, from, lines } = await asked("memory_get", given, workspace(api, agentId));
      return status === "ok" ? { corpus: "ua-memory", path, content: text, fromLine: from, lineCount: lines } : null;
    },
  });
}

/** Memory in the slot. There is no flush plan: OpenClaw's flush is a turn of its own model that writes into the
 * workspace, whoever spoke in the session; the events below flush each session with its speakers' names. It must be
 * said to be none, else that of memory-core stays. */
function slot(api) {
  api.registerMemoryCapability({
    deterministicRecallToolName: "memory_search",
    flushPlanResolver: () => null,
    promptBuilder: ({ availableTools, agentSessionKey }) =>
      availableTools.has("memory_search") && (!agentSessionKey || alone(agentSessionKey)) ? RECALL : [],
    runtime: {
      resolveMemoryBackendConfig: () => ({ backend: "builtin" }),
      async getMemorySearchManager({ agentId }) {
        return { manager: await manager(workspace(api, agentId)) };
      },
      async authorizeSearchHits({ requesterSessionKey, hits }) {
        return alone(requesterSessionKey) ? hits : [];
      },
    },
  });
  for (const [name, { label, description, parameters }] of Object.entries(TOOLS)) {
    const made = (ctx) => {
      const chat = { sessionKey: ctx.sessionKey, channel: ctx.messageChannel, chatId: ctx.nativeChannelId };
      if (group(chat) !== "") return null;
      const execute = async (_id, given) => {
        const details = await asked(name, given, ctx.workspaceDir ?? workspace(api, ctx.agentId), ctx.sessionId);
        return { content: [{ type: "text", text: JSON.stringify(details, null, 2) }], details };
      };
      return { name, label, description, parameters, execute };
    };
    api.registerTool(made, { names: [name] });
  }
}

/** What OpenClaw asks memory by when no model does: its settings page, its doctor, its own recall. */
async function manager(cwd) {
  const { files, facts } = JSON.parse((await run(["stats", "--json"], {}, cwd, 30)) || "{}");
  const there = { enabled: true, available: true };
  const status = { backend: "builtin", provider: "ua-memory", files, chunks: facts, vector: there, fts: there };
  return {
    async search(query, { maxResults, minScore, sessionKey } = {}) {
      if (sessionKey && !alone(sessionKey)) return [];
      const given = { query, ...(maxResults && { maxResults }), ...(minScore !== undefined && { minScore }) };
      const { results, error } = await asked("memory_search", given, cwd);
      if (error) throw new Error(error);
      return results;
    },
    async readFile({ relPath, from, lines }) {
      return asked("memory_get", { path: relPath, ...(from && { from }), ...(lines && { lines }) }, cwd);
    },
    status: () => ({ ...status, sources: ["memory"], workspaceDir: cwd }),
    probeEmbeddingAvailability: async () => ({ ok: true }),
    probeVectorAvailability: async () => true,
  };
}

export default definePluginEntry({
  id: "ua-memory",
  name: "ua-memory",
  description: "Long-term memory as markdown files: recalled at each prompt, kept from each session.",
  register(api) {
    // What a group said that was routed into a direct chat's session is a session of its own.
    const own = (ctx, room) => (room && rooms.has(ctx.sessionKey?.toLowerCase()) ? `${ctx.sessionId}@${room}` : ctx.sessionId);
    const all = (id) => [...known.keys()].filter((name) => name === id || name.startsWith(`${id}@`));
    // A transcript that several chats share is not read as the one's or the other's.
    const file = (event, id) => (all(id).length > 1 || rooms.has(event.sessionKey?.toLowerCase()) ? "" : (event.sessionFile ?? ""));

    async function started(name, found, source) {
      const core = await hook("SessionStart", name, found.cwd, { source, group: found.room });
      known.set(name, { ...found, core });
      return known.get(name);
    }

    api.on("before_dispatch", (event, ctx) => {
      const key = (event.sessionKey ?? ctx.sessionKey)?.toLowerCase();
      if (!event.isGroup || !key) return;
      rooms.set(key, (rooms.get(key) ?? new Set()).add(bare(ctx.conversationId ?? ctx.channelId)));
    });

    api.on("subagent_spawned", (event, ctx) => {
      const [child, parent] = [ctx.childSessionKey ?? event.childSessionKey, ctx.requesterSessionKey];
      if (child && parent) parents.set(child.toLowerCase(), parent.toLowerCase());
    });

    api.on("before_prompt_build", async (event, ctx) => {
      const room = group(ctx);
      if (!ctx.sessionId || room === null) return;
      const name = own(ctx, room);
      const fresh = { cwd: ctx.workspaceDir ?? process.cwd(), room };
      const { cwd, core } = known.get(name) ?? (await started(name, fresh, "startup"));
      const asked = event.currentUserMessage ?? event.prompt;
      const person = !ctx.trigger || ctx.trigger === "user";
      if (person) known.get(name).asked = asked;
      const recalled = person && asked ? await hook("UserPromptSubmit", name, cwd, { prompt: asked, group: room }) : "";
      return { ...(recalled && { prependContext: recalled }), ...(core && { appendSystemContext: core }) };
    });

    api.on("agent_end", async (event, ctx) => {
      const room = group(ctx);
      const name = own(ctx, room);
      const { cwd, asked } = (room !== null && known.get(name)) || {};
      if (!cwd || !asked) return;
      known.get(name).asked = "";
      const said = { prompt: asked, last_assistant_message: lastSaid(event.messages) };
      await hook("Stop", name, cwd, { ...said, group: room });
    });

    api.on("before_compaction", async (event, ctx) => {
      const transcript_path = file({ ...ctx, ...event }, ctx.sessionId);
      for (const name of all(ctx.sessionId)) {
        const { cwd, room } = known.get(name);
        await hook("PreCompact", name, cwd, { trigger: "auto", transcript_path, group: room });
      }
    });

    api.on("after_compaction", async (_event, ctx) => {
      for (const name of all(ctx.sessionId)) await started(name, known.get(name), "compact");
    });

    api.on("session_end", async (event) => {
      const reason = event.reason === "new" || event.reason === "reset" ? "clear" : event.reason;
      const transcript_path = file(event, event.sessionId);
      for (const name of all(event.sessionId)) {
        const { cwd, room } = known.get(name);
        known.delete(name);
        await hook("SessionEnd", name, cwd, { reason, transcript_path, group: room });
      }
    });

    const selected = api.config?.plugins?.slots?.memory === "ua-memory";
    if (selected) slot(api);
    else corpus(api);

    api.on("before_tool_call", (event, ctx) => {
      const named = [event.toolName, event.params?.id, event.params?.name].filter((each) => typeof each === "string");
      const ours = (name) => OURS.test(name) || (selected && Object.hasOwn(TOOLS, name));
      if (!named.some(ours) || group(ctx) === "") return;
      return { block: true, blockReason: "memory's tools answer in direct chats only; see ua-memory, docs/clients.md" };
    });
  },
});
