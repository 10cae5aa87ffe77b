// The fold of a run's records into what a person reads: messages, answers, calls, notes and the end. Pure.
//
// The names are those of `docs/book/reference/events.md`. A record of an unknown kind changes nothing, and the fold may
// begin in the middle of a log, since a page loads the newest records first.

import { foldCall } from "./fold-calls.js";
import { foldDelta } from "./fold-deltas.js";
import { messageItem } from "./fold-messages.js";
import { foldNote } from "./fold-notes.js";
import { newAnswer, foldModel } from "./fold-model.js";

/**
 * The state of the fold. `items` are in the order in which they are shown; each has a `key` that stays, the `seq` of its
 * record, and a `version` that grows when it changes.
 */
export class Transcript {
  items = [];
  /** The first record of the run, if it was applied. */
  started = null;
  /** What the run does: `idle`, `model`, `tools`, `asking`. */
  work = "idle";
  /** The outcome; null while the run goes on. */
  outcome = null;
  /** The number of the last record that was applied. */
  last = -1;
  /** The answer that streams, and the open calls by `command.index`. */
  answer = null;
  calls = new Map();
  lastText = "";
  lastFailure = "";

  /** Applies the next record. One that was applied before changes nothing. Returns true if something changed. */
  apply(record) {
    if (record.type === "log_unavailable") {
      // No log has this record, so its number says nothing.
      this.note(record, "warning", `The run goes on without a log: ${record.reason}`);
      return true;
    }
    if (record.seq <= this.last) return false;
    this.last = record.seq;
    this.#fold(record);
    return true;
  }

  /** Applies a piece of an answer that is not in the log yet. */
  applyDelta(delta) {
    foldDelta(this, delta);
  }

  #fold(record) {
    switch (record.type) {
      case "run_started":
        this.started = record;
        this.work = "model";
        return;
      case "message_added":
        this.work = "model";
        return this.add(messageItem(record));
      case "suspended":
        this.work = "asking";
        return;
      case "run_finished":
        return this.#end(record);
      case "resumed":
      case "limits_raised":
        this.outcome = null;
        this.work = this.openCalls().length > 0 ? "tools" : "model";
        break;
      default:
    }
    if (!foldModel(this, record) && !foldCall(this, record)) foldNote(this, record);
  }

  /** Adds an item; null is none. */
  add(item) {
    if (item !== null) this.items.push(item);
  }

  note(record, look, text, more = {}) {
    this.add({ key: `n${record.seq}`, kind: "note", seq: record.seq, at: record.at, version: 0, look, text, ...more });
  }

  /** Returns the answer of a command, and opens it if there is none. */
  answerOf(command, record) {
    if (this.answer?.command !== command) {
      this.answer = newAnswer(command, record);
      this.items.push(this.answer);
    }
    return this.answer;
  }

  openCalls() {
    return [...this.calls.values()].filter((call) => call.state !== "ended");
  }

  #end(record) {
    for (const call of this.openCalls()) {
      call.state = "ended";
      call.status ??= "cancelled";
      call.question = null;
      call.version += 1;
    }
    if (this.answer !== null && !this.answer.isDone) drop(this.items, this.answer);
    this.answer = null;
    this.calls.clear();
    this.work = "idle";
    this.outcome = record;
    const answer = (record.answer ?? "").trim();
    // The answer of a plan or of a team is in no answer before; that of a loop is.
    const own = answer !== "" && !this.lastText.includes(answer) ? answer : "";
    this.add({ key: `e${record.seq}`, kind: "end", seq: record.seq, at: record.at, version: 0, outcome: record, answer: own });
  }
}

/** Folds all records of a list. */
export function foldAll(records) {
  const transcript = new Transcript();
  for (const record of records) transcript.apply(record);
  return transcript;
}

/** Returns the status of a run after its last record, as far as the log shows it. */
export function statusAfter(record) {
  if (record.type === "run_started") return "created";
  if (record.type === "suspended") return "suspended";
  return record.type === "run_finished" ? record.status : "running";
}

function drop(items, item) {
  // An answer that never came is the last item, or near it.
  const at = items.lastIndexOf(item);
  if (at >= 0) items.splice(at, 1);
}
