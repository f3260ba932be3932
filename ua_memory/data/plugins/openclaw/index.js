// ua-memory for OpenClaw. Written by `ua-memory install openclaw`, taken away by `ua-memory uninstall openclaw`.
//
// It stands beside OpenClaw's own memory. Each event goes to `ua-memory hook` as JSON with the names that Claude
// Code has for them; what is to be said and kept is decided there. What was recalled goes before the prompt of its
// own turn, core memory behind the system prompt.
import { spawn } from "node:child_process";
import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";

const COMMAND = ["ua-memory"];
const SECONDS = { PreCompact: 30, SessionEnd: 3 };

// A gateway has several copies of a plugin and tells the end of a session to another one than its prompts, and it
// awaits some events only (seen with 2026.9.6): what is known of sessions is there once, and one waits for another.
const { known, going } = (globalThis[Symbol.for("ua-memory")] ??= {
  known: new Map(), // session → its folder and core memory
  going: new Map(), // session → its last event
});

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
    async function started(ctx, source) {
      const cwd = ctx.workspaceDir ?? known.get(ctx.sessionId)?.cwd ?? process.cwd();
      const core = await hook("SessionStart", ctx.sessionId, cwd, { source });
      known.set(ctx.sessionId, { cwd, core });
      return known.get(ctx.sessionId);
    }

    api.on("before_prompt_build", async (event, ctx) => {
      if (!ctx.sessionId) return;
      const { cwd, core } = known.get(ctx.sessionId) ?? (await started(ctx, "startup"));
      const asked = event.currentUserMessage ?? event.prompt;
      const person = !ctx.trigger || ctx.trigger === "user";
      if (person) known.get(ctx.sessionId).asked = asked;
      const recalled = person && asked ? await hook("UserPromptSubmit", ctx.sessionId, cwd, { prompt: asked }) : "";
      return { ...(recalled && { prependContext: recalled }), ...(core && { appendSystemContext: core }) };
    });

    api.on("agent_end", async (event, ctx) => {
      const { cwd, asked } = known.get(ctx.sessionId) ?? {};
      if (!cwd || !asked) return;
      known.get(ctx.sessionId).asked = "";
      await hook("Stop", ctx.sessionId, cwd, { prompt: asked, last_assistant_message: lastSaid(event.messages) });
    });

    api.on("before_compaction", async (event, ctx) => {
      const cwd = known.get(ctx.sessionId)?.cwd;
      if (cwd) await hook("PreCompact", ctx.sessionId, cwd, { trigger: "auto", transcript_path: event.sessionFile ?? "" });
    });

    api.on("after_compaction", async (_event, ctx) => {
      if (known.has(ctx.sessionId)) await started(ctx, "compact");
    });

    api.on("session_end", async (event) => {
      const cwd = known.get(event.sessionId)?.cwd;
      known.delete(event.sessionId);
      const reason = event.reason === "new" || event.reason === "reset" ? "clear" : event.reason;
      if (cwd) await hook("SessionEnd", event.sessionId, cwd, { reason, transcript_path: event.sessionFile ?? "" });
    });
  },
});
