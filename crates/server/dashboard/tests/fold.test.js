// The fold of records to a transcript, with records as the page of events has them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Transcript, foldAll, statusAfter } from "../fold.js";
import { partsOf } from "../fold-messages.js";
import { recordSummary } from "../record-summary.js";

const EVENTS = new URL("../../../../docs/book/reference/events.md", import.meta.url);

let seq = 0;
/** Returns records with numbers from 0. */
function log(...bodies) {
  seq = 0;
  return bodies.map((body) => ({ seq: seq++, at: 1000 + seq, ...body }));
}

const started = { type: "run_started", kind: "loop", run: "run_1", session: "s_1", agent: "desk", config: {} };
const prompt = (text) => ({ type: "message_added", source: "prompt", message: { role: "user", content: [{ type: "text", text }], timestamp: 1 } });
const asks = (command, attempt = 0) => ({ type: "model_call_started", command, attempt, turn: command, request_hash: "x" });
const answers = (command, content, attempt = 0) => ({
  type: "model_call_finished", command, attempt,
  message: { content, stop_reason: "stop", model: "m", provider: "p", usage: { input: 1, output: 2, cache_read: 3, cache_write: 0, total_tokens: 6 }, timestamp: 1 },
});
const text = (value) => ({ type: "text", text: value });
const toolCall = (name, args) => ({ type: "toolCall", id: "c1", name, arguments: args });
const call = (command, index = 0) => ({ command, index });
const result = (value, status = "success") => ({ content: [text(value)], status });
const finished = (more = {}) => ({ type: "run_finished", run: "run_1", status: "finished", answer: "", turns: 1, usage: {}, ...more });
const kinds = (transcript) => transcript.items.map((item) => item.kind);
const delta = (kind, offset, more) => ({ run_id: "run_1", command: 0, attempt: 0, offset, delta: kind, ...more });

test("fold shows a prompt, a call with its result, an answer and the end", () => {
  const transcript = foldAll(log(
    started, prompt("What is 15% of 200?"), asks(0), answers(0, [toolCall("calculator", { expression: "15% of 200" })]),
    { type: "tool_call_started", call: call(0), attempt: 0, effect: "read_only" },
    { type: "tool_call_finished", call: call(0), result: result("30") },
    asks(1), answers(1, [text("30")]), finished({ answer: "30" }),
  ));
  assert.deepEqual(kinds(transcript), ["message", "call", "answer", "end"]);
  const [, called, answer, end] = transcript.items;
  assert.deepEqual([called.name, called.status, called.attempts, called.endedAt - called.startedAt], ["calculator", "success", 1, 1]);
  assert.deepEqual([answer.text, answer.isDone, end.answer, transcript.work], ["30", true, "", "idle"]);
});

test("fold shows the answer of a plan at the end, because no answer before has it", () => {
  const transcript = foldAll(log(started, prompt("Plan"), finished({ answer: "All done." })));
  assert.equal(transcript.items.at(-1).answer, "All done.");
});

test("fold ignores a record that came before", () => {
  const records = log(started, prompt("Hello"));
  const transcript = foldAll([...records, ...records]);
  assert.deepEqual(kinds(transcript), ["message"]);
});

test("fold begins in the middle of a log", () => {
  const records = log(started, prompt("Hello"), asks(0), answers(0, [toolCall("ls", {})]),
    { type: "tool_call_started", call: call(0), attempt: 0, effect: "read_only" },
    { type: "tool_call_finished", call: call(0), result: result("x") }, asks(1), answers(1, [text("done")]));
  for (let from = 0; from < records.length; from += 1) {
    const transcript = foldAll(records.slice(from));
    assert.equal(transcript.items.at(-1).text, "done", `from ${from}`);
  }
  const [called] = foldAll(records.slice(4)).items;
  assert.deepEqual([called.kind, called.name, called.status], ["call", "", "success"]);
});

test("fold shows a question until it is answered", () => {
  const request = { request_id: "q", action_summary: "Refund", details: {} };
  const asked = log(started, asks(0), answers(0, [toolCall("refund", { cents: 40 })]), { type: "approval_requested", call: call(0), request },
    { type: "suspended", waiting: [call(0)] });
  const transcript = foldAll(asked);
  const called = transcript.items.at(-1);
  assert.deepEqual([called.state, called.question.request_id, transcript.work], ["asking", "q", "asking"]);
  transcript.apply({ seq: 5, at: 1, type: "approval_answered", call: call(0), answer: { answer: "edit", arguments: { cents: 30 } } });
  assert.deepEqual([called.state, called.question, called.arguments], ["requested", null, { cents: 30 }]);
});

