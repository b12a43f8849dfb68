// The answer, its citations linked to the evidence, what is missing, and who worded it.

import { byId, duration, element, show } from "./dom.js";

function drawAnswer(run) {
  const place = byId("answer");
  place.dataset.state = run.state;
  place.replaceChildren(...(run.answer ? linked(run.answer) : [run.text]));
  const missing = run.answer ? run.answer.missing : [];
  byId("missing").replaceChildren(...missing.map((text) => element("li", {}, text)));
  show(byId("missing"), missing.length > 0);
  byId("worded").textContent = run.answer ? worded(run.answer) : "";
}

/** The text, with a link for every citation that was checked. */
function linked(answer) {
  const checked = new Set(answer.citations);
  const seen = new Set();
  return answer.text.split(/(\[E\d+\])/).map((part) => {
    const id = part.slice(1, -1);
    if (!/^\[E\d+\]$/.test(part) || !checked.has(id)) return part;
    const attributes = { href: `#evidence-${id}`, class: "citation", id: seen.has(id) ? null : `cited-${id}` };
    seen.add(id);
    return element("a", attributes, part);
  });
}

function worded(answer) {
  const { usage } = answer;
  return `Planned by ${answer.planner.name} in ${duration(usage.planning_ms)}, looked up in ${duration(usage.execution_ms)}, worded by ${answer.generator} in ${duration(usage.generation_ms)}.`;
}

/** Who planned, and why it was another than was asked. */
function plannedBy(planner) {
  if (!planner) return "";
  const attempts = planner.attempts > 1 ? `, in ${planner.attempts} attempts` : "";
  return `Written by the planner ${planner.name}${attempts}.${planner.fallback ? ` Fell back: ${planner.fallback}` : ""}`;
}

export { drawAnswer, plannedBy };
