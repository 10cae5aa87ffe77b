// The list of runs: live state, filters, money.

import { h } from "./preact.js";
import { useEffect, useMemo, useRef, useState } from "./hooks.js";
import * as api from "./api.js";
import { Field, Table } from "./controls.js";
import { Costs } from "./costs.js";
import { useData, useNow } from "./data.js";
import { ago, money, oneLine, plural, short } from "./format.js";
import { link, runLink } from "./route.js";
import { Empty, Loaded } from "./states.js";
import { Status, wordOf } from "./status.js";

const STATUSES = ["running", "suspended", "interrupted", "created", "finished", "failed", "limit", "cancelled", "unreadable"];
/** The number of runs that are listed, and the most that the server lists. */
const [PAGE, MOST] = [50, 500];

export function RunsView({ query }) {
  const { status = "", text = "", session = "", children = "" } = query;
  const [limit, setLimit] = useState(PAGE);
  const filter = { status, session, top_level: children === "", limit };
  const state = useData((signal) => api.runs(filter, signal), [status, session, children, limit], { every: 2000, keeps: true });
  const go = (change) => location.replace(link(["runs"], { ...query, ...change }));
  return h("section", null,
    h("h1", { tabIndex: -1 }, "Runs"),
    h(Filters, { query, go }),
    h(Loaded, { state, what: "the runs" }, (data) =>
      h(RunList, { runs: data.runs, text, limit, more: data.next === null ? null : () => setLimit(Math.min(MOST, limit + PAGE)) })));
}

function Filters({ query, go }) {
  return h("form", { class: "filters", role: "search", onSubmit: (event) => event.preventDefault() },
    h(Field, { label: "Text", type: "search", "data-search": true, value: query.text ?? "", onInput: (event) => go({ text: event.target.value }) }),
    h(Field, { label: "Status", as: "select", value: query.status ?? "", onChange: (event) => go({ status: event.target.value }) },
      h("option", { value: "" }, "all"),
      STATUSES.map((status) => h("option", { key: status, value: status }, wordOf(status)))),
    h(Field, { label: "Session", value: query.session ?? "", onChange: (event) => go({ session: event.target.value.trim() }) }),
    h(Field, { label: "Child runs too", type: "checkbox", checked: query.children !== undefined, onChange: (event) => go({ children: event.target.checked ? "1" : "" }) }));
}

/** Returns true if a run has the words of the filter: in its task, its id, its kind or its session. */
export function matches(run, text) {
  const place = [run.task, run.run_id, run.kind, run.session, run.tenant].join(" ").toLowerCase();
  return text.toLowerCase().split(/\s+/).every((word) => place.includes(word));
}

function RunList({ runs, text, limit, more }) {
  const now = useNow();
  const costs = useCosts(runs);
  const shown = useMemo(() => runs.filter((run) => matches(run, text)), [runs, text]);
  if (runs.length === 0) {
    return h(Empty, { title: "There are no runs here." },
      "Start one in the ", h("a", { href: link(["playground"]) }, "playground"), ", or remove the filters.");
  }
  return h("div", null,
    h("p", { class: "dim", role: "status" }, `${plural(shown.length, "run")}${more === null ? "" : " of the newest"}`),
    h(Table, { caption: "Runs, the one that was last written first", head: ["Task", "Status", "Kind", "Last record", "Tokens", "Cost"] },
      shown.map((run) => h(RunRow, { key: run.run_id, run, now, cost: costs.get(run.run_id) }))),
    more === null ? null : h("button", { type: "button", onClick: more, disabled: limit >= MOST },
      limit >= MOST ? `The newest ${MOST} runs are shown: use the filters` : "Show more runs"));
}

function RunRow({ run, now, cost }) {
  const tokens = cost === undefined ? "" : short(cost.usage.total_tokens + cost.child_spending.tokens);
  const micros = cost === undefined || cost.cost_micros === null ? null : cost.cost_micros + cost.child_spending.cost_micros;
  return h("tr", { id: `run-${run.run_id}` },
    h("td", { class: "task" },
      h("a", { href: runLink(run.run_id), "data-row": true }, oneLine(run.task, 80) || "(no task)"),
      h("div", { class: "dim small" }, run.run_id, run.called_by ? [", called by ", h("a", { href: runLink(run.called_by) }, run.called_by)] : null),
      run.problem ? h("div", { class: "small bad" }, run.problem) : null),
    h("td", null, h(Status, { status: run.status })),
    h("td", null, run.kind ?? ""),
    h("td", { title: new Date(run.updated_at).toLocaleString() }, ago(run.updated_at, now)),
    h("td", { class: "number" }, tokens),
    h("td", { class: "number" }, money(micros)));
}

/** The use of the runs on the screen, which is asked for one after the other. Answers appear with the next `useNow`. */
function useCosts(runs) {
  const costs = useMemo(() => new Costs(), []);
  const list = useRef(runs);
  list.current = runs;
  useEffect(() => {
    const control = new AbortController();
    askAll(costs, () => (document.hidden ? [] : list.current.filter(isOnScreen)), control.signal);
    return () => control.abort();
  }, [costs]);
  return costs.rows;
}

async function askAll(costs, seen, signal) {
  while (!signal.aborted) {
    const run = costs.next(seen(), Date.now());
    if (run === null) await new Promise((resolve) => setTimeout(resolve, 500));
    else await askFor(costs, run, signal);
  }
}

async function askFor(costs, run, signal) {
  const begun = Date.now();
  try {
    const row = await api.runUsage(run.run_id, signal);
    costs.answered(run, row, Date.now(), Date.now() - begun);
  } catch (problem) {
    // The list shows what is wrong, if it is not only this run.
    costs.failed(run, Date.now(), (problem.retryAfter ?? 0) * 1000);
  }
}

function isOnScreen({ run_id: run }) {
  const row = document.getElementById(`run-${run}`)?.getBoundingClientRect();
  return row !== undefined && row.bottom > 0 && row.top < innerHeight;
}
