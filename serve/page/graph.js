// The plan as a graph: a column for all steps that can start together, and the lines between.

import { counted, duration, element } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const SIGNS = {
  waiting: "○", running: "◔", done: "✓", empty: "∅", failed: "✗", timed_out: "⌛", skipped: "–", stopped: "■",
};

/** Steps by the longest way from the question to them. */
function columns(steps) {
  const depth = new Map();
  for (const step of steps) {
    // A plan refers to earlier steps only.
    depth.set(step.id, 1 + Math.max(0, ...step.needs.map((id) => depth.get(id) || 0)));
  }
  const made = [];
  for (const step of steps) (made[depth.get(step.id) - 1] ||= []).push(step);
  return made;
}

function edges(steps) {
  const needed = new Set(steps.flatMap((step) => step.needs));
  const made = [];
  for (const step of steps) {
    for (const from of step.needs.length ? step.needs : ["question"]) made.push([from, step.id]);
    if (!needed.has(step.id)) made.push([step.id, "answer"]);
  }
  return made;
}

const inWords = (status) => status.replace("_", " ");

/** What a step's place says of how it goes. */
function told(step) {
  const parts = [inWords(step.status)];
  if (step.milliseconds !== null && step.status !== "skipped") parts.push(duration(step.milliseconds));
  if (step.status === "done") parts.push(counted(step.results, "result"));
  const rounds = step.reports.filter((report) => report.event === "feedback_round").length;
  if (rounds) parts.push(counted(rounds, "round"));
  return parts.join(" · ");
}

/** A drawn graph: `update(run)` colours it, `close()` lets it go. */
function drawGraph(place, steps, chosen) {
  const nodes = new Map();
  const lines = element("div", { class: "lines", "aria-hidden": "true" });
  const end = (id, text) => {
    nodes.set(id, element("div", { class: "end", "data-node": id }, text));
    return element("div", { class: "column" }, nodes.get(id));
  };
  const column = (members) => element("div", { class: "column" }, ...members.map((step) => {
    const node = element("button", {
      type: "button", class: "step", "data-node": step.id, onclick: () => chosen(step.id),
    },
    element("span", { class: "name" }, element("b", {}, step.id), ` ${step.tool}`),
    element("code", {}, step.call.slice(step.tool.length + 1, -1)),
    element("span", { class: "state" }));
    nodes.set(step.id, node);
    return node;
  }));
  const drawn = element("div", { class: "graph" }, lines,
    end("question", "Question"), ...columns(steps).map(column), end("answer", "Answer"));
  place.replaceChildren(drawn);

  const paths = edges(steps).map(([from, to]) => {
    const path = document.createElementNS(SVG, "path");
    path.dataset.edge = `${from} ${to}`;
    return { from, to, path };
  });
  const svg = document.createElementNS(SVG, "svg");
  svg.append(...paths.map(({ path }) => path));
  lines.append(svg);

  function place_lines() {
    const box = drawn.getBoundingClientRect();
    svg.setAttribute("width", drawn.scrollWidth);
    svg.setAttribute("height", drawn.scrollHeight);
    const upright = getComputedStyle(drawn).flexDirection === "column";
    for (const { from, to, path } of paths) {
      const a = nodes.get(from).getBoundingClientRect();
      const b = nodes.get(to).getBoundingClientRect();
      path.setAttribute("d", upright
        ? curve(a.left - box.left + a.width / 2, a.bottom - box.top, b.left - box.left + b.width / 2, b.top - box.top, true)
        : curve(a.right - box.left, a.top - box.top + a.height / 2, b.left - box.left, b.top - box.top + b.height / 2, false));
    }
  }
  const watched = new ResizeObserver(place_lines);
  watched.observe(drawn);
  for (const node of nodes.values()) watched.observe(node);

  return {
    update(run) {
      for (const step of run.steps) {
        const node = nodes.get(step.id);
        node.dataset.status = step.status;
        const state = `${SIGNS[step.status]} ${told(step)}`;
        const shown = node.querySelector(".state");
        if (shown.textContent !== state) shown.textContent = state;
      }
      nodes.get("question").dataset.status = "done";
      nodes.get("answer").dataset.status = { answered: "done", wording: "running" }[run.state] || "waiting";
      const status = (id) => nodes.get(id).dataset.status;
      for (const { from, to, path } of paths) {
        // Lit where something passed, broken off where it did not.
        const passed = status(from) === "done" && (to === "answer" ? status(to) !== "waiting" : status(to) !== "skipped" && status(to) !== "waiting");
        path.dataset.passed = passed;
      }
    },
    close: () => watched.disconnect(),
  };
}

function curve(x1, y1, x2, y2, upright) {
  const [x, y] = upright ? [0, (y2 - y1) / 2] : [(x2 - x1) / 2, 0];
  return `M${x1} ${y1}C${x1 + x} ${y1 + y} ${x2 - x} ${y2 - y} ${x2} ${y2}`;
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

export { drawGraph, drawTimeline, inWords, told };
