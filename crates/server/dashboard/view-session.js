// One session: what was said, as the next run sees it, and its runs.

import { h } from "./preact.js";
import * as api from "./api.js";
import { Table } from "./controls.js";
import { useData, useNow } from "./data.js";
import { joinText, partsOf } from "./fold-messages.js";
import { ago, clock, oneLine } from "./format.js";
import { Markdown } from "./markdown.js";
import { link, runLink } from "./route.js";
import { Empty, Guarded, Loaded } from "./states.js";
import { Status } from "./status.js";
import { VirtualList } from "./virtual-list.js";

export function SessionView({ session, query }) {
  const { tenant = "" } = query;
  const runs = useData((signal) => api.runs({ session, tenant, top_level: true }, signal), [session, tenant], { every: 2000 });
  return h("section", { class: "run" },
    h("h1", { tabIndex: -1 }, `Session ${session}`),
    h("p", { class: "actions" },
      h("a", { class: "button", href: link(["playground", session]) }, "Go on in the playground"),
      h("a", { class: "button", href: link(["tools"], { session }) }, "Its tools")),
    h(Loaded, { state: runs, what: "the runs of the session" }, (data) => h(SessionRuns, { runs: data.runs })),
    h(Guarded, { right: "read_logs" }, h(SessionMessages, { session, tenant, written: runs.data?.runs[0]?.updated_at ?? 0 })));
}

function SessionRuns({ runs }) {
  const now = useNow();
  return h(Table, { caption: "Runs of the session, the newest first", head: ["Task", "Status", "Last record"] },
    runs.map((run) => h("tr", { key: run.run_id },
      h("td", { class: "task" }, h("a", { href: runLink(run.run_id), "data-row": true }, oneLine(run.task, 80) || run.run_id)),
      h("td", null, h(Status, { status: run.status })),
      h("td", null, ago(run.updated_at, now)))));
}

/** The history is read again when a run of the session has written something, every 5 seconds at most. */
function SessionMessages({ session, tenant, written }) {
  const due = Math.ceil(written / 5000);
  const state = useData((signal) => api.messages(session, { tenant }, signal), [session, tenant, due], { keeps: true });
  return h(Loaded, { state, what: "the messages" }, ({ messages }) =>
    messages.length === 0
      ? h(Empty, { title: "Nothing was said yet." }, "The messages appear here once a run has them.")
      : h(VirtualList, {
          items: messages.map((message, index) => ({ message, index })), keyOf: ({ index }) => index, estimate: 90,
          label: "Messages", kind: "transcript", row: ({ message }) => h(MessageView, { message }),
        }));
}

const ROLES = { user: "Person", assistant: "Model", toolResult: "Tool" };

function MessageView({ message }) {
  const { role, tool_name: tool, timestamp } = message;
  const who = role === "toolResult" ? `Result of ${tool}` : (ROLES[role] ?? role);
  const calls = (message.content ?? []).filter((block) => block.type === "toolCall");
  const text = joinText(role === "user" ? partsOf(message).written : message.content);
  return h("article", { class: `item ${role === "user" ? "message" : "answer"}`, "aria-label": who },
    h("p", { class: "who" }, who, message.is_error ? h("span", { class: "bad" }, " failed") : null),
    role === "toolResult" ? h("div", { class: "plain" }, oneLine(text, 2000)) : h(Markdown, { text }),
    calls.map((call) => h("p", { key: call.id, class: "dim" }, "calls ", h("code", null, call.name), " ", oneLine(JSON.stringify(call.arguments), 200))),
    h("footer", { class: "dim small" }, h("time", null, clock(timestamp))));
}
