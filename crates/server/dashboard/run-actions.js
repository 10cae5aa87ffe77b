// What a person can do with a run: speak into it, cancel, resume, fork and delete it.

import { h } from "./preact.js";
import { useState } from "./hooks.js";
import { announce } from "./announce.js";
import * as api from "./api.js";
import { Dialog, Field, RightButton } from "./controls.js";
import { useAction } from "./data.js";
import { link } from "./route.js";
import { Failure } from "./states.js";

const BUSY = ["running", "suspended", "interrupted"];
const RESUMABLE = ["created", "interrupted", "failed", "limit", "cancelled"];

/** `fork` opens the dialog of a fork; null if the run cannot be forked. */
export function RunActions({ head, reload, fork }) {
  const [question, setQuestion] = useState(null);
  const { status, run_id: run } = head;
  const isBusy = BUSY.includes(status);
  const ask = (name) => () => setQuestion(name);
  const DialogOf = DIALOGS[question] ?? null;
  return h("div", { class: "actions" },
    isBusy ? h(RightButton, { right: "operate", onClick: ask("steer") }, "Steer …") : null,
    isBusy || status === "created" ? h(RightButton, { right: "operate", onClick: ask("cancel") }, "Cancel …") : null,
    RESUMABLE.includes(status) ? h(RightButton, { right: "operate", onClick: ask("resume") }, "Resume …") : null,
    fork === null ? null : h(RightButton, { right: "operate", onClick: fork }, "Fork …"),
    head.session ? h("a", { class: "button", href: link(["playground", head.session]) }, "Go on in the playground") : null,
    isBusy ? null : h(RightButton, { right: "administer", kind: "danger", onClick: ask("delete") }, "Delete …"),
    DialogOf === null ? null : h(DialogOf, { run, reload, onClose: ask(null) }));
}

const DIALOGS = { steer: SteerDialog, cancel: CancelDialog, resume: ResumeDialog, delete: DeleteDialog };

/**
 * A dialog with a form. `send(fields)` performs the action, `done` says that it was performed, and `button` has the text, the
 * look and the right of the button. A failed request leaves the dialog open, with what was typed.
 */
function ActionDialog({ title, send, done, button, reload, onClose, children }) {
  const act = useAction(async (fields) => {
    await send(fields);
    announce(done);
    onClose();
    reload();
  }, [send, reload, onClose]);
  const submit = (event) => {
    event.preventDefault();
    if (!act.isBusy) act.perform(Object.fromEntries(new FormData(event.target)));
  };
  const { text, kind, right = "operate" } = button;
  return h(Dialog, { title, onClose },
    h("form", { onSubmit: submit },
      children,
      h(Failure, { problem: act.problem }),
      h(RightButton, { right, kind, type: "submit", onClick: null, disabled: act.isBusy }, text)));
}

function SteerDialog({ run, ...more }) {
  const send = ({ text, when }) => (when === "steer" ? api.steer(run, text) : api.followUp(run, text));
  return h(ActionDialog, { title: "Speak into the run", send, done: "The message was sent.", button: { text: "Send", kind: "primary" }, ...more },
    h(Field, { label: "Message", as: "textarea", name: "text", rows: 4, required: true }),
    h(Field, { label: "The model reads it", as: "select", name: "when" },
      h("option", { value: "steer" }, "in its next request"),
      h("option", { value: "follow_up" }, "when the run would end")));
}

function CancelDialog({ run, ...more }) {
  const send = ({ reason }) => api.cancel(run, reason.trim());
  return h(ActionDialog, { title: "Cancel the run", send, done: "The run was asked to stop.", button: { text: "Cancel the run", kind: "danger" }, ...more },
    h("p", null, "Calls under way are stopped. The run can be resumed later."),
    h(Field, { label: "Reason", name: "reason" }));
}

function ResumeDialog({ run, ...more }) {
  const send = (fields) => api.resume(run, {
    max_turns: number(fields.turns),
    max_total_tokens: number(fields.tokens),
    max_duration_ms: number(fields.minutes, 60_000),
    max_cost_micros: number(fields.cost, 1e6),
  });
  const limit = (label, name, hint) => h(Field, { label, name, type: "number", min: "0", step: "any", hint });
  return h(ActionDialog, { title: "Resume the run", send, done: "The run goes on.", button: { text: "Resume", kind: "primary" }, ...more },
    h("p", null, "A run that reached a limit needs a larger one. Empty fields change nothing."),
    limit("Turns", "turns", "for the whole run"),
    limit("Tokens", "tokens", "for the whole run"),
    limit("Minutes", "minutes", "for the whole run"),
    limit("Cost", "cost", "in units of the currency, for the whole run"));
}

function DeleteDialog({ run, onClose }) {
  // The run is gone, so another view comes instead of a reload.
  const leave = () => {
    location.hash = link(["runs"]);
  };
  const button = { text: "Delete", kind: "danger", right: "administer" };
  return h(ActionDialog, { title: "Delete the run", send: () => api.remove(run), done: "The run was deleted.", button, reload: leave, onClose },
    h("p", null, "The run and everything that is stored for it are deleted. This cannot be undone."));
}

function number(text, unit = 1) {
  const value = Number.parseFloat(text);
  return Number.isFinite(value) && value > 0 ? Math.round(value * unit) : undefined;
}
