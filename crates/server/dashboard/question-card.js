// One question of a run to a person: what would be done, where its words come from, and the answers.

import { h } from "./preact.js";
import { useState } from "./hooks.js";
import { askerOf, editOf, hasUnreadSources, previewOf, sourceText, sourcesOf, waysOf } from "./answers.js";
import { Facts, Field, RightButton } from "./controls.js";
import { PreviewView } from "./diff-view.js";
import { ago, dateTime, duration, visible, visibleJson, visibleLine } from "./format.js";
import { link, runLink } from "./route.js";
import { Failure } from "./states.js";
import { useSteady } from "./steady.js";

/**
 * `open` is the answer whose form is open, or null; `setOpen` opens one; `send(answer)` answers. `isSelected` is true for
 * the question that takes keys.
 */
export function QuestionCard({ question, now, isSelected, isBusy, problem, open, setOpen, send, select }) {
  const asker = askerOf(question);
  const { request_id: id, action_summary: summary, agent_name: name, agent, expires_at: end } = question;
  return h("article", { class: isSelected ? "question selected" : "question", "aria-labelledby": `q-${id}`, onFocusIn: select, onClick: select },
    h("h2", { id: `q-${id}`, tabIndex: -1, "data-row": true }, visible(summary)),
    h("p", { class: "dim" }, `${visibleLine(name || agent)} asks, ${ago(question.created_at, now)}`, expiryText(end, now),
      isSelected ? h("span", { class: "small" }, " · keys: ", h("kbd", null, "y"), " yes ", h("kbd", null, "n"), " no ", h("kbd", null, "e"), " change") : null),
    h(KindText, { kind: question.kind }),
    h(Facts, {
      facts: [
        ["Run", h("a", { href: runLink(question.run) }, question.run)],
        ["Task", question.task && h("a", { href: link(["tasks", question.task]) }, visibleLine(question.task))],
        ["Asked by", asker === question.run ? null : h("a", { href: runLink(asker) }, asker)],
        ["Tool", question.details?.tool && h("code", null, visibleLine(question.details.tool))],
        ["Bound to", question.binding && h("code", { title: question.binding }, question.binding.slice(0, 12))],
      ],
    }),
    h(PreviewView, { preview: previewOf(question) }),
    h(Arguments, { question }),
    h(Ways, { question, isBusy, open, setOpen, send }),
    h(Failure, { problem }));
}

function expiryText(end, now) {
  if (!end) return "";
  return end <= now ? " · expired" : h("span", { title: dateTime(end) }, ` · expires in ${duration(end - now)}`);
}

const KINDS = {
  in_doubt: "The call was cut off and may have done its work: check first whether it happened.",
  failed_step: "A step of the plan failed. Yes tries it again, an answer becomes its result, and no gives it up.",
  input: "An input of the call is missing.",
};

function KindText({ kind }) {
  return KINDS[kind] ? h("p", { class: "warn" }, KINDS[kind]) : null;
}

/** The exact arguments; below each, the records in which its words stand, or that the server could not look for them. */
function Arguments({ question }) {
  const args = question.details?.arguments;
  if (args === undefined || args === null) return null;
  const named = typeof args === "object" && !Array.isArray(args) ? Object.entries(args) : [["arguments", args]];
  if (named.length === 0) return h("p", { class: "dim" }, "The call has no arguments.");
  return h("div", null, hasUnreadSources(question) ? h("p", { class: "warn" }, "The sources of these words are not known: the server did not look for them, or could not read a log.") : null,
    h("dl", { class: "arguments" }, named.map(([name, value]) => h("div", { key: name },
      h("dt", null, h("code", null, visibleLine(name))),
      h("dd", null,
        h("pre", { class: "plain" }, typeof value === "string" ? visible(value) : visibleJson(value, 2)),
        sourcesOf(question, name).map((found, index) => h(Source, { key: index, found, run: question.run })))))));
}

