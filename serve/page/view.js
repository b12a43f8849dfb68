// The shown run, and the list of all runs of this page.

import { isApproval, priced, waitingCard } from "./approval.js";
import { drawAnswer, plannedBy } from "./answer.js";
import { byId, counted, duration, element, show } from "./dom.js";
import { drawGraph, drawTimeline } from "./graph.js";
import { drawSteps } from "./steps.js";

/** Maximum number of runs, each of which holds all its evidence. */
const KEPT = 50;
const page = {
  runs: [], // the latest first
  shown: null, // the shown run
  asking: null, // the run at work: {run, stop}
  about: { scopes: {}, retain: "off", corrections: false, questions: [] },
};
let graph = null;
let due = false;
let numbered = 0;
/** The handlers of a run's buttons, which another module sets. */
const does = {};

function look(run) {
  run.number ??= ++numbered;
  page.shown = run;
  if (!page.runs.includes(run)) page.runs = [run, ...page.runs].slice(0, KEPT);
  graph?.close();
  graph = null;
  byId("waiting").replaceChildren();
  byId("graph").replaceChildren();
  show(byId("examples"), false);
  show(byId("run"), true);
  byId("asked").textContent = run.question;
  byId("asked").title = run.question.length > 300 ? run.question : "";
  tell(run.error);
  draw();
}

/** Draw the shown run with the next frame, once for all changes until then. */
function changed() {
  if (due) return;
  due = true;
  // A page in the background has no frames.
  const soon = document.hidden ? (draws) => setTimeout(draws, 100) : requestAnimationFrame;
  soon(() => {
    due = false;
    draw();
  });
}

function draw() {
  drawRuns();
  const run = page.shown;
  if (!run) return;
  const own = page.asking?.run === run;
  byId("run").dataset.state = run.state;
  text("planner", plannedBy(run.planner));
  text("price", priced(run.planner?.price));
  if (!graph && run.steps.length) graph = drawGraph(byId("graph"), run.steps, toStep);
  graph?.update(run);
  drawSteps(byId("steps"), run);
  drawAnswer(run);
  show(byId("timeline"), Boolean(run.answer));
  if (run.answer) drawTimeline(byId("timeline"), run);
  drawWaiting(run);
  show(byId("save"), Boolean(run.answer));
  show(byId("copy"), Boolean(run.answer && navigator.clipboard));
  show(byId("approve"), mayKeep(run));
  drawCorrection(run);
  show(byId("again"), Boolean(run.asked) && ["failed", "stopped"].includes(run.state));
  show(byId("resume"), run.state === "interrupted" && !page.asking);
  const kept = run.answer?.retained;
  text("kept", kept ? `As a case: ${kept.outcome}.${kept.reason ? ` ${kept.reason}` : ""}` : "");
  show(byId("stop"), own);
  byId("send").setAttribute("aria-disabled", String(Boolean(page.asking)));
  text("status", statusOf(run));
}

/** Set a text only if it differs: live regions are read out at every change. */
function text(id, value) {
  if (byId(id).textContent !== value) byId(id).textContent = value;
}

/** Answers to questions with a history or a context are not kept. */
function mayKeep(run) {
  const alone = run.asked && !run.asked.history && !Object.keys(run.asked.context).length;
  return Boolean(alone && run.answer && page.about.retain !== "off" && !run.answer.retained);
}

/** Set the plan to correct once for each run, so that typed text stays. */
function drawCorrection(run) {
  const place = byId("correct");
  show(place, Boolean(page.about.corrections && run.asked && run.steps.length));
  if (place.dataset.run === String(run.number) || !run.steps.length) return;
  place.dataset.run = run.number;
  place.open = false;
  byId("right-plan").value = run.steps.map((step) => `${step.id} = ${step.call}`).join("\n");
  text("corrected", "");
}

function statusOf(run) {
  const running = run.steps.filter((step) => step.status === "running").map((step) => step.id);
  switch (run.state) {
    case "planning": return "Planning…";
    case "running": return running.length ? `Running ${running.join(", ")}…` : "Running…";
    case "wording": return "Writing the answer…";
    case "waiting":
      if (run.questions.length > 1) return `${run.questions.length} questions wait for replies.`;
      return isApproval(run.questions[0]?.question) ? "The plan waits for approval." : "A tool waits for a reply.";
    case "interrupted": return "The run was interrupted, and can be resumed.";
    case "stopped": return "Stopped.";
    case "failed": return "";
    default: return run.took
      ? `Answered in ${duration(run.took)}, with ${counted(run.answer.citations.length, "citation")}.`
      : "A saved run: nothing was run again.";
  }
}

function tell(error) {
  text("error", error);
  show(byId("error"), Boolean(error));
}

function toStep(id) {
  const place = byId(`step-${id}`);
  place.scrollIntoView({ block: "nearest" });
  place.focus({ preventScroll: true });
}

/** The card of all open questions. */
function drawWaiting(run) {
  const place = byId("waiting");
  show(place, run.state === "waiting");
  if (run.state !== "waiting") return;
  const key = `${run.number} ${JSON.stringify(run.questions)}`;
  if (place.dataset.key === key && place.childElementCount) return;
  place.dataset.key = key;
  place.replaceChildren(waitingCard(run.questions, (replies) => does.resume(run, replies)));
}

function drawRuns() {
  const key = page.runs.map((run) => `${run.number}${run.state}${run === page.shown}`).join();
  const list = byId("runs");
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  const focused = [...list.querySelectorAll("button")].indexOf(document.activeElement);
  list.replaceChildren(...page.runs.map((run) => element("li", {},
    element("button", { type: "button", class: "link", "aria-current": run === page.shown && "true", onclick: () => look(run) }, run.question),
    element("small", {}, ` ${run.state}`))));
  list.querySelectorAll("button")[focused]?.focus();
  show(byId("earlier"), page.runs.length > 0);
}

export { changed, does, draw, look, page, tell };
