// The playground: choose an agent, talk to it, steer it while it works, see what it calls, stop it.

import { h } from "./preact.js";
import { useState } from "./hooks.js";
import { announce } from "./announce.js";
import * as api from "./api.js";
import { Field, RightButton } from "./controls.js";
import { useConversation } from "./conversation.js";
import { useAction, useData } from "./data.js";
import { ForkDialog } from "./fork-dialog.js";
import { mayFork } from "./forks.js";
import { useMe } from "./me.js";
import { link, runLink } from "./route.js";
import { Empty, Failure, Guarded, Loading } from "./states.js";
import { Status } from "./status.js";
import { TranscriptItem } from "./transcript-item.js";
import { VirtualList } from "./virtual-list.js";

export function PlaygroundView({ session, query }) {
  return h("section", { class: "run" },
    h("h1", { tabIndex: -1 }, "Playground"),
    h(Guarded, { right: "read_logs" }, h(Guarded, { right: "operate" }, h(Talk, { session, first: query.agent ?? "" }))));
}

function Talk({ session, first }) {
  const conversation = useConversation(session);
  const { data } = useData(api.agents, []);
  const agents = data?.agents ?? [];
  const [chosen, setAgent] = useState(undefined);
  const agent = chosen === undefined ? (agents.find(({ id }) => id === first) ?? null) : chosen;
  const [fork, setFork] = useState(null);
  const { status, newest } = conversation;
  return h("div", { class: "loaded" },
    h("div", { class: "filters" },
      h(AgentField, { agents, agent, setAgent, isFixed: status !== "idle" }),
      conversation.session === null ? null
        : h("p", null, "Session ", h("a", { href: link(["sessions", conversation.session]) }, conversation.session)),
      newest === null ? null : h("p", null, "Run ", h("a", { href: runLink(newest.run) }, newest.run), " ", h(Status, { status: newest.status ?? "created" })),
      conversation.session === null ? null : h("a", { class: "button", href: link(["playground"]) }, "New conversation")),
    h(Failure, { problem: conversation.problem }),
    h(Failure, { problem: newest?.problem ?? null, isRetried: newest?.state === "waiting" }),
    h(Messages, { conversation, fork: (run, seq) => setFork({ run, seq }) }),
    status === "suspended" ? h("p", { class: "warn" }, "The run waits for an answer: ", h("a", { href: link(["approvals"], { run: newest.run }) }, "open the inbox"), ".") : null,
    h(Composer, { conversation, agent }),
    fork === null ? null : h(ForkDialog, { ...fork, onClose: () => setFork(null) }));
}

/** `agent` is one of the list; null is the one of the service. */
function AgentField({ agents, agent, setAgent, isFixed }) {
  const choose = (event) => setAgent(agents.find((each) => keyOf(each) === event.target.value) ?? null);
  return h(Field, { label: "Agent", as: "select", value: agent === null ? "" : keyOf(agent), disabled: isFixed, hint: agent?.description || null, onChange: choose },
    h("option", { value: "" }, "the agent of the service"),
    agents.map((each) => h("option", { key: keyOf(each), value: keyOf(each) }, each.kind === "loop" ? each.id : `${each.id} (${each.kind})`)));
}

/** One id may stand for agents of several kinds. */
function keyOf({ kind, id }) {
  return `${kind} ${id}`;
}

function Messages({ conversation, fork }) {
  const { items, isLoading } = conversation;
  const { may } = useMe();
  if (isLoading) return h(Loading, { what: "the conversation" });
  if (items.length === 0) return h(Empty, { title: "Nothing was said yet." }, "Write a message below. The run is kept in the list of runs.");
  const forkOf = (log) => (may("operate") && mayFork(log.transcript.started ?? {}) ? (seq) => fork(log.run, seq) : null);
  const row = ({ log, item }) => h(TranscriptItem, { item, version: item.version, run: log.run, fork: forkOf(log) });
  return h(VirtualList, {
    items, keyOf: ({ log, item }) => `${log.run} ${item.key}`, row, estimate: 90, follow: true, label: "Conversation",
    kind: "transcript", onTop: () => conversation.logs[0]?.older(),
  });
}

function Composer({ conversation, agent }) {
  const [text, setText] = useState("");
  const [when, setWhen] = useState("steer");
  const isBusy = conversation.status !== "idle";
  const act = useAction(async () => {
    const message = text.trim();
    if (message === "") return;
    await conversation.send(message, { agent, when });
    // What was typed meanwhile stays.
    setText((now) => (now.trim() === message ? "" : now));
    announce("Sent.");
    // Without an event: the view stays, and the address leads back to this session.
    if (conversation.session !== null) history.replaceState(null, "", link(["playground", conversation.session]));
  }, [conversation, text, agent, when]);
  const stop = useAction(() => conversation.cancel(), [conversation]);
  const press = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!act.isBusy) act.perform();
  };
  return h("form", { class: "composer", onSubmit: (event) => { event.preventDefault(); act.perform(); } },
    h(Field, {
      label: isBusy ? "Message to the run that works" : "Message", as: "textarea", rows: 3, value: text, "data-search": true,
      hint: "Enter sends, Shift+Enter begins a line.", onInput: (event) => setText(event.target.value), onKeyDown: press,
    }),
    h("div", { class: "actions" },
      isBusy ? h(Field, { label: "The model reads it", as: "select", value: when, onChange: (event) => setWhen(event.target.value) },
        h("option", { value: "steer" }, "in its next request"),
        h("option", { value: "follow_up" }, "when the run would end")) : null,
      h(RightButton, { right: "operate", kind: "primary", type: "submit", onClick: null, disabled: act.isBusy || text.trim() === "" }, isBusy ? "Steer" : "Send"),
      isBusy ? h(RightButton, { right: "operate", kind: "danger", onClick: stop.perform, disabled: stop.isBusy }, "Stop the run") : null),
    h(Failure, { problem: act.problem ?? stop.problem }));
}
