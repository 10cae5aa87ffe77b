// The pause before data are loaded again. Pure.

/** How many times as long as the last answer took the page waits at least: the server reads a log for many answers. */
const FACTOR = 10;
/** The longest pause that a slow answer causes, in milliseconds. */
const MOST = 60_000;

/** Returns the pause in milliseconds after an answer that took `took`; `every` is the shortest. */
export function pauseAfter(every, took) {
  return Math.max(every, Math.min(FACTOR * took, MOST));
}
