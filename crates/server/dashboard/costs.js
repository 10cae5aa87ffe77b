// Of which run of a list the use is asked for next. Pure. The server reads a whole log for each answer, so a run is asked for
// again only after it has changed.

import { pauseAfter } from "./pause.js";

/** The pause before a run that changes all the time is asked for again, in milliseconds; after a failure it is longer. */
const [PAUSE, AFTER_FAILURE] = [10_000, 30_000];

export class Costs {
  /** The use by run, as far as it is known. */
  rows = new Map();
  /** By run: the `updatedAt` that was asked for, and when it is due again. */
  #asked = new Map();

  /** Returns the first run that has changed since it was asked for, and that is due; null if there is none. */
  next(runs, now) {
    const isDue = ({ run_id: run, updated_at: updated }) => {
      const last = this.#asked.get(run);
      return last === undefined || (last.updated !== updated && last.due <= now);
    };
    return runs.find(isDue) ?? null;
  }

  /** Notes the answer about a run, which took `took` milliseconds. */
  answered({ run_id: run, updated_at: updated }, row, now, took) {
    this.rows.set(run, row);
    this.#asked.set(run, { updated, due: now + pauseAfter(PAUSE, took) });
  }

  /** Notes that there was no answer. `wait` is what the server asks for, in milliseconds. */
  failed({ run_id: run }, now, wait = 0) {
    this.#asked.set(run, { updated: null, due: now + Math.max(AFTER_FAILURE, wait) });
  }
}
