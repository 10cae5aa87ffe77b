// The records of model calls: answers, and the notes about failures. Pure.

import { newCall } from "./fold-calls.js";
import { joinText } from "./fold-messages.js";

/** Returns the item of an answer that is awaited. */
export function newAnswer(command, record) {
  return {
    key: `a${command}-${record.seq}`,
    kind: "answer",
    seq: record.seq,
    at: record.at,
    version: 0,
    command,
    attempt: record.attempt ?? 0,
    turn: record.turn ?? null,
    isDone: false,
    text: "",
    thinking: "",
    /** The calls that stream: their names and arguments so far, by index. */
    pieces: [],
    /** The bytes of each kind that came, so that a piece that is missing or comes twice is noticed. */
    bytes: {},
    usage: null,
    stopReason: null,
    model: "",
  };
}

/** Applies a record of a model call. Returns false for any other record. */
export function foldModel(state, record) {
  switch (record.type) {
    case "model_call_started":
      return started(state, record);
    case "model_call_finished":
      return finished(state, record);
    case "model_call_failed":
      return failed(state, record);
    case "model_call_lost":
      forget(state.answer);
      state.note(record, "dim", "The last answer was lost; the model is called again.");
      return true;
    case "fallback_selected":
      state.note(record, "warning", `${fallbackText(record.fallback)}: ${record.reason}`);
      return true;
    default:
      return false;
  }
}

/** Makes the pieces of an attempt void. */
export function forget(answer) {
  if (answer === null || answer === undefined) return;
  Object.assign(answer, { text: "", thinking: "", pieces: [], bytes: {}, version: answer.version + 1 });
}

function started(state, record) {
  state.work = "model";
  const answer = state.answerOf(record.command, record);
  if (record.attempt > answer.attempt) {
    forget(answer);
    // Below the note about the attempt that failed.
    state.items.splice(state.items.lastIndexOf(answer), 1);
    state.items.push(answer);
  }
  Object.assign(answer, { attempt: record.attempt, turn: record.turn, version: answer.version + 1 });
  return true;
}

function finished(state, record) {
  const answer = state.answerOf(record.command, record);
  const { message } = record;
  const content = message.content ?? [];
  Object.assign(answer, {
    seq: record.seq,
    at: record.at,
    isDone: true,
    text: joinText(content),
    thinking: content.filter((block) => block.type === "thinking").map((block) => block.thinking).join("\n"),
    pieces: [],
    usage: message.usage ?? null,
    stopReason: message.stop_reason ?? null,
    model: message.model ?? "",
    version: answer.version + 1,
  });
  [state.answer, state.lastFailure, state.lastText] = [null, "", answer.text];
  const calls = content.filter((block) => block.type === "toolCall");
  state.calls.clear();
  calls.forEach((call, index) => {
    const item = newCall(`${record.command}.${index}`, record, call);
    state.calls.set(item.call, item);
    state.items.push(item);
  });
  if (calls.length > 0) state.work = "tools";
  // An answer of nothing but calls is shown by its calls.
  const isBare = calls.length > 0 && answer.text.trim() === "" && answer.thinking.trim() === "";
  if (isBare) state.items.splice(state.items.lastIndexOf(answer), 1);
  return true;
}

function failed(state, record) {
  const { failure, attempt } = record;
  forget(state.answer);
  const isRepeated = !failure.had_output && state.lastFailure === failure.message;
  if (failure.code === "cancelled" || isRepeated) return true;
  state.lastFailure = failure.message;
  const part = failure.had_output ? ", its partial answer is void" : "";
  state.note(record, "warning", `The model call failed (attempt ${attempt + 1}${part}): ${failure.message}`);
  return true;
}

function fallbackText(fallback) {
  switch (fallback?.kind) {
    case "next_key":
      return `Going on with key ${fallback.key + 1}`;
    case "lower_thinking":
      return `Going on with thinking ${fallback.level}`;
    case "next_model":
      return `Going on with ${fallback.provider}:${fallback.model}`;
    default:
      return "Going on with a fallback";
  }
}
