// The sessions: conversations that runs belong to.

import { h } from "./preact.js";
import * as api from "./api.js";
import { Field, Table } from "./controls.js";
import { useData, useNow } from "./data.js";
import { ago, count, oneLine } from "./format.js";
import { link, runLink } from "./route.js";
import { Empty, Guarded, Loaded } from "./states.js";
import { Status } from "./status.js";

export function SessionsView({ query }) {
  return h("section", null,
    h("h1", { tabIndex: -1 }, "Sessions"),
    h(Guarded, { right: "read_logs" }, h(SessionList, { text: query.text ?? "" })));
}

function SessionList({ text }) {
  const state = useData(api.sessions, [], { every: 5000 });
  const now = useNow();
  return h("div", { class: "loaded" },
    h("form", { class: "filters", role: "search", onSubmit: (event) => event.preventDefault() },
      h(Field, { label: "Text", type: "search", "data-search": true, value: text, onInput: (event) => location.replace(link(["sessions"], { text: event.target.value })) })),
    h(Loaded, { state, what: "the sessions" }, ({ sessions }) => {
      const words = text.trim().toLowerCase();
      const shown = sessions.filter(({ task, session }) => `${task} ${session}`.toLowerCase().includes(words));
      return shown.length === 0
        ? h(Empty, { title: "There are no sessions here." }, "A session begins with the first message to an agent, for instance in the ", h("a", { href: link(["playground"]) }, "playground"), ".")
        : h(Table, { caption: "Sessions, the one that was last written first", head: ["First task", "Newest run", "Runs", "Last record"] },
            shown.map((session) => h(SessionRow, { key: `${session.tenant} ${session.session}`, session, now })));
    }));
}

function SessionRow({ session: { session, tenant, run, status, updated_at: updated, task, runs }, now }) {
  return h("tr", null,
    h("td", { class: "task" },
      h("a", { href: link(["sessions", session], { tenant }), "data-row": true }, oneLine(task, 80) || session),
      h("div", { class: "dim small" }, session)),
    h("td", null, h("a", { href: runLink(run), title: `Newest run ${run}` }, h(Status, { status }))),
    h("td", { class: "number" }, count(runs)),
    h("td", null, ago(updated, now)));
}
