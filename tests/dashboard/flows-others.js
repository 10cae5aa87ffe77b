// Flows through sessions, tools, memories and tasks, with a role that may not do everything, and on a small screen.

import assert from "node:assert/strict";
import { test } from "node:test";
import { go, newPage, open, start, waitForStatus } from "./browser.js";

test("a session shows its messages and its runs, and goes on in the playground", async () => {
  const page = await open("#/playground");
  const run = await start(page, "A session of one run");
  await waitForStatus(page, run, "finished");
  await go(page, "#/sessions");
  await page.getByRole("link", { name: "A session of one run" }).first().click();
  await page.getByRole("article", { name: "Model" }).getByText("done: A session of one run").waitFor();
  await page.getByRole("link", { name: "Go on in the playground" }).click();
  await page.getByText("done: A session of one run").first().waitFor();
  await page.getByLabel("Message", { exact: true }).fill("more");
  await page.keyboard.press("Enter");
  await page.getByText("done: more").first().waitFor();
});

// spec: OB-09, EX-10
test("tools have their calls and durations, or the view says that none was called", async () => {
  const page = await open("#/playground");
  const run = await start(page, "wait");
  await waitForStatus(page, run, "finished");
  await go(page, "#/tools?runs=10");
  await page.getByRole("rowheader", { name: "wait" }).waitFor();
  await page.getByText("Half of the turns take at most").waitFor();
});

test("memories are listed, and found by words", async () => {
  const page = await open("#/memories");
  await page.getByText(/^\d+ memories, the newest first$/).waitFor();
  await page.getByLabel("Words", { exact: true }).fill("tea");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByText("1 memory, the best first").waitFor();
  await page.getByText("Anna likes tea").click();
  await page.getByRole("region", { name: /^Further data of memory/ }).waitFor();
});

// spec: TR-01
test("a task is paused, resumed and started, and shows its run", async () => {
  const page = await open("#/tasks");
  const task = page.getByRole("article", { name: "mail" });
  await task.getByText("at 0 8 1 1 * (Asia/Shanghai)").waitFor();
  await task.getByRole("button", { name: "Pause" }).click();
  await task.getByRole("button", { name: "Resume" }).waitFor();
  assert.equal(await task.getByRole("button", { name: "Run now" }).count(), 0);
  await task.getByRole("button", { name: "Resume" }).click();
  await task.getByRole("button", { name: "Run now" }).click();
  await task.getByText("History and definition").click();
  await task.locator('li a[href^="#/runs/"]').click();
  await page.getByText(/done: .*Summarize unread emails/).first().waitFor();
});

// spec: EX-11
test("a viewer sees runs and use, and reads why the rest is not there", { skip: !process.env.DASHBOARD_VIEWER_LINK }, async () => {
  const page = await newPage({}, "DASHBOARD_VIEWER_LINK");
  await go(page, "#/runs");
  assert.equal(await page.getByRole("link", { name: /^Inbox/ }).locator(".badge").count(), 0);
  await page.locator("main [data-row]").first().click();
  await page.getByText("does not have the right read_logs").waitFor();
  await go(page, `${new URL(page.url()).hash}/usage`);
  await page.getByText("Read by the model").waitFor();
  for (const place of ["approvals", "playground", "sessions", "memories"]) {
    await go(page, `#/${place}`);
    await page.getByText("You may not see this").waitFor();
  }
});

test("an address of nothing says so, and an unknown run shows the problem with advice", async () => {
  const page = await open("#/nothing");
  await page.getByRole("heading", { name: "There is no such page" }).waitFor();
  await go(page, "#/runs/run_none");
  await page.getByRole("alert").getByText("There is no such run").waitFor();
  await page.getByText("unknown-run").waitFor();
});

test("on a small screen no view is wider than the screen", async () => {
  const page = await open("#/runs", { viewport: { width: 360, height: 700 } });
  for (const place of ["runs", "approvals", "playground", "sessions", "memories", "tools", "tasks"]) {
    await go(page, `#/${place}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    const wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
    assert.ok(wide <= 0, `${place} is ${wide} pixels too wide`);
  }
});

test("sign-out ends the session of the browser", async () => {
  const page = await open("#/runs");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "You are signed out" }).waitFor();
});
