// The fields beside a question: scope, context, thread, earlier questions, token.

import { byId, element, show } from "./dom.js";
import { Refused, getJson } from "./service.js";
import { page } from "./view.js";

let learning = null;

const token = () => byId("token").value.trim();

function scope() {
  const fields = [...byId("scopes").querySelectorAll("[data-field]")];
  return Object.fromEntries(fields.filter((one) => one.value).map((one) => [one.dataset.field, one.value]));
}

function context() {
  const text = byId("context").value.trim();
  if (!text) return {};
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Refused(0, `The context is no JSON: ${error.message}`);
  }
}

/** The earlier turns of the same scope. */
function history(asked) {
  const asker = JSON.stringify(asked.scope);
  const own = page.runs.filter((run) => run.asked && run.answer && run.token === token() && JSON.stringify(run.asked.scope) === asker);
  return own.slice(0, 10).reverse().map((run) => ({ question: run.question, answer: run.answer.text }));
}

function request(question) {
  const asked = { question, context: context(), scope: scope() };
  if (byId("thread").value) asked.thread_id = byId("thread").value;
  if (byId("first").checked) {
    asked.approve = "always";
    // A run that waits is kept.
    asked.thread_id ??= `page-${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
  }
  if (byId("follow").checked) asked.history = history(asked);
  return asked;
}

/** Load the description of the service once; again after a failure, or with another token. */
async function learn(again = false) {
  if (again || !learning) {
    learning = getJson("about", token()).then(introduce);
    learning.catch(() => { learning = null; });
  }
  return learning;
}

function introduce(about) {
  page.about = about;
  byId("about").textContent = `${about.domain}: ${about.description} Planner: ${about.planner}. Generator: ${about.generator}.`;
  byId("examples").replaceChildren(...about.questions.slice(0, 4).map((question) => element("li", {},
    element("button", { type: "button", class: "link", "data-question": question }, question))));
  const before = scope();
  byId("scopes").replaceChildren(...Object.entries(about.scopes).map(([field, values]) => element("label", {}, field,
    values.length
      ? element("select", { "data-field": field }, ...values.map((value) => element("option", { value }, value)))
      : element("input", { "data-field": field, required: true, autocomplete: "off", spellcheck: "false" }))));
  for (const one of byId("scopes").querySelectorAll("[data-field]")) {
    const value = before[one.dataset.field];
    if (value && (one.tagName === "INPUT" || about.scopes[one.dataset.field].includes(value))) one.value = value;
    // Required fields are not hidden.
    if (one.required) byId("more").open = true;
  }
  show(byId("token-field"), Boolean(token()));
}

export { learn, request, scope, token };
