// Flows through the inbox of questions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { approveElsewhere, ask, bookPicture, go, open, send, start, waitForStatus } from "./browser.js";

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

/** Returns a list that gets the address of each answer which the page sends from now on. */
function noteAnswers(page) {
  const answers = [];
  page.on("request", (request) => {
    if (request.method() === "POST" && request.url().endsWith("/answer")) answers.push(request.url());
  });
  return answers;
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
  const answers = noteAnswers(page);
  const heading = await questions.last().locator("h2").textContent();
  await page.evaluate(clickWhenFirstLeaves);
  await approveElsewhere(page, first);
  await page.waitForFunction(() => window.clicked !== undefined);
  assert.equal(await page.evaluate(() => window.clicked), `Yes, once in ${heading}`);
  await yes.click();
  await waitForStatus(page, next, "finished");
  assert.equal(answers.length, 1);
});

/** Starts five runs that ask, and opens the inbox at the question of the last one. The screen has no room for all cards. */
async function fiveQuestions() {
  const page = await open("#/runs", { viewport: { width: 1280, height: 600 } });
  const runs = [];
  for (const place of ["Barcelona", "Marseille", "Stockholm", "Dubrovnik", "Reykjavik"]) {
    const { run } = await send(page, "runs", { text: `step ${place}` });
    await waitForStatus(page, run, "suspended");
    runs.push(run);
  }
  const { approvals } = await ask(page, "approvals");
  const { request_id: id } = approvals.find((question) => question.run === runs.at(-1));
  await go(page, `#/approvals/${encodeURIComponent(id)}`);
  const questions = page.locator(".question");
  // With the sources of their words, the cards grow no more.
  await questions.getByText("stand in a message of the person").nth(4).waitFor();
  assert.equal(await questions.count(), 5);
  await page.locator(".question.selected", { hasText: "Reykjavik" }).waitFor();
  assert.ok(await isSeen(questions.last()));
  assert.equal(await isSeen(questions.first()), false);
  await page.waitForTimeout(600);
  return { page, runs, questions, answers: noteAnswers(page) };
}

/** Returns true if a part of an element is on the screen. */
function isSeen(locator) {
  return locator.evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  });
}

/** Cancels runs, so that no other test finds their questions. */
async function cancelAll(page, runs) {
  for (const run of runs) {
    await send(page, `runs/${run}/cancel`, {});
    await waitForStatus(page, run, "cancelled");
  }
}

/** Runs in the page: when the selected question leaves, presses `y` again and again, for less than the 400 ms of the next one. */
function pressWhenSelectedLeaves() {
  const selected = document.querySelector(".question.selected");
  const observer = new MutationObserver(() => {
    if (selected.isConnected) return;
    observer.disconnect();
    const left = Date.now();
    window.presses = 0;
    const press = () => {
      if (Date.now() - left > 300) return;
      document.dispatchEvent(new KeyboardEvent("keydown", { key: "y" }));
      window.presses += 1;
      setTimeout(press, 50);
    };
    press();
  });
  observer.observe(document.querySelector("main"), { childList: true, subtree: true });
}

test("after an answer, the next question comes onto the screen, and a key that is pressed at once does not answer it", async () => {
  const { page, runs, answers } = await fiveQuestions();
  await page.evaluate(pressWhenSelectedLeaves);
  await page.keyboard.press("y");
  await page.waitForFunction(() => window.presses > 0);
  await waitForStatus(page, runs.at(-1), "finished");
  const next = page.locator(".question.selected", { hasText: "Barcelona" });
  await next.waitFor();
  assert.ok(await isSeen(next));
  assert.ok(await next.locator("h2").evaluate((heading) => heading === document.activeElement));
  await page.waitForTimeout(600);
  assert.equal(answers.length, 1);
  await page.keyboard.press("y");
  await waitForStatus(page, runs[0], "finished");
  assert.equal(answers.length, 2);
  await cancelAll(page, runs.slice(1, -1));
});

test("a question that was scrolled off the screen takes no key until it is back", async () => {
  const { page, runs, questions, answers } = await fiveQuestions();
  await page.mouse.move(640, 300);
  await page.mouse.wheel(0, -10_000);
  await page.waitForFunction(() => scrollY === 0);
  assert.equal(await isSeen(questions.last()), false);
  await page.waitForTimeout(600);
  await page.keyboard.press("y");
  await page.keyboard.press("n");
  await page.waitForTimeout(300);
  assert.deepEqual(answers, []);
  await page.mouse.wheel(0, 10_000);
  await page.waitForFunction(() => scrollY + innerHeight >= document.documentElement.scrollHeight - 1);
  await page.waitForTimeout(600);
  await page.keyboard.press("y");
  await waitForStatus(page, runs.at(-1), "finished");
  assert.equal(answers.length, 1);
  await cancelAll(page, runs.slice(0, -1));
});
