// ua-memory for OpenCode. Written by `ua-memory install opencode`, taken away by `ua-memory uninstall opencode`.
//
// Each event of OpenCode goes to `ua-memory hook` as JSON with the names that Claude Code has for them; what is to
// be said and kept is decided there. Core memory stands in the system prompt, what was recalled beside the prompt
// that it is for, in the request alone: neither is in the session.
import { spawn } from "node:child_process";

const COMMAND = ["ua-memory"];
const SECONDS = { PreCompact: 30, SessionEnd: 5 };

let before = Promise.resolve("");

/** What a hook answers, as text for the model; "" whatever goes wrong: memory never stands in the way. One after
 * the other: `opencode run` ends while the answer is still being saved. */
function hook(...event) {
  before = before.then(() => ask(...event));
  return before;
}

function ask(cwd, name, session, more = {}) {
  return new Promise((resolve) => {
    let said = "";
    const [command, ...words] = COMMAND;
    const child = spawn(command, [...words, "hook", "--client", "opencode"], {
      cwd,
      stdio: ["pipe", "pipe", "ignore"],
      timeout: 1000 * (SECONDS[name] ?? 10),
      env: { ...process.env, OPENCODE: "1" },
    });
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
    child.stdin.end(JSON.stringify({ hook_event_name: name, session_id: session, cwd, ...more }));
  });
}

/** The words of a message, without what the client itself put beside them. */
function text(parts) {
  const own = (parts ?? []).filter((part) => part.type === "text" && !part.synthetic && !part.ignored);
  return own.map((part) => part.text).join("\n").trim();
}

export const UaMemory = async ({ client, directory }) => {
  const sessions = new Map();
  const agents = new Set();

  async function begin(id, source) {
    if (!sessions.has(id)) {
      const { data } = await client.session.get({ path: { id } }).catch(() => ({}));
      if (data?.parentID) agents.add(id);
      else sessions.set(id, { core: await hook(directory, "SessionStart", id, { source }), prompt: "", recalled: "", message: "" });
    }
    return sessions.get(id);
  }

  async function end(id, reason) {
    if (sessions.delete(id)) await hook(directory, "SessionEnd", id, { reason });
  }

  return {
    "chat.message": async ({ sessionID }, { message, parts }) => {
      const prompt = text(parts).replace(/^"([^"]*)"$/, "$1"); // `opencode run` puts its words in quotes
      const session = agents.has(sessionID) ? undefined : await begin(sessionID, "startup");
      if (!session || !prompt) return;
      session.prompt = prompt;
      session.message = message.id;
      session.recalled = await hook(directory, "UserPromptSubmit", sessionID, { prompt });
    },

    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      const core = sessions.get(sessionID)?.core;
      if (core) system.push(core);
    },

    "experimental.chat.messages.transform": async (_input, { messages }) => {
      for (const { info, parts } of messages) {
        const session = sessions.get(info.sessionID);
        if (!session?.recalled || session.message !== info.id) continue;
        const id = `prt_${info.id}_ua_memory`;
        parts.push({ id, sessionID: info.sessionID, messageID: info.id, type: "text", text: session.recalled, synthetic: true });
      }
    },

    "experimental.session.compacting": async ({ sessionID }) => {
      if (sessions.has(sessionID)) await hook(directory, "PreCompact", sessionID, { trigger: "auto" });
    },

    event: async ({ event }) => {
      const id = event.properties?.sessionID ?? event.properties?.info?.id;
      const session = sessions.get(id);
      if (event.type === "session.deleted") await end(id, "other");
      if (!session) return;
      if (event.type === "session.compacted") session.core = await hook(directory, "SessionStart", id, { source: "compact" });
      if (event.type !== "session.idle" || !session.prompt) return;
      const { prompt } = session;
      session.prompt = session.recalled = "";
      const { data } = await client.session.messages({ path: { id } }).catch(() => ({}));
      const said = (data ?? []).filter((each) => each.info.role === "assistant").map((each) => text(each.parts));
      await hook(directory, "Stop", id, { prompt, last_assistant_message: said.filter(Boolean).pop() ?? "" });
    },

    dispose: async () => {
      for (const id of [...sessions.keys()]) await end(id, "other");
    },
  };
};
