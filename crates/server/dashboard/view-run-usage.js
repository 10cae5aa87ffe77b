// The tokens and the money of a run, and how full its context window is.

import { h } from "./preact.js";
import * as api from "./api.js";
import { Facts } from "./controls.js";
import { useData } from "./data.js";
import { count, money, percent } from "./format.js";
import { useMe } from "./me.js";
import { Loaded } from "./states.js";

export function RunUsagePart({ head }) {
  const isOpen = head.status === "running" || head.status === "suspended";
  const state = useData((signal) => api.runUsage(head.run_id, signal), [head.run_id, isOpen], { every: isOpen ? 5000 : null, keeps: true });
  return h(Loaded, { state, what: "what the run uses" }, (usage) => h(Usage, { usage, run: head.run_id }));
}

function Usage({ usage: { agent, model, turns, usage, cost_micros: micros, child_spending: children, is_final: isFinal }, run }) {
  const read = usage.input + usage.cache_read + usage.cache_write;
  return h("div", { class: "loaded" },
    isFinal ? null : h("p", { class: "dim" }, "The run goes on: these are the numbers so far."),
    h(Facts, {
      facts: [
        ["Agent", agent],
        ["Model", model],
        ["Turns", count(turns)],
        ["Tokens", count(usage.total_tokens)],
        ["Read by the model", count(read)],
        ["Of these cached", read === 0 ? null : `${count(usage.cache_read)} (${percent(usage.cache_read / read)})`],
        ["Written by the model", count(usage.output)],
        ["Cost", micros === null ? "the model has no price" : money(micros)],
        ["Tokens of child runs", children.tokens > 0 ? count(children.tokens) : null],
        ["Cost of child runs", children.cost_micros > 0 ? money(children.cost_micros) : null],
        ["All together", micros === null ? null : money(micros + children.cost_micros)],
      ],
    }),
    h(ContextUse, { run }));
}

/** The share of the context window that the last request has filled; it is in the log, so it needs a right. */
function ContextUse({ run }) {
  const { may } = useMe();
  const load = async (signal) => {
    if (!may("read_logs")) return null;
    const [first, newest] = await Promise.all([
      api.records(run, { limit: 1 }, signal),
      api.records(run, { last: 200 }, signal),
    ]);
    return contextOf(first.records[0], newest.records);
  };
  const { data } = useData(load, [run]);
  if (data === null) return null;
  return h("p", null, h("label", { for: "context" }, `Context window: ${count(data.used)} of ${count(data.size)} tokens (${percent(data.used / data.size)}) `),
    h("meter", { id: "context", min: 0, max: data.size, value: data.used, high: data.size * 0.8 }));
}

/** Returns the tokens of the last request and the size of the window; null if the records do not tell. */
export function contextOf(first, newest) {
  const size = first?.config?.context?.max_context_tokens;
  const last = newest.findLast((record) => record.type === "model_call_finished")?.message.usage;
  if (!size || !last) return null;
  return { size, used: last.input + last.cache_read + last.cache_write + last.output };
}
