// Deltas: pieces of an answer or of a tool's output that are not in the log yet. Pure.

import { forget } from "./fold-model.js";

/** Applies a delta. The pieces of a later attempt replace those of an earlier one; pieces of an older one are dropped. */
export function foldDelta(state, delta) {
  if (delta.delta === "tool_progress" || delta.delta === "tool_partial_result") return tool(state, delta);
  const answer = state.answer;
  // The record of the answer has come: the delta is late.
  if (answer === null || answer.command !== delta.command || delta.attempt < answer.attempt) return;
  if (delta.attempt > answer.attempt) {
    forget(answer);
    answer.attempt = delta.attempt;
  }
  answer.version += 1;
  switch (delta.delta) {
    case "text":
      answer.text = joined(answer, "text", answer.text, delta);
      return;
    case "thinking":
      answer.thinking = joined(answer, "thinking", answer.thinking, delta);
      return;
    case "tool_call_started":
      answer.pieces[delta.index] = { name: delta.name, text: answer.pieces[delta.index]?.text ?? "" };
      return;
    case "tool_call_arguments": {
      const piece = (answer.pieces[delta.index] ??= { name: "", text: "" });
      piece.text = joined(answer, `arguments${delta.index}`, piece.text, delta);
      return;
    }
    default:
  }
}

/**
 * Appends a piece. `offset` is the number of bytes before it: a piece at 0 begins again, one that came before is
 * dropped, and before one that follows a gap stands `…`.
 */
function joined(answer, kind, before, { offset, text }) {
  const have = answer.bytes[kind] ?? 0;
  const size = byteLength(text);
  if (offset < have && offset > 0) return before;
  answer.bytes[kind] = offset + size;
  if (offset === 0) return text;
  return offset === have ? before + text : `${before}…${text}`;
}

function tool(state, { delta, call, text, result }) {
  const item = state.calls.get(`${call.command}.${call.index}`);
  if (item === undefined || item.state === "ended") return;
  if (delta === "tool_progress") item.progress = text;
  else item.partial = result;
  item.version += 1;
}

function byteLength(text) {
  return new TextEncoder().encode(text).length;
}
