// The arithmetic of a list that draws only the rows on the screen. Pure.

/** The heights of the rows of a list, by key: measured ones, and an estimate for the others. */
export class Heights {
  #estimate;
  #measured = new Map();
  #keys = [];
  /** `#tops[i]` is the distance of row `i` from the top; the last entry is the whole height. */
  #tops = new Float64Array(1);
  #valid = 0;

  constructor(estimate) {
    this.#estimate = estimate;
  }

  /** Sets the keys of the rows, in their order. */
  setKeys(keys) {
    let same = 0;
    const most = Math.min(keys.length, this.#keys.length);
    while (same < most && keys[same] === this.#keys[same]) same += 1;
    this.#keys = keys;
    this.#valid = Math.min(this.#valid, same);
    if (this.#tops.length < keys.length + 1) {
      const tops = new Float64Array(Math.max(keys.length + 1, this.#tops.length * 2));
      tops.set(this.#tops.subarray(0, this.#valid + 1));
      this.#tops = tops;
    }
  }

  /** Sets the measured height of a row. Returns true if it was another one before. */
  measure(index, height) {
    const key = this.#keys[index];
    if (key === undefined || Math.abs(this.#height(key) - height) < 0.5) return false;
    this.#measured.set(key, height);
    this.#valid = Math.min(this.#valid, index);
    return true;
  }

  get length() {
    return this.#keys.length;
  }

  /** The height of all rows. */
  get total() {
    return this.top(this.#keys.length);
  }

  /** The distance of a row from the top of the list. */
  top(index) {
    const to = Math.min(index, this.#keys.length);
    for (let at = this.#valid; at < to; at += 1) {
      this.#tops[at + 1] = this.#tops[at] + this.#height(this.#keys[at]);
    }
    this.#valid = Math.max(this.#valid, to);
    return this.#tops[to];
  }

  /** The row at a distance from the top. */
  indexAt(distance) {
    this.top(this.#keys.length);
    let [low, high] = [0, Math.max(0, this.#keys.length - 1)];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#tops[middle] <= distance) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The index of a key; -1 if there is no row with it. */
  indexOf(key) {
    return this.#keys.indexOf(key);
  }

  #height(key) {
    return this.#measured.get(key) ?? this.#estimate;
  }
}

/** The maximum number of rows that are drawn at once, so that the page stays small at any height of the screen. */
export const MOST_ROWS = 200;

/**
 * Returns the rows to draw, `from` inclusive and `to` exclusive, with the space above and below them. `extra` rows
 * beyond each edge are drawn too, so that the focus can move to them.
 */
export function visible(heights, scrollTop, height, extra = 8) {
  if (heights.length === 0) return { from: 0, to: 0, above: 0, below: 0 };
  // A browser may scroll beyond the edges for a moment.
  const top = Math.max(0, scrollTop);
  const first = heights.indexAt(top);
  const last = heights.indexAt(top + height);
  const from = Math.max(0, first - extra);
  const to = Math.min(heights.length, last + 1 + extra, from + MOST_ROWS);
  return { from, to, above: heights.top(from), below: heights.total - heights.top(to) };
}

/**
 * Returns the row at the upper edge as a place that survives changes above it. With `next`, the keys that the list is
 * about to have, it is the first row from there that stays: older records can give the first row another key.
 */
export function anchorAt(heights, keys, scrollTop, next = keys) {
  const stays = next === keys ? null : new Set(next);
  for (let index = heights.indexAt(scrollTop); index < keys.length; index += 1) {
    if (stays?.has(keys[index]) ?? true) return { key: keys[index], offset: scrollTop - heights.top(index) };
  }
  return null;
}

/** Returns the distance from the top at which an anchor is now; null if its row is gone. */
export function scrollTopOf(heights, anchor) {
  const index = anchor === null ? -1 : heights.indexOf(anchor.key);
  return index < 0 ? null : heights.top(index) + anchor.offset;
}

/** Returns true if the lower edge of the list is on the screen. */
export function isAtEnd(scrollTop, height, total) {
  return scrollTop + height >= total - 24;
}
