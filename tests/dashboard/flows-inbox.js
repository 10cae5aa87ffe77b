// Flows through the inbox of questions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { approveElsewhere, ask, bookPicture, go, open, start, waitForStatus } from "./browser.js";

/** Starts a run that asks, and opens the inbox with its question. */
async function question(text) {
  const page = await open("#/playground");
  const run = await start(page, text);
  await waitForStatus(page, run, "suspended");
  await go(page, `#/approvals?run=${run}`);
  await page.locator(".question").waitFor();
  // Keys count once the question was on the screen for a moment.
  await page.waitForTimeout(600);
  return { page, run };
}

/** Returns the result of the only call of a run. */
async function resultOf(page, run) {
  const { records } = await ask(page, `runs/${run}/records`);
  return records.find(({ type }) => type === "tool_call_finished" || type === "tool_call_refused");
}

test("one key says yes", async () => {
  const { page, run } = await question("step Amsterdam");
  await page.getByText("Amsterdam").first().waitFor();
  await page.keyboard.press("y");
  await waitForStatus(page, run, "finished");
  assert.equal((await resultOf(page, run)).result.content[0].text, "stepped to Amsterdam");
  await page.getByText("No run waits for an answer.").waitFor();
});

test("one key says no", async () => {
  const { page, run } = await question("step Barcelona");
  await page.keyboard.press("n");
  await waitForStatus(page, run, "finished");
  assert.equal((await resultOf(page, run)).type, "tool_call_refused");
});

test("a letter that is typed into a field answers nothing", async () => {
  const { page, run } = await question("step Copenhagen");
  await page.getByRole("button", { name: "No, and tell why" }).click();
  await page.getByLabel("Reason").fill("y n");
  await page.keyboard.press("y");
  assert.equal((await ask(page, `runs/${run}`)).status, "suspended");
  await page.getByRole("button", { name: "Send the answer" }).click();
  await waitForStatus(page, run, "finished");
  assert.match(JSON.stringify((await resultOf(page, run)).result), /y ny/);
});

test("a change of a file is asked about with its difference", async () => {
  const { page, run } = await question("reroute Luxembourg");
  await page.getByRole("heading", { name: "Change the route to Luxembourg" }).waitFor();
  const difference = page.getByRole("region", { name: "Difference of route.txt" });
  assert.deepEqual(await difference.locator(".added, .removed").allTextContents(), ["-Brussels\n", "+Luxembourg\n"]);
  await page.getByText("stand in a message of the person").waitFor();
  await bookPicture(page, "inbox");
  await page.keyboard.press("y");
  await waitForStatus(page, run, "finished");
});

test("the call of another agent leads to its run, and that back", async () => {
  const { page, run } = await question("delegate Look at the map");
  await page.keyboard.press("y");
  await waitForStatus(page, run, "finished");
  await go(page, `#/runs/${run}`);
  await page.getByRole("article", { name: "Call of clerk" }).locator('p a[href^="#/runs/"]').click();
  await page.getByText("Called by", { exact: true }).waitFor();
  await page.getByText(/Look at the map/).first().waitFor();
  await page.getByRole("link", { name: run, exact: true }).click();
  await page.getByRole("article", { name: "Call of clerk" }).waitFor();
});

test("changed arguments are those of the call", async () => {
  const { page, run } = await question("step Dublin");
  await page.keyboard.press("e");
  const field = page.getByLabel("Arguments of the call, in JSON");
  await field.fill("{");
  await page.getByRole("button", { name: "Send the answer" }).click();
  await page.getByText("This is not JSON").waitFor();
  await field.fill('{"to": "Edinburgh"}');
  await page.getByRole("button", { name: "Send the answer" }).click();
  await waitForStatus(page, run, "finished");
  assert.equal((await resultOf(page, run)).result.content.at(-1).text, "stepped to Edinburgh");
});

