// The line of the page that is read aloud: what an action did, and how the state of a run changed.

let show = () => {};

/** Sets the function that shows a text in the live region of the page. */
export function setAnnouncer(shown) {
  show = shown;
}

/** Says a text to people who do not see the page. */
export function announce(text) {
  show(text);
}
