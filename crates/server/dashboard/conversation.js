// A conversation of the playground: the newest runs of a session, of which the last one is watched.

import { useEffect, useMemo, useReducer } from "./hooks.js";
import * as api from "./api.js";
import { RunLog } from "./run-log.js";

/** The number of runs of a session that are shown; the page of the session lists all. */
const SHOWN = 5;
const BUSY = new Set(["created", "running", "suspended"]);

export class Conversation {
  session;
  logs = [];
  problem = null;
  isLoading = false;
  #changed = () => {};
  /** The start without an answer: its body and its key. */
  #unanswered = null;
  #control = new AbortController();

  constructor(session) {
    this.session = session;
  }

  get newest() {
    return this.logs.at(-1) ?? null;
  }

  /** The status of the newest run: `idle` if there is none, or if it has ended. */
  get status() {
    const status = this.newest?.status ?? null;
    return this.newest !== null && (status === null || BUSY.has(status)) ? (status ?? "running") : "idle";
  }

  /** The items of all runs, each with its log. */
  get items() {
    return this.logs.flatMap((log) => log.transcript.items.map((item) => ({ log, item })));
  }

  async open(changed) {
    this.#changed = changed;
    if (this.session === null) return;
    this.isLoading = true;
    changed();
    try {
      const query = { session: this.session, top_level: true, limit: SHOWN };
      const { runs } = await api.runs(query, this.#control.signal);
      runs.sort((a, b) => a.started_at - b.started_at);
      this.logs = runs.map((run) => new RunLog(run.run_id));
      // One after the other: the last one takes the only stream of this tab.
      await Promise.all(this.logs.slice(0, -1).map((log) => log.open(changed, { isLive: false })));
      await this.newest?.open(changed);
    } catch (problem) {
      if (problem.name !== "AbortError") this.problem = problem;
    }
    this.isLoading = false;
    this.#changed();
  }

  close() {
    this.#control.abort();
    this.#changed = () => {};
    this.logs.forEach((log) => log.close());
  }

  /**
   * Sends a message: it starts a run of `agent`, which is null for that of the service, or a run under way reads it, as
   * `when` says: `steer` or `follow_up`.
   */
  async send(text, { agent, when }) {
    if (this.status !== "idle" && when === "steer") return api.steer(this.newest.run, text);
    if (this.status !== "idle") return api.followUp(this.newest.run, text);
    const body = { text };
    if (agent !== null) [body.agent, body.kind] = [agent.id, agent.kind];
    if (this.session !== null) body.session = this.session;
    const started = await this.#start(body);
    this.session = started.session;
    if (this.newest?.run === started.run) return this.newest.watchAgain();
    const log = new RunLog(started.run);
    this.logs.push(log);
    await log.open(this.#changed);
    return undefined;
  }

  /** A start that is sent again after a broken connection has the same key, so that it begins no second run. */
  async #start(body) {
    const text = JSON.stringify(body);
    if (this.#unanswered?.text !== text) this.#unanswered = { text, key: api.randomKey() };
    const started = await api.start(body, this.#unanswered.key);
    this.#unanswered = null;
    return started;
  }

  async cancel() {
    if (this.newest !== null) await api.cancel(this.newest.run, "");
  }
}

/** Opens the conversation of a session for as long as the component is there; null begins a new session. */
export function useConversation(session) {
  const [, changed] = useReducer((turn) => turn + 1, 0);
  const conversation = useMemo(() => new Conversation(session), [session]);
  useEffect(() => {
    conversation.open(changed);
    return () => conversation.close();
  }, [conversation]);
  return conversation;
}
