// The page: who is signed in, the navigation, and the view of the address.

import { h, render } from "./preact.js";
import { useEffect, useRef, useState } from "./hooks.js";
import { setAnnouncer } from "./announce.js";
import * as api from "./api.js";
import { useData } from "./data.js";
import { HelpDialog } from "./help-dialog.js";
import { listen, useCommands } from "./keyboard.js";
import { Me, useMe } from "./me.js";
import { link, parse } from "./route.js";
import { Failure, Loading, SignedOut } from "./states.js";
import { ApprovalsView } from "./view-approvals.js";
import { MemoriesView } from "./view-memories.js";
import { PlaygroundView } from "./view-playground.js";
import { RunView } from "./view-run.js";
import { RunsView } from "./view-runs.js";
import { SessionView } from "./view-session.js";
import { SessionsView } from "./view-sessions.js";
import { TasksView } from "./view-tasks.js";
import { ToolsView } from "./view-tools.js";

const PLACES = [
  ["runs", "Runs"],
  ["approvals", "Inbox"],
  ["playground", "Playground"],
  ["tasks", "Tasks"],
  ["sessions", "Sessions"],
  ["memories", "Memories"],
  ["tools", "Tools"],
];

/** Returns the view of a place, with the key by which another view is told from the same one. */
function viewOf({ parts: [name, id, ...rest], query, visit }) {
  switch (name) {
    case "runs":
      return id === undefined ? [RunsView, "runs", { query }] : [RunView, `run-${id}`, { run: id, parts: rest }];
    case "approvals":
      return [ApprovalsView, "approvals", { request: id ?? null, query }];
    case "playground":
      return [PlaygroundView, `playground-${visit}`, { session: id ?? null, query }];
    case "sessions":
      return id === undefined ? [SessionsView, "sessions", { query }] : [SessionView, `session-${id}`, { session: id, query }];
    case "tasks":
      return [TasksView, "tasks", { task: id ?? null }];
    case "memories":
      return [MemoriesView, "memories", { query }];
    case "tools":
      return [ToolsView, "tools", { query }];
    default:
      return [Unknown, "unknown", { name }];
  }
}

function Unknown({ name }) {
  return h("div", { class: "state" },
    h("h1", { tabIndex: -1 }, "There is no such page"),
    h("p", null, `The page ${name} is not there. `, h("a", { href: link(["runs"]) }, "Go to the runs"), "."));
}

/** The place of the address. `visit` counts the links that were followed: one to the playground begins a conversation. */
function usePlace() {
  const [place, setPlace] = useState(() => ({ ...parse(location.hash), visit: 0 }));
  useEffect(() => {
    const moved = () => setPlace(({ visit }) => ({ ...parse(location.hash), visit: visit + 1 }));
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return place;
}

function App() {
  const [refusal, setRefusal] = useState(null);
  useEffect(() => api.onSignedOut(setRefusal), []);
  useEffect(listen, []);
  const account = useData(api.me, []);
  if (refusal !== null) return h(SignedOut, { problem: refusal });
  if (account.data === null) {
    return h("main", { id: "main", class: "alone" },
      h("h1", null, "Archon"),
      account.problem ? h(Failure, { problem: account.problem, retry: account.reload }) : h(Loading, { what: "your account" }));
  }
  return h(Me.Provider, { value: account.data }, h(Page, { signedOut: setRefusal }));
}

function Page({ signedOut }) {
  const place = usePlace();
  const [said, setSaid] = useState("");
  const [hasHelp, setHelp] = useState(false);
  const main = useRef(null);
  const [View, key, props] = viewOf(place);
  useEffect(() => setAnnouncer(setSaid), []);
  useCommands({ help: () => setHelp(true) }, []);
  useFocus(main, key);
  return h("div", { class: "page" },
    h(Header, { current: place.parts[0], signedOut, showHelp: () => setHelp(true), skip: () => main.current.focus() }),
    h("main", { id: "main", ref: main, tabIndex: -1 }, h(View, { key, ...props })),
    h("div", { class: "sr", role: "status", "aria-live": "polite" }, said),
    hasHelp ? h(HelpDialog, { onClose: () => setHelp(false) }) : null);
}

/** Moves the focus to the heading of a view that came by a link, and names the page after it. */
function useFocus(main, key) {
  const isFirst = useRef(true);
  useEffect(() => {
    const heading = main.current.querySelector("h1");
    document.title = heading === null ? "Archon" : `${heading.textContent} – Archon`;
    if (!isFirst.current) heading?.focus();
    isFirst.current = false;
  }, [key]);
}

function Header({ current, signedOut, showHelp, skip }) {
  const { name, role } = useMe();
  const leave = async () => {
    await api.signOut();
    signedOut({ detail: "You signed out." });
  };
  return h("header", null,
    h("button", { type: "button", class: "skip", onClick: skip }, "Skip to the content"),
    h("a", { class: "brand", href: link(["runs"]) }, "Archon"),
    h("nav", { "aria-label": "Views" }, PLACES.map(([place, text]) =>
      h("a", { key: place, href: link([place]), "aria-current": place === current ? "page" : null }, text,
        place === "approvals" ? h(OpenQuestions) : null))),
    h("div", { class: "account" },
      h("span", { class: "dim" }, `${name} (${role})`),
      h("button", { type: "button", onClick: showHelp }, "Keys ", h("kbd", null, "?")),
      h("button", { type: "button", onClick: leave }, "Sign out")));
}

/** The number of open questions. */
function OpenQuestions() {
  const { may } = useMe();
  const { data } = useData((signal) => (may("read_logs") ? api.openQuestions(signal) : Promise.resolve(null)), [], { every: 5000 });
  const open = data?.approvals.length ?? 0;
  return open === 0 ? null : h("span", { class: "badge" }, open, h("span", { class: "sr" }, " open questions"));
}

render(h(App), document.getElementById("app"));
