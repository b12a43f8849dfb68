// Draws the plan as a graph. Steps that can start together form a column, and lines join the steps.
// On narrow screens, all steps are in one column.

import { countText, duration, element } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const STATUS_SIGNS = {
  waiting: "○", running: "◔", asks: "?", done: "✓", empty: "∅", failed: "✗", timed_out: "⌛", skipped: "–",
  stopped: "■", not_run: "■",
};
const STATUS_TEXT = { asks: "waits for a reply", timed_out: "timed out", not_run: "not run" };
/** Distance in pixels between lanes, in which lines go around steps, and maximum number of lanes. */
const LANE_WIDTH = 9;
const MAX_LANES = 8;

/** Return the steps in columns, by the length of the longest path from the question. */
function columnsOf(steps) {
  const depths = new Map();
  const columns = [];
  for (const step of steps) {
    // A plan refers to earlier steps only.
    const ownDepth = Math.max(0, ...step.needs.map((id) => (depths.get(id) ?? -1) + 1));
    depths.set(step.id, ownDepth);
    (columns[ownDepth] ||= []).push(step);
  }
  return columns;
}

/** Return the pairs of nodes that lines join; the question and the answer are nodes too. */
function edgesOf(steps) {
  const needed = new Set(steps.flatMap((step) => step.needs));
  return steps.flatMap(({ id, needs }) => [
    ...(needs.length ? needs : ["question"]).map((from) => [from, id]),
    ...(needed.has(id) ? [] : [[id, "answer"]]),
  ]);
}

/** Return the text about a step's state. */
function stateText(step) {
  const parts = [STATUS_TEXT[step.status] || step.status];
  const ran = !["skipped", "not_run"].includes(step.status);
  if (step.milliseconds !== null && ran) parts.push(duration(step.milliseconds));
  if (step.status === "done" && step.results !== null) parts.push(countText(step.results, "result"));
  const rounds = step.reports.filter((report) => report.event === "feedback_round").length;
  if (rounds) parts.push(countText(rounds, "round"));
  return parts.join(" · ");
}

/** Draw a graph, and return functions that update the steps' states and stop observing sizes. */
function drawGraph(container, steps, onSelect) {
  const nodes = new Map();
  const columns = [[{ id: "question" }], ...columnsOf(steps), [{ id: "answer" }]];
  const columnById = new Map(columns.flatMap((members, index) => members.map(({ id }) => [id, index])));
  const rowById = new Map(columns.flat().map(({ id }, index) => [id, index]));

  const endBox = (id, text) => element("div", { class: "end", "data-node": id }, text);
  const stepBox = (step) => element("button", {
    type: "button", class: "step", "data-node": step.id, onclick: () => onSelect(step.id),
  },
  element("span", { class: "name" }, element("b", {}, step.id), " ", element("bdi", {}, step.tool),
    step.needs.length ? element("small", {}, ` after ${step.needs.join(", ")}`) : null),
  element("code", {}, step.call.slice(step.tool.length + 1, -1)),
  element("span", { class: "state" }));
  const graph = element("div", { class: columns.length > 5 ? "graph long-plan" : "graph" });
  for (const members of columns) {
    const boxes = members.map((step) => (step.call === undefined ? endBox(step.id, step.id === "answer" ? "Answer" : "Question") : stepBox(step)));
    boxes.forEach((node) => nodes.set(node.dataset.node, node));
    graph.append(element("div", { class: "column" }, ...boxes));
  }
  const paths = edgesOf(steps).map(([from, to]) => {
    const path = document.createElementNS(SVG, "path");
    path.dataset.edge = `${from} ${to}`;
    return { from, to, path };
  });
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("aria-hidden", "true");
  svg.append(...paths.map(({ path }) => path));
  graph.prepend(svg);
  container.replaceChildren(graph);

  function drawLines() {
    const graphRect = graph.getBoundingClientRect();
    const isVertical = getComputedStyle(graph).flexDirection === "column";
    const order = isVertical ? rowById : columnById;
    const detours = paths.filter(({ from, to }) => order.get(to) - order.get(from) > 1);
    // Space for the lines that go around steps.
    const margin = detours.length ? LANE_WIDTH * (Math.min(detours.length, MAX_LANES) + 1) : 0;
    graph.style.setProperty("--room", `${margin}px`);
    for (const { from, to, path } of paths) {
      const source = anchors(nodes.get(from), graphRect, isVertical);
      const target = anchors(nodes.get(to), graphRect, isVertical);
      const lane = detours.findIndex((detour) => detour.path === path);
      path.setAttribute("d", curve(source, target, lane < 0 ? null : margin - LANE_WIDTH * (1 + (lane % MAX_LANES)), isVertical));
    }
  }
  const observer = new ResizeObserver(drawLines);
  observer.observe(graph);
  for (const node of nodes.values()) observer.observe(node);

  return {
    update(run) {
      for (const step of run.steps) {
        const node = nodes.get(step.id);
        node.dataset.status = step.status;
        const stateNode = node.querySelector(".state");
        const state = `${STATUS_SIGNS[step.status] || ""} ${stateText(step)}`;
        if (stateNode.textContent !== state) stateNode.textContent = state;
      }
      nodes.get("question").dataset.status = "done";
      nodes.get("answer").dataset.status = answerState(run);
      for (const { from, to, path } of paths) path.dataset.passed = hasPassed(nodes, from, to);
    },
    close: () => observer.disconnect(),
  };
}

