// Draws the shown run, and the list of all runs of this page.

import { isApproval, priceText, waitingCard } from "./approval.js";
import { drawAnswer, plannerText } from "./answer.js";
import { byId, countText, duration, element, show } from "./dom.js";
import { drawGraph, drawTimeline } from "./graph.js";
import { drawSteps } from "./steps.js";

/** Maximum number of runs in the list, since each run holds all its evidence. */
const MAX_RUNS = 50;
const page = {
  runs: [], // the latest first
  shown: null, // the shown run
  asking: null, // the run at work: {run, stop}
  about: { scopes: {}, retain: "off", corrections: false, questions: [] },
};
let graph = null;
let drawScheduled = false;
let runCount = 0;
/** Handlers of a run's buttons, set by asking.js. */
const handlers = {};

function showRun(run) {
  run.number ??= ++runCount;
  page.shown = run;
  if (!page.runs.includes(run)) page.runs = [run, ...page.runs].slice(0, MAX_RUNS);
  graph?.close();
  graph = null;
  byId("waiting").replaceChildren();
  byId("graph").replaceChildren();
  show(byId("examples"), false);
  show(byId("run"), true);
  byId("asked").textContent = run.question;
  byId("asked").title = run.question.length > 300 ? run.question : "";
  showError(run.error);
  draw();
}

/** Draw the shown run at the next frame; further calls before that frame have no effect. */
function scheduleDraw() {
  if (drawScheduled) return;
  drawScheduled = true;
  // A page in the background has no frames.
  const schedule = document.hidden ? (callback) => setTimeout(callback, 100) : requestAnimationFrame;
  schedule(() => {
    drawScheduled = false;
    draw();
  });
}

function draw() {
  drawRuns();
  const run = page.shown;
  if (!run) return;
  const isRunning = page.asking?.run === run;
  byId("run").dataset.state = run.state;
  setText("planner", plannerText(run.planner));
  setText("price", priceText(run.planner?.price));
  if (!graph && run.steps.length) graph = drawGraph(byId("graph"), run.steps, scrollToStep);
  graph?.update(run);
  drawSteps(byId("steps"), run);
  drawAnswer(run);
  show(byId("timeline"), Boolean(run.answer));
  if (run.answer) drawTimeline(byId("timeline"), run);
  drawWaiting(run);
  show(byId("save"), Boolean(run.answer));
  show(byId("copy"), Boolean(run.answer && navigator.clipboard));
  show(byId("approve"), mayRetain(run));
  drawCorrection(run);
  show(byId("again"), Boolean(run.request) && ["failed", "stopped"].includes(run.state));
  show(byId("resume"), run.state === "interrupted" && !page.asking);
  const kept = run.answer?.retained;
  setText("kept", kept ? `As a case: ${kept.outcome}.${kept.reason ? ` ${kept.reason}` : ""}` : "");
  show(byId("stop"), isRunning);
  byId("send").setAttribute("aria-disabled", String(Boolean(page.asking)));
  setText("status", statusOf(run));
}

/** Set a text only if it differs, since screen readers read live regions at every change. */
function setText(id, value) {
  if (byId(id).textContent !== value) byId(id).textContent = value;
}

/** Return true if the answer may be retained: the question had no history and no context. */
function mayRetain(run) {
  const standsAlone = run.request && !run.request.history && !Object.keys(run.request.context).length;
  return Boolean(standsAlone && run.answer && page.about.retain !== "off" && !run.answer.retained);
}

/** Show the plan to correct, once for each run, so that typed text stays. */
function drawCorrection(run) {
  const container = byId("correct");
  show(container, Boolean(page.about.corrections && run.request && run.steps.length));
  if (container.dataset.run === String(run.number) || !run.steps.length) return;
  container.dataset.run = run.number;
  container.open = false;
  byId("right-plan").value = run.steps.map((step) => `${step.id} = ${step.call}`).join("\n");
  setText("corrected", "");
}

function statusOf(run) {
  const runningIds = run.steps.filter((step) => step.status === "running").map((step) => step.id);
  switch (run.state) {
    case "planning": return "Planning…";
    case "running": return runningIds.length ? `Running ${runningIds.join(", ")}…` : "Running…";
    case "wording": return "Writing the answer…";
    case "waiting":
      if (run.questions.length > 1) return `${run.questions.length} questions wait for replies.`;
      return isApproval(run.questions[0]?.question) ? "The plan waits for approval." : "A tool waits for a reply.";
    case "interrupted": return "The run was interrupted, and can be resumed.";
    case "stopped": return "Stopped.";
    case "failed": return "";
    default: return run.elapsed
      ? `Answered in ${duration(run.elapsed)}, with ${countText(run.answer.citations.length, "citation")}.`
      : "A saved run: nothing was run again.";
  }
}

function showError(error) {
  setText("error", error);
  show(byId("error"), Boolean(error));
}

function scrollToStep(id) {
  const container = byId(`step-${id}`);
  container.scrollIntoView({ block: "nearest" });
  container.focus({ preventScroll: true });
}

/** Draw a card with all open questions. */
function drawWaiting(run) {
  const container = byId("waiting");
  show(container, run.state === "waiting");
  if (run.state !== "waiting") return;
  const key = `${run.number} ${JSON.stringify(run.questions)}`;
  if (container.dataset.key === key && container.childElementCount) return;
  container.dataset.key = key;
  container.replaceChildren(waitingCard(run.questions, (replies) => handlers.resume(run, replies)));
}

function drawRuns() {
  const key = page.runs.map((run) => `${run.number}${run.state}${run === page.shown}`).join();
  const list = byId("runs");
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  const focusedIndex = [...list.querySelectorAll("button")].indexOf(document.activeElement);
  list.replaceChildren(...page.runs.map((run) => element("li", {},
    element("button", { type: "button", class: "link", "aria-current": run === page.shown && "true", onclick: () => showRun(run) }, run.question),
    element("small", {}, ` ${run.state}`))));
  list.querySelectorAll("button")[focusedIndex]?.focus();
  show(byId("earlier"), page.runs.length > 0);
}

export { scheduleDraw, handlers, draw, showRun, page, showError };
