// The plan as a graph: a column for all steps that can start together, and the lines between.
// On narrow screens the steps stand below each other.

import { counted, duration, element } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const SIGNS = {
  waiting: "○", running: "◔", asks: "?", done: "✓", empty: "∅", failed: "✗", timed_out: "⌛", skipped: "–",
  stopped: "■", not_run: "■",
};
const WORDS = { asks: "waits for a reply", timed_out: "timed out", not_run: "not run" };
/** Between the lines that go around steps, in pixels; and how many there are side by side. */
const LANE = 9;
const LANES = 8;

/** Steps by the longest way from the question to them. */
function columnsOf(steps) {
  const depth = new Map();
  const made = [];
  for (const step of steps) {
    // A plan refers to earlier steps only.
    const own = Math.max(0, ...step.needs.map((id) => (depth.get(id) ?? -1) + 1));
    depth.set(step.id, own);
    (made[own] ||= []).push(step);
  }
  return made;
}

function edgesOf(steps) {
  const needed = new Set(steps.flatMap((step) => step.needs));
  const made = [];
  for (const step of steps) {
    for (const from of step.needs.length ? step.needs : ["question"]) made.push([from, step.id]);
    if (!needed.has(step.id)) made.push([step.id, "answer"]);
  }
  return made;
}

/** The text of a step's state. */
function told(step) {
  const parts = [WORDS[step.status] || step.status];
  const ran = !["skipped", "not_run"].includes(step.status);
  if (step.milliseconds !== null && ran) parts.push(duration(step.milliseconds));
  if (step.status === "done" && step.results !== null) parts.push(counted(step.results, "result"));
  const rounds = step.reports.filter((report) => report.event === "feedback_round").length;
  if (rounds) parts.push(counted(rounds, "round"));
  return parts.join(" · ");
}

/** A drawn graph: `update(run)` colours it, `close()` releases it. */
function drawGraph(place, steps, chosen) {
  const nodes = new Map();
  const columns = [[{ id: "question" }], ...columnsOf(steps), [{ id: "answer" }]];
  const column = new Map(columns.flatMap((members, at) => members.map(({ id }) => [id, at])));
  const row = new Map(columns.flat().map(({ id }, at) => [id, at]));

  const end = (id, text) => element("div", { class: "end", "data-node": id }, text);
  const box = (step) => element("button", {
    type: "button", class: "step", "data-node": step.id, onclick: () => chosen(step.id),
  },
  element("span", { class: "name" }, element("b", {}, step.id), " ", element("bdi", {}, step.tool),
    step.needs.length ? element("small", {}, ` after ${step.needs.join(", ")}`) : null),
  element("code", {}, step.call.slice(step.tool.length + 1, -1)),
  element("span", { class: "state" }));
  const drawn = element("div", { class: columns.length > 5 ? "graph long-plan" : "graph" });
  for (const members of columns) {
    const made = members.map((one) => (one.call === undefined ? end(one.id, one.id === "answer" ? "Answer" : "Question") : box(one)));
    made.forEach((node) => nodes.set(node.dataset.node, node));
    drawn.append(element("div", { class: "column" }, ...made));
  }
  const paths = edgesOf(steps).map(([from, to]) => {
    const path = document.createElementNS(SVG, "path");
    path.dataset.edge = `${from} ${to}`;
    return { from, to, path };
  });
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("aria-hidden", "true");
  svg.append(...paths.map(({ path }) => path));
  drawn.prepend(svg);
  place.replaceChildren(drawn);

  function draw_lines() {
    const frame = drawn.getBoundingClientRect();
    const upright = getComputedStyle(drawn).flexDirection === "column";
    const order = upright ? row : column;
    const around = paths.filter(({ from, to }) => order.get(to) - order.get(from) > 1);
    // Room for lines around the steps in between.
    const room = around.length ? LANE * (Math.min(around.length, LANES) + 1) : 0;
    drawn.style.setProperty("--room", `${room}px`);
    for (const { from, to, path } of paths) {
      const a = shape(nodes.get(from), frame, upright);
      const b = shape(nodes.get(to), frame, upright);
      const lane = around.findIndex((one) => one.path === path);
      path.setAttribute("d", line(a, b, lane < 0 ? null : room - LANE * (1 + (lane % LANES)), upright));
    }
  }
  const watched = new ResizeObserver(draw_lines);
  watched.observe(drawn);
  for (const node of nodes.values()) watched.observe(node);

  return {
    update(run) {
      for (const step of run.steps) {
        const node = nodes.get(step.id);
        node.dataset.status = step.status;
        const shown = node.querySelector(".state");
        const state = `${SIGNS[step.status] || ""} ${told(step)}`;
        if (shown.textContent !== state) shown.textContent = state;
      }
      nodes.get("question").dataset.status = "done";
      nodes.get("answer").dataset.status = answerState(run);
      for (const { from, to, path } of paths) path.dataset.passed = passed(nodes, from, to);
    },
    close: () => watched.disconnect(),
  };
}

function answerState(run) {
  if (run.state === "wording") return "running";
  if (run.state !== "answered") return "waiting";
  return run.answer.citations.length ? "done" : "empty";
}

/** Whether results went along a line. */
function passed(nodes, from, to) {
  const state = (id) => nodes.get(id).dataset.status;
  return state(from) === "done" && !["waiting", "skipped", "not_run"].includes(state(to));
}

/** Where lines leave and reach a box: along the graph, and across it. */
function shape(node, frame, upright) {
  const { left, right, top, bottom, width, height } = node.getBoundingClientRect();
  return upright
    ? { start: top - frame.top, end: bottom - frame.top, middle: left - frame.left + width / 2, edge: left - frame.left }
    : { start: left - frame.left, end: right - frame.left, middle: top - frame.top + height / 2, edge: top - frame.top };
}

/** A curve from a box to another; with a lane, around the boxes in between. */
function line(a, b, lane, upright) {
  const at = (along, across) => (upright ? `${across} ${along}` : `${along} ${across}`);
  if (lane === null) {
    const half = (a.end + b.start) / 2;
    return `M${at(a.end, a.middle)}C${at(half, a.middle)} ${at(half, b.middle)} ${at(b.start, b.middle)}`;
  }
  if (upright) {
    // Out at the left edge of one, in at the left edge of the other.
    const [from, to] = [(a.start + a.end) / 2, (b.start + b.end) / 2];
    return `M${at(from, a.edge)}C${at(from, lane)} ${at(from, lane)} ${at(from + 14, lane)}L${at(to - 14, lane)}C${at(to, lane)} ${at(to, lane)} ${at(to, b.edge)}`;
  }
  const [out, back] = [a.end + 18, b.start - 18];
  return `M${at(a.end, a.middle)}C${at(out, a.middle)} ${at(a.end, lane)} ${at(out, lane)}L${at(back, lane)}C${at(b.start, lane)} ${at(back, b.middle)} ${at(b.start, b.middle)}`;
}

/** When each step ran: one bar a step, from its start to its end. */
function drawTimeline(place, run) {
  const outcomes = run.answer.steps.filter((outcome) => outcome.attempts > 0);
  const whole = Math.max(...outcomes.map((one) => one.started + one.milliseconds), 1);
  place.replaceChildren(...outcomes.map((one) => {
    const bar = element("span", { class: "bar", "data-status": one.status });
    bar.style.marginInlineStart = `${(100 * one.started) / whole}%`;
    bar.style.width = `max(3px, ${(100 * one.milliseconds) / whole}%)`;
    return element("li", {}, element("span", {}, one.step), element("span", { class: "track" }, bar));
  }));
}

export { drawGraph, drawTimeline, told };
