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

export function RunActions({ head, reload, fork }) {
  const [question, setQuestion] = useState(null);
  const { status, run_id: run } = head;
  const act = useAction(async (what, done) => {
    await what();
    announce(done);
    reload();
  }, [run]);
  const isBusy = BUSY.includes(status);
  const ask = (name) => () => setQuestion(name);
  return h("div", { class: "actions" },
    isBusy ? h(RightButton, { right: "operate", onClick: ask("steer"), disabled: act.isBusy }, "Steer …") : null,
    isBusy || status === "created" ? h(RightButton, { right: "operate", onClick: ask("cancel"), disabled: act.isBusy }, "Cancel …") : null,
    RESUMABLE.includes(status)
      ? h(RightButton, { right: "operate", onClick: ask("resume"), disabled: act.isBusy }, "Resume …")
      : null,
    h(RightButton, { right: "operate", onClick: fork }, "Fork …"),
    head.session ? h("a", { class: "button", href: link(["playground", head.session]) }, "Go on in the playground") : null,
    isBusy ? null : h(RightButton, { right: "administer", kind: "danger", onClick: ask("delete"), disabled: act.isBusy }, "Delete …"),
    h(Failure, { problem: act.problem }),
    question === "steer" ? h(SteerDialog, { run, act, onClose: ask(null) }) : null,
    question === "cancel" ? h(CancelDialog, { run, act, onClose: ask(null) }) : null,
    question === "resume" ? h(ResumeDialog, { run, act, onClose: ask(null) }) : null,
    question === "delete" ? h(DeleteDialog, { run, onClose: ask(null) }) : null);
}

function form(onSubmit, ...children) {
  const submit = (event) => {
    event.preventDefault();
    onSubmit(Object.fromEntries(new FormData(event.target)));
  };
  return h("form", { onSubmit: submit }, ...children);
}

function SteerDialog({ run, act, onClose }) {
  const send = async ({ text, when }) => {
    if (text.trim() === "") return;
    await act.perform(() => (when === "steer" ? api.steer(run, text) : api.followUp(run, text)), "The message was sent.");
    onClose();
  };
  return h(Dialog, { title: "Speak into the run", onClose },
    form(send,
      h(Field, { label: "Message", as: "textarea", name: "text", rows: 4, required: true }),
      h(Field, { label: "The model reads it", as: "select", name: "when" },
        h("option", { value: "steer" }, "in its next request"),
        h("option", { value: "follow_up" }, "when the run would end")),
      h("button", { type: "submit", class: "primary" }, "Send")));
}

function CancelDialog({ run, act, onClose }) {
  const send = async ({ reason }) => {
    await act.perform(() => api.cancel(run, reason.trim()), "The run was asked to stop.");
    onClose();
  };
  return h(Dialog, { title: "Cancel the run", onClose },
    form(send,
      h("p", null, "Calls under way are stopped. The run can be resumed later."),
      h(Field, { label: "Reason", name: "reason" }),
      h("button", { type: "submit", class: "danger" }, "Cancel the run")));
}

function ResumeDialog({ run, act, onClose }) {
  const send = async (fields) => {
    const more = {
      max_turns: number(fields.turns),
      max_total_tokens: number(fields.tokens),
      max_duration_ms: number(fields.minutes, 60_000),
      max_cost_micros: number(fields.cost, 1e6),
    };
    await act.perform(() => api.resume(run, more), "The run goes on.");
    onClose();
  };
  const limit = (label, name, hint) => h(Field, { label, name, type: "number", min: "0", step: "any", hint });
  return h(Dialog, { title: "Resume the run", onClose },
    form(send,
      h("p", null, "A run that reached a limit needs a larger one. Empty fields change nothing."),
      limit("Turns", "turns", "for the whole run"),
      limit("Tokens", "tokens", "for the whole run"),
      limit("Minutes", "minutes", "for the whole run"),
      limit("Cost", "cost", "in units of the currency, for the whole run"),
      h("button", { type: "submit", class: "primary" }, "Resume")));
}

function number(text, unit = 1) {
  const value = Number.parseFloat(text);
  return Number.isFinite(value) && value > 0 ? Math.round(value * unit) : undefined;
}

function DeleteDialog({ run, onClose }) {
  const act = useAction(async () => {
    await api.remove(run);
    announce("The run was deleted.");
    location.hash = link(["runs"]);
  }, [run]);
  return h(Dialog, { title: "Delete the run", onClose },
    h("p", null, "The run and everything that is stored for it are deleted. This cannot be undone."),
    h(Failure, { problem: act.problem }),
    h(RightButton, { right: "administer", kind: "danger", onClick: act.perform, disabled: act.isBusy }, "Delete"));
}
