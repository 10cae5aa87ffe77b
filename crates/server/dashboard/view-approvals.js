// The inbox: the open questions of all runs, oldest first, each answered with one key.

import { h } from "./preact.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./hooks.js";
import { announce } from "./announce.js";
import { runsOf, waysOf } from "./answers.js";
import * as api from "./api.js";
import { useData, useNow } from "./data.js";
import { plural } from "./format.js";
import { useCommands } from "./keyboard.js";
import { isOnScreen, takesKeys } from "./keys.js";
import { useMe } from "./me.js";
import { QuestionCard } from "./question-card.js";
import { link } from "./route.js";
import { Empty, Guarded, Loaded } from "./states.js";

export function ApprovalsView({ request, query }) {
  return h("section", null,
    h("h1", { tabIndex: -1 }, "Inbox"),
    h(Guarded, { right: "read_logs" }, h(Inbox, { request, run: query.run ?? null })));
}

function Inbox({ request, run }) {
  const state = useData(api.openQuestions, [], { every: 2000 });
  const ids = (state.data?.approvals ?? []).map((question) => question.request_id).join(" ");
  // The sources of arguments are looked for when there is another question.
  const known = useData((signal) => (ids === "" ? Promise.resolve(null) : api.approvals(signal)), [ids], { keeps: true });
  return h(Loaded, { state, what: "the questions" }, (data) => {
    const sources = new Map((known.data?.approvals ?? []).map((question) => [question.request_id, question.provenance]));
    // Undefined until the answer is there.
    const unknown = known.problem === null || known.isLoading ? undefined : null;
    const provenanceOf = ({ request_id: id }) => (sources.has(id) ? sources.get(id) : unknown);
    const approvals = data.approvals.map((question) => ({ ...question, provenance: provenanceOf(question) }));
    const shown = run === null ? approvals : approvals.filter((question) => runsOf(question).includes(run));
    return h(Questions, { questions: shown, request, run, reload: state.reload });
  });
}

function Questions({ questions, request, run, reload }) {
  const [answered, setAnswered] = useState(new Set());
  const open = questions.filter((question) => !answered.has(question.request_id));
  const { selected, select, shownAt } = useSelection(open, request);
  const [form, setForm] = useState(null);
  const [failure, setFailure] = useState(null);
  const [busy, setBusy] = useState(null);
  const now = useNow();
  const send = async (question, answer) => {
    const id = question.request_id;
    setBusy(id);
    setFailure(null);
    try {
      await api.answer(id, answer);
      setAnswered((before) => new Set(before).add(id));
      setForm(null);
      announce(`Answered: ${answer.answer === "cancel" ? "no" : answer.answer}. ${plural(open.length - 1, "question")} left.`);
      reload();
    } catch (problem) {
      setFailure({ id, problem });
    }
    setBusy(null);
  };
  useAnswerKeys({ question: open.find((question) => question.request_id === selected), shownAt, send, setForm, isBusy: busy !== null });
  if (open.length === 0) {
    return h(Empty, { title: "No run waits for an answer." },
      run === null ? "Questions appear here as runs ask them." : ["Look at the ", h("a", { href: link(["approvals"]) }, "questions of all runs"), "."]);
  }
  return h("div", { class: "questions" },
    h("p", { class: "dim", role: "status" }, plural(open.length, "open question")),
    open.map((question) => {
      const id = question.request_id;
      return h(QuestionCard, {
        key: id, question, now, isSelected: id === selected, isBusy: busy === id,
        problem: failure?.id === id ? failure.problem : null,
        open: form?.id === id ? form.does : null,
        setOpen: (does) => setForm(does === null ? null : { id, does }),
        send: (answer) => send(question, answer),
        select: () => select(id),
      });
    }));
}

/** The question that takes keys: chosen by its id, so that no other question gets the key as the list changes. */
function useSelection(open, request) {
  const [chosen, select] = useState(request);
  const isOpen = (id) => open.some((question) => question.request_id === id);
  const selected = isOpen(chosen) ? chosen : (open[0]?.request_id ?? null);
  const before = useRef(null);
  useLayoutEffect(() => {
    // The selected question has left: the person must see which one takes keys now.
    if (selected !== null && before.current !== null && !isOpen(before.current)) show(selected);
    before.current = selected;
  }, [selected]);
  const hasRequest = request !== null && isOpen(request);
  useLayoutEffect(() => {
    if (hasRequest) show(request);
  }, [request, hasRequest]);
  const shownAt = useShownAt(selected);
  return { selected, select, shownAt };
}

/**
 * Brings the card of a question onto the screen, its heading in any case, and gives the heading the focus. The focus selects
 * the question and so draws all cards again, whose buttons then see that they have moved, and take no click for a moment.
 */
function show(id) {
  const heading = document.getElementById(`q-${id}`);
  heading.closest(".question").scrollIntoView({ block: "nearest" });
  heading.focus();
}

/**
 * Returns a function that says since when the question is on the screen and selected, without a break; null if it is not on
 * the screen.
 */
function useShownAt(selected) {
  const shown = useRef({ id: null, at: null }).current;
  const look = () => {
    const card = document.getElementById(`q-${shown.id}`)?.closest(".question");
    const isSeen = card && !document.hidden && isOnScreen(card.getBoundingClientRect(), innerHeight);
    shown.at = isSeen ? (shown.at ?? Date.now()) : null;
    return shown.at;
  };
  // After each change of the page: a card above may have left.
  useLayoutEffect(() => {
    if (shown.id !== selected) Object.assign(shown, { id: selected, at: null });
    look();
  });
  useEffect(() => {
    const events = ["scroll", "resize", "visibilitychange"];
    // Captured, since some of these events do not rise to the window.
    events.forEach((name) => addEventListener(name, look, { capture: true, passive: true }));
    return () => events.forEach((name) => removeEventListener(name, look, { capture: true }));
  }, []);
  return look;
}

/** A key that is pressed before the question was on the screen for a moment was not meant for it. */
function useAnswerKeys({ question, shownAt, send, setForm, isBusy }) {
  const { may } = useMe();
  const answers = (does, act) => () => {
    const isReady = question !== undefined && may("operate") && !isBusy && takesKeys(shownAt(), Date.now());
    if (!isReady || !waysOf(question).some((way) => way.does === does)) return false;
    act();
    return true;
  };
  useCommands({
    yes: answers("approve", () => send(question, { answer: "approve" })),
    no: answers("cancel", () => send(question, { answer: "cancel", reason: "" })),
    edit: answers("edit", () => setForm({ id: question.request_id, does: "edit" })),
  }, [question, isBusy]);
}
