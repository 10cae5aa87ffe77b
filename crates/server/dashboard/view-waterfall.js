// The waterfall of a run: what ran when, what waited, what was tried again, and how much of each request was cached.

import { h } from "./preact.js";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./hooks.js";
import * as api from "./api.js";
import { useData } from "./data.js";
import { duration, money, percent, plural, short } from "./format.js";
import { runLink } from "./route.js";
import { Empty, Loaded } from "./states.js";
import { Status, wordOf } from "./status.js";
import { VirtualList } from "./virtual-list.js";
import { coloursOf, draw } from "./waterfall-canvas.js";
import { AXIS, LANE, barAt, bars, lanesOf, pan, scaleOf, timeAt, zoom } from "./waterfall-scale.js";

const KINDS = [
  ["model", "model call; the stripe is the cached share"],
  ["tool", "tool call"],
  ["child", "child run"],
  ["wait", "wait for a person or a timer"],
  ["retry", "pause before a retry"],
  ["step", "step of a plan or a team"],
];

export function WaterfallPart({ head }) {
  const isOpen = head.status === "running" || head.status === "suspended";
  const state = useData((signal) => api.timeline(head.run_id, signal), [head.run_id, isOpen], { every: isOpen ? 2000 : null, keeps: true });
  return h(Loaded, { state, what: "the timeline" }, (timeline) =>
    timeline.spans.length === 0
      ? h(Empty, { title: "Nothing has run yet." }, "A bar appears with the first call of the model.")
      : h(Waterfall, { run: head.run_id, timeline }));
}

function Waterfall({ run, timeline }) {
  const all = { from: timeline.from_ms, to: Math.max(timeline.to_ms, timeline.from_ms + 1) };
  const lanes = useMemo(() => lanesOf(timeline.spans), [timeline]);
  const [range, setRange] = useState(null);
  const [selected, setSelected] = useState(null);
  const list = useRef(null);
  const select = (span) => {
    setSelected(span.id);
    list.current?.show(span.id);
  };
  return h("div", { class: "fill" },
    h(Legend),
    timeline.is_cut ? h("p", { class: "dim" }, `The newest ${plural(timeline.spans.length, "span")} are shown; the records have the earlier ones.`) : null,
    h(Chart, { lanes, all, range, setRange, selected, select, count: timeline.spans.length }),
    h("h2", { class: "small" }, `Spans as a table (${plural(timeline.spans.length, "span")})`),
    h(VirtualList, {
      ref: list, items: timeline.spans, keyOf: (span) => span.id, estimate: 30, label: "Spans", kind: "rows",
      row: (span) => h(SpanRow, { span, run, zero: all.from, end: all.to, isSelected: span.id === selected }),
    }));
}

