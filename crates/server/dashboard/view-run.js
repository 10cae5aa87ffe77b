// One run: its head, what can be done with it, and its parts: transcript, waterfall, records, graph, use.

import { h } from "./preact.js";
import { useEffect, useRef, useState } from "./hooks.js";
import { announce } from "./announce.js";
import * as api from "./api.js";
import { Facts, Tabs } from "./controls.js";
import { useData, useNow } from "./data.js";
import { ForkDialog } from "./fork-dialog.js";
import { mayFork } from "./forks.js";
import { ago, dateTime, duration, oneLine } from "./format.js";
import { link, runLink } from "./route.js";
import { RunActions } from "./run-actions.js";
import { useRunLog } from "./run-log.js";
import { Failure, Guarded, Loaded } from "./states.js";
import { Status, wordOf } from "./status.js";
import { GraphPart } from "./view-graph.js";
import { RecordsPart } from "./view-records.js";
import { RunUsagePart } from "./view-run-usage.js";
import { TranscriptPart } from "./view-transcript.js";
import { WaterfallPart } from "./view-waterfall.js";

const PARTS = [
  ["transcript", "Transcript", TranscriptPart],
  ["waterfall", "Waterfall", WaterfallPart],
  ["records", "Records", RecordsPart],
  ["graph", "Graph", GraphPart],
  ["usage", "Use", RunUsagePart],
];

export function RunView({ run, parts: [name = "transcript", place] }) {
  const state = useData((signal) => api.run(run, signal), [run], { every: 2000 });
  const head = state.data;
  return h("section", { class: "run" },
    h("h1", { tabIndex: -1 }, head === null ? `Run ${run}` : oneLine(head.task, 80) || `Run ${run}`),
    h(Loaded, { state, what: "the run" }, (data) =>
      h("div", { class: "loaded" },
        h(Head, { head: data }),
        name === "usage" ? h(UsageOnly, { head: data }) :
        h(Guarded, { right: "read_logs" }, h(RunWithLog, { head: data, name, place: place === undefined ? null : Number(place), reload: state.reload })))));
}

/** The use needs no right to read logs. */
function UsageOnly({ head }) {
  return h("div", { class: "loaded" }, h(PartTabs, { run: head.run_id, name: "usage" }), h(RunUsagePart, { head }));
}

function RunWithLog({ head, name, place, reload }) {
  const log = useRunLog(head.run_id);
  const [forkAt, setForkAt] = useState(null);
  const { status, updated_at: updated } = head;
  useEffect(() => {
    // A run that was resumed may have ended again before the page saw it at work.
    const isBehind = updated > (log.records.at(-1)?.at ?? updated);
    if (status === "running" || status === "suspended" || isBehind) log.watchAgain();
  }, [log, status, updated]);
  const Part = (PARTS.find(([known]) => known === name) ?? PARTS[0])[2];
  const fork = mayFork(head) ? (seq) => setForkAt(seq) : null;
  return h("div", { class: "loaded" },
    h(RunActions, { head, reload, fork: fork && (() => fork(log.records.at(-1)?.seq ?? 0)) }),
    h(PartTabs, { run: head.run_id, name }),
    h(Failure, { problem: log.problem, isRetried: log.state === "waiting" }),
    log.damage ? h("p", { class: "warn", role: "note" }, `The log is damaged after these records: ${log.damage}`) : null,
    h(Part, { head, log, seq: place, fork }),
    forkAt === null ? null : h(ForkDialog, { run: head.run_id, seq: forkAt, onClose: () => setForkAt(null) }));
}

function PartTabs({ run, name }) {
  const tabs = PARTS.map(([part, text]) => ({ name: part, text, href: link(["runs", run, part]) }));
  return h(Tabs, { label: "Parts of the run", tabs, current: name });
}

function Head({ head }) {
  const now = useNow();
  const before = useRef(head.status);
  useEffect(() => {
    if (before.current !== head.status) announce(`The run ${wordOf(head.status)}.`);
    before.current = head.status;
  }, [head.status]);
  const isOver = ["finished", "failed", "limit", "cancelled"].includes(head.status);
  return h("div", { class: "head" },
    h(Status, { status: head.status }),
    h(Facts, {
      facts: [
        ["Run", head.run_id],
        ["Kind", head.kind],
        ["Session", head.session && h("a", { href: link(["sessions", head.session], { tenant: head.tenant }) }, head.session)],
        ["Tenant", head.tenant === "local" ? null : head.tenant],
        ["Called by", head.called_by && h("a", { href: runLink(head.called_by) }, head.called_by)],
        ["Branch of", head.branch_of && h("a", { href: runLink(head.branch_of) }, head.branch_of)],
        ["Started", dateTime(head.started_at)],
        ["Took", isOver ? duration(head.updated_at - head.started_at) : null],
        ["Last record", isOver ? null : ago(head.updated_at, now)],
      ],
    }),
    head.problem ? h("p", { class: "bad" }, head.problem) : null,
    head.status === "suspended"
      ? h("p", null, "The run waits for an answer: ", h("a", { href: link(["approvals"], { run: head.run_id }) }, "open the inbox"), ".")
      : null);
}
