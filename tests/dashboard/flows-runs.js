// Flows through the list of runs, the playground and the parts of a run.

import assert from "node:assert/strict";
import { test } from "node:test";
import { approveElsewhere, ask, bookPicture, go, open, openSignedOut, required, send, start, waitForStatus } from "./browser.js";

test("a one-time link signs in once, and without it the page says how to get one", async () => {
  const page = await open("");
  assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "Runs");
  const other = await openSignedOut();
  const again = await other.request.get(required("DASHBOARD_LINK"));
  assert.equal(again.status(), 403);
});

test("the playground starts a run and shows its answer", async () => {
  const page = await open("#/playground");
  const run = await start(page, "Hello");
  await page.getByText("done: Hello").first().waitFor();
  await waitForStatus(page, run, "finished");
});

test("the playground goes on in the same session, and steers a run that works", async () => {
  const page = await open("#/playground");
  await start(page, "one");
  await page.getByText("done: one").first().waitFor();
  await page.getByLabel("Message", { exact: true }).fill("wait");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByLabel("Message to the run that works").fill("steered");
  await page.getByRole("button", { name: "Steer" }).click();
  await page.getByText("done: steered").first().waitFor();
  const session = decodeURIComponent(new URL(page.url()).hash.slice("#/playground/".length));
  const { runs } = await ask(page, `runs?session=${session}`);
  assert.equal(runs.length, 2);
});

test("the playground stops a run", async () => {
  const page = await open("#/playground");
  const run = await start(page, "wait");
  await page.getByRole("button", { name: "Stop the run" }).click();
  await waitForStatus(page, run, "cancelled");
  await page.getByLabel("End of the run").getByText("cancelled").waitFor();
});

test("the list shows a run with its state and its tokens, and filters by words and status", async () => {
  const page = await open("#/playground");
  const run = await start(page, "A needle in the list");
  await waitForStatus(page, run, "finished");
  await go(page, "#/runs");
  const field = page.getByLabel("Text", { exact: true });
  await field.fill("needle in");
  await page.getByText(/^1 run( |$)/).waitFor();
  const row = page.getByRole("row").filter({ hasText: run });
  await row.locator(".status", { hasText: "finished" }).waitFor();
  await row.getByText("120", { exact: true }).waitFor();
  assert.equal(await page.getByRole("row").count(), 2);
  await page.reload();
  await row.waitFor();
  assert.equal(await field.inputValue(), "needle in");
  await page.getByLabel("Status", { exact: true }).selectOption("failed");
  await row.waitFor({ state: "detached" });
});

test("the list shows a run that begins while it is seen", async () => {
  const page = await open("#/runs");
  const other = await open("#/playground");
  const run = await start(other, "A late run");
  await page.getByRole("row").filter({ hasText: run }).waitFor();
});

test("keys move through rows, open one, search, show the help and close it", async () => {
  const page = await open("#/runs");
  await page.getByRole("row").nth(2).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  const first = page.locator("main [data-row]").first();
  assert.ok(await first.evaluate((row) => row === document.activeElement));
  await page.keyboard.press("/");
  const field = page.getByLabel("Text", { exact: true });
  assert.ok(await field.evaluate((element) => element === document.activeElement));
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/runs\/.+/);
  await page.getByRole("navigation", { name: "Parts of the run" }).waitFor();
});

test("the transcript shows a call with its result, and leads to its record", async () => {
  const page = await open("#/playground");
  const run = await start(page, "wait");
  await waitForStatus(page, run, "finished");
  await go(page, `#/runs/${run}`);
  const call = page.getByRole("article", { name: "Call of wait" });
  await call.locator("summary").click();
  await call.getByText("went on").waitFor();
  await call.getByRole("link", { name: /record \d+/ }).click();
  await page.getByRole("region", { name: /Record \d+ as JSON/ }).filter({ hasText: "model_call_finished" }).waitFor();
});

test("records have addresses, and lead to the record before and after", async () => {
  const page = await open("#/playground");
  const run = await start(page, "Hello records");
  await waitForStatus(page, run, "finished");
  await go(page, `#/runs/${run}/records/1`);
  await page.getByRole("region", { name: "Record 1 as JSON" }).filter({ hasText: "Hello records" }).waitFor();
  await page.getByRole("link", { name: "before", exact: true }).click();
  await page.getByRole("region", { name: "Record 0 as JSON" }).filter({ hasText: "run_started" }).waitFor();
  await page.getByLabel("Kind or words").fill("run_finished");
  await page.getByText("1 record of").waitFor();
});