test("fold counts the attempts of a call, and keeps why each failed", () => {
  const begins = (attempt) => ({ type: "tool_call_started", call: call(0), attempt, effect: "idempotent" });
  const failed = { type: "tool_call_failed", call: call(0), attempt: 0, result: { ...result("Error: reset", "error"), error_message: "reset" }, jitter: 0 };
  const transcript = foldAll(log(started, asks(0), answers(0, [toolCall("get", {})]), begins(0), failed, begins(1),
    { type: "tool_call_finished", call: call(0), result: result("ok") }));
  const called = transcript.items.at(-1);
  assert.deepEqual([called.attempts, called.failures, called.status], [2, ["reset"], "success"]);
});

test("fold names a refused call and its child run", () => {
  const transcript = foldAll(log(started, asks(0), answers(0, [toolCall("a", {}), toolCall("b", {})]),
    { type: "tool_call_refused", call: call(0), result: result("no", "error") },
    { type: "child_run_created", call: call(0, 1), child_run: "run_1.0-1" },
    { type: "lease_settled", call: call(0, 1), child_run: "run_1.0-1", spent: { tokens: 5, cost_micros: 7 } }));
  const [first, second] = transcript.items;
  assert.deepEqual([first.isRefused, first.state, second.childRun, second.spent.tokens], [true, "ended", "run_1.0-1", 5]);
});

test("fold resolves the tool that call_tool names", () => {
  const { items } = foldAll(log(started, asks(0), answers(0, [toolCall("call_tool", { name: "t", arguments: '{"x": 1}' })])));
  assert.deepEqual([items[0].name, items[0].arguments], ["t", { x: 1 }]);
});

test("fold joins deltas, and the record replaces them", () => {
  const transcript = foldAll(log(started, asks(0)));
  transcript.applyDelta(delta("text", 0, { text: "Hél" }));
  transcript.applyDelta(delta("text", 4, { text: "lo" }));
  // A piece that came before, and one after a gap.
  transcript.applyDelta(delta("text", 4, { text: "lo" }));
  assert.equal(transcript.answer.text, "Héllo");
  transcript.applyDelta(delta("text", 9, { text: "!" }));
  assert.equal(transcript.answer.text, "Héllo…!");
  transcript.applyDelta(delta("tool_call_started", 0, { index: 0, id: "c", name: "ls" }));
  transcript.applyDelta(delta("tool_call_arguments", 0, { index: 0, id: "c", text: "{" }));
  assert.deepEqual(transcript.answer.pieces, [{ name: "ls", text: "{" }]);
  transcript.apply({ seq: 2, at: 1, ...answers(0, [text("Hello!")]) });
  assert.deepEqual([transcript.items[0].text, transcript.items[0].pieces], ["Hello!", []]);
  // A late delta changes nothing.
  transcript.applyDelta(delta("text", 0, { text: "x" }));
  assert.equal(transcript.items[0].text, "Hello!");
});

test("fold drops the pieces of an attempt that failed", () => {
  const transcript = foldAll(log(started, asks(0)));
  transcript.applyDelta(delta("text", 0, { text: "Half" }));
  transcript.apply({ seq: 2, at: 1, type: "model_call_failed", command: 0, attempt: 0, failure: { code: "network", message: "reset", retryable: true, had_output: true } });
  assert.equal(transcript.answer.text, "");
  transcript.apply({ seq: 3, at: 1, ...asks(0, 1) });
  transcript.applyDelta(delta("text", 0, { text: "old" }));
  transcript.applyDelta({ ...delta("text", 0, { text: "new" }), attempt: 1 });
  assert.equal(transcript.answer.text, "new");
  assert.deepEqual(kinds(transcript), ["note", "answer"], "the answer is below the failure before it");
});

test("fold shows progress and the result so far of a running tool", () => {
  const transcript = foldAll(log(started, asks(0), answers(0, [toolCall("build", {})]), { type: "tool_call_started", call: call(0), attempt: 0, effect: "side_effect" }));
  transcript.applyDelta(delta("tool_progress", 0, { call: call(0), text: "half way" }));
  transcript.applyDelta(delta("tool_partial_result", 0, { call: call(0), result: result("so far") }));
  const called = transcript.items.at(-1);
  assert.deepEqual([called.progress, called.partial.content[0].text], ["half way", "so far"]);
});

