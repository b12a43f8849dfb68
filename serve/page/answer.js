// Draws the answer with links from citations to evidence, the missing parts, and the times of the run.

import { byId, duration, element, show } from "./dom.js";

function drawAnswer(run) {
  const container = byId("answer");
  if (run.answer) container.replaceChildren(...withCitationLinks(run.answer));
  else appendText(container, run.text);
  const missing = run.answer ? run.answer.missing : [];
  byId("missing").replaceChildren(...missing.map((text) => element("li", {}, text)));
  show(byId("missing"), missing.length > 0);
  byId("worded").textContent = run.answer ? timings(run.answer) : "";
}

/** Show a growing text; append only the new part, since an answer comes in thousands of pieces. */
function appendText(container, text) {
  const textNode = container.childNodes.length === 1 && container.firstChild.nodeType === Node.TEXT_NODE ? container.firstChild : null;
  if (textNode && text.startsWith(textNode.data)) textNode.appendData(text.slice(textNode.length));
  else container.replaceChildren(text);
}

/** Return the parts of the answer's text, with a link for every checked citation. */
function withCitationLinks(answer) {
  const checked = new Set(answer.citations);
  const linkedIds = new Set();
  return answer.text.split(/(\[E\d+\])/).map((part) => {
    const id = part.slice(1, -1);
    // A <bdi> isolates a part, so that a change of the writing direction ends with the part.
    if (!/^\[E\d+\]$/.test(part) || !checked.has(id)) return element("bdi", {}, part);
    const attributes = { href: `#evidence-${id}`, class: "citation", id: linkedIds.has(id) ? null : `cited-${id}` };
    linkedIds.add(id);
    return element("a", attributes, part);
  });
}

function timings(answer) {
  const { usage, generator } = answer;
  const howWritten = generator === "extractive" ? "quoted, without a language model," : `worded by ${generator}`;
  return `Planned by ${answer.planner.name} in ${duration(usage.planning_ms)}, looked up in ${duration(usage.execution_ms)}, ${howWritten} in ${duration(usage.generation_ms)}.`;
}

/** Return a text about the planner, with the reason of a fallback, and a question to the user. */
function plannerText(planner) {
  if (!planner) return "";
  const attempts = planner.attempts > 1 ? `, in ${planner.attempts} attempts` : "";
  const fallback = planner.fallback ? ` Fell back: ${planner.fallback}` : "";
  return `Written by the planner ${planner.name}${attempts}.${fallback}${clarification(planner)}`;
}

/** Return a question to the user if the planner is not sure of its plan; else an empty text. */
function clarification(planner) {
  if (!planner.asks_back) return "";
  const alternative = planner.alternatives?.[0];
  const question = alternative ? `Did you mean this instead? ${String(alternative).replaceAll("\n", "; ")}` : "Please ask in other words.";
  return ` It is not sure of this plan. ${question}`;
}

export { drawAnswer, plannerText };
