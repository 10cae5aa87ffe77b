// A tool call in a transcript: its arguments, how it went, its result, its child run.

import { h } from "./preact.js";
import { JsonText } from "./controls.js";
import { duration, money, oneLine, printable, short, visibleJson, visibleLine } from "./format.js";
import { Foot } from "./item-foot.js";
import { link, runLink } from "./route.js";
import { Status } from "./status.js";

export function CallItem({ item, run, fork }) {
  const took = item.startedAt !== null && item.endedAt !== null ? duration(item.endedAt - item.startedAt) : "";
  const status = item.state === "ended" ? (item.isRefused ? "refused" : item.status) : item.state;
  return h("article", { class: "item call", "aria-label": `Call of ${visibleLine(item.name) || "a tool"}` },
    h("details", { open: item.state === "asking" },
      h("summary", null,
        h("code", { class: "strong" }, visibleLine(item.name) || `call ${item.call}`), " ",
        h("span", { class: "dim" }, item.arguments === null ? "" : oneLine(visibleJson(item.arguments), 120)), " ",
        h(Status, { status }), took === "" ? null : h("span", { class: "dim" }, ` ${took}`),
        item.attempts > 1 ? h("span", { class: "warn" }, ` ${item.attempts} attempts`) : null),
      item.arguments === null ? null : h(JsonText, { value: item.arguments, label: "Arguments" }),
      item.malformed ? h("p", { class: "warn" }, `The arguments are not valid: ${printable(item.malformed.error)}`) : null,
      item.failures.map((failure, index) => h("p", { key: index, class: "warn" }, `Attempt ${index + 1} failed: ${oneLine(failure, 400)}`)),
      h(Result, { item })),
    item.progress !== "" && item.state === "running" ? h("p", { class: "dim" }, printable(item.progress)) : null,
    item.state === "asking" ? h("p", null, h("a", { href: link(["approvals", item.question?.request_id ?? ""]) }, "Answer the question"), `: ${oneLine(item.question?.action_summary, 200)}`) : null,
    item.answer === null ? null : h("p", { class: "dim" }, `A person: ${answerText(item.answer)}`),
    item.childRun === null ? null : h("p", null, "Child run ", h("a", { href: runLink(item.childRun) }, item.childRun), spentText(item.spent)),
    h(Foot, { item, run, fork }));
}

function Result({ item }) {
  const result = item.result ?? item.partial;
  if (result === null || result === undefined) return null;
  const label = item.result === null ? "Result so far" : "Result";
  return h("div", null,
    (result.content ?? []).map((block, index) => h(Block, { key: index, block, label })),
    result.data_file ? h("p", { class: "dim" }, "The whole result is in a file: ", h("code", null, visibleJson(result.data_file))) : null);
}

/** An image and a file stay a line: the page loads nothing but itself. */
function Block({ block, label }) {
  if (block.type === "text") return h(JsonText, { value: block.text, label });
  if (block.type === "image") return h("p", { class: "dim" }, `[image, ${visibleLine(block.mime_type)}, ${short(Math.round((block.data?.length ?? 0) * 0.75))} bytes]`);
  if (block.type === "media") return h("p", { class: "dim" }, `[${block.name ? `${visibleLine(block.name)}, ` : ""}${visibleLine(block.mime_type)}, ${short(block.bytes ?? 0)} bytes]`);
  return h(JsonText, { value: block, label });
}

function spentText(spent) {
  return spent === null ? "" : `: ${short(spent.tokens)} tokens${spent.cost_micros > 0 ? `, ${money(spent.cost_micros)}` : ""}`;
}

/** Returns the answer of a person in words. */
export function answerText(answer) {
  const because = (text, reason) => (reason ? `${text}: ${oneLine(reason, 400)}` : text);
  switch (answer.answer) {
    case "approve":
      return "yes";
    case "edit":
      return because("yes, with other arguments", visibleJson(answer.arguments));
    case "trust":
      return because("yes, from now on", answer.rules.join(", "));
    case "reply":
      return because("answered", answer.text);
    case "cancel":
      return because("no", answer.reason);
    case "expired":
      return "nobody answered in time";
    case "withdrawn":
      return because("withdrawn", answer.reason);
    default:
      return "answered";
  }
}
