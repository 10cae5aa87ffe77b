// The drawing of the waterfall on a canvas. Kinds differ by pattern and not by colour alone.

import { duration } from "./format.js";
import { LANE, ticks, xOf } from "./waterfall-scale.js";

const FAILED = new Set(["failed", "lost"]);

/** Returns the colours of the page for the drawing; they follow the light or dark mode. */
export function coloursOf(element) {
  const style = getComputedStyle(element);
  const colour = (name) => style.getPropertyValue(name).trim();
  return {
    text: colour("--text"), dim: colour("--dim"), line: colour("--line"), back: colour("--back"), bad: colour("--bad"),
    model: colour("--span-model"), tool: colour("--span-tool"), wait: colour("--span-wait"), retry: colour("--span-retry"),
    step: colour("--span-step"), child: colour("--span-child"), onSpan: colour("--on-span"), focus: colour("--focus"),
  };
}

/** Draws bars over an axis. `selected` is the id of a span with a frame. */
export function draw(canvas, { bars, scale, zero, lanes, colours, selected }) {
  const ratio = window.devicePixelRatio || 1;
  const height = canvas.clientHeight;
  canvas.width = Math.round(scale.width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  drawAxis(context, scale, zero, height, colours);
  drawLanes(context, lanes, scale.width, colours);
  for (const bar of bars) drawBar(context, bar, colours, bar.span.id === selected);
}

function drawAxis(context, scale, zero, height, colours) {
  for (const at of ticks(scale, zero)) {
    const x = Math.round(xOf(scale, at)) + 0.5;
    context.strokeStyle = colours.line;
    context.beginPath();
    context.moveTo(x, 18);
    context.lineTo(x, height);
    context.stroke();
    context.fillStyle = colours.dim;
    context.fillText(at === zero ? "0" : duration(at - zero), x + 3, 10);
  }
}

function drawLanes(context, lanes, width, colours) {
  context.strokeStyle = colours.line;
  for (let lane = 0; lane <= lanes; lane += 1) {
    const y = 24 + lane * LANE + 0.5;
    context.beginPath();
    context.moveTo(0, y);
    context.lineTo(width, y);
    context.stroke();
  }
}

function drawBar(context, { span, x, y, width, height }, colours, isSelected) {
  const colour = colours[span.kind] ?? colours.step;
  const isHollow = span.kind === "wait" || span.kind === "step";
  context.fillStyle = isHollow ? colours.back : colour;
  context.fillRect(x, y, width, height);
  context.strokeStyle = colour;
  context.setLineDash(span.kind === "wait" ? [4, 3] : []);
  if (width > 3) context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  context.setLineDash([]);
  if (span.kind === "retry") hatch(context, x, y, width, height, colours.onSpan);
  if (span.kind === "child" && width > 8) context.strokeRect(x + 2.5, y + 2.5, width - 5, height - 5);
  if (typeof span.cached_share === "number") {
    context.fillStyle = colours.onSpan;
    context.fillRect(x, y + height - 3, width * span.cached_share, 3);
  }
  if (FAILED.has(span.status)) {
    context.fillStyle = colours.bad;
    context.fillRect(x, y, Math.min(3, width), height);
  }
  label(context, span, x, y, width, height, isHollow ? colours.text : colours.onSpan);
  if (isSelected) {
    context.strokeStyle = colours.focus;
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, width + 2, height + 2);
    context.lineWidth = 1;
  }
}

function label(context, span, x, y, width, height, colour) {
  const start = Math.max(x, 0) + 5;
  const room = x + width - start - 4;
  if (room < 28) return;
  context.save();
  context.beginPath();
  context.rect(start, y, room, height);
  context.clip();
  context.fillStyle = colour;
  context.fillText(`${FAILED.has(span.status) ? "✗ " : ""}${span.label}`, start, y + height / 2);
  context.restore();
}

function hatch(context, x, y, width, height, colour) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = colour;
  for (let at = Math.max(x, -20) - height; at < Math.min(x + width, 10_000); at += 6) {
    context.beginPath();
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
    context.stroke();
  }
  context.restore();
}
