// The plan or the team of a run as a graph. The server lays it out; here it is drawn.

import { h } from "./preact.js";
import * as api from "./api.js";
import { Table } from "./controls.js";
import { useData } from "./data.js";
import { duration, oneLine } from "./format.js";
import { runLink } from "./route.js";
import { Empty, Loaded } from "./states.js";
import { Status, signOf, wordOf } from "./status.js";

export function GraphPart({ head }) {
  const isOpen = head.status === "running" || head.status === "suspended";
  const state = useData((signal) => api.graph(head.run_id, signal), [head.run_id, isOpen], { every: isOpen ? 2000 : null, keeps: true });
  return h(Loaded, { state, what: "the graph" }, (graph) =>
    graph.kind === "none" || graph.nodes.length === 0
      ? h(Empty, { title: "This run has no plan and no team." }, "Runs of the kinds plan and team have a graph; see the transcript of this one.")
      : h("div", { class: "loaded" },
          h("p", { class: "dim" }, `The ${graph.kind}. Thick lines with a double frame are the critical path: it decides how long the run takes.`),
          h(Graph, { graph }),
          h(NodeTable, { graph })));
}

const MARGIN = 12;

function Graph({ graph }) {
  const box = `${-MARGIN} ${-MARGIN} ${graph.width + 2 * MARGIN} ${graph.height + 2 * MARGIN}`;
  return h("div", { class: "wide graph", tabIndex: 0, role: "region", "aria-label": "Graph" },
    h("svg", { viewBox: box, width: graph.width + 2 * MARGIN, height: graph.height + 2 * MARGIN, role: "group", "aria-label": `${graph.nodes.length} nodes; the table below has the same` },
      h("defs", null, h("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" },
        h("path", { d: "M0 0 8 4 0 8z", class: "arrow" }))),
      graph.edges.map((edge) => h(Edge, { key: `${edge.from} ${edge.to}`, edge })),
      graph.nodes.map((node) => h(Node, { key: node.id, node }))));
}

function Edge({ edge: { points, is_critical: isCritical } }) {
  const path = points.map(([x, y], index) => `${index === 0 ? "M" : "L"}${x} ${y}`).join(" ");
  return h("path", { d: path, class: isCritical ? "edge critical" : "edge", "marker-end": "url(#arrow)" });
}

function Node({ node }) {
  const { x, y, width, height, label, status, is_critical: isCritical, run } = node;
  const [sign, look] = signOf(status);
  const shape = h("g", { class: `node ${look}${isCritical ? " critical" : ""}`, transform: `translate(${x} ${y})` },
    h("title", null, `${label}: ${wordOf(status)}${isCritical ? ", on the critical path" : ""}`),
    h("rect", { width, height, rx: 6 }),
    isCritical ? h("rect", { class: "inner", x: 3, y: 3, width: width - 6, height: height - 6, rx: 4 }) : null,
    h("text", { x: 10, y: height / 2, "dominant-baseline": "middle" }, `${sign} ${oneLine(label, Math.max(4, Math.floor((width - 24) / 7.5)))}`));
  return run ? h("a", { href: runLink(run), "aria-label": `${label}: ${wordOf(status)}` }, shape) : shape;
}

function NodeTable({ graph }) {
  const labels = new Map(graph.nodes.map((node) => [node.id, node.label]));
  const before = (id) => graph.edges.filter((edge) => edge.to === id).map((edge) => labels.get(edge.from) ?? edge.from).join(", ");
  return h(Table, { caption: "Nodes of the graph", head: ["Node", "By", "Status", "Worked", "After", "Critical path", "Run"] },
    graph.nodes.map((node) => h("tr", { key: node.id },
      h("td", null, node.label),
      h("td", null, node.by ?? ""),
      h("td", null, h(Status, { status: node.status })),
      h("td", { class: "number" }, duration(node.worked_ms)),
      h("td", null, before(node.id)),
      h("td", null, node.is_critical ? "yes" : ""),
      h("td", null, node.run ? h("a", { href: runLink(node.run), "data-row": true }, node.run) : ""))));
}
