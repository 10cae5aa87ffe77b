// A run as a conversation.

import { h } from "./preact.js";
import { useEffect, useRef } from "./hooks.js";
import { useMe } from "./me.js";
import { Empty, Loading } from "./states.js";
import { TranscriptItem } from "./transcript-item.js";
import { VirtualList } from "./virtual-list.js";

/** What the state of the stream means for the reader. */
const STREAMS = {
  loading: "Loading …",
  live: "Live",
  waiting: "The stream is interrupted, and connects again",
  hidden: "Paused while the page is hidden",
  ended: "The run has ended",
  failed: "The stream has failed",
};

export function TranscriptPart({ log, seq, fork }) {
  const list = useRef(null);
  const { items } = log.transcript;
  const { may } = useMe();
  useEffect(() => {
    const item = seq === null ? undefined : items.findLast((other) => other.seq <= seq);
    if (item !== undefined) list.current?.show(item.key);
  }, [seq, items.length > 0]);
  if (log.state === "loading") return h(Loading, { what: "the newest records" });
  const row = (item) =>
    h(TranscriptItem, { item, version: item.version, run: log.run, fork: may("operate") ? fork : null });
  return h("div", { class: "fill" },
    h(StreamState, { log }),
    items.length === 0
      ? h(Empty, { title: "Nothing was said yet." }, "The first answer appears here as the model writes it.")
      : h(VirtualList, {
          ref: list, items, keyOf: (item) => item.key, row, estimate: 90, follow: seq === null,
          label: "Transcript", kind: "transcript", onTop: () => log.older(),
        }));
}

export function StreamState({ log }) {
  const { hasOlder, isLoadingOlder } = log;
  return h("p", { class: "dim small stream" },
    h("span", { class: log.state === "live" ? "good" : "" }, log.state === "live" ? "● " : "○ ", STREAMS[log.state]),
    isLoadingOlder ? " · reading older records …" : null,
    hasOlder && !isLoadingOlder
      ? [" · ", h("button", { type: "button", class: "link", onClick: () => log.older() }, "Read older records")]
      : null);
}
