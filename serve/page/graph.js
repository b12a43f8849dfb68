// Draws the plan as a graph: steps that can start together form a column; lines join the columns.
// On narrow screens, all steps are in one column.

import { countText, duration, element } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const STATUS_SIGNS = {
  waiting: "○", running: "◔", asks: "?", done: "✓", empty: "∅", failed: "✗", timed_out: "⌛", skipped: "–",
  stopped: "■", not_run: "■",
};
const STATUS_TEXT = { asks: "waits for a reply", timed_out: "timed out", not_run: "not run" };
/** Distance in pixels between the lines that go around steps, and their maximum number. */
const LANE_WIDTH = 9;
const MAX_LANES = 8;

/** Group the steps by the length of the longest path from the question. */
function columnsOf(steps) {
  const depth = new Map();
  const columns = [];
  for (const step of steps) {
    // A plan refers to earlier steps only.
    const ownDepth = Math.max(0, ...step.needs.map((id) => (depth.get(id) ?? -1) + 1));
    depth.set(step.id, ownDepth);
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

/** The text of a step's state. */
function stateText(step) {
  const parts = [STATUS_TEXT[step.status] || step.status];
  const ran = !["skipped", "not_run"].includes(step.status);
  if (step.milliseconds !== null && ran) parts.push(duration(step.milliseconds));
  if (step.status === "done" && step.results !== null) parts.push(countText(step.results, "result"));
  const rounds = step.reports.filter((report) => report.event === "feedback_round").length;
  if (rounds) parts.push(countText(rounds, "round"));
  return parts.join(" · ");
}

/** Draw a graph; the result's `update(run)` shows the steps' states, `close()` ends its observer. */
function drawGraph(container, steps, onSelect) {
  const nodes = new Map();
  const columns = [[{ id: "question" }], ...columnsOf(steps), [{ id: "answer" }]];
  const column = new Map(columns.flatMap((members, at) => members.map(({ id }) => [id, at])));
  const row = new Map(columns.flat().map(({ id }, at) => [id, at]));

  const end = (id, text) => element("div", { class: "end", "data-node": id }, text);
  const box = (step) => element("button", {
    type: "button", class: "step", "data-node": step.id, onclick: () => onSelect(step.id),
  },
  element("span", { class: "name" }, element("b", {}, step.id), " ", element("bdi", {}, step.tool),
    step.needs.length ? element("small", {}, ` after ${step.needs.join(", ")}`) : null),
  element("code", {}, step.call.slice(step.tool.length + 1, -1)),
  element("span", { class: "state" }));
  const graph = element("div", { class: columns.length > 5 ? "graph long-plan" : "graph" });
  for (const members of columns) {
    const boxes = members.map((step) => (step.call === undefined ? end(step.id, step.id === "answer" ? "Answer" : "Question") : box(step)));
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
    const frame = graph.getBoundingClientRect();
    const isVertical = getComputedStyle(graph).flexDirection === "column";
    const order = isVertical ? row : column;
    const detours = paths.filter(({ from, to }) => order.get(to) - order.get(from) > 1);
    // Space for the lines that go around steps.
    const margin = detours.length ? LANE_WIDTH * (Math.min(detours.length, MAX_LANES) + 1) : 0;
    graph.style.setProperty("--room", `${margin}px`);
    for (const { from, to, path } of paths) {
      const a = anchors(nodes.get(from), frame, isVertical);
      const b = anchors(nodes.get(to), frame, isVertical);
      const lane = detours.findIndex((detour) => detour.path === path);
      path.setAttribute("d", curve(a, b, lane < 0 ? null : margin - LANE_WIDTH * (1 + (lane % MAX_LANES)), isVertical));
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
        const shown = node.querySelector(".state");
        const state = `${STATUS_SIGNS[step.status] || ""} ${stateText(step)}`;
        if (shown.textContent !== state) shown.textContent = state;
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

/** Return where lines leave and enter a box, along the graph and across it. */
function anchors(node, frame, isVertical) {
  const { left, right, top, bottom, width, height } = node.getBoundingClientRect();
  return isVertical
    ? { start: top - frame.top, end: bottom - frame.top, middle: left - frame.left + width / 2, edge: left - frame.left }
    : { start: left - frame.left, end: right - frame.left, middle: top - frame.top + height / 2, edge: top - frame.top };
}

/** Return the path of a line between boxes; with a lane, it goes around the boxes in between. */
function curve(a, b, lane, isVertical) {
  const at = (along, across) => (isVertical ? `${across} ${along}` : `${along} ${across}`);
  if (lane === null) {
    const half = (a.end + b.start) / 2;
    return `M${at(a.end, a.middle)}C${at(half, a.middle)} ${at(half, b.middle)} ${at(b.start, b.middle)}`;
  }
  if (isVertical) {
    // The line leaves and enters boxes at their left edges.
    const [from, to] = [(a.start + a.end) / 2, (b.start + b.end) / 2];
    return `M${at(from, a.edge)}C${at(from, lane)} ${at(from, lane)} ${at(from + 14, lane)}L${at(to - 14, lane)}C${at(to, lane)} ${at(to, lane)} ${at(to, b.edge)}`;
  }
  const [out, back] = [a.end + 18, b.start - 18];
  return `M${at(a.end, a.middle)}C${at(out, a.middle)} ${at(a.end, lane)} ${at(out, lane)}L${at(back, lane)}C${at(b.start, lane)} ${at(back, b.middle)} ${at(b.start, b.middle)}`;
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