function Legend() {
  return h("ul", { class: "legend" }, KINDS.map(([kind, text]) =>
    h("li", { key: kind }, h("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), text)));
}

function SpanRow({ span, run, zero, end, isSelected }) {
  const took = (span.to_ms ?? end) - span.from_ms;
  return h("div", { class: isSelected ? "span-row selected" : "span-row", "aria-current": isSelected ? "true" : null },
    h("a", { href: runLink(run, span.seq), "data-row": true }, span.label || span.kind),
    h("span", { class: "dim" }, wordOf(span.kind)),
    h(Status, { status: span.status }),
    h("span", { class: "number" }, `at ${duration(span.from_ms - zero) || "0 ms"}`),
    h("span", { class: "number" }, span.to_ms === null ? `${duration(took)} so far` : duration(took)),
    h("span", { class: "number dim" }, costText(span)),
    span.child_run ? h("a", { href: runLink(span.child_run) }, "child run") : null);
}

function costText({ tokens, cost_micros: micros, cached_share: share }) {
  const parts = [
    tokens ? `${short(tokens.total_tokens)} tokens` : "",
    micros ? money(micros) : "",
    typeof share === "number" ? `${percent(share)} cached` : "",
  ];
  return parts.filter(Boolean).join(", ");
}

/** The canvas. Wheel with Ctrl and + − zoom, arrows and dragging move, 0 shows the whole run. */
function Chart({ lanes, all, range, setRange, selected, select, count }) {
  const canvas = useRef(null);
  const [width, setWidth] = useState(800);
  const [, redraw] = useState(0);
  const scale = range === null ? scaleOf(all.from, all.to, width) : { ...range, width };
  const drawn = useRef([]);
  useEffect(() => watchSize(canvas.current, setWidth, () => redraw((turn) => turn + 1)), []);
  useLayoutEffect(() => {
    drawn.current = bars(lanes, scale, all.to);
    draw(canvas.current, { bars: drawn.current, scale, zero: all.from, lanes: lanes.length, colours: coloursOf(canvas.current), selected });
  });
  const zoomBy = (factor, around = (scale.from + scale.to) / 2) => setRange(zoom(scale, factor, around, all));
  const keys = { "+": () => zoomBy(0.5), "=": () => zoomBy(0.5), "-": () => zoomBy(2), 0: () => setRange(null),
    ArrowLeft: () => setRange(pan(scale, -0.2, all)), ArrowRight: () => setRange(pan(scale, 0.2, all)) };
  const press = (event) => {
    const does = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
    if (does === undefined) return;
    event.preventDefault();
    does();
  };
  const pointer = usePointer({ canvas, drawn, scale, all, setRange, select });
  const wheel = (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoomBy(event.deltaY > 0 ? 1.25 : 0.8, timeAt(scale, event.offsetX));
  };
  return h("div", { class: "chart", tabIndex: 0, role: "group", "aria-label": "Waterfall", onKeyDown: press },
    h("div", { class: "chart-tools" },
      h("button", { type: "button", onClick: () => zoomBy(0.5) }, "Zoom in"),
      h("button", { type: "button", onClick: () => zoomBy(2), disabled: range === null }, "Zoom out"),
      h("button", { type: "button", onClick: () => setRange(null), disabled: range === null }, "Whole run")),
    h("div", { class: "chart-scroll", tabIndex: 0, role: "region", "aria-label": "Lanes of the waterfall" },
      h("canvas", {
        ref: canvas, role: "img", "aria-label": `${plural(count, "span")} in ${plural(lanes.length, "lane")}; the table below has the same`,
        style: { height: `${AXIS + lanes.length * LANE + 4}px` }, onWheel: wheel, ...pointer,
      })));
}

function watchSize(canvas, setWidth, redraw) {
  const observer = new ResizeObserver(() => setWidth(Math.max(100, canvas.parentElement.clientWidth)));
  observer.observe(canvas.parentElement);
  const mode = matchMedia("(prefers-color-scheme: dark)");
  mode.addEventListener("change", redraw);
  return () => {
    observer.disconnect();
    mode.removeEventListener("change", redraw);
  };
}

/** A click selects a span; a drag moves the window. */
function usePointer({ canvas, drawn, scale, all, setRange, select }) {
  const drag = useRef(null);
  return {
    onPointerDown: (event) => {
      drag.current = { x: event.offsetX, scale, moved: false };
      canvas.current.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event) => {
      const bar = barAt(drawn.current, event.offsetX, event.offsetY);
      canvas.current.title = bar === null ? "" : `${bar.span.label}: ${duration((bar.span.to_ms ?? all.to) - bar.span.from_ms)}`;
      if (drag.current === null) return;
      const by = event.offsetX - drag.current.x;
      if (Math.abs(by) < 4 && !drag.current.moved) return;
      drag.current.moved = true;
      setRange(pan(drag.current.scale, -by / scale.width, all));
    },
    onPointerUp: (event) => {
      const was = drag.current;
      drag.current = null;
      const bar = was?.moved ? null : barAt(drawn.current, event.offsetX, event.offsetY);
      if (bar !== null) select(bar.span);
    },
  };
}
