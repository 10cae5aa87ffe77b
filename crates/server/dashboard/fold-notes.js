// The records that are shown as one line: what happened to the run beside messages, answers and calls. Pure.

import { count, money, oneLine } from "./format.js";

/** Adds the note of a record; nothing for a record that a person need not read. */
export function foldNote(state, record) {
  const note = NOTES[record.type]?.(record);
  if (!note) return;
  const [look, text, more] = note;
  state.note(record, look, text, more);
}

/** The number of characters of a text that a note has; the record has the whole. */
const SHOWN = 400;

const NOTES = {
  conversation_restored: ({ messages }) => ["dim", `The run begins with ${messages.length} messages that were kept elsewhere.`],
  input_rejected: ({ reason }) => ["warning", `The message was refused: ${oneLine(reason, SHOWN)}`],
  stopped_by_hook: ({ hook }) => ["warning", `A hook of the program stopped the run (${hook}).`],
  cancel_requested: ({ reason }) => ["warning", `A cancel was requested: ${oneLine(reason, SHOWN)}`],
  resumed: () => ["dim", "The run was resumed."],
  limits_raised: (record) => ["dim", `The limits were raised: ${limitsText(record)}`],
  limit_reached: (record) => ["warning", `${limitText(record)}.`],
  hint_added: ({ text }) => ["dim", `Hint for the model: ${oneLine(text, SHOWN)}`],
  context_status: ({ text }) => ["dim", oneLine(text, SHOWN)],
  instructions_read: ({ text }) =>
    ["dim", text === "" ? "The project has no instructions any more." : "The project's instructions were read."],
  compaction_requested: () => ["dim", "A person asked for a compaction."],
  summarized: ({ from, to }) => ["dim", `A model summarised the messages ${from} to ${to - 1}.`],
  compacted: ({ tokens_before: before, tokens_after: after }) =>
    ["dim", `The conversation was compacted: ${count(before)} to ${count(after)} tokens.`],
  goal_checked: ({ met, reason }) => ["dim", goalText(met, reason)],
  output_checked: ({ problems }) =>
    problems.length === 0
      ? ["dim", "The answer fits its schema."]
      : ["warning", `The answer does not fit its schema: ${oneLine(JSON.stringify(problems), SHOWN)}`],
  mode_changed: ({ mode, source }) =>
    ["dim", `The mode is ${mode} from here on${source === "agreed_plan" ? ", because a person agreed to the plan" : ""}.`],
  workspace_snapshot: ({ problem }) =>
    problem ? ["warning", `This run cannot be undone: ${oneLine(problem, SHOWN)}`] : null,
  parallel_started: ({ branches }) =>
    ["dim", `${branches.length} branches start.`, { runs: branches.map((branch) => branch.run) }],
  parallel_finished: ({ strategy, selected, reason }) =>
    ["dim", selected === undefined || selected === null
      ? `The strategy ${strategy} selected no branch.`
      : `The strategy ${strategy} selected branch ${selected + 1}${reason ? `: ${oneLine(reason, SHOWN)}` : "."}`],
  plan: (record) => planNote("Plan", record),
  team: (record) => planNote("Team", record),
};

/** Events of plans and teams that say nothing to a person. */
const QUIET = new Set(["settings", "inputs", "heartbeat", "formed", "planning_paid", "answer_started"]);

function planNote(what, { event, member, reason, task, problem }) {
  if (QUIET.has(event)) return null;
  const said = [member, task, reason, problem].filter((text) => typeof text === "string" && text !== "").join(": ");
  return ["dim", oneLine(`${what}: ${event.replaceAll("_", " ")}${said === "" ? "" : ` (${said})`}`, SHOWN)];
}

function goalText(met, reason) {
  if (met === true) return "The goal check: the answer meets what was expected.";
  const why = reason ? `: ${oneLine(reason, SHOWN)}` : ".";
  return met === false ? `The goal check: the answer lacks something${why}` : `The goal check has no verdict${why}`;
}

/** Returns a reached limit in words. */
export function limitText({ limit, max, max_ms: maxMs, max_cost_micros: maxCost }) {
  switch (limit) {
    case "turns":
      return `The maximum number of turns was reached (${max})`;
    case "tokens":
      return `The maximum number of tokens was reached (${count(max)})`;
    case "duration":
      return `The maximum duration was reached (${maxMs / 1000} s)`;
    case "repeats":
      return `The same tool call was repeated ${max} times`;
    case "cost":
      return `The maximum cost was reached (${money(maxCost)})`;
    default:
      return "A limit was reached";
  }
}

function limitsText({ max_turns: turns, max_total_tokens: tokens, max_duration_ms: ms, max_cost_micros: micros }) {
  const parts = [
    turns && `${turns} turns`,
    tokens && `${count(tokens)} tokens`,
    ms && `${ms / 1000} s`,
    micros && money(micros),
  ];
  return `${parts.filter(Boolean).join(", ") || "none"}.`;
}
