// Tasks in words.

import assert from "node:assert/strict";
import { test } from "node:test";
import { instructionOf, problemsOf, triggerOf } from "../tasks.js";

test("trigger of a task is in words", () => {
  for (const [trigger, words] of [
    [{ schedule: { cron: "0 8 * * *", zone: "Asia/Shanghai" } }, "at 0 8 * * * (Asia/Shanghai)"],
    [{ schedule: { every: 300 } }, "every 5 min 0 s"],
    [{ event: { pattern: "shop.*", if: "data.sum > 1" } }, "at events shop.* if data.sum > 1"],
    [{ condition: { probe: "price", expression: "data.eur < 1.0", every: 60 } }, "when data.eur < 1.0 of price"],
    [{}, ""],
  ]) {
    assert.equal(triggerOf({ trigger }), words);
  }
});

test("work of a task names another agent", () => {
  assert.equal(instructionOf({ action: { agent: { instruction: "Read." } } }), "Read.");
  assert.equal(instructionOf({ action: { agent: { agent: "desk", instruction: "Read." } } }), "desk: Read.");
  assert.equal(instructionOf({ action: { code: { executor: "refresh" } } }), "code refresh");
});

test("problems of a task are those of its runs, then the newest one outside of them", () => {
  const newest = { at: 1_000_000, text: "the mailbox refuses" };
  assert.deepEqual(problemsOf({ problem: null, newest_problem: null }, 1_300_000), []);
  assert.deepEqual(problemsOf({ problem: "the run failed", newest_problem: null }, 1_300_000), ["the run failed"]);
  assert.deepEqual(problemsOf({ problem: "the run failed", newest_problem: newest }, 1_300_000), ["the run failed", "the mailbox refuses (5 min ago)"]);
});
