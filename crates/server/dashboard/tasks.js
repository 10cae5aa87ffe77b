// The definition of a task in words. Pure.

import { ago, duration } from "./format.js";

/** What starts the runs of a task. */
export function triggerOf({ trigger = {} }) {
  const { schedule, event, condition } = trigger;
  if (schedule?.cron) return `at ${schedule.cron} (${schedule.zone ?? "UTC"})`;
  if (schedule?.every) return `every ${duration(schedule.every * 1000)}`;
  if (schedule?.at) return `once, at ${schedule.at}`;
  if (event) return event.if ? `at events ${event.pattern} if ${event.if}` : `at events ${event.pattern}`;
  if (condition) return `when ${condition.expression} of ${condition.probe}`;
  return "";
}

/** The work of a task's runs. */
export function instructionOf({ action = {} }) {
  const { agent, code } = action;
  if (agent) return agent.agent ? `${agent.agent}: ${agent.instruction}` : agent.instruction;
  return code ? `code ${code.executor}` : "";
}

/** The last failure, and the newest problem outside of the runs, with its time. */
export function problemsOf({ problem, newest_problem: newest }, now) {
  return [problem, newest ? `${newest.text} (${ago(newest.at, now)})` : null].filter((text) => text !== null);
}