test("the words of an argument lead to the record that they stand in", async () => {
  const { page, run } = await question("step Frankfurt am Main");
  const source = page.locator(".arguments").getByText("stand in a message of the person");
  await source.getByRole("link", { name: /record \d+/ }).click();
  await page.getByRole("region", { name: /as JSON/ }).filter({ hasText: "step Frankfurt am Main" }).waitFor();
  await go(page, `#/approvals?run=${run}`);
  await page.getByRole("button", { name: "No", exact: true }).click();
  await waitForStatus(page, run, "finished");
});

// spec: AP-05
test("hidden characters of an argument are shown by their number", async () => {
  const { page, run } = await question("step Par\u202esi\u200b");
  await page.locator(".arguments pre", { hasText: "Par\\u{202e}si\\u{200b}" }).waitFor();
  assert.doesNotMatch(await page.locator(".question").innerText(), /[\u200b\u202e]/);
  await page.keyboard.press("e");
  assert.match(await page.getByLabel("Arguments of the call, in JSON").inputValue(), /"Par\\u202esi\\u200b"/);
  await page.getByRole("button", { name: "Back" }).click();
  await page.getByRole("button", { name: "No", exact: true }).click();
  await waitForStatus(page, run, "finished");
});

test("sources that are not known are told from none", async () => {
  const { page, run } = await question("step Hanover");
  await page.route(/\/v1\/approvals$/, async (route) => {
    const response = await route.fetch();
    const { approvals } = await response.json();
    await route.fulfill({ response, json: { approvals: approvals.map((open) => ({ ...open, provenance: null })) } });
  });
  await go(page, `#/approvals?run=${run}`);
  await page.getByText("The sources of these words are not known").waitFor();
  await page.unrouteAll({ behavior: "wait" });
  await page.getByRole("button", { name: "No", exact: true }).click();
  await waitForStatus(page, run, "finished");
});

test("a question that was answered elsewhere leaves the inbox", async () => {
  const { page, run } = await question("step Geneva");
  await approveElsewhere(page, run);
  await page.getByText("No run waits for an answer.").waitFor();
  await waitForStatus(page, run, "finished");
});

/** Runs in the page: when the first question leaves, clicks at once on what came to the place of its first answer. */
function clickWhenFirstLeaves() {
  const first = document.querySelector(".question");
  const { x, y } = first.querySelector(".actions button").getBoundingClientRect();
  const observer = new MutationObserver(() => {
    if (first.isConnected) return;
    observer.disconnect();
    const button = document.elementFromPoint(x + 5, y + 5).closest("button");
    window.clicked = `${button?.textContent} in ${button?.closest(".question").querySelector("h2").textContent}`;
    button?.click();
  });
  observer.observe(document.querySelector("main"), { childList: true, subtree: true });
}

test("a click on the place of a question that has just left does not answer the next one", async () => {
  // Both questions are on the screen, which does not scroll.
  const page = await open("#/playground", { viewport: { width: 1280, height: 2000 } });
  const first = await start(page, "step Innsbruck");
  await waitForStatus(page, first, "suspended");
  const next = await start(page, "step Karlsruhe");
  await waitForStatus(page, next, "suspended");
  await go(page, "#/approvals");
  const questions = page.locator(".question");
  // With the sources of their words, both are equally high.
  await questions.getByText("stand in a message of the person").nth(1).waitFor();
  assert.equal(await questions.count(), 2);
  const yes = page.getByRole("button", { name: "Yes, once" });
  // Also waits until the buttons take clicks.
  await yes.last().click({ trial: true });
  const answers = [];
  page.on("request", (request) => {
    if (request.method() === "POST" && request.url().endsWith("/answer")) answers.push(request.url());
  });
  const heading = await questions.last().locator("h2").textContent();
  await page.evaluate(clickWhenFirstLeaves);
  await approveElsewhere(page, first);
  await page.waitForFunction(() => window.clicked !== undefined);
  assert.equal(await page.evaluate(() => window.clicked), `Yes, once in ${heading}`);
  await yes.click();
  await waitForStatus(page, next, "finished");
  assert.equal(answers.length, 1);
});
