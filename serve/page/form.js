// Makes a request from the form's fields: scope, context, thread, history and token.

import { byId, element, show } from "./dom.js";
import { Refused, getJson } from "./service.js";
import { page } from "./view.js";

let aboutPromise = null;

const token = () => byId("token").value.trim();

function scope() {
  const fields = [...byId("scopes").querySelectorAll("[data-field]")];
  return Object.fromEntries(fields.filter((field) => field.value).map((field) => [field.dataset.field, field.value]));
}

function context() {
  const text = byId("context").value.trim();
  if (!text) return {};
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Refused(0, `The context is not JSON: ${error.message}`);
  }
}

/** Return the last ten answered questions with the same token and scope, the earliest first. */
function history(request) {
  const userScope = JSON.stringify(request.scope);
  const sameUser = page.runs.filter((run) => run.request && run.answer && run.token === token() && JSON.stringify(run.request.scope) === userScope);
  return sameUser.slice(0, 10).reverse().map((run) => ({ question: run.question, answer: run.answer.text }));
}

function makeRequest(question) {
  const request = { question, context: context(), scope: scope() };
  if (byId("thread").value) request.thread_id = byId("thread").value;
  if (byId("first").checked) {
    request.approve = "always";
    // A run that waits for approval needs a thread.
    request.thread_id ??= `page-${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
  }
  if (byId("follow").checked) request.history = history(request);
  return request;
}

/** Load the description of the service once, and again after a failure or with another token. */
async function loadAbout(reload = false) {
  if (reload || !aboutPromise) {
    aboutPromise = getJson("about", token()).then(showAbout);
    aboutPromise.catch(() => { aboutPromise = null; });
  }
  return aboutPromise;
}

function showAbout(about) {
  page.about = about;
  byId("about").textContent = `${about.domain}: ${about.description} Planner: ${about.planner}. Generator: ${about.generator}.`;
  byId("examples").replaceChildren(...about.questions.slice(0, 4).map((question) => element("li", {},
    element("button", { type: "button", class: "link", "data-question": question }, question))));
  const chosenScope = scope();
  byId("scopes").replaceChildren(...Object.entries(about.scopes).map(([field, values]) => element("label", {}, field,
    values.length
      ? element("select", { "data-field": field }, ...values.map((value) => element("option", { value }, value)))
      : element("input", { "data-field": field, required: true, autocomplete: "off", spellcheck: "false" }))));
  for (const field of byId("scopes").querySelectorAll("[data-field]")) {
    const value = chosenScope[field.dataset.field];
    if (value && (field.tagName === "INPUT" || about.scopes[field.dataset.field].includes(value))) field.value = value;
    // The user must see required fields.
    if (field.required) byId("more").open = true;
  }
  show(byId("token-field"), Boolean(token()));
}

export { loadAbout, makeRequest, scope, token };
