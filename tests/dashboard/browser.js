// The browser of the tests: signed in once, with a watch over everything that the page must not do.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

/** The packages may be installed elsewhere than beside the tests. */
const packages = createRequire(`${process.env.DASHBOARD_PACKAGES ?? import.meta.dirname}/`);
const { chromium } = packages("playwright-core");
const AXE = readFileSync(packages.resolve("axe-core/axe.min.js"), "utf8");
const SCREENSHOTS = process.env.SCREENSHOTS;

/** Returns a variable of the environment; an error says which one is missing. */
export function required(name) {
  const value = process.env[name];
  assert.ok(value, `set ${name}; README.md says to what`);
  return value;
}

export const home = () => new URL("/", required("DASHBOARD_LINK")).href;

let browser = null;
/** The cookies of each one-time link, by its variable: a link signs in once. */
const states = new Map();
let contexts = [];
/** Requests to other hosts, and what the browser refused because of the policy of the page. */
export const forbidden = [];

/** The heading of a view. A page that does not know yet who is signed in has another one. */
const heading = (page) => page.locator("main:not(.alone) h1");

async function newContext(options) {
  browser ??= await chromium.launch({ executablePath: required("CHROMIUM") });
  const context = await browser.newContext(options);
  contexts.push(context);
  return context;
}

/** Opens the one-time link of a variable, and returns the cookies of the browser that it signed in. */
async function signIn(variable) {
  const context = await newContext();
  const page = await context.newPage();
  await page.goto(required(variable));
  await heading(page).waitFor();
  return context.storageState();
}

/** Returns an empty page of the admin, or of whom the link of another variable signs in. `options` are those of a context. */
export async function newPage(options = {}, variable = "DASHBOARD_LINK") {
  if (!states.has(variable)) states.set(variable, await signIn(variable));
  const context = await newContext({ storageState: states.get(variable), ...options });
  const page = await context.newPage();
  watchOver(page);
  return page;
}

/** Opens a page of the admin at a place such as `#/runs`. */
export async function open(place, options = {}) {
  const page = await newPage(options);
  await page.goto(home() + place);
  await heading(page).waitFor();
  return page;
}

/** Goes to a place, and loads the page again: a change behind `#` alone would leave what was there for a moment. */
export async function go(page, place) {
  await page.goto(home() + place);
  await page.reload();
  await heading(page).waitFor();
}

/** Closes the pages of a test. */
export async function closePages() {
  const before = contexts;
  contexts = [];
  await Promise.all(before.map((context) => context.close()));
}

export async function close() {
  await browser?.close();
}

/** Opens a page that is not signed in. */
export async function openSignedOut(options = {}) {
  const context = await newContext(options);
  const page = await context.newPage();
  await page.goto(home());
  await page.getByRole("heading", { name: "You are signed out" }).waitFor();
  return page;
}

function watchOver(page) {
  const { host } = new URL(home());
  page.on("request", (request) => {
    if (new URL(request.url()).host !== host) forbidden.push(`request to ${request.url()}`);
  });
  page.on("console", (message) => {
    if (message.type() === "error" && /Content Security Policy/.test(message.text())) forbidden.push(message.text());
  });
  page.on("pageerror", (error) => forbidden.push(`error: ${error.stack}`));
}

/** Sends a message in the playground, and returns the id of the run. */
export async function start(page, text) {
  await go(page, "#/playground");
  await page.getByLabel("Message", { exact: true }).fill(text);
  await page.getByRole("button", { name: "Send" }).click();
  const link = page.locator('main .filters a[href^="#/runs/"]');
  await link.waitFor();
  return decodeURIComponent((await link.getAttribute("href")).slice("#/runs/".length));
}

/** Sends a request of a program with the cookie of the page. */
export async function ask(page, path) {
  const response = await page.request.get(`${home()}v1/${path}`);
  return response.json();
}

/** Sends a write of a program with the cookie of the page, and returns the answer of the server. */
export async function send(page, path, data) {
  const response = await page.request.post(`${home()}v1/${path}`, { data });
  const text = await response.text();
  assert.ok(response.ok(), `${path}: ${response.status()} ${text}`);
  return text === "" ? null : JSON.parse(text);
}

/** Waits until a run asks, and says yes as another page would. */
export async function approveElsewhere(page, run) {
  await waitForStatus(page, run, "suspended");
  const { approvals } = await ask(page, "approvals");
  const { request_id: id } = approvals.find((open) => open.run === run);
  await send(page, `approvals/${encodeURIComponent(id)}/answer`, { answer: "approve" });
}

/** Waits until a run has a status. */
export async function waitForStatus(page, run, status, tries = 150) {
  let last = null;
  for (let turn = 0; turn < tries; turn += 1) {
    last = (await ask(page, `runs/${run}`)).status;
    if (last === status) return;
    await page.waitForTimeout(100);
  }
  assert.fail(`run ${run} has the status ${last} and did not get ${status}`);
}

/** Checks a view with axe: nothing serious or critical. */
export async function checkAccess(page, name) {
  await page.evaluate(`${AXE}; undefined`);
  const { violations } = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })");
  const found = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const texts = found.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).slice(0, 3).join(" | ")}`);
  assert.deepEqual(texts, [], name);
}

/** Takes a picture if there is a folder for it. */
export async function picture(page, name) {
  if (!SCREENSHOTS) return;
  mkdirSync(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: `${SCREENSHOTS}/${name}.png`, fullPage: true });
}

/** Takes a picture for the book, of one size, if there is a folder for it. */
export async function bookPicture(page, name) {
  if (!SCREENSHOTS) return;
  mkdirSync(SCREENSHOTS, { recursive: true });
  await page.setViewportSize({ width: 1200, height: 750 });
  // Canvas and lists are drawn again for the size.
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${SCREENSHOTS}/${name}.png` });
}
