// What each step was called with and found: its evidence, its rounds of feedback, its error.

import { counted, duration, element } from "./dom.js";
import { told } from "./graph.js";

const LONG = 900;

/** One section a step. */
function drawSteps(place, run) {
  place.replaceChildren(...run.steps.map((step) => section(step, run)));
}

function section(step, run) {
  const evidence = run.answer ? run.answer.evidence.filter((item) => item.step === step.id) : [];
  const cited = new Set(run.answer ? run.answer.citations : []);
  return element("section", { id: `step-${step.id}`, class: "found", tabindex: "-1", "data-status": step.status },
    element("h4", {}, `${step.id} ${step.tool}`, element("span", { class: "state" }, told(step))),
    element("code", { class: "call" }, step.call),
    step.error ? element("p", { class: "alert" }, step.error) : null,
    called(step),
    rounds(step.reports),
    ...evidence.map((item) => card(item, cited.has(item.id))),
    rest(step, evidence),
  );
}

/** The arguments as the tool got them: what the plan refers to stands here itself. */
function called(step) {
  if (!step.outcome) return null;
  const given = Object.entries(step.outcome.arguments);
  if (!given.length) return null;
  return element("dl", { class: "arguments" }, ...given.flatMap(([name, value]) => [
    element("dt", {}, name), element("dd", {}, typeof value === "string" ? value : JSON.stringify(value)),
  ]));
}

function rounds(reports) {
  const made = reports.filter((report) => report.event === "feedback_round");
  const others = reports.filter((report) => !String(report.event).startsWith("feedback_"));
  const last = reports.find((report) => report.event === "feedback_ended");
  if (!reports.length) return null;
  const most = Math.max(1, ...made.map((round) => round.total));
  const row = (round) => {
    const bar = element("span", { class: "bar" });
    bar.style.width = `${(100 * round.total) / most}%`;
    return element("tr", {},
      ...[round.round, round.search, round.found, round.judged, round.relevant].map((value) => element("td", {}, String(value))),
      element("td", { class: "grown" }, String(round.total), bar),
      element("td", {}, duration(round.milliseconds)),
      round.note ? element("td", {}, round.note) : null);
  };
  return element("div", { class: "rounds" },
    made.length ? element("table", {},
      element("caption", {}, "Rounds of relevance feedback"),
      element("thead", {}, element("tr", {}, ...["round", "search", "found", "judged", "relevant", "in all", "time"].map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...made.map(row))) : null,
    last ? element("p", { class: "note" }, `Ended: ${String(last.reason).replaceAll("_", " ")}. Judge: ${last.judge}.`) : null,
    ...others.map((report) => element("pre", {}, JSON.stringify(report, null, 1))));
}

function card(item, cited) {
  const long = item.text.length > LONG;
  const text = element("div", long ? { class: "text long", tabindex: "0", role: "region", "aria-label": `Text of ${item.id}` } : { class: "text" }, item.text);
  return element("article", { id: `evidence-${item.id}`, class: "evidence", tabindex: "-1", "data-cited": String(cited) },
    element("header", {},
      element("b", {}, item.id),
      item.source ? element("span", { class: "source" }, item.source) : null,
      cited ? element("a", { href: `#cited-${item.id}`, "aria-label": `Where the answer cites ${item.id}` }, "cited ↑") : element("span", {}, "not cited")),
    text);
}

/** All results of a step as it returned them: more than is evidence, where others needed it. */
function rest(step, evidence) {
  if (!step.outcome || !step.outcome.rows.length) return null;
  const more = step.outcome.rows.length - evidence.length;
  const label = more > 0 ? `All ${step.outcome.rows.length} results, ${more} of them no evidence` : `${counted(step.outcome.rows.length, "result")} as returned`;
  return element("details", {}, element("summary", {}, label), element("pre", { tabindex: "0" }, JSON.stringify(step.outcome.rows, null, 1)));
}

export { drawSteps };
