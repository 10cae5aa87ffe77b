// Each view, form and dialog in light and dark: axe finds nothing serious, and a picture for people to look at.

import { test } from "node:test";
import { ask, checkAccess, go, newPage, open, openSignedOut, picture, send, start, waitForStatus } from "./browser.js";

for (const colorScheme of ["light", "dark"]) {
  const check = async (page, name) => {
    await checkAccess(page, name);
    await picture(page, `${name}-${colorScheme}`);
  };
  const checkAt = async (page, name, place) => {
    await go(page, place);
    await page.getByText(/^Loading /).first().waitFor({ state: "detached" });
    await check(page, name);
  };

  test(`axe finds nothing serious in any view, ${colorScheme}`, async () => {
    const page = await open("#/playground", { colorScheme });
    const done = await start(page, "tour");
    await waitForStatus(page, done, "finished");
    await check(page, "playground");
    const { session } = await ask(page, `runs/${done}`);
    const places = {
      runs: "#/runs", sessions: "#/sessions", session: `#/sessions/${session}`, memories: "#/memories", tools: "#/tools", tasks: "#/tasks",
      transcript: `#/runs/${done}`, waterfall: `#/runs/${done}/waterfall`, records: `#/runs/${done}/records/1`,
      graph: `#/runs/${process.env.DASHBOARD_PLAN_RUN ?? done}/graph`, usage: `#/runs/${done}/usage`, unknown: "#/runs/run_none",
    };
    for (const [name, place] of Object.entries(places)) await checkAt(page, name, place);
  });

  test(`axe finds nothing serious in the graph of a plan and of a team that ask, ${colorScheme}`, async () => {
    const page = await open("#/runs", { colorScheme });
    const requests = {
      "graph-of-a-plan": { text: "A plan with questions", kind: "plan" },
      "graph-of-a-team": { text: "A trip of a team", kind: "team", agent: "team" },
    };
    for (const [name, request] of Object.entries(requests)) {
      const { run } = await send(page, "runs", request);
      await waitForStatus(page, run, "suspended");
      await go(page, `#/runs/${run}/graph`);
      await page.locator("svg .node").first().waitFor();
      await check(page, name);
      // No other test finds its questions in the inbox.
      await send(page, `runs/${run}/cancel`, {});
      await waitForStatus(page, run, "cancelled");
    }
  });

  test(`axe finds nothing serious in forms and dialogs, ${colorScheme}`, async () => {
    const page = await open("#/playground", { colorScheme });
    const run = await start(page, "reroute Heidelberg");
    await waitForStatus(page, run, "suspended");
    await checkAt(page, "inbox", `#/approvals?run=${run}`);
    for (const [name, button] of [["inbox-edit", "Change the arguments …"], ["inbox-reason", "No, and tell why …"]]) {
      await page.getByRole("button", { name: button }).click();
      await page.getByRole("button", { name: "Send the answer" }).waitFor();
      await check(page, name);
      await page.getByRole("button", { name: "Back" }).click();
    }
    await checkQuestionsOfOtherKinds(page, run, check);
    await checkAt(page, "waiting", `#/runs/${run}`);
    const dialog = page.getByRole("dialog");
    const checkDialog = async (name, button) => {
      await page.getByRole("button", { name: button }).click();
      await dialog.waitFor();
      await check(page, name);
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
    };
    await checkDialog("steer", "Steer …");
    await checkDialog("cancel", "Cancel …");
    await checkDialog("fork", "Fork …");
    await checkDialog("help", /^Keys/);
    await page.getByRole("button", { name: "Cancel …" }).click();
    await page.getByRole("button", { name: "Cancel the run" }).click();
    await waitForStatus(page, run, "cancelled");
    await checkDialog("resume", "Resume …");
    await checkDialog("delete", "Delete …");
  });

  test(`axe finds nothing serious signed out, ${colorScheme}`, async () => {
    await check(await openSignedOut({ colorScheme }), "signed-out");
  });

  test(`axe finds nothing serious for a viewer, ${colorScheme}`, { skip: !process.env.DASHBOARD_VIEWER_LINK }, async () => {
    const page = await newPage({ colorScheme }, "DASHBOARD_VIEWER_LINK");
    await checkAt(page, "viewer-runs", "#/runs");
    const run = await page.locator("main [data-row]").first().getAttribute("href");
    const places = { run, usage: `${run}/usage`, inbox: "#/approvals", playground: "#/playground", memories: "#/memories", tools: "#/tools" };
    for (const [name, place] of Object.entries(places)) await checkAt(page, `viewer-${name}`, place);
  });
}

/** Checks a question about missing inputs, and one that is answered in words: the server has none, so its answer is changed. */
async function checkQuestionsOfOtherKinds(page, run, check) {
  const missing = [{ name: "to", kind: "text", description: "The end of the route." }];
  const kinds = { "inbox-inputs": ["Give the values …", { missing }], "inbox-reply": ["Answer in words …", {}] };
  for (const [name, [button, details]] of Object.entries(kinds)) {
    await page.route(/\/v1\/approvals(\?|$)/, async (route) => {
      const response = await route.fetch();
      const { approvals } = await response.json();
      const changed = approvals.map((open) => ({ ...open, kind: "input", details: { ...open.details, ...details } }));
      await route.fulfill({ response, json: { approvals: changed } });
    });
    await go(page, `#/approvals?run=${run}`);
    await page.getByRole("button", { name: button }).click();
    await page.getByRole("button", { name: "Send the answer" }).waitFor();
    await check(page, name);
    await page.unrouteAll({ behavior: "wait" });
  }
}
