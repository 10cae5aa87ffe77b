// The inspector of records: the log as a list, and one record as raw JSON, with a link for each.

import { h } from "./preact.js";
import { useEffect, useMemo, useRef, useState } from "./hooks.js";
import * as api from "./api.js";
import { Field, JsonText } from "./controls.js";
import { useData } from "./data.js";
import { clock, oneLine, plural } from "./format.js";
import { useMe } from "./me.js";
import { recordSummary } from "./record-summary.js";
import { runLink } from "./route.js";
import { Empty, Failure, Loading } from "./states.js";
import { StreamState } from "./view-transcript.js";
import { VirtualList } from "./virtual-list.js";

export function RecordsPart({ log, seq, fork }) {
  const [text, setText] = useState("");
  const list = useRef(null);
  const { records } = log;
  const count = records.length;
  const shown = useMemo(() => records.filter((record) => has(record, text)), [records, count, text]);
  useEffect(() => {
    if (seq !== null) list.current?.show(seq);
  }, [seq, count > 0]);
  if (log.state === "loading") return h(Loading, { what: "the newest records" });
  const row = (record) => h(RecordRow, { record, run: log.run, isSelected: record.seq === seq });
  return h("div", { class: "fill" },
    h("div", { class: "filters" },
      h(Field, { label: "Kind or words", type: "search", "data-search": true, value: text, onInput: (event) => setText(event.target.value) }),
      h("p", { class: "dim", role: "status" }, `${plural(shown.length, "record")} of ${plural(count, "record")} that were read`)),
    h(StreamState, { log }),
    h("div", { class: seq === null ? "split" : "split with-detail" },
      shown.length === 0
        ? h(Empty, { title: "No record has these words." }, "Change the words, or read older records.")
        : h(VirtualList, { ref: list, items: shown, keyOf: (record) => record.seq, row, estimate: 30, follow: seq === null, label: "Records", kind: "rows", onTop: () => log.older() }),
      seq === null ? null : h(RecordDetail, { key: seq, log, seq, fork })));
}

function has(record, text) {
  const words = text.trim().toLowerCase();
  if (words === "") return true;
  return record.type.includes(words) || JSON.stringify(record).toLowerCase().includes(words);
}

function RecordRow({ record, run, isSelected }) {
  return h("a", { class: isSelected ? "record-row selected" : "record-row", href: runLink(run, record.seq), "data-row": true, "aria-current": isSelected ? "true" : null },
    h("span", { class: "number dim" }, record.seq),
    h("span", { class: "dim" }, clock(record.at)),
    h("code", null, record.type),
    h("span", { class: "cut" }, oneLine(recordSummary(record), 160)));
}

/** One record. A link may name one that the page has not read. */
function RecordDetail({ log, seq, fork }) {
  const known = log.records.find((record) => record.seq === seq) ?? null;
  const { may } = useMe();
  const load = (signal) =>
    known === null
      ? api.records(log.run, { after: seq === 0 ? undefined : seq - 1, limit: 1 }, signal).then(({ records }) => records[0] ?? null)
      : Promise.resolve(null);
  const { data, problem, isLoading } = useData(load, [log.run, seq]);
  const record = known ?? data;
  const last = log.records.at(-1)?.seq ?? seq;
  return h("section", { class: "detail", "aria-label": `Record ${seq}` },
    h("div", { class: "dialog-head" },
      h("h2", null, `Record ${seq}`),
      seq > 0 ? h("a", { href: runLink(log.run, seq - 1) }, "before") : null,
      seq < last ? h("a", { href: runLink(log.run, seq + 1) }, "next") : null,
      fork !== null && may("operate") ? h("button", { type: "button", onClick: () => fork(seq) }, "Fork here …") : null),
    h(Failure, { problem }),
    record !== null
      ? h(JsonText, { value: record, label: `Record ${seq} as JSON` })
      : isLoading ? h(Loading, { what: `record ${seq}` }) : problem ? null : h(Empty, { title: `The log has no record ${seq}.` }, "Choose one of the list."));
}
