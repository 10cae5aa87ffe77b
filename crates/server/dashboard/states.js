// The states of a view that is not there: it loads, has nothing, has failed, or may not be seen.

import { h } from "./preact.js";
import { useMe } from "./me.js";

export function Loading({ what }) {
  return h("p", { class: "state", role: "status" }, `Loading ${what} …`);
}

/** `title` says that there is nothing, and the children what to do. */
export function Empty({ title, children }) {
  return h("div", { class: "state" }, h("p", { class: "strong" }, title), h("p", null, children));
}

/**
 * Shows a problem document: what failed, on what, and what to do. `retry` is the function of a button, and `isRetried` is
 * true if the page tries again by itself.
 */
export function Failure({ problem, retry, isRetried = false }) {
  if (!problem) return null;
  return h("div", { class: "failure", role: "alert" },
    h("p", { class: "strong" }, h("span", { "aria-hidden": "true" }, "✗ "), problem.title || "The request failed"),
    h("p", null, problem.detail || problem.message),
    problem.advice ? h("p", null, `What to do: ${problem.advice}.`.replace(/\.\.$/, ".")) : null,
    problem.rule ? h("p", { class: "dim" }, "Rule: ", h("code", null, problem.rule)) : null,
    isRetried ? h("p", null, "The page tries again.") : null,
    retry ? h("button", { type: "button", onClick: retry }, "Try again") : null);
}

/** Shows the state of `useData`: the data by `children(data)`, or why they are not there. */
export function Loaded({ state, what, children }) {
  const { data, problem, isLoading, reload } = state;
  if (data === null) return problem ? h(Failure, { problem, retry: reload }) : isLoading ? h(Loading, { what }) : null;
  return h("div", { class: "loaded" }, problem ? h(Failure, { problem, retry: reload }) : null, children(data));
}

export function SignedOut({ problem }) {
  return h("main", { id: "main", tabIndex: -1, class: "alone" },
    h("h1", null, "You are signed out"),
    h("p", null, problem?.detail ?? "This browser has no valid cookie of the server."),
    h("p", null, "A one-time link signs this browser in for a week. Get one where the server runs:"),
    h("ul", null,
      h("li", null, h("code", null, "archon serve"), " prints a link when it starts;"),
      h("li", null, "a program calls ", h("code", null, "Server::one_time_link"), ".")),
    h("p", null, "Paste the link into the address bar: a link that is clicked on a page of another site is refused."),
    h("button", { type: "button", onClick: () => location.reload() }, "Try again"));
}

/** Shows its children if the role has the right, and else why not. */
export function Guarded({ right, children }) {
  const { may, whyNot } = useMe();
  if (may(right)) return children;
  return h("div", { class: "state", role: "note" },
    h("p", { class: "strong" }, "You may not see this"),
    h("p", null, whyNot(right), " Ask for a link of another role."));
}
