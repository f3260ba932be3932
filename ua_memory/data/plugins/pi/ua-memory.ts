// ua-memory for pi. Written by `ua-memory install pi`, taken away by `ua-memory uninstall pi`.
//
// Each event of pi goes to `ua-memory hook` as JSON with the names that Claude Code has for them; what is to be
// said and kept is decided there. What was recalled stands in the context of its own turn alone and in no session
// file: it is laid over the messages of each request (`context`), and older ones are taken out of them.
import { spawn } from "node:child_process";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";

const COMMAND: string[] = ["ua-memory"];
const RECALL = "hindsight-recall";
const SOURCES: Record<string, string> = { startup: "startup", reload: "resume", new: "clear", resume: "resume", fork: "fork" };
const SECONDS: Record<string, number> = { PreCompact: 30, SessionEnd: 3 };

/** What a hook answers, as text for the model; "" whatever goes wrong: memory never stands in the way. */
function hook(ctx: ExtensionContext, name: string, more: Record<string, unknown> = {}): Promise<string> {
  return new Promise((resolve) => {
    let said = "";
    let event = "";
    try {
      const session = ctx.sessionManager;
      event = JSON.stringify({
        hook_event_name: name,
        session_id: session.getSessionId(),
        transcript_path: session.getSessionFile() ?? "",
        parent_session_id: /_([^_/\\]+)\.jsonl$/.exec(session.getHeader()?.parentSession ?? "")?.[1],
        cwd: ctx.cwd,
        ...more,
      });
    } catch {
      return resolve("");
    }
    const [command, ...words] = COMMAND;
    const child = spawn(command, [...words, "hook", "--client", "pi"], {
      cwd: ctx.cwd,
      stdio: ["pipe", "pipe", "ignore"],
      timeout: 1000 * (SECONDS[name] ?? 10),
      env: { ...process.env, PI_CODING_AGENT: "1" },
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
    child.stdin.end(event);
  });
}

/** The text of the last assistant message among these. */
function lastSaid(messages: any[]): string {
  const last = messages.filter((each) => each.role === "assistant").pop();
  const parts = Array.isArray(last?.content) ? last.content : [];
  return parts.filter((part: any) => part.type === "text").map((part: any) => part.text).join("\n").trim();
}

export default function (pi: ExtensionAPI) {
  let core = "";
  let recalled = "";
  let said = "";

  pi.on("session_start", async (event, ctx) => {
    core = await hook(ctx, "SessionStart", { source: SOURCES[event.reason] ?? "startup" });
  });

  pi.on("before_agent_start", async (event, ctx) => {
    recalled = "";
    if (core) event.systemPromptOptions.sections = { ...event.systemPromptOptions.sections, "ua-memory": core };
    if (event.messageType !== "custom" && event.prompt) {
      recalled = await hook(ctx, "UserPromptSubmit", { prompt: event.prompt });
    }
  });

  pi.on("context", async (event) => {
    const messages = event.messages.filter((each: any) => each.customType !== RECALL);
    if (recalled) {
      const at = messages.map((each: any) => each.role).lastIndexOf("user") + 1;
      const mine = { role: "custom", customType: RECALL, content: recalled, display: false, timestamp: Date.now() };
      messages.splice(at, 0, mine as any);
    }
    if (recalled || messages.length < event.messages.length) return { messages };
  });

  pi.on("agent_end", async (event) => {
    said = lastSaid(event.messages);
  });

  pi.on("agent_settled", async (_event, ctx) => {
    recalled = "";
    await hook(ctx, "Stop", { last_assistant_message: said });
  });

  pi.on("session_before_compact", async (event, ctx) => {
    const trigger = event.reason === "threshold" ? "auto" : event.reason;
    await hook(ctx, "PreCompact", { trigger, custom_instructions: event.customInstructions });
  });

  pi.on("session_compact", async (_event, ctx) => {
    core = await hook(ctx, "SessionStart", { source: "compact" });
  });

  pi.on("session_shutdown", async (event, ctx) => {
    if (event.reason === "reload") return;
    await hook(ctx, "SessionEnd", { reason: event.reason === "new" ? "clear" : event.reason });
  });
}