test("the transcript and the waterfall show calls side by side, a failed one, and an answer that broke off", async () => {
  const page = await open("#/playground");
  const run = await start(page, "tour of three towns");
  await waitForStatus(page, run, "finished");
  await go(page, `#/runs/${run}`);
  const call = (name) => page.getByRole("article", { name: `Call of ${name}` });
  await call("locate").locator(".status", { hasText: "error" }).waitFor();
  assert.equal(await call("look").count(), 2);
  await page.getByText(/The model call failed \(attempt 1/).waitFor();
  await go(page, `#/runs/${run}/waterfall`);
  const spans = page.getByRole("region", { name: "Spans", exact: true });
  await spans.getByText("retry", { exact: true }).waitFor();
  assert.equal(await spans.getByText("tool", { exact: true }).count(), 3);
  await bookPicture(page, "waterfall");
});

test("the waterfall draws spans, and its table leads to records", async () => {
  const page = await open("#/playground");
  const run = await start(page, "wait");
  await waitForStatus(page, run, "finished");
  await go(page, `#/runs/${run}/waterfall`);
  const canvas = page.getByRole("img", { name: /spans in/ });
  await canvas.waitFor();
  const isDrawn = await canvas.evaluate((element) => element.getContext("2d").getImageData(0, 0, element.width, element.height).data.some((value) => value > 0));
  assert.ok(isDrawn);
  await page.getByRole("button", { name: "Zoom in" }).click();
  await page.getByRole("button", { name: "Whole run" }).click();
  const spans = page.getByRole("region", { name: "Spans", exact: true });
  await spans.getByRole("link", { name: "wait", exact: true }).click();
  await page.getByRole("heading", { name: /^Record \d+$/ }).waitFor();
});

test("the graph draws a plan with its critical path", { skip: !process.env.DASHBOARD_PLAN_RUN }, async () => {
  const page = await open(`#/runs/${process.env.DASHBOARD_PLAN_RUN}/graph`);
  await page.locator("svg .node").first().waitFor();
  assert.ok((await page.locator("svg .node.critical").count()) > 0);
  assert.ok((await page.getByRole("region", { name: "Nodes of the graph" }).getByRole("row").count()) > 1);
  await bookPicture(page, "graph");
});

/** Returns the row of a step in the table of a graph; other rows name the step as what they come after. */
function rowOf(page, step) {
  const rows = page.getByRole("region", { name: "Nodes of the graph" }).getByRole("row");
  return rows.filter({ has: page.locator("td:first-child", { hasText: step }) });
}

/** Waits until steps have these statuses in the table of a graph and in its drawing. */
async function waitForSteps(page, statuses) {
  for (const [step, status] of Object.entries(statuses)) {
    await rowOf(page, step).locator(".status", { hasText: status }).waitFor();
    await page.locator("svg .node title", { hasText: `${step}: ${status}` }).waitFor({ state: "attached" });
  }
}

/** Marks the page, so that a reload is noticed. */
async function watchReloads(page) {
  await page.evaluate(() => { window.isSame = true; });
  return async () => assert.equal(await page.evaluate(() => window.isSame), true, "the page was loaded again");
}

test("the graph of a plan at work changes with each answer, without a reload", async () => {
  const page = await open("#/runs");
  const { run } = await send(page, "runs", { text: "A plan with questions", kind: "plan" });
  await waitForStatus(page, run, "suspended");
  await go(page, `#/runs/${run}/graph`);
  const isSame = await watchReloads(page);
  await waitForSteps(page, { "Look at Lyon": "completed", "Look for Atlantis": "failed", "List the prices": "asking", "Plan a day": "pending" });
  // The server forks loops only.
  await page.getByRole("button", { name: "Steer …" }).waitFor();
  assert.equal(await page.getByRole("button", { name: /fork/i }).count(), 0);
  await approveElsewhere(page, run);
  // The run still waits, now for another answer: only a graph that is read again shows this.
  await waitForSteps(page, { "List the prices": "completed", "Plan a day": "asking" });
  await approveElsewhere(page, run);
  await waitForSteps(page, { "List the prices": "completed", "Plan a day": "completed" });
  await waitForStatus(page, run, "finished");
  await isSame();
});

test("the graph of a team at work shows who works on what, and changes without a reload", async () => {
  const page = await open("#/runs");
  const { run } = await send(page, "runs", { text: "A trip of a team", kind: "team", agent: "team" });
  await waitForStatus(page, run, "suspended");
  await go(page, `#/runs/${run}/graph`);
  const isSame = await watchReloads(page);
  await waitForSteps(page, { "List the towns": "completed", "step Lyon": "asking", "step Nice": "pending" });
  await page.getByText("The team.").waitFor();
  await rowOf(page, "step Lyon").getByRole("cell", { name: "scout", exact: true }).waitFor();
  await approveElsewhere(page, run);
  await waitForSteps(page, { "step Lyon": "completed", "step Nice": "asking" });
  await approveElsewhere(page, run);
  await waitForSteps(page, { "step Lyon": "completed", "step Nice": "completed" });
  await waitForStatus(page, run, "finished");
  await isSame();
});

test("a fork from a record answers another message, and leaves the run as it was", async () => {
  const page = await open("#/playground");
  const run = await start(page, "First way");
  await waitForStatus(page, run, "finished");
  const before = await ask(page, `runs/${run}/records`);
  await go(page, `#/runs/${run}/records/1`);
  await page.getByRole("button", { name: "Fork here" }).click();
  const dialog = page.getByRole("dialog", { name: "Fork from record 1" });
  await dialog.getByLabel("Message").fill("Second way");
  await dialog.getByRole("button", { name: "Fork", exact: true }).click();
  await page.getByText("done: Second way").first().waitFor();
  assert.deepEqual(await ask(page, `runs/${run}/records`), before);
});

test("a cancelled run is resumed from its page", async () => {
  const page = await open("#/playground");
  const run = await start(page, "wait");
  await go(page, `#/runs/${run}`);
  await page.getByRole("button", { name: "Cancel …" }).click();
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await waitForStatus(page, run, "cancelled");
  await page.getByRole("button", { name: "Resume …" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
  await waitForStatus(page, run, "finished");
  await page.getByText(/^done: /).first().waitFor();
});

test("a message that could not be sent stays in its dialog", async () => {
  const page = await open("#/playground");
  const run = await start(page, "count 400");
  await go(page, `#/runs/${run}`);
  await page.getByRole("button", { name: "Steer …" }).click();
  const dialog = page.getByRole("dialog", { name: "Speak into the run" });
  await dialog.getByLabel("Message").fill("typed with care");
  await page.route("**/steer", (route) => route.abort());
  await dialog.getByRole("button", { name: "Send" }).click();
  await dialog.getByRole("alert").getByText("The server cannot be reached").waitFor();
  assert.equal(await dialog.getByLabel("Message").inputValue(), "typed with care");
  await page.unroute("**/steer");
  await dialog.getByRole("button", { name: "Send" }).click();
  await dialog.waitFor({ state: "detached" });
  await waitForStatus(page, run, "finished");
});

test("a message that is sent again after a broken connection starts one run", async () => {
  const page = await open("#/playground");
  const text = "Once only";
  await page.route(/\/v1\/runs$/, async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    // The server gets it, and the page does not get the answer.
    await route.fetch();
    await route.abort();
    return page.unroute(/\/v1\/runs$/);
  });
  await page.getByLabel("Message", { exact: true }).fill(text);
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("alert").getByText("The server cannot be reached").waitFor();
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(`done: ${text}`).first().waitFor();
  const { runs } = await ask(page, "runs?limit=500");
  assert.equal(runs.filter(({ task }) => task === text).length, 1);
});

test("a page that is opened again while a run works loses no record", async () => {
  const page = await open("#/playground");
  const run = await start(page, "wait");
  await go(page, `#/runs/${run}/records`);
  await page.reload();
  await waitForStatus(page, run, "finished");
  const { records } = await ask(page, `runs/${run}/records`);
  await page.getByText(`${records.length} records of ${records.length} records`).waitFor();
});
