// A fork of a run from one of its records, with another message or agent.

import { h } from "./preact.js";
import { useMemo } from "./hooks.js";
import { announce } from "./announce.js";
import * as api from "./api.js";
import { Dialog, Field, RightButton } from "./controls.js";
import { useAction, useData } from "./data.js";
import { bodyOf, forker } from "./forks.js";
import { runLink } from "./route.js";
import { Failure } from "./states.js";

export function ForkDialog({ run, seq, onClose }) {
  const { data } = useData(api.agents, []);
  const make = useMemo(() => forker(api), []);
  const act = useAction(async (fields) => {
    const forked = await make(run, bodyOf(seq, fields));
    announce("The fork was made.");
    onClose();
    location.hash = runLink(forked.run);
  }, [run, seq]);
  const submit = (event) => {
    event.preventDefault();
    act.perform(Object.fromEntries(new FormData(event.target)));
  };
  return h(Dialog, { title: `Fork from record ${seq}`, onClose },
    h("p", null, "The new run begins at the boundary of the turn that holds the record. What tools did before stays as it was, ",
      "and is not done again; a turn whose tools have started is kept whole."),
    h("form", { onSubmit: submit },
      h(Field, { label: "Message", as: "textarea", name: "text", rows: 4, hint: "It takes the place of the messages after the last turn that is kept. Empty: the model answers again." }),
      h(Field, { label: "Agent", as: "select", name: "agent", hint: "The fork has the model, tools, instructions and limits of this agent." },
        h("option", { value: "" }, "as the run was started"),
        (data?.agents ?? []).filter(({ kind }) => kind === "loop").map(({ id, description }) =>
          h("option", { key: id, value: id }, description ? `${id}: ${description}` : id))),
      h(Failure, { problem: act.problem }),
      h(RightButton, { right: "operate", kind: "primary", disabled: act.isBusy, type: "submit", onClick: null }, "Fork")));
}
