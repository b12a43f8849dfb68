// Draws a section for each step: its arguments, evidence, rounds of feedback and error.

import { countText, duration, element } from "./dom.js";
import { stateText } from "./graph.js";

const MAX_UNSCROLLED_CHARACTERS = 900;
const ROUND_FIELDS = ["round", "found", "judged", "relevant", "total", "milliseconds"];

/** Draw a section for each step; replace only changed sections. */
function drawSteps(container, run) {
  run.steps.forEach((step, index) => {
    const key = JSON.stringify([step.status, step.reports.length, Boolean(run.answer), run.number]);
    const existing = container.children[index];
    if (existing?.dataset.key === key) return;
    const replacement = section(step, run);
    replacement.dataset.key = key;
    if (!existing) return container.append(replacement);
    const hadFocus = existing === document.activeElement;
    existing.replaceWith(replacement);
    if (hadFocus) replacement.focus({ preventScroll: true });
  });
  while (container.children.length > run.steps.length) container.lastChild.remove();
}

function section(step, run) {
  const evidence = run.answer ? run.answer.evidence.filter((item) => item.step === step.id) : [];
  const cited = new Set(run.answer ? run.answer.citations : []);
  return element("section", { id: `step-${step.id}`, class: "found", tabindex: "-1", "data-status": step.status },
    element("h4", {}, element("bdi", {}, `${step.id} ${step.tool}`), element("span", { class: "state" }, stateText(step))),
    element("code", { class: "call" }, step.call),
    step.error ? element("p", { class: "alert" }, step.error) : null,
    argumentList(step),
    progress(step.reports),
    // These quotations are provisional: the answer's evidence replaces them.
    ...(run.answer ? [] : step.sentences).map((sentence) => element("p", { class: "note" }, sentence)),
    ...evidence.map((item) => evidenceCard(item, cited.has(item.id))),
    allResults(step, evidence));
}

/** Return the arguments that the tool got, in which values have replaced references. */
function argumentList(step) {
  const values = Object.entries(step.outcome?.arguments ?? {});
  if (!values.length) return null;
  return element("dl", { class: "arguments" }, ...values.flatMap(([name, value]) => [
    element("dt", {}, name), element("dd", {}, typeof value === "string" ? value : JSON.stringify(value)),
  ]));
}

function isRound(report) {
  return report.event === "feedback_round" && ROUND_FIELDS.every((name) => typeof report[name] === "number");
}

function progress(reports) {
  if (!reports.length) return null;
  const roundReports = reports.filter(isRound);
  const endReport = reports.find((report) => report.event === "feedback_ended");
  const others = reports.filter((report) => !isRound(report) && report !== endReport);
  const headings = ["round", "search", "found", "judged", "relevant", "in all", "time"];
  const maxTotal = Math.max(1, ...roundReports.map((round) => round.total));
  return element("div", { class: "rounds", tabindex: "0", role: "group", "aria-label": "Progress that the tool reported" },
    roundReports.length ? element("table", {},
      element("caption", {}, "Rounds of relevance feedback"),
      element("thead", {}, element("tr", {}, ...headings.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...roundReports.map((round) => roundRow(round, maxTotal)))) : null,
    endReport ? element("p", { class: "note" }, `Ended: ${String(endReport.reason).replaceAll("_", " ")}. Judge: ${endReport.judge}.`) : null,
    ...others.map((report) => element("pre", { tabindex: "0" }, JSON.stringify(report, null, 1))));
}

function roundRow(round, maxTotal) {
  const bar = element("span", { class: "bar" });
  bar.style.width = `${(100 * round.total) / maxTotal}%`;
  const { search, found, judged, relevant } = round;
  return element("tr", {},
    ...[round.round, search, found, judged, relevant].map((value) => element("td", {}, String(value))),
    element("td", { class: "grown" }, String(round.total), bar),
    element("td", {}, duration(round.milliseconds)),
    round.note ? element("td", {}, round.note) : null);
}

function evidenceCard(item, cited) {
  const scrolls = { tabindex: "0", role: "region", "aria-label": `Text of ${item.id}` };
  const text = element("div", item.text.length > MAX_UNSCROLLED_CHARACTERS ? { class: "text long", ...scrolls } : { class: "text" }, item.text);
  return element("article", { id: `evidence-${item.id}`, class: "evidence", tabindex: "-1", "data-cited": String(cited) },
    element("header", {},
      element("b", {}, item.id),
      item.source ? element("bdi", { class: "source" }, item.source) : null,
      cited ? element("a", { href: `#cited-${item.id}`, "aria-label": `Where the answer cites ${item.id}` }, "cited ↑") : element("span", {}, "not cited")),
    text);
}

/** Return all results of a step, including results that are not evidence. */
function allResults(step, evidence) {
  const rows = step.outcome?.rows ?? [];
  if (!rows.length) return null;
  const otherCount = rows.length - evidence.length;
  const label = otherCount > 0 ? `All ${rows.length} results, ${otherCount} of them no evidence` : `${countText(rows.length, "result")} as returned`;
  return element("details", {}, element("summary", {}, label), element("pre", { tabindex: "0" }, JSON.stringify(rows, null, 1)));
}

export { drawSteps };
