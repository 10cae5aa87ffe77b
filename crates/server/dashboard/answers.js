// The answers that a question can get, as in the terminal. Pure.

import { visibleLine } from "./format.js";

/** The tool whose call is a plan that a person agrees to. */
const PLAN_TOOL = "finish_plan";

/** Returns what a person can do with a question: `approve`, `trust`, `edit`, `reply`, `inputs`, `cancel`. */
export function waysOf(question) {
  const { options = [], kind = "consent", details, rules = [], allow_modification: mayEdit } = question;
  const may = (option) => options.includes(option);
  const ways = [];
  if (may("approve")) {
    ways.push({ does: "approve", label: approveLabel(kind, details?.tool) });
    // A person must see the whole rule before it holds: no long one, and none with a hidden character.
    if (rules.length > 0 && rules[0].length <= 200 && visibleLine(rules[0]) === rules[0]) {
      ways.push({ does: "trust", label: `Yes, for this session: ${rules[0]}`, rule: rules[0] });
    }
  }
  if (may("edit") && mayEdit && kind === "consent" && isObject(details?.arguments)) ways.push({ does: "edit", label: "Change the arguments …" });
  const missing = missingOf(question);
  if (kind === "input" && missing.length > 0) ways.push({ does: "inputs", label: "Give the values …", missing });
  else if (may("reply") || kind === "input") ways.push({ does: "reply", label: "Answer in words …", mayBeEmpty: kind === "failed_step" });
  ways.push({ does: "cancel", label: "No" });
  return ways;
}

function approveLabel(kind, tool) {
  if (kind === "in_doubt") return "Yes, run it again";
  if (kind === "failed_step") return "Yes, try it again";
  return tool === PLAN_TOOL ? "Yes, carry it out" : "Yes, once";
}

/** Returns the inputs that a tool asks for: each with `name`, `kind` and `description`. */
export function missingOf({ details }) {
  return Array.isArray(details?.missing) ? details.missing.filter((field) => typeof field?.name === "string") : [];
}

/** Parses changed arguments. Returns `{answer}`, or `{problem}` in words. */
export function editOf(text) {
  try {
    const args = JSON.parse(text);
    return isObject(args)
      ? { answer: { answer: "edit", arguments: args } }
      : { problem: "The arguments must be a JSON object, in braces." };
  } catch (error) {
    return { problem: `This is not JSON: ${error.message}.` };
  }
}

/** Returns the runs that a question belongs to: the one that logs it, and those down to the one that asks. */
export function runsOf({ run, call_path: path = [] }) {
  return [run, ...path.map((below) => below.run)];
}

/** Returns the run that asks, and which gets the answer. */
export function askerOf(question) {
  return runsOf(question).at(-1);
}

/** Returns the sources of the words of one argument. */
export function sourcesOf(question, argument) {
  return (question.provenance ?? []).filter((found) => found.argument === argument);
}

/** Returns true if the sources are not known: the server did not look for them, or could not read a log. Null is not the empty list. */
export function hasUnreadSources({ provenance }) {
  return provenance === null;
}

/** Returns the preview of a call: what it would change. */
export function previewOf(question) {
  return question.details?.preview ?? question.preview ?? null;
}

/** Returns a source in words. */
export function sourceText(source) {
  if (typeof source === "string") return source.replaceAll("_", " ");
  const { kind, beginning, name, tool, argument } = source ?? {};
  switch (kind) {
    case "message":
      return `a message of the person: ${beginning}`;
    case "answer":
      return `an answer of the person: ${beginning}`;
    case "file":
      return `the attached file ${name}`;
    case "tool_result":
      return `the result of ${tool || "a tool"}${argument ? ` (${argument})` : ""}`;
    case "memory":
      return "a recalled memory";
    case "instructions":
      return "the instructions of the project";
    case "other_message":
      return "a message that the person may not have written";
    default:
      return "an earlier record";
  }
}

/** Splits a unified difference into lines with their kinds: `added`, `removed`, `place`, `same`. */
export function diffLines(diff) {
  const lines = diff.replace(/\n$/, "").split("\n");
  return lines.map((text) => {
    if (text.startsWith("@@") || text.startsWith("+++") || text.startsWith("---")) return { kind: "place", text };
    if (text.startsWith("+")) return { kind: "added", text };
    return { kind: text.startsWith("-") ? "removed" : "same", text };
  });
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
