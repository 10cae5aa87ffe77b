// The tasks: what starts runs when nobody is there, with its state, its last runs and what a person can do.

import { h } from "./preact.js";
import { announce } from "./announce.js";
import * as api from "./api.js";
import { Facts, JsonText, RightButton } from "./controls.js";
import { useAction, useData, useNow } from "./data.js";
import { ago, count, dateTime, duration, money, plural, visible, visibleLine } from "./format.js";
import { link, runLink } from "./route.js";
import { Empty, Failure, Guarded, Loaded } from "./states.js";
import { Status } from "./status.js";
import { instructionOf, problemsOf, triggerOf } from "./tasks.js";

/** The most runs in the history of a task. */
const RUNS = 10;

export function TasksView({ task }) {
  return h("section", null,
    h("h1", { tabIndex: -1 }, "Tasks"),
    h(Guarded, { right: "read_logs" }, h(TaskList, { task })));
}

function TaskList({ task }) {
  const state = useData(api.tasks, [], { every: 5000 });
  const questions = useData(api.openQuestions, [], { every: 5000 });
  const now = useNow();
  if (state.problem?.rule === "no-tasks") {
    return h(Empty, { title: "This server has no tasks." }, "A build with the feature ", h("code", null, "triggers"), " has them, and a program with ", h("code", null, "Scope::with_tasks"), ".");
  }
  return h(Loaded, { state, what: "the tasks" }, ({ tasks }) => {
    const shown = task === null ? tasks : tasks.filter(({ id }) => id === task);
    if (shown.length === 0 && task !== null) return h(Empty, { title: `There is no task ${visibleLine(task)}.` }, h("a", { href: link(["tasks"]) }, "All tasks"));
    if (shown.length === 0) return h(Empty, { title: "There are no tasks yet." }, h("code", null, "archon triggers add"), " makes one.");
    const asked = (id) => (questions.data?.approvals ?? []).filter((question) => question.task === id);
    return h("div", null,
      h("p", { class: "dim", role: "status" }, plural(shown.length, "task"), task === null ? null : [" · ", h("a", { href: link(["tasks"]) }, "all tasks")]),
      shown.map((one) => h(Task, { key: one.id, task: one, now, questions: asked(one.id), reload: state.reload })));
  });
}

function Task({ task, now, questions, reload }) {
  const { id, status, definition } = task;
  return h("article", { class: "item", "aria-labelledby": `t-${id}` },
    h("h2", { id: `t-${id}`, tabIndex: -1, "data-row": true }, visibleLine(id)),
    h("p", null, h(Status, { status }), " · ", visibleLine(triggerOf(definition)), " · ", h("span", { class: "dim" }, nextText(task, now))),
    h("p", { class: "plain" }, visible(instructionOf(definition))),
    problemsOf(task, now).map((problem) => h("p", { key: problem, class: "warn" }, visible(problem))),
    questions.length === 0 ? null : h("p", null, h("a", { href: link(["approvals", questions[0].request_id]) }, `${plural(questions.length, "question")} for you`)),
    h(Actions, { task, reload }),
    h("details", null,
      h("summary", null, "History and definition"),
      h(Facts, {
        facts: [
          ["Tenant", visibleLine(task.tenant)],
          ["Runs", count(task.runs)],
          ["Failed one after the other", task.failures === 0 ? null : count(task.failures)],
          ["Cost", task.spent_micros === 0 ? null : money(task.spent_micros)],
        ],
      }),
      h("ul", null, task.last_runs.slice(-RUNS).reverse().map((run) => h("li", { key: run }, h("a", { href: runLink(run) }, run)))),
      h(JsonText, { value: definition, label: `Definition of task ${id}` })));
}

function nextText({ next, is_busy: isBusy, status }, now) {
  if (isBusy) return "a run works or waits";
  if (status !== "active" || next === null) return "";
  return h("span", { title: dateTime(next) }, next <= now ? `due ${ago(next, now)}` : `next in ${duration(next - now)}`);
}

function Actions({ task: { id, status }, reload }) {
  const act = useAction(async (send, done) => {
    await send();
    announce(`${done}: ${id}`);
    reload();
  }, [id, reload]);
  const button = (text, command, done) => h(RightButton, { right: "operate", disabled: act.isBusy, onClick: () => act.perform(() => api.commandTask(id, command), done) }, text);
  return h("div", null,
    h("div", { class: "actions" },
      status === "active" ? button("Run now", "run", "A run was started") : null,
      status === "active" ? button("Pause", "pause", "Paused") : null,
      status === "paused" || status === "disabled" ? button("Resume", "resume", "Resumed") : null,
      h(RightButton, { right: "administer", kind: "danger", disabled: act.isBusy, onClick: () => confirm(`Delete the task ${id}? Its runs stay.`) && act.perform(() => api.removeTask(id), "Deleted") }, "Delete …")),
    h(Failure, { problem: act.problem }));
}
