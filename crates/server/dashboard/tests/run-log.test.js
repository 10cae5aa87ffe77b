// The log of a run is read and watched again after a failure, with longer and longer pauses.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

/** A page that is seen, whose clock stands still. */
globalThis.document = { baseURI: "http://localhost/", hidden: false, addEventListener() {}, removeEventListener() {} };
globalThis.requestAnimationFrame = () => 1;
globalThis.cancelAnimationFrame = () => {};

/** The planned calls, each with its pause. */
const timers = new Map();
let lastTimer = 0;
globalThis.setTimeout = (call, pause) => {
  lastTimer += 1;
  timers.set(lastTimer, { call, pause });
  return lastTimer;
};
globalThis.clearTimeout = (id) => timers.delete(id);

/** The streams that were opened, the newest last. */
const sources = [];
globalThis.EventSource = class extends EventTarget {
  static CLOSED = 2;
  readyState = 1;

  constructor(url) {
    super();
    this.url = url;
    sources.push(this);
  }

  send(name, data) {
    this.dispatchEvent(Object.assign(new Event(name), { data: JSON.stringify(data) }));
  }

  close() {
    this.readyState = 2;
  }
};
const { RunLog } = await import("../run-log.js");

const DOWN = { type: "urn:archon:problem:unavailable", title: "The storage is not available", status: 503, detail: "the database restarts" };
const record = (seq, type = "step_started") => ({ seq, at: seq, type });

/** Answers each request with the next of `answers`, and returns the paths that were asked for. */
function serve(answers) {
  const paths = [];
  globalThis.fetch = async ({ pathname }) => {
    paths.push(pathname);
    const answer = answers.shift();
    return Response.json(answer, { status: answer.status ?? 200 });
  };
  return paths;
}

/** Does the planned calls, and returns their pauses. */
async function passPauses() {
  const planned = [...timers.values()];
  timers.clear();
  for (const { call } of planned) await call();
  return planned.map(({ pause }) => pause);
}

/** Opens the log of a run with one record. */
async function openLog(run = "run_1") {
  serve([{ records: [record(0)] }]);
  const log = new RunLog(run);
  await log.open(() => {});
  return log;
}

/** Opens the newest stream, which fails at once, and returns the pause until the next one. */
async function failStream(problem = DOWN) {
  const source = sources.at(-1);
  source.send("open");
  source.send("failure", problem);
  return passPauses();
}

beforeEach(() => {
  timers.clear();
  sources.length = 0;
});

test("a stream that fails is opened again behind the last record, after pauses from 1 to 30 seconds", async () => {
  const log = await openLog();
  const pauses = [];
  for (let turn = 0; turn < 7; turn += 1) {
    pauses.push(...(await failStream()));
    assert.deepEqual([log.state, log.problem.detail], ["waiting", "the database restarts"]);
  }
  assert.deepEqual(pauses, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  assert.equal(sources.length, 8);
  assert.ok(sources.every(({ url }) => url.searchParams.get("after") === "0"));
  assert.deepEqual(sources.map(({ readyState }) => readyState), [2, 2, 2, 2, 2, 2, 2, 1]);
  log.close();
});

test("a stream that works again takes the failure away, and its first record makes the next pause short", async () => {
  const log = await openLog();
  await failStream();
  await failStream();
  sources.at(-1).send("open");
  assert.deepEqual([log.state, log.problem], ["live", null]);
  sources.at(-1).send("record", record(1));
  assert.deepEqual(await failStream(), [1000]);
  assert.deepEqual(log.records.map(({ seq }) => seq), [0, 1]);
  assert.equal(sources.at(-1).url.searchParams.get("after"), "1");
  log.close();
});

test("a log that cannot be read is read again, and then watched", async () => {
  const paths = serve([DOWN, DOWN, { records: [record(0), record(1)] }]);
  const log = new RunLog("run_1");
  await log.open(() => {});
  assert.deepEqual([log.state, log.problem.status], ["waiting", 503]);
  assert.deepEqual([await passPauses(), await passPauses()], [[1000], [2000]]);
  assert.deepEqual([log.state, log.problem, log.records.length], ["waiting", null, 2]);
  assert.deepEqual([paths.length, sources.length, timers.size], [3, 1, 0]);
  log.close();
});

test("a page that nobody sees does not read again", async () => {
  const paths = serve([DOWN, { records: [] }]);
  const log = new RunLog("run_1");
  await log.open(() => {});
  document.hidden = true;
  await passPauses();
  assert.equal(paths.length, 1);
  document.hidden = false;
  await passPauses();
  assert.equal(paths.length, 2);
  log.close();
});

test("a log that is closed, or whose stream another log took, is not watched again", async () => {
  const log = await openLog();
  sources[0].send("failure", DOWN);
  log.close();
  assert.equal(timers.size, 0);
  const before = await openLog("run_2");
  sources.at(-1).send("failure", DOWN);
  const next = await openLog("run_3");
  assert.equal(timers.size, 0);
  assert.match(sources.at(-1).url.pathname, /run_3/);
  before.close();
  next.close();
  serve([DOWN]);
  const unread = new RunLog("run_4");
  await unread.open(() => {});
  unread.close();
  assert.equal(timers.size, 0);
});

test("a failure that another try does not change is final", async () => {
  const gone = { status: 404, title: "There is no such run" };
  const log = await openLog();
  assert.deepEqual(await failStream(gone), []);
  assert.equal(log.state, "failed");
  serve([gone]);
  const unknown = new RunLog("run_2");
  await unknown.open(() => {});
  assert.deepEqual([unknown.state, timers.size], ["failed", 0]);
});
