// The records of tool calls and of the questions about them. Pure.

/** Returns the item of a call. `block` is the call in the answer; null if the answer is not among the records. */
export function newCall(call, record, block) {
  const { name, args } = block === null ? { name: "", args: null } : targetOf(block);
  return {
    key: `c${call}-${record.seq}`,
    kind: "call",
    seq: record.seq,
    at: record.at,
    version: 0,
    call,
    name,
    arguments: args,
    malformed: block?.malformed ?? null,
    /** `requested`, `asking`, `running` or `ended`. */
    state: "requested",
    status: null,
    startedAt: null,
    endedAt: null,
    attempts: 0,
    failures: [],
    result: null,
    isRefused: false,
    progress: "",
    partial: null,
    question: null,
    answer: null,
    childRun: null,
    spent: null,
  };
}

/** Returns the name and the arguments of the tool that a call is for: `call_tool` names another one. */
export function targetOf({ name, arguments: args, malformed }) {
  if (name !== "call_tool" || malformed || typeof args?.name !== "string") return { name, args: args ?? {} };
  const inner = args.arguments;
  if (typeof inner !== "string") return { name: args.name, args: inner ?? {} };
  try {
    return { name: args.name, args: JSON.parse(inner) ?? {} };
  } catch {
    return { name: args.name, args: inner };
  }
}

/** Returns the text of a call's place, as records write it: `2.0`. */
export function placeOf(call) {
  return `${call.command}.${call.index}`;
}

/** Applies a record of a call. Returns false for any other record. */
export function foldCall(state, record) {
  switch (record.type) {
    case "tool_call_started":
      return started(change(state, record), state, record);
    case "tool_call_failed":
      change(state, record).failures.push(textOf(record.result));
      return true;
    case "tool_call_finished":
    case "tool_call_refused":
      return ended(change(state, record), state, record);
    case "approval_requested":
      Object.assign(change(state, record), { question: record.request, answer: null, state: "asking" });
      return true;
    case "approval_answered":
      return answered(change(state, record), record);
    case "lease_granted":
    case "child_run_created":
    case "lease_settled":
      return child(state, record);
    default:
      return false;
  }
}

/** Sets the child run of a call. A record about a call that is not among the records says nothing to a person. */
function child(state, record) {
  if (!state.calls.has(placeOf(record.call))) return true;
  const item = change(state, record);
  item.childRun = record.child_run;
  // A second record for the same call replaces the first.
  if (record.type === "lease_settled") item.spent = record.spent;
  return true;
}

/** Returns the item of the call of a record, which is about to change, and opens one if there is none. */
function change(state, record) {
  const place = placeOf(record.call);
  let item = state.calls.get(place);
  if (item === undefined) {
    item = newCall(place, record, null);
    state.calls.set(place, item);
    state.items.push(item);
  }
  item.version += 1;
  return item;
}

function started(item, state, record) {
  state.work = "tools";
  item.startedAt ??= record.at;
  Object.assign(item, { state: "running", question: null, attempts: record.attempt + 1 });
  if (record.child_run) item.childRun = record.child_run;
  return true;
}

function ended(item, state, record) {
  Object.assign(item, {
    state: "ended",
    status: record.result?.status ?? "success",
    endedAt: record.at,
    result: record.result,
    isRefused: record.type === "tool_call_refused",
    question: null,
    partial: null,
  });
  if (record.result?.child_run) item.childRun = record.result.child_run;
  if (state.openCalls().length === 0) state.work = "model";
  return true;
}

function answered(item, record) {
  Object.assign(item, { question: null, answer: record.answer, state: item.startedAt === null ? "requested" : "running" });
  if (record.answer?.answer === "edit") item.arguments = record.answer.arguments;
  return true;
}

function textOf(result) {
  return result?.error_message ?? (result?.content ?? []).map((block) => block.text ?? "").join("\n");
}
