// ua-memory for OpenClaw. Written by `ua-memory install openclaw`, taken away by `ua-memory uninstall openclaw`.
//
// It stands beside OpenClaw's own memory. Each event goes to `ua-memory hook` as JSON with the names that Claude
// Code has for them; what is to be said and kept is decided there. What was recalled goes before the prompt of its
// own turn, core memory behind the system prompt. A group chat is named (`group`): it is given only what was said
// in it, and memory's tools are refused there.
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
  const before = going.get(session) ?? Promise.resolve();
  const answer = before.then(() => called(name, session, cwd, more)).catch(() => "");
  going.set(session, answer);
  answer.then(() => going.get(session) === answer && going.delete(session));
  return answer;
}

function called(name, session, cwd, more) {
  return new Promise((resolve) => {
    const [command, ...words] = COMMAND;
    const child = spawn(command, [...words, "hook", "--client", "openclaw"], {
      cwd,
      stdio: ["pipe", "pipe", "ignore"],
      timeout: 1000 * (SECONDS[name] ?? 10),
    });
    let said = "";
    child.on("error", () => resolve(""));
    child.stdin.on("error", () => {});
    child.stdout.on("data", (data) => (said += data));
    child.on("close", () => {
      try {
        resolve(JSON.parse(said).hookSpecificOutput.additionalContext ?? "");
      } catch {
        resolve("");
      }
    });
    child.stdin.end(JSON.stringify({ hook_event_name: name, session_id: session, transcript_path: "", cwd, ...more }));
  });
}

/** The text of the last assistant message among these. */
function lastSaid(messages) {
  const last = messages.filter((each) => each?.role === "assistant").pop();
  if (typeof last?.content === "string") return last.content.trim();
  const parts = Array.isArray(last?.content) ? last.content : [];
  return parts.filter((part) => part.type === "text").map((part) => part.text).join("\n").trim();
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

    api.on("before_tool_call", (event, ctx) => {
      const named = [event.toolName, event.params?.id, event.params?.name].filter((each) => typeof each === "string");
      if (!named.some((each) => OURS.test(each)) || group(ctx) === "") return;
      return { block: true, blockReason: "memory's tools answer in direct chats only; see ua-memory, docs/clients.md" };
    });
  },
});