function Source({ found: { text, seq, run, source }, run: own }) {
  const where = typeof seq === "number" ? h("a", { href: runLink(run ?? own, seq) }, `record ${seq}`) : null;
  return h("p", { class: "dim small" }, "The words ", text ? h("q", null, visible(text.length > 80 ? `${text.slice(0, 80)}…` : text)) : null,
    ` stand in ${visible(sourceText(source))}`, where === null ? null : [" (", where, ")"]);
}

function Ways({ question, isBusy, open, setOpen, send }) {
  const ways = waysOf(question);
  const opened = ways.find((way) => way.does === open) ?? (open === "reason" ? { does: "reason" } : null);
  const { element, isSteady } = useSteady();
  const button = (way) => {
    const direct = directAnswer(way);
    const kind = way.does === "approve" ? "primary" : way.does === "cancel" ? "danger" : "";
    if (direct === null) return h(RightButton, { key: way.does, right: "operate", kind, disabled: isBusy, onClick: () => setOpen(way.does) }, way.label);
    const early = isSteady() ? null : "true";
    return h(RightButton, { key: way.does, right: "operate", kind, disabled: isBusy, "aria-disabled": early, onClick: () => isSteady() && send(direct) }, way.label);
  };
  return h("div", { class: "ways", ref: element },
    h("div", { class: "actions" }, ways.map(button),
      h(RightButton, { right: "operate", disabled: isBusy, onClick: () => setOpen("reason") }, "No, and tell why …")),
    opened === null ? null : h(AnswerForm, { key: opened.does, way: opened, question, isBusy, send, close: () => setOpen(null) }));
}

/** Returns the answer that a button gives at once; null if it opens a form. */
function directAnswer({ does, rule }) {
  switch (does) {
    case "approve":
      return { answer: "approve" };
    case "trust":
      return { answer: "trust", rules: [rule] };
    case "cancel":
      return { answer: "cancel", reason: "" };
    default:
      return null;
  }
}

function AnswerForm({ way, question, isBusy, send, close }) {
  const [problem, setProblem] = useState(null);
  const submit = (event) => {
    event.preventDefault();
    const { answer, problem: found } = answerOf(way, Object.fromEntries(new FormData(event.target)));
    setProblem(found ?? null);
    if (answer !== undefined) send(answer);
  };
  return h("form", { class: "answer-form", onSubmit: submit },
    h(FormFields, { way, question }),
    problem === null ? null : h("p", { class: "bad", role: "alert" }, problem),
    h(RightButton, { right: "operate", kind: "primary", type: "submit", onClick: null, disabled: isBusy }, "Send the answer"),
    h("button", { type: "button", onClick: close }, "Back"));
}

function FormFields({ way, question }) {
  switch (way.does) {
    case "edit":
      return h(Field, {
        label: "Arguments of the call, in JSON", as: "textarea", name: "text", rows: 8, autofocus: true, class: "mono",
        defaultValue: visibleJson(question.details.arguments, 2),
      });
    case "inputs":
      return way.missing.map(({ name, description }) => h(Field, { key: name, label: visibleLine(name), name: `input-${name}`, hint: description ? visible(description) : null, required: true }));
    case "reply":
      return h(Field, { label: "Answer; it becomes the result of the call", as: "textarea", name: "text", rows: 3, required: !way.mayBeEmpty });
    default:
      return h(Field, { label: "Reason; the model reads it", as: "textarea", name: "text", rows: 3 });
  }
}

function answerOf(way, fields) {
  switch (way.does) {
    case "edit":
      return editOf(fields.text);
    case "inputs":
      return { answer: { answer: "edit", arguments: Object.fromEntries(way.missing.map(({ name }) => [name, fields[`input-${name}`]])) } };
    case "reply":
      return { answer: { answer: "reply", text: fields.text.trim() } };
    default:
      return { answer: { answer: "cancel", reason: fields.text.trim() } };
  }
}
