// The stream of events of one run. A tab has at most one: over HTTP/1.1 a browser opens six connections to a server.

import * as api from "./api.js";
import { Retries } from "./pause.js";

/** The stream that this tab has open. */
let current = null;

/** The statuses of an answer that another try does not change: signed out, no right, no such run. */
const FINAL = new Set([401, 403, 404]);
const ENDED = new Set(["finished", "failed", "limit", "cancelled"]);

/**
 * Watches a run from the record after `after` on; every other stream of this tab is closed. `on` has `events` (a list of
 * `{record}` and `{delta}`, once per frame), `state` (`live`, `waiting` or `hidden`), `end` and `failure`. After a failure
 * that is not final, the stream is opened again.
 *
 * A page that nobody sees has no stream. It goes on behind the last record once it is seen again, so no record is lost.
 */
export function watch(run, after, on) {
  current?.close();
  current = new Stream(run, after, on);
  return current;
}

/** Returns true if a request that failed would fail again. */
export function isFinal(problem) {
  return FINAL.has(problem.status);
}

class Stream {
  #run;
  #after;
  #on;
  #source = null;
  #queue = [];
  #frame = null;
  #retries = new Retries();
  #isClosed = false;

  constructor(run, after, on) {
    [this.#run, this.#after, this.#on] = [run, after, on];
    document.addEventListener("visibilitychange", this.#look);
    this.#look();
  }

  close() {
    this.#isClosed = true;
    document.removeEventListener("visibilitychange", this.#look);
    this.#stop();
    cancelAnimationFrame(this.#frame);
    this.#queue = [];
    if (current === this) current = null;
  }

  #look = () => {
    if (document.hidden) {
      this.#stop();
      this.#on.state("hidden");
    } else if (this.#source === null) {
      this.#open();
    }
  };

  #open() {
    this.#retries.stop();
    const query = this.#after < 0 ? {} : { after: this.#after };
    const source = new EventSource(api.address(["runs", this.#run, "events"], query));
    this.#source = source;
    source.addEventListener("open", () => this.#on.state("live"));
    source.addEventListener("record", ({ data }) => this.#push({ record: JSON.parse(data) }));
    source.addEventListener("delta", ({ data }) => this.#push({ delta: JSON.parse(data) }));
    source.addEventListener("end", () => this.#end());
    source.addEventListener("failure", ({ data }) => this.#fail(new api.Problem(JSON.parse(data))));
    source.addEventListener("error", () => {
      this.#on.state("waiting");
      // The browser connects again by itself, with the id of the last record, unless the server refused.
      if (source.readyState === EventSource.CLOSED) this.#refused();
    });
  }

  #push(event) {
    const { record } = event;
    if (record !== undefined && record.type !== "log_unavailable") {
      this.#after = Math.max(this.#after, record.seq);
      // Only a record shows that the server works: a stream may open and fail at once.
      this.#retries.reset();
    }
    this.#queue.push(event);
    this.#frame ??= requestAnimationFrame(this.#flush);
  }

  #flush = () => {
    this.#frame = null;
    const events = this.#queue;
    this.#queue = [];
    if (!this.#isClosed && events.length > 0) this.#on.events(events);
  };

  #end() {
    this.#flush();
    this.#stop();
    this.#on.end();
    this.close();
  }

  /** The server cannot go on, for instance because its database restarts. */
  #fail(problem) {
    this.#flush();
    this.#stop();
    this.#on.failure(problem);
    if (isFinal(problem)) this.close();
    else this.#openLater();
  }

  #openLater() {
    this.#retries.plan(() => {
      // A hidden page opens its stream once it is seen.
      if (!this.#isClosed && !document.hidden && this.#source === null) this.#open();
    });
  }

  /** A refusal has no reason here, so the run is asked for: it has ended, or the answer says why. */
  async #refused() {
    this.#stop();
    try {
      const head = await api.run(this.#run);
      if (this.#isClosed) return;
      if (ENDED.has(head.status)) return this.#end();
    } catch (problem) {
      if (this.#isClosed) return;
      if (isFinal(problem)) return this.#fail(problem);
    }
    this.#openLater();
  }

  #stop() {
    this.#retries.stop();
    this.#source?.close();
    this.#source = null;
  }
}
