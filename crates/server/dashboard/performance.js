// Figures about tools and turns, as people read them. The server computes them and raises the alerts. Pure.

import { duration, plural } from "./format.js";

/** Returns a row for each tool, the one with the most calls first. A refused call did not run, so it is in no share. */
export function toolRows({ tools, alerts }) {
  const alarming = new Set(alerts.filter(({ alert }) => alert === "tool_failures").map(({ tool }) => tool));
  const rows = tools.map((row) => ({
    ...row,
    success: row.calls === 0 ? null : 1 - row.failures / row.calls,
    isAlert: alarming.has(row.tool),
  }));
  return rows.sort((a, b) => b.calls - a.calls || a.tool.localeCompare(b.tool));
}

/** Returns an alert in words. One of a later version has its name only. */
export function alertText({ alert, tool, calls, failures, turn, duration_ms: ms }) {
  switch (alert) {
    case "tool_failures":
      return `${tool} failed in ${failures} of ${plural(calls, "call")}, which is more than 20 %`;
    case "slow_turn":
      return `turn ${turn + 1} took ${duration(ms)}, which is more than 30 s`;
    default:
      return alert.replaceAll("_", " ");
  }
}

/** Returns what all runs together read in a request: the tokens on average, and the share that was cached. */
export function requestFigures(runs) {
  let [turns, read, cached] = [0, 0, 0];
  for (const { turns: more, usage } of runs) {
    turns += more;
    read += usage.input + usage.cache_read + usage.cache_write;
    cached += usage.cache_read;
  }
  return { average: turns === 0 ? null : Math.round(read / turns), cached: read === 0 ? null : cached / read };
}
