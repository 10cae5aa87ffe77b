// The items of a transcript: a message, an answer, a call, a note, the end.

import { Component, h } from "./preact.js";
import { CallItem } from "./call-item.js";
import { percent, short } from "./format.js";
import { limitText } from "./fold-notes.js";
import { Foot } from "./item-foot.js";
import { Markdown } from "./markdown.js";
import { runLink } from "./route.js";
import { Status } from "./status.js";

const VIEWS = { message: MessageItem, answer: AnswerItem, call: CallItem, note: NoteItem, end: EndItem };

/** Draws an item again only if it has changed: the fold changes items in place, and counts their `version`. */
export class TranscriptItem extends Component {
  shouldComponentUpdate({ item, version, fork }) {
    return item !== this.props.item || version !== this.props.version || (fork === null) !== (this.props.fork === null);
  }

  render({ item, run, fork }) {
    return h(VIEWS[item.kind], { item, run, fork });
  }
}

const SOURCES = { steer: "steers", follow_up: "follow-up", prompt: "" };
const SPEAKERS = { person: "Person", model: "Another agent", tool: "A tool", program: "The program", unknown: "Unknown" };

function MessageItem({ item, run, fork }) {
  const { files, images, recalled, source } = item;
  const notes = [
    SOURCES[source] ?? source,
    ...files.map((name) => `file ${name}`),
    images > 0 ? `${images} image${images === 1 ? "" : "s"}` : "",
    recalled > 0 ? `${recalled} recalled memor${recalled === 1 ? "y" : "ies"}` : "",
  ];
  return h("article", { class: "item message", "aria-label": SPEAKERS[item.speaker] ?? item.speaker },
    h("p", { class: "who" }, SPEAKERS[item.speaker] ?? item.speaker, " ",
      h("span", { class: "dim" }, notes.filter(Boolean).join(" · "))),
    h(Markdown, { text: item.text }),
    h(Foot, { item, run, fork }));
}

const STOPS = {
  length: "cut off at the maximum number of tokens",
  refusal: "the model declined",
  error: "ended by an error",
  aborted: "stopped",
  pause: "paused",
};

function AnswerItem({ item, run, fork }) {
  const { usage, isDone } = item;
  const isEmpty = item.text === "" && item.thinking === "" && item.pieces.length === 0;
  return h("article", { class: "item answer", "aria-label": "Answer of the model", "aria-busy": isDone ? null : "true" },
    h("p", { class: "who" }, "Model ", isDone ? null : h("span", { class: "busy" }, item.attempt > 0 ? `writes, attempt ${item.attempt + 1} …` : "writes …")),
    item.thinking === "" ? null
      : h("details", { class: "thinking", open: !isDone && item.text === "" }, h("summary", null, "Thinking"), h("div", { class: "plain" }, item.thinking)),
    isEmpty && !isDone ? null : h(Markdown, { text: item.text }),
    item.pieces.map((piece, index) => piece && h("p", { key: index, class: "dim plain" }, `calls ${piece.name} ${piece.text}`)),
    STOPS[item.stopReason] ? h("p", { class: "warn" }, `The answer was not whole: ${STOPS[item.stopReason]}.`) : null,
    h(Foot, { item, run, fork }, usage === null ? null : h("span", null, usageText(usage))));
}

function usageText(usage) {
  const read = usage.input + usage.cache_read + usage.cache_write;
  const share = read === 0 ? "" : `, ${percent(usage.cache_read / read)} cached`;
  return `${short(read)} in${share}, ${short(usage.output)} out`;
}

function NoteItem({ item, run }) {
  return h("div", { class: `item note ${item.look}` },
    h("p", null, item.look === "warning" ? h("span", { class: "warn" }, "Warning: ") : null, item.text, " ",
      h("a", { class: "small", href: runLink(run, item.seq) }, `record ${item.seq}`)),
    item.runs ? h("p", null, item.runs.map((id, index) => [index > 0 ? ", " : "", h("a", { href: runLink(id) }, `branch ${index + 1}`)])) : null);
}

function EndItem({ item, run, fork }) {
  const { outcome, answer } = item;
  const total = outcome.usage?.total_tokens ?? 0;
  return h("article", { class: "item end", "aria-label": "End of the run" },
    answer === "" ? null : h(Markdown, { text: answer }),
    h("p", null, h(Status, { status: outcome.status }), " ", reasonOf(outcome)),
    h(Foot, { item, run, fork }, h("span", null, `${outcome.turns} turns, ${short(total)} tokens`)));
}

function reasonOf({ status, error, detail }) {
  if (status === "failed") return error ?? "The run failed without a reason.";
  return status === "limit" && detail ? `${limitText(detail)}.` : "";
}
