// How well tools and cycles work, over the newest runs, with alerts.

import { h } from "./preact.js";
import { useMemo } from "./hooks.js";
import * as api from "./api.js";
import { Facts, Field, Table } from "./controls.js";
import { useData } from "./data.js";
import { count, duration, percent, plural, short } from "./format.js";
import { link, runLink } from "./route.js";
import { Empty, Guarded, Loaded } from "./states.js";
import { LONGEST_CYCLE_MS, MOST_FAILED, figures, toolRows } from "./tool-figures.js";

/** The timelines that are asked for at a time. */
const AT_ONCE = 3;
const COUNTS = ["10", "25", "50", "100"];

export function ToolsView({ query }) {
  return h("section", null,
    h("h1", { tabIndex: -1 }, "Tools"),
    h(Guarded, { right: "read_logs" }, h(Overview, { query })));
}

function Overview({ query }) {
  const { runs = "25", session = "" } = query;
  const go = (change) => location.replace(link(["tools"], { ...query, ...change }));
  const state = useData((signal) => loadTimelines({ limit: runs, session }, signal), [runs, session]);
  return h("div", { class: "loaded" },
    h("form", { class: "filters", onSubmit: (event) => event.preventDefault() },
      h(Field, { label: "Newest runs", as: "select", value: runs, onChange: (event) => go({ runs: event.target.value }) },
        COUNTS.map((number) => h("option", { key: number, value: number }, number))),
      h(Field, { label: "Session", "data-search": true, value: session, onChange: (event) => go({ session: event.target.value.trim() }) }),
      h("button", { type: "button", onClick: state.reload }, "Read again")),
    h(Loaded, { state, what: "the timelines of the runs" }, (timelines) => h(Figures, { timelines })));
}

async function loadTimelines(query, signal) {
  const { runs } = await api.runs(query, signal);
  const waiting = runs.filter((run) => run.status !== "unreadable").map((run) => run.run_id);
  const found = [];
  const work = async () => {
    for (let run = waiting.shift(); run !== undefined; run = waiting.shift()) {
      found.push({ run, spans: (await api.timeline(run, signal)).spans });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return found;
}

function Figures({ timelines }) {
  const rows = useMemo(() => toolRows(timelines), [timelines]);
  const all = useMemo(() => figures(timelines), [timelines]);
  if (all.cycles === 0) return h(Empty, { title: "These runs have no calls." }, "Choose more runs, or another session.");
  return h("div", { class: "loaded" },
    h(Alerts, { rows, all }),
    h(Facts, {
      facts: [
        ["Runs", count(timelines.length)],
        ["Cycles", count(all.cycles)],
        ["Half of the cycles take less than", duration(all.p50)],
        ["95 % take less than", duration(all.p95)],
        ["Tool calls that succeed", percent(all.success)],
        ["Largest request", all.largest > 0 ? `${short(all.largest)} tokens` : null],
        ["Cached share of requests", percent(all.cached)],
      ],
    }),
    rows.length === 0 ? h("p", { class: "dim" }, "No tool was called.")
      : h(Table, { caption: "Tools, the one with the most calls first", head: ["Tool", "Calls", "Failed", "Refused", "Success", "p50", "p95", "Last failure"] },
          rows.map((row) => h(ToolRow, { key: row.tool, row }))));
}

function Alerts({ rows, all }) {
  const tools = rows.filter((row) => row.isAlert);
  const limit = `more than ${percent(MOST_FAILED)} of the calls`;
  if (tools.length === 0 && all.slow.length === 0) {
    return h("p", { class: "good", role: "status" }, h("span", { "aria-hidden": "true" }, "✓ "),
      `No alert: no tool failed in ${limit}, and no cycle took longer than ${duration(LONGEST_CYCLE_MS)}.`);
  }
  return h("div", { class: "failure", role: "alert" },
    h("p", { class: "strong" }, h("span", { "aria-hidden": "true" }, "! "), "Alerts"),
    h("ul", null,
      tools.map((row) => h("li", { key: row.tool }, `${row.tool} failed in ${row.failures} of ${plural(row.calls - row.refused, "call")}: ${limit}.`)),
      all.slow.slice(0, 5).map((cycle) => h("li", { key: `${cycle.run} ${cycle.seq}` },
        `A cycle took ${duration(cycle.ms)}: `, h("a", { href: runLink(cycle.run, cycle.seq) }, `record ${cycle.seq} of ${cycle.run}`), ".")),
      all.slow.length > 5 ? h("li", null, `${all.slow.length - 5} further cycles took longer than ${duration(LONGEST_CYCLE_MS)}.`) : null));
}

function ToolRow({ row }) {
  return h("tr", null,
    h("th", { scope: "row" }, h("code", null, row.tool), row.isAlert ? h("span", { class: "bad" }, " ! alert") : null),
    h("td", { class: "number" }, count(row.calls)),
    h("td", { class: "number" }, count(row.failures)),
    h("td", { class: "number" }, count(row.refused)),
    h("td", { class: "number" }, percent(row.success)),
    h("td", { class: "number" }, duration(row.p50)),
    h("td", { class: "number" }, duration(row.p95)),
    h("td", null, row.lastFailure === null ? "" : h("a", { href: runLink(row.lastFailure.run, row.lastFailure.seq), "data-row": true }, `record ${row.lastFailure.seq}`)));
}
