// Data of a view: loaded at once, and again from time to time while somebody sees the page.

import { useCallback, useEffect, useReducer, useRef, useState } from "./hooks.js";
import { pauseAfter } from "./pause.js";

const EMPTY = { data: null, problem: null, isLoading: true };

/**
 * Loads with `load(signal)` whenever one of `deps` changes, and then every `every` milliseconds; null is never again. A
 * hidden page loads nothing. A slow answer makes the pause longer. A failure keeps the data of before, and the next try
 * waits longer. With `keeps`, the data also stay while those of other `deps` are loaded.
 */
export function useData(load, deps, { every = null, keeps = false } = {}) {
  const [state, setState] = useState(EMPTY);
  const [turn, reload] = useReducer((number) => number + 1, 0);
  const loaded = useRef(turn);
  useEffect(() => {
    const isReload = loaded.current !== turn;
    loaded.current = turn;
    setState((old) => (isReload || keeps ? { ...old, isLoading: true } : EMPTY));
    return keepLoading(load, every, setState);
  }, [...deps, turn, every]);
  return { ...state, reload: useCallback(() => reload(), []) };
}

function keepLoading(load, every, setState) {
  const control = new AbortController();
  let timer = null;
  const wake = () => {
    if (!document.hidden) run();
  };
  const run = async () => {
    document.removeEventListener("visibilitychange", wake);
    let pause = every;
    const begun = performance.now();
    try {
      const data = await load(control.signal);
      if (control.signal.aborted) return;
      setState({ data, problem: null, isLoading: false });
      if (every !== null) pause = pauseAfter(every, performance.now() - begun);
    } catch (problem) {
      if (control.signal.aborted) return;
      setState((old) => ({ data: old.data, problem, isLoading: false }));
      pause = every === null ? null : Math.max(every * 4, (problem.retryAfter ?? 0) * 1000);
    }
    if (pause === null) return;
    timer = setTimeout(() => {
      if (document.hidden) document.addEventListener("visibilitychange", wake);
      else run();
    }, pause);
  };
  run();
  return () => {
    control.abort();
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", wake);
  };
}

/** The time now, again every `every` milliseconds while the page is seen. */
export function useNow(every = 1000) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Date.now());
    }, every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

/** Performs an action of a person: returns whether it is under way, its problem, and the function that starts it. */
export function useAction(action, deps) {
  const [state, setState] = useState({ isBusy: false, problem: null });
  const perform = useCallback(async (...args) => {
    setState({ isBusy: true, problem: null });
    try {
      const result = await action(...args);
      setState({ isBusy: false, problem: null });
      return result;
    } catch (problem) {
      setState({ isBusy: false, problem });
      return undefined;
    }
  }, deps);
  return { ...state, perform };
}