function answerState(run) {
  if (run.state === "wording") return "running";
  if (run.state !== "answered") return "waiting";
  return run.answer.citations.length ? "done" : "empty";
}

/** Return true if results have passed from one node to another. */
function hasPassed(nodes, from, to) {
  const state = (id) => nodes.get(id).dataset.status;
  return state(from) === "done" && !["waiting", "skipped", "not_run"].includes(state(to));
}

/** Return the positions at which lines enter and leave a box, along and across the graph. */
function anchors(node, graphRect, isVertical) {
  const { left, right, top, bottom, width, height } = node.getBoundingClientRect();
  return isVertical
    ? { start: top - graphRect.top, end: bottom - graphRect.top, middle: left - graphRect.left + width / 2, edge: left - graphRect.left }
    : { start: left - graphRect.left, end: right - graphRect.left, middle: top - graphRect.top + height / 2, edge: top - graphRect.top };
}

/** Return the path of a line between two boxes; in a lane, the line goes around the boxes between. */
function curve(source, target, lane, isVertical) {
  const point = (along, across) => (isVertical ? `${across} ${along}` : `${along} ${across}`);
  if (lane === null) {
    const half = (source.end + target.start) / 2;
    return `M${point(source.end, source.middle)}C${point(half, source.middle)} ${point(half, target.middle)} ${point(target.start, target.middle)}`;
  }
  if (isVertical) {
    // The line leaves and enters boxes at their left edges.
    const [from, to] = [(source.start + source.end) / 2, (target.start + target.end) / 2];
    return `M${point(from, source.edge)}C${point(from, lane)} ${point(from, lane)} ${point(from + 14, lane)}L${point(to - 14, lane)}C${point(to, lane)} ${point(to, lane)} ${point(to, target.edge)}`;
  }
  const [out, back] = [source.end + 18, target.start - 18];
  return `M${point(source.end, source.middle)}C${point(out, source.middle)} ${point(source.end, lane)} ${point(out, lane)}L${point(back, lane)}C${point(target.start, lane)} ${point(back, target.middle)} ${point(target.start, target.middle)}`;
}

/** Draw a bar for each step, from its start to its end. */
function drawTimeline(container, run) {
  const outcomes = run.answer.steps.filter((outcome) => outcome.attempts > 0);
  const total = Math.max(...outcomes.map((outcome) => outcome.started + outcome.milliseconds), 1);
  container.replaceChildren(...outcomes.map(({ step, status, started, milliseconds }) => {
    const bar = element("span", { class: "bar", "data-status": status });
    bar.style.marginInlineStart = `${(100 * started) / total}%`;
    bar.style.width = `max(3px, ${(100 * milliseconds) / total}%)`;
    return element("li", {}, element("span", {}, step), element("span", { class: "track" }, bar));
  }));
}

export { drawGraph, drawTimeline, stateText };
