// The arithmetic of the waterfall: times to pixels, zoom, ticks, and which spans are on the screen. Pure.

export const LANE = 24;
export const AXIS = 24;
const BAR = 16;

/** A window of time over a width in pixels. */
export function scaleOf(from, to, width) {
  return { from, to: Math.max(to, from + 1), width: Math.max(1, width) };
}

export function xOf({ from, to, width }, ms) {
  return ((ms - from) / (to - from)) * width;
}

export function timeAt({ from, to, width }, x) {
  return from + (x / width) * (to - from);
}

/** Zooms around a time; the window stays within `all`, and is at least 1 ms wide. */
export function zoom(scale, factor, around, all) {
  const length = Math.min(all.to - all.from, Math.max(1, (scale.to - scale.from) * factor));
  const share = (around - scale.from) / (scale.to - scale.from);
  return within({ ...scale, from: around - share * length, to: around + (1 - share) * length }, all);
}

/** Moves the window by a part of its length. */
export function pan(scale, share, all) {
  const by = (scale.to - scale.from) * share;
  return within({ ...scale, from: scale.from + by, to: scale.to + by }, all);
}

function within(scale, all) {
  const length = scale.to - scale.from;
  const from = Math.max(all.from, Math.min(scale.from, all.to - length));
  return { ...scale, from, to: from + length };
}

/** Returns times of the axis at round distances from `zero`, about one for each 90 pixels. */
export function ticks(scale, zero) {
  const wanted = ((scale.to - scale.from) * 90) / scale.width;
  const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1)));
  const step = [1, 2, 5, 10].map((times) => times * power).find((each) => each >= wanted) ?? 10 * power;
  const found = [];
  for (let at = Math.ceil((scale.from - zero) / step) * step; zero + at <= scale.to; at += step) found.push(zero + at);
  return found;
}

/** Groups spans by lane, each lane in the order of time. Returns the lanes as lists. */
export function lanesOf(spans) {
  const lanes = [];
  for (const span of spans) (lanes[span.lane] ??= []).push(span);
  for (let lane = 0; lane < lanes.length; lane += 1) {
    lanes[lane] ??= [];
    lanes[lane].sort((a, b) => a.from_ms - b.from_ms);
  }
  return lanes;
}

/**
 * Returns the bars to draw as `{span, x, y, width, height}`. Of spans that are narrower than a pixel, one for each pixel
 * is drawn, so that a run of any length is drawn in bounded time. A span without an end goes on until `now`.
 */
export function bars(lanes, scale, now) {
  const found = [];
  lanes.forEach((spans, lane) => {
    let last = -1;
    for (let at = firstVisible(spans, scale.from, now); at < spans.length; at += 1) {
      const span = spans[at];
      if (span.from_ms > scale.to) break;
      const [start, end] = [Math.max(-2, xOf(scale, span.from_ms)), Math.min(scale.width + 2, xOf(scale, span.to_ms ?? now))];
      if (end < 0 || Math.floor(end) === last) continue;
      last = Math.floor(end);
      found.push({ span, x: start, y: AXIS + lane * LANE + (LANE - BAR) / 2, width: Math.max(1.5, end - start), height: BAR });
    }
  });
  return found;
}

/** Spans of a lane do not overlap, so their ends are in order, too. */
function firstVisible(spans, from, now) {
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((spans[middle].to_ms ?? now) < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the bar at a place; null if there is none. */
export function barAt(found, x, y) {
  return found.findLast((bar) => x >= bar.x - 2 && x <= bar.x + bar.width + 2 && y >= bar.y && y <= bar.y + bar.height) ?? null;
}
