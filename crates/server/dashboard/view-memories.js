// The memories of the store: by collection and key, or found by words.

import { h } from "./preact.js";
import { useState } from "./hooks.js";
import * as api from "./api.js";
import { Facts, Field, JsonText } from "./controls.js";
import { useData } from "./data.js";
import { dateTime, percent, plural } from "./format.js";
import { link, runLink } from "./route.js";
import { Empty, Failure, Guarded, Loaded } from "./states.js";

export function MemoriesView({ query }) {
  return h("section", null,
    h("h1", { tabIndex: -1 }, "Memories"),
    h(Guarded, { right: "read_logs" }, h(Search, { query }), h(Pages, { key: JSON.stringify(query), query })));
}

function Search({ query }) {
  const submit = (event) => {
    event.preventDefault();
    location.hash = link(["memories"], Object.fromEntries(new FormData(event.target)));
  };
  return h("form", { class: "filters", role: "search", onSubmit: submit },
    h(Field, { label: "Words", type: "search", name: "text", "data-search": true, defaultValue: query.text ?? "" }),
    h(Field, { label: "Collection", name: "collection", defaultValue: query.collection ?? "" }),
    h(Field, { label: "Key", name: "key", defaultValue: query.key ?? "" }),
    h("button", { type: "submit", class: "primary" }, "Search"));
}

function Pages({ query: { text = "", collection = "", key = "" } }) {
  const [more, setMore] = useState({ memories: [], next: undefined, problem: null });
  const state = useData((signal) => api.memories({ text, collection, key }, signal), []);
  if (state.problem?.rule === "no-memories") {
    return h(Empty, { title: "This server has no store of memories." },
      h("code", null, "archon serve --memory"), " adds one, and a program with ", h("code", null, "Scope::with_memories"), ".");
  }
  return h(Loaded, { state, what: "the memories" }, (first) => {
    const memories = first.memories.concat(more.memories);
    const next = more.next === undefined ? first.next : more.next;
    const load = async () => {
      try {
        const page = await api.memories({ text, collection, key, after: next });
        setMore({ memories: more.memories.concat(page.memories), next: page.next, problem: null });
      } catch (problem) {
        setMore({ ...more, problem });
      }
    };
    if (memories.length === 0) return h(Empty, { title: "No memory was found." }, "Search for other words, or leave the fields empty to see all.");
    return h("div", null,
      h("p", { class: "dim", role: "status" }, plural(memories.length, "memory").replace("memorys", "memories"), text === "" ? ", the newest first" : ", the best first"),
      memories.map((memory) => h(Memory, { key: `${memory.collection ?? ""} ${memory.id}`, memory })),
      h(Failure, { problem: more.problem }),
      next === null ? null : h("button", { type: "button", onClick: load }, "Show more memories"));
  });
}

function Memory({ memory }) {
  const { id, content, collection, kind, trust, run, key, importance, metadata } = memory;
  return h("article", { class: "item memory", "aria-label": `Memory ${id}` },
    h("details", null,
      h("summary", { "data-row": true }, h("span", { class: "plain" }, content)),
      h(Facts, {
        facts: [
          ["Id", id],
          ["Collection", collection && h("a", { href: link(["memories"], { collection }) }, collection)],
          ["Key", key && h("a", { href: link(["memories"], { key }) }, key)],
          ["Kind", kind && (typeof kind === "string" ? kind : JSON.stringify(kind))],
          ["Trust", trust ?? "untrusted"],
          ["Importance", importance === undefined || importance === null ? null : percent(importance)],
          ["Valid from", memory.valid_from && dateTime(memory.valid_from)],
          ["Valid until", memory.valid_to && dateTime(memory.valid_to)],
          ["Run", run && h("a", { href: runLink(run) }, run)],
        ],
      }),
      h(JsonText, { value: metadata, label: `Further data of memory ${id}` })),
    h("p", { class: "dim small" }, memory.timestamp, memory.valid_to ? " · no longer valid" : ""));
}
