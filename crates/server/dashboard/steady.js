// A part of the page that takes no click right after it has moved: the click was meant for what was there before.

import { useEffect, useLayoutEffect, useReducer, useRef } from "./hooks.js";
import { EARLY_MS } from "./keys.js";

/**
 * Returns a reference for the element, and a function that returns false for a moment after the element came or moved. What
 * a person scrolls was moved on purpose. The component is drawn again at the end of the moment.
 */
export function useSteady() {
  const [, redraw] = useReducer((turn) => turn + 1, 0);
  const element = useRef(null);
  const place = useRef({ top: null, timer: null }).current;
  // After each change of the page, before a click can come: an answer above may have left.
  useLayoutEffect(() => {
    const top = topOf(element.current);
    if (place.top !== null && Math.abs(top - place.top) <= 1) return;
    place.top = top;
    clearTimeout(place.timer);
    place.timer = setTimeout(() => {
      place.timer = null;
      redraw();
    }, EARLY_MS);
    redraw();
  });
  useEffect(() => {
    const scrolled = () => {
      // The event of a page that scrolls because this element has left comes after it.
      if (element.current !== null) place.top = topOf(element.current);
    };
    // Captured, since the event of an element that scrolls does not rise.
    document.addEventListener("scroll", scrolled, { capture: true, passive: true });
    return () => {
      document.removeEventListener("scroll", scrolled, { capture: true });
      clearTimeout(place.timer);
    };
  }, []);
  return { element, isSteady: () => place.timer === null };
}

function topOf(element) {
  return element.getBoundingClientRect().top;
}
