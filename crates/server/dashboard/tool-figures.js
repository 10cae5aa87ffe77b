// Figures about tools and cycles from the timelines of runs. Pure.

const FAILED = new Set(["failed", "error", "timeout", "lost"]);
/** An alert is raised when more than this share of a tool's calls failed, or a cycle took longer than this. */
export const MOST_FAILED = 0.2;
export const LONGEST_CYCLE_MS = 30_000;

/** Returns the value below which a share of the values lies, by the nearest rank; null without values. */
export function percentile(values, share) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/** Returns a row for each tool, the one with the most calls first. `timelines` are `{run, spans}`. */
export function toolRows(timelines) {
  const rows = new Map();
  for (const { run, spans } of timelines) {
    for (const span of spans) {
      if (span.kind !== "tool" && span.kind !== "child") continue;
      const row = rows.get(span.label) ?? { tool: span.label, calls: 0, failures: 0, refused: 0, durations: [], lastFailure: null };
      rows.set(span.label, row);
      row.calls += 1;
      if (span.status === "refused") row.refused += 1;
      else if (span.to_ms !== null) row.durations.push(span.to_ms - span.from_ms);
      if (FAILED.has(span.status)) {
        row.failures += 1;
        row.lastFailure = { run, seq: span.seq };
      }
    }
  }
  return [...rows.values()].map(withShares).sort((a, b) => b.calls - a.calls || a.tool.localeCompare(b.tool));
}

function withShares({ durations, ...row }) {
  // A refused call did not run, so it neither succeeded nor failed.
  const ran = row.calls - row.refused;
  return {
    ...row,
    success: ran === 0 ? null : 1 - row.failures / ran,
    p50: percentile(durations, 0.5),
    p95: percentile(durations, 0.95),
    isAlert: ran > 0 && row.failures / ran > MOST_FAILED,
  };
}

/**
 * Returns the cycles of a run: each is a model call with the calls that it asked for, and its `ms` is the time in which
 * one of them worked. Waits for people do not count.
 */
export function cycles({ run, spans }) {
  const works = spans.filter((span) => ["model", "tool", "child"].includes(span.kind) && span.to_ms !== null);
  works.sort((a, b) => a.from_ms - b.from_ms);
  const found = [];
  for (const span of works) {
    if (span.kind === "model" || found.length === 0) found.push({ run, seq: span.seq, ms: 0, end: span.from_ms });
    const cycle = found.at(-1);
    cycle.ms += Math.max(0, span.to_ms - Math.max(span.from_ms, cycle.end));
    cycle.end = Math.max(cycle.end, span.to_ms);
  }
  return found;
}

/** Returns the figures of all runs: the cycles, the share of successful calls, the largest request, the cached share. */
export function figures(timelines) {
  const all = timelines.flatMap(cycles);
  const rows = toolRows(timelines);
  const ran = rows.reduce((sum, row) => sum + row.calls - row.refused, 0);
  const failures = rows.reduce((sum, row) => sum + row.failures, 0);
  const read = timelines.flatMap(({ spans }) => spans.map((span) => span.tokens).filter(Boolean));
  const input = (tokens) => tokens.input + tokens.cache_read + tokens.cache_write;
  const total = read.reduce((sum, tokens) => sum + input(tokens), 0);
  return {
    cycles: all.length,
    p50: percentile(all.map((cycle) => cycle.ms), 0.5),
    p95: percentile(all.map((cycle) => cycle.ms), 0.95),
    slow: all.filter((cycle) => cycle.ms > LONGEST_CYCLE_MS).sort((a, b) => b.ms - a.ms),
    success: ran === 0 ? null : 1 - failures / ran,
    largest: read.reduce((most, tokens) => Math.max(most, input(tokens)), 0),
    cached: total === 0 ? null : read.reduce((sum, tokens) => sum + tokens.cache_read, 0) / total,
  };
}