test("fold leaves the marks of a stop and data of programs out", () => {
  const transcript = foldAll(log(started, prompt("[Request interrupted by user]"), { type: "message_added", source: "prompt", message: { role: "extension", kind: "x", data: {} } }));
  assert.deepEqual(kinds(transcript), []);
});

test("fold names the files of a message, also those that its writer did not attach", () => {
  const pdf = (name) => ({ type: "media", sha256: "0", mime_type: "application/pdf", bytes: 9, name });
  const message = { role: "user", content: [text("Sum up."), pdf("a.pdf"), pdf(undefined), pdf("b.pdf")], attached: ["docs/b.pdf"], timestamp: 1 };
  const [item] = foldAll(log(started, { type: "message_added", source: "prompt", message })).items;
  assert.deepEqual([item.text, item.files], ["Sum up.", ["docs/b.pdf", "a.pdf", "application/pdf"]]);
});

test("partsOf tells what was written from files and memories", () => {
  const message = { role: "user", content: [text("See @a"), text("milk"), text("In Bern.")], attached: ["a.txt"], recalled: 1 };
  const parts = partsOf(message);
  assert.deepEqual([parts.written, parts.attached, parts.recalled], [[text("See @a")], ["a.txt"], [text("In Bern.")]]);
  // A damaged log may have more names than blocks.
  assert.deepEqual(partsOf({ content: [], attached: ["a"] }).attached, []);
});

test("fold ends what was open with the run", () => {
  const transcript = foldAll(log(started, asks(0), answers(0, [toolCall("x", {})]), finished({ status: "cancelled" })));
  const [called, end] = transcript.items;
  assert.deepEqual([called.state, called.status, end.kind], ["ended", "cancelled", "end"]);
  const waiting = foldAll(log(started, prompt("a"), asks(0), finished({ status: "failed", error: "no key" })));
  assert.deepEqual(kinds(waiting), ["message", "end"]);
});

test("fold goes on after a resumption", () => {
  const transcript = foldAll(log(started, asks(0), finished({ status: "limit", detail: { limit: "turns", max: 1 } }),
    { type: "limits_raised", max_turns: 5 }, { type: "resumed" }, asks(1), answers(1, [text("done")]), finished({ answer: "done" })));
  assert.deepEqual(kinds(transcript), ["end", "note", "note", "answer", "end"]);
});

test("fold accepts kinds that it does not know", () => {
  const transcript = foldAll(log(started, { type: "made_up_later", x: 1 }, prompt("Hello")));
  assert.deepEqual(kinds(transcript), ["message"]);
  assert.equal(recordSummary({ seq: 0, at: 0, type: "made_up_later" }), "");
});

test("fold keeps a run without a log apart from the numbers of records", () => {
  const transcript = new Transcript();
  transcript.apply({ seq: 0, at: 0, type: "log_unavailable", reason: "the disk is full" });
  transcript.apply({ seq: 0, at: 0, ...started });
  assert.equal(transcript.started.agent, "desk");
});

test("statusAfter is the status of the head", () => {
  const status = (record) => statusAfter({ seq: 0, at: 0, ...record });
  assert.deepEqual([status(started), status({ type: "suspended", waiting: [] }), status(finished({ status: "limit" })), status(asks(0))],
    ["created", "suspended", "limit", "running"]);
});

test("fold takes every record and delta that the page of events shows", () => {
  const lines = readFileSync(EVENTS, "utf8").split("\n").filter((line) => line.startsWith("{\""));
  const read = lines.map((line) => JSON.parse(line));
  assert.ok(read.length > 50, `${read.length} lines`);
  const transcript = new Transcript();
  let next = 0;
  for (const event of read) {
    if (event.delta !== undefined) transcript.applyDelta(event);
    else {
      transcript.apply({ ...event, seq: next++ });
      assert.equal(typeof recordSummary(event), "string");
    }
  }
  assert.ok(transcript.items.length > 20);
  for (const item of transcript.items) {
    if (item.kind === "note") assert.ok(item.text.length > 0 && !/undefined|NaN|\[object/.test(item.text), item.text);
  }
  assert.equal(new Set(transcript.items.map((item) => item.key)).size, transcript.items.length);
});

test("fold of a long log takes little time", () => {
  const bodies = [started];
  for (let command = 0; command < 20_000; command += 1) bodies.push(asks(command), answers(command, [text("word")]));
  const begun = performance.now();
  assert.equal(foldAll(log(...bodies)).items.length, 20_000);
  assert.ok(performance.now() - begun < 2000, `${performance.now() - begun} ms`);
});
