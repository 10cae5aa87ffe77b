// Forks of runs: which failures of the second request a person reads, and that a second try makes no second fork.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bodyOf, forker, mayFork } from "../forks.js";

/** Returns `forker` over a server whose `resume` fails with these rules, one a call, and its calls. */
function server(rules, wantsAnswer = true) {
  const calls = [];
  const make = forker({
    fork: async (run, body) => {
      calls.push(`fork ${run} ${body.record}`);
      return { run: `fork_${calls.length}`, wants_answer: wantsAnswer };
    },
    resume: async (run) => {
      calls.push(`resume ${run}`);
      const rule = rules.shift();
      if (rule !== undefined) throw Object.assign(new Error(rule), { rule, status: 409 });
    },
  });
  return { calls, make };
}

test("mayFork is true for a loop, and for a run whose kind is not known", () => {
  const kinds = ["loop", undefined, null, "plan", "team", "parallel", "agent_call"];
  assert.deepEqual(kinds.map((kind) => mayFork({ kind })), [true, true, true, false, false, false, false]);
});

test("bodyOf leaves out what was left empty", () => {
  assert.deepEqual(bodyOf(3, { text: " ", agent: "" }), { record: 3 });
  assert.deepEqual(bodyOf(3, { text: "a", agent: "b" }), { record: 3, text: "a", agent: "b" });
});

test("forker resumes a fork only if the model answers next", async () => {
  const { calls, make } = server([], false);
  await make("run_1", { record: 2 });
  assert.deepEqual(calls, ["fork run_1 2"]);
});

test("forker takes a fork that another page has resumed as done", async () => {
  const { calls, make } = server(["conflict"]);
  assert.equal((await make("run_1", { record: 2 })).run, "fork_1");
  assert.deepEqual(calls, ["fork run_1 2", "resume fork_1"]);
});

test("forker fails if the session is busy or the run belongs to another folder", async () => {
  for (const rule of ["session-busy", "other-folder"]) {
    const { make } = server([rule]);
    await assert.rejects(make("run_1", { record: 2 }), { rule, title: "The fork fork_1 was made, and does not go on" });
  }
});

test("forker makes one fork of the same body when the first try could not resume it", async () => {
  const { calls, make } = server(["session-busy", "session-busy"]);
  await assert.rejects(make("run_1", { record: 2 }));
  await assert.rejects(make("run_1", { record: 2 }));
  await make("run_1", { record: 1 });
  assert.deepEqual(calls, ["fork run_1 2", "resume fork_1", "resume fork_1", "fork run_1 1", "resume fork_4"]);
});
