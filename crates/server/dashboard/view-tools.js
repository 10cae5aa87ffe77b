// How well tools and turns work, over the newest runs, with alerts.

import { h } from "./preact.js";
import * as api from "./api.js";
import { Facts, Field, Table } from "./controls.js";
import { useData } from "./data.js";
import { count, duration, money, percent, short } from "./format.js";
import { alertText, requestFigures, toolRows } from "./performance.js";
import { link, runLink } from "./route.js";
import { Empty, Loaded } from "./states.js";

const COUNTS = ["10", "50", "100", "500"];

export function ToolsView({ query }) {
  const { runs = "50", session = "" } = query;
  const go = (change) => location.replace(link(["tools"], { ...query, ...change }));
  const state = useData((signal) => api.usage({ limit: runs, session }, signal), [runs, session], { keeps: true });
  return h("section", null,
    h("h1", { tabIndex: -1 }, "Tools"),
    h("form", { class: "filters", onSubmit: (event) => event.preventDefault() },
      h(Field, { label: "Newest runs", as: "select", value: runs, onChange: (event) => go({ runs: event.target.value }) },
        COUNTS.map((number) => h("option", { key: number, value: number }, number))),
      h(Field, { label: "Session", "data-search": true, value: session, onChange: (event) => go({ session: event.target.value.trim() }) }),
      h("button", { type: "button", onClick: state.reload }, "Read again")),
    h(Loaded, { state, what: "the figures of the runs" }, (usage) => h(Figures, { usage })));
}

function Figures({ usage: { runs, total, performance } }) {
  const { turns, alerts } = performance;
  const rows = toolRows(performance);
  const { average, cached } = requestFigures(runs);
  if (runs.length === 0) return h(Empty, { title: "There are no runs here." }, "Choose another session, or start a run in the ", h("a", { href: link(["playground"]) }, "playground"), ".");
  return h("div", { class: "loaded" },
    h(Alerts, { alerts }),
    h(Facts, {
      facts: [
        ["Runs", count(runs.length)],
        ["Turns", count(turns.count)],
        ["Half of the turns take at most", turns.count > 0 ? duration(turns.p50_ms) : null],
        ["95 % take at most", turns.count > 0 ? duration(turns.p95_ms) : null],
        ["The longest takes", turns.count > 0 ? duration(turns.max_ms) : null],
        ["A request reads on average", average === null ? null : `${short(average)} tokens`],
        ["Of these cached", percent(cached)],
        ["Tokens", short(total.tokens)],
        ["Cost", money(total.cost_micros)],
      ],
    }),
    rows.length === 0
      ? h("p", { class: "dim" }, "No tool was called.")
      : h(Table, { caption: "Tools, the one with the most calls first", head: ["Tool", "Calls", "Failed", "Refused", "Success", "p50", "p95", "Longest"] },
          rows.map((row) => h(ToolRow, { key: row.tool, row }))));
}

function Alerts({ alerts }) {
  if (alerts.length === 0) {
    return h("p", { class: "good", role: "status" }, h("span", { "aria-hidden": "true" }, "✓ "),
      "No alert: no tool failed in more than 20 % of its calls, and no turn took more than 30 s.");
  }
  return h("div", { class: "failure", role: "alert" },
    h("p", { class: "strong" }, h("span", { "aria-hidden": "true" }, "! "), "Alerts"),
    h("ul", null, alerts.map((alert, index) => h("li", { key: index },
      alertText(alert), alert.run ? [" in ", h("a", { href: runLink(alert.run), "data-row": true }, alert.run)] : null, "."))));
}

function ToolRow({ row: { tool, calls, failures, refused, success, isAlert, durations } }) {
  return h("tr", null,
    h("th", { scope: "row" }, h("code", null, tool), isAlert ? h("span", { class: "bad" }, " ! alert") : null),
    h("td", { class: "number" }, count(calls)),
    h("td", { class: "number" }, count(failures)),
    h("td", { class: "number" }, count(refused)),
    h("td", { class: "number" }, percent(success)),
    h("td", { class: "number" }, duration(durations.p50_ms)),
    h("td", { class: "number" }, duration(durations.p95_ms)),
    h("td", { class: "number" }, duration(durations.max_ms)));
}
