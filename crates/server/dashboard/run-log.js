// The records of a run as far as the page has them: the newest first, older ones on demand, new ones from the stream.

import { useEffect, useMemo, useReducer } from "./hooks.js";
import * as api from "./api.js";
import { Transcript, foldAll, statusAfter } from "./fold.js";
import { Retries } from "./pause.js";
import { isFinal, watch } from "./stream.js";

/** The number of records that are read at first. */
const FIRST = 200;
/** The least and the most that a look back adds: as many as are there, because the server reads the log for each look. */
const OLDER = [1000, 10_000];

export class RunLog {
  /** The records, in order and without a gap; the first may be in the middle of the log. */
  records = [];
  transcript = new Transcript();
  /** `loading`, `live`, `waiting` (also for the next try after a failure), `hidden`, `ended` or `failed`. */
  state = "loading";
  problem = null;
  damage = null;
  isLoadingOlder = false;
  #run;
  #stream = null;
  /** The tries to read the newest records; the stream has its own. */
  #retries = new Retries();
  #changed = () => {};
  #control = new AbortController();

  constructor(run) {
    this.#run = run;
  }

  get run() {
    return this.#run;
  }

  get hasOlder() {
    return this.records.length > 0 && this.records[0].seq > 0;
  }

  /** The status after the last record; null before the first one is there. */
  get status() {
    const last = this.records.at(-1);
    return last === undefined ? null : statusAfter(last);
  }

  /** Reads the newest records and, unless it is only looked back at, watches the run. `changed` is called after each change. */
  async open(changed, { isLive = true } = {}) {
    this.#changed = changed;
    await this.#read(isLive);
  }

  async #read(isLive) {
    try {
      const page = await api.records(this.#run, { last: FIRST }, this.#control.signal);
      this.damage = page.damage ?? null;
      this.records = page.records;
      this.transcript = foldAll(this.records);
      this.problem = null;
      if (isLive) this.#watch();
      else this.state = "ended";
    } catch (problem) {
      if (this.#control.signal.aborted) return;
      this.#fail(problem);
      if (!isFinal(problem)) this.#readLater(isLive);
    }
    this.#changed();
  }

  /** Reads again after a pause; a page that nobody sees reads nothing. */
  #readLater(isLive) {
    this.#retries.plan(() => (document.hidden ? this.#readLater(isLive) : this.#read(isLive)));
  }

  close() {
    this.#control.abort();
    this.#retries.stop();
    this.#stream?.close();
    this.#changed = () => {};
  }

  /** Reads the records before those that are there. */
  async older() {
    if (this.isLoadingOlder || !this.hasOlder) return;
    this.isLoadingOlder = true;
    this.#changed();
    try {
      const before = this.records[0].seq;
      const limit = Math.min(OLDER[1], Math.max(OLDER[0], this.records.length));
      const page = await api.records(this.#run, { before, limit }, this.#control.signal);
      const found = page.records.filter((record) => record.seq < before);
      this.records = found.concat(this.records);
      this.#foldAgain();
    } catch (problem) {
      if (problem.name !== "AbortError") this.problem = problem;
    }
    this.isLoadingOlder = false;
    this.#changed();
  }

  /** Watches the run again if it goes on after its end, for instance because it was resumed. */
  watchAgain() {
    if (this.state === "ended") this.#watch();
  }

  #watch() {
    this.state = "waiting";
    // Without a record nothing tells where to begin; then the stream sends all.
    const after = this.records.at(-1)?.seq ?? -1;
    this.#stream = watch(this.#run, after, {
      events: (events) => this.#apply(events),
      state: (state) => this.#setState(state),
      end: () => this.#setState("ended"),
      failure: (problem) => {
        this.#fail(problem);
        this.#changed();
      },
    });
  }

  #setState(state) {
    this.state = state;
    // What had failed works again.
    if (state === "live" || state === "ended") this.problem = null;
    this.#changed();
  }

  #fail(problem) {
    [this.state, this.problem] = [isFinal(problem) ? "failed" : "waiting", problem];
  }

  #apply(events) {
    for (const { record, delta } of events) {
      if (delta !== undefined) this.transcript.applyDelta(delta);
      else if (this.transcript.apply(record) && record.type !== "log_unavailable") this.records.push(record);
    }
    this.#changed();
  }

  /** Folds all records again, and keeps the pieces of the answer that streams. */
  #foldAgain() {
    const { answer } = this.transcript;
    this.transcript = foldAll(this.records);
    const now = this.transcript.answer;
    if (answer !== null && now !== null && now.command === answer.command && now.attempt === answer.attempt) {
      const { text, thinking, pieces, bytes } = answer;
      Object.assign(now, { text, thinking, pieces, bytes, version: answer.version + 1 });
    }
  }
}

/** Opens the log of a run for as long as the component is there. */
export function useRunLog(run) {
  const [, changed] = useReducer((turn) => turn + 1, 0);
  const log = useMemo(() => new RunLog(run), [run]);
  useEffect(() => {
    log.open(changed);
    return () => log.close();
  }, [log]);
  return log;
}
