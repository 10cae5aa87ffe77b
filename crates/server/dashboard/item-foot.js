// The line under an item of a transcript.

import { h } from "./preact.js";
import { clock } from "./format.js";
import { runLink } from "./route.js";

/** The line under an item: its time, its record, and a fork from there. */
export function Foot({ item, run, fork, children }) {
  return h("footer", { class: "dim small" },
    h("time", null, clock(item.at)),
    children,
    h("a", { href: runLink(run, item.seq), title: "Show the record" }, `record ${item.seq}`),
    fork === null ? null : h("button", { type: "button", class: "link", onClick: () => fork(item.seq) }, "fork here"));
}
