// Requests to the server. Addresses are relative to the page, so that the page also works below a path.

/** A refused or failed request: the problem document of the server, or why there is none. */
export class Problem extends Error {
  constructor({ type = "", title = "The request failed", status = 0, detail = "", advice = "", run = null }, retryAfter = null) {
    super(detail || title);
    Object.assign(this, { rule: type.replace("urn:archon:problem:", ""), title, status, detail, advice, run, retryAfter });
  }
}

const listeners = new Set();

/** Calls `listener` when a request was refused because the browser is not signed in. Returns a function that ends this. */
export function onSignedOut(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Returns the address of a route, with those values of the query that are set. */
export function address(parts, query = {}) {
  const path = parts.map((part) => encodeURIComponent(String(part))).join("/");
  const url = new URL(`v1/${path}`, document.baseURI);
  url.hash = "";
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, String(value));
  }
  return url;
}

async function send(method, parts, { query, body, signal, headers = {} } = {}) {
  const options = { method, signal, headers: { accept: "application/json", ...headers }, credentials: "same-origin" };
  if (method !== "GET") {
    // The server refuses a write of another type: no page of another site can send this one.
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body ?? {});
  }
  const response = await reach(address(parts, query), options);
  if (response.status === 204) return null;
  const text = await response.text();
  if (response.ok) return text === "" ? null : JSON.parse(text);
  const problem = problemOf(response, text);
  if (response.status === 401) listeners.forEach((listener) => listener(problem));
  throw problem;
}

async function reach(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({
      title: "The server cannot be reached",
      detail: `${options.method} ${url.pathname}: ${error.message}`,
      advice: "Check that `archon serve` is running; the page tries again.",
    });
  }
}

function problemOf(response, text) {
  const wait = Number.parseInt(response.headers.get("retry-after") ?? "", 10);
  const retryAfter = Number.isNaN(wait) ? null : wait;
  try {
    return new Problem(JSON.parse(text), retryAfter);
  } catch {
    return new Problem({ status: response.status, detail: `${response.status} ${response.statusText}` }, retryAfter);
  }
}

const get = (parts, query, signal) => send("GET", parts, { query, signal });
const post = (parts, body, headers) => send("POST", parts, { body, headers });

export const me = (signal) => get(["me"], {}, signal);
export const signOut = () => post(["sign-out"]);
export const runs = (query, signal) => get(["runs"], query, signal);
export const run = (id, signal) => get(["runs", id], {}, signal);
export const records = (id, query, signal) => get(["runs", id, "records"], query, signal);
export const timeline = (id, signal) => get(["runs", id, "timeline"], {}, signal);
export const graph = (id, signal) => get(["runs", id, "graph"], {}, signal);
export const runUsage = (id, signal) => get(["runs", id, "usage"], {}, signal);
export const usage = (query, signal) => get(["usage"], query, signal);
export const approvals = (signal) => get(["approvals"], {}, signal);
/** Without the sources of arguments, for which the server reads logs. */
export const openQuestions = (signal) => get(["approvals"], { provenance: "false" }, signal);
export const agents = (signal) => get(["agents"], {}, signal);
export const sessions = (signal) => get(["sessions"], {}, signal);
export const messages = (session, query, signal) => get(["sessions", session, "messages"], query, signal);
export const tasks = (signal) => get(["tasks"], {}, signal);
export const memories = (query, signal) => get(["memories"], query, signal);

/** Starts a run. Two requests with the same `key` start one run. */
export const start = (body, key) => post(["runs"], body, { "idempotency-key": key });
export const steer = (id, text) => post(["runs", id, "steer"], { text });
export const followUp = (id, text) => post(["runs", id, "follow-up"], { text });
export const cancel = (id, reason) => post(["runs", id, "cancel"], reason ? { reason } : {});
export const resume = (id, more = {}) => post(["runs", id, "resume"], more);
export const fork = (id, body) => post(["runs", id, "fork"], body);
export const answer = (request, body) => post(["approvals", request, "answer"], body);
/** Sends a command for a task: `run`, `pause` or `resume`. */
export const commandTask = (id, command) => post(["tasks", id, command]);
export const removeTask = (id) => send("DELETE", ["tasks", id]);
export const remove = (id) => send("DELETE", ["runs", id]);

/** Returns a new key for `start`. Also without `https`, where a browser has no `crypto.randomUUID`. */
export function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
