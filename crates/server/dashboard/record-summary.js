// One line about a record, for the list of records. Pure.

import { joinText } from "./fold-messages.js";

/** Returns the line; empty for a record whose kind says all, and for one of an unknown kind. */
export function recordSummary(record) {
  const call = record.call === undefined ? "" : `${record.call.command}.${record.call.index}`;
  switch (record.type) {
    case "run_started":
      return `${record.kind} of ${record.agent}, ${record.config?.model ?? ""}`;
    case "message_added":
      return joinText(record.message?.content);
    case "model_call_started":
      return `turn ${record.turn}, attempt ${record.attempt}`;
    case "model_call_finished":
      return answerSummary(record.message);
    case "model_call_failed":
      return record.failure?.message ?? "";
    case "tool_call_finished":
    case "tool_call_refused":
    case "tool_call_failed":
      return `${call} ${record.result?.status ?? ""} ${joinText(record.result?.content)}`;
    case "approval_requested":
      return `${call} ${record.request?.action_summary ?? ""}`;
    case "approval_answered":
      return `${call} ${record.answer?.answer ?? ""}`;
    case "run_finished":
      return `${record.status} ${record.answer || record.error || ""}`;
    case "plan":
    case "team":
      return record.event ?? "";
    default:
      return [call, record.child_run, record.reason, record.text].filter(Boolean).join(" ");
  }
}

function answerSummary(message) {
  const content = message?.content ?? [];
  const calls = content.filter((block) => block.type === "toolCall").map((call) => `→ ${call.name}`);
  return [joinText(content), ...calls].filter(Boolean).join(" ");
}
