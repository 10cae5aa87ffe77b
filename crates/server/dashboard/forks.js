// A fork of a run: the request, and how the fork goes on. Pure: the requests are functions that the caller gives.

/** Returns true if a run can be forked: the server forks loops only. `kind` is that of its head or of its first record, if known. */
export function mayFork({ kind }) {
  return (kind ?? "loop") === "loop";
}

/** Returns the body of the request: what was left empty is not in it. */
export function bodyOf(seq, { text = "", agent = "" }) {
  const body = { record: seq };
  if (text.trim() !== "") body.text = text;
  if (agent !== "") body.agent = agent;
  return body;
}

/**
 * Returns a function that makes a fork with `fork(run, body)`, lets it go on with `resume(run)` if the model answers next,
 * and returns it. If only the second failed, the next call with the same body makes no second fork.
 */
export function forker({ fork, resume }) {
  let made = null;
  return async (run, body) => {
    const key = JSON.stringify([run, body]);
    if (made?.key !== key) made = { key, forked: await fork(run, body) };
    await goOn(made.forked, resume);
    return made.forked;
  };
}

async function goOn({ run, wants_answer: wantsAnswer }, resume) {
  if (!wantsAnswer) return;
  try {
    await resume(run);
  } catch (problem) {
    // Another page has resumed it meanwhile. A busy session or another folder has a rule of its own.
    if (problem.rule !== "conflict") throw Object.assign(problem, { title: `The fork ${run} was made, and does not go on` });
  }
}
