// The use of runs is asked for when they have changed, and long logs are read less often.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Costs } from "../costs.js";
import { pauseAfter } from "../pause.js";

const run = (id, updated) => ({ run_id: id, updated_at: updated });

test("Costs asks for each run once while nothing changes", () => {
  const costs = new Costs();
  const runs = [run("a", 1), run("b", 1)];
  for (const id of ["a", "b"]) {
    const next = costs.next(runs, 0);
    assert.equal(next.run_id, id);
    costs.answered(next, { run: id }, 0, 5);
  }
  assert.equal(costs.next(runs, 1e9), null);
  assert.deepEqual([...costs.rows.keys()], ["a", "b"]);
});

test("Costs asks again for a run that changed, after 10 seconds", () => {
  const costs = new Costs();
  costs.answered(run("a", 1), {}, 0, 5);
  costs.answered(run("b", 1), {}, 0, 5);
  const runs = [run("a", 2), run("b", 1)];
  assert.deepEqual([costs.next(runs, 9_999), costs.next(runs, 10_000)?.run_id], [null, "a"]);
});

test("Costs waits 10 times as long as a long log took", () => {
  const costs = new Costs();
  costs.answered(run("a", 1), {}, 0, 4_000);
  assert.deepEqual([costs.next([run("a", 2)], 39_999), costs.next([run("a", 2)], 40_000)?.run_id], [null, "a"]);
});

test("Costs asks again for a run without an answer, and for the others meanwhile", () => {
  const costs = new Costs();
  const runs = [run("a", 1), run("b", 1)];
  costs.failed(runs[0], 0);
  assert.equal(costs.next(runs, 0).run_id, "b");
  assert.equal(costs.next(runs, 30_000).run_id, "a");
  costs.failed(runs[0], 0, 60_000);
  costs.answered(runs[1], {}, 0, 1);
  assert.equal(costs.next(runs, 59_999), null);
});

test("pauseAfter is the shortest pause, or longer after a slow answer", () => {
  assert.deepEqual([pauseAfter(2000, 50), pauseAfter(2000, 900)], [2000, 9000]);
});
