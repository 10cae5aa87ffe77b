// The stream of events of one run. A tab has at most one: over HTTP/1.1 a browser opens six connections to a server.

import * as api from "./api.js";

/** The stream that this tab has open. */
let current = null;

/** The pause before a stream that the server refused is opened again, in milliseconds: the first, and the longest. */
const PAUSES = [1000, 30_000];
const ENDED = new Set(["finished", "failed", "limit", "cancelled"]);

/**
 * Watches a run from the record after `after` on; every other stream of this tab is closed. `on` has `events` (a list of
 * `{record}` and `{delta}`, once per frame), `state` (`live`, `waiting` or `hidden`), `end` and `failure`.
 *
 * A page that nobody sees has no stream. It goes on behind the last record once it is seen again, so no record is lost.
 */
export function watch(run, after, on) {
  current?.close();
  current = new Stream(run, after, on);
  return current;
}

class Stream {
  #run;
  #after;
  #on;
  #source = null;
  #queue = [];
  #frame = null;
  #timer = null;
  #pause = PAUSES[0];
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
    clearTimeout(this.#timer);
    const query = this.#after < 0 ? {} : { after: this.#after };
    const source = new EventSource(api.address(["runs", this.#run, "events"], query));
    this.#source = source;
    source.addEventListener("open", () => {
      this.#pause = PAUSES[0];
      this.#on.state("live");
    });
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
    if (record !== undefined && record.type !== "log_unavailable") this.#after = Math.max(this.#after, record.seq);
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

  #fail(problem) {
    this.#flush();
    this.#on.failure(problem);
    this.close();
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
      if (problem.status === 404 || problem.status === 403 || problem.status === 401) return this.#fail(problem);
    }
    this.#timer = setTimeout(() => {
      if (!this.#isClosed && !document.hidden && this.#source === null) this.#open();
    }, this.#pause);
    this.#pause = Math.min(PAUSES[1], this.#pause * 2);
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }
}
