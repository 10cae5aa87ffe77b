// The pauses before data are loaded again, and before a failure is tried again. Pure.

/** How many times as long as the last answer took the page waits at least: the server reads a log for many answers. */
const FACTOR = 10;
/** The longest pause that a slow answer causes, in milliseconds. */
const MOST = 60_000;

/** Returns the pause in milliseconds after an answer that took `took`; `every` is the shortest. */
export function pauseAfter(every, took) {
  return Math.max(every, Math.min(FACTOR * took, MOST));
}

/** The pause before the first try after a failure, and the longest one, in milliseconds. */
const RETRY = [1000, 30_000];

/** The tries after a failure. Each pause is twice as long as the one before, up to the longest. */
export class Retries {
  #pause = RETRY[0];
  #timer = null;

  /** Calls `again` after the next pause. It takes the place of a try that was planned before. */
  plan(again) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(again, this.#pause);
    this.#pause = Math.min(RETRY[1], this.#pause * 2);
  }

  /** Drops the planned try. */
  stop() {
    clearTimeout(this.#timer);
  }

  /** Makes the next pause the shortest one again. */
  reset() {
    this.#pause = RETRY[0];
  }
}
