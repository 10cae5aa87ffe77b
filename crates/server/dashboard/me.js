// The account of this browser: its role, and what the role may do.

import { createContext } from "./preact.js";
import { useContext } from "./hooks.js";

export const Me = createContext({ name: "", role: "", rights: [] });

/** What each right is for, in words. */
const RIGHTS = {
  monitor: "see runs",
  read_logs: "read logs, questions and memories",
  operate: "start, steer, cancel, answer, resume and fork runs",
  administer: "delete runs",
};

/** Returns the account, and why it may not do something: an empty text if it may. */
export function useMe() {
  const me = useContext(Me);
  const whyNot = (right) =>
    me.rights.includes(right)
      ? ""
      : `Your role ${me.role} may not ${RIGHTS[right]}: it does not have the right ${right}.`;
  return { ...me, may: (right) => me.rights.includes(right), whyNot };
}
