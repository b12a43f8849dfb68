// The page: asks, shows a run as it happens, opens those that were kept.

import { drawAnswer, plannedBy } from "./answer.js";
import { byId, duration, element, show } from "./dom.js";
import { drawGraph, drawTimeline } from "./graph.js";
import { failed, fileOf, happened, newRun, savedRun } from "./run.js";
import { Refused, getJson, postJson, streamed } from "./service.js";
import { drawSteps } from "./steps.js";

let about = { scopes: {}, retain: "off" };
let shown = null; // the run that is looked at
let asking = null; // the one under way: {run, stop}
let graph = null;
let drawnSteps = ""; // what of the steps is drawn
const earlier = [];

// ── What the page shows ──

function look(run) {
  shown = run;
  if (graph) graph.close();
  graph = null;
  drawnSteps = "";
  byId("asked").textContent = run.question;
  show(byId("run"), true);
  show(byId("examples"), false);
  byId("waiting").replaceChildren();
  tell("");
  draw();
}

function draw() {
  const run = shown;
  byId("run").dataset.state = run.state;
  byId("planner").textContent = plannedBy(run.planner);
  if (!graph && run.steps.length) graph = drawGraph(byId("graph"), run.steps, toStep);
  if (graph) graph.update(run);
  else byId("graph").replaceChildren();
  // Drawn anew, a section closes what was opened in it.
  const steps = stepsOf(run);
  if (steps !== drawnSteps) drawSteps(byId("steps"), run);
  drawnSteps = steps;
  drawAnswer(run);
  show(byId("timeline"), Boolean(run.answer));
  if (run.answer) drawTimeline(byId("timeline"), run);
  drawWaiting(run);
  show(byId("save"), Boolean(run.answer));
  show(byId("approve"), Boolean(run.answer && run.own && about.retain !== "off" && !run.answer.retained));
  byId("status").textContent = statusOf(run);
  if (run.error) tell(run.error);
}

const stepsOf = (run) => JSON.stringify([run.steps.map((step) => [step.status, step.reports.length]), Boolean(run.answer)]);

function statusOf(run) {
  const running = run.steps.filter((step) => step.status === "running").map((step) => step.id);
  switch (run.state) {
    case "planning": return "Planning…";
    case "running": return running.length ? `Looking up: ${running.join(", ")}…` : "Looking up…";
    case "wording": return "Wording the answer…";
    case "waiting": return "A tool waits for a reply.";
    case "stopped": return "Stopped.";
    case "failed": return "";
    default: return run.took ? `Answered in ${duration(run.took)}.` : "A kept run: nothing was run again.";
  }
}

function tell(error) {
  byId("error").textContent = error;
  show(byId("error"), Boolean(error));
}

/** Say what went wrong; where a token is wanted, ask for it. */
function trouble(error) {
  if (error.status === 401) {
    show(byId("token-field"), true);
    byId("token").focus();
  }
  // What is no refusal is a defect of this page: the console has it too.
  if (!(error instanceof Refused)) console.error(error);
  tell(error.message);
}

function toStep(id) {
  const place = byId(`step-${id}`);
  place.scrollIntoView({ block: "nearest" });
  place.focus({ preventScroll: true });
}

/** What a tool waits to be told, with a field for the reply to the first question. */
function drawWaiting(run) {
  const place = byId("waiting");
  show(place, run.state === "waiting");
  if (run.state !== "waiting") return place.replaceChildren();
  if (place.childElementCount) return;
  const reply = element("input", { required: true, autocomplete: "off" });
  const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  place.replaceChildren(
    ...run.questions.map((question) => element("p", {}, text(question))),
    element("form", { class: "row", onsubmit: (event) => { event.preventDefault(); resume(run, reply.value); } },
      element("label", {}, "Reply ", reply), element("button", { type: "submit" }, "Reply")));
}

function remember(run) {
  earlier.unshift(run);
  byId("runs").prepend(element("li", {}, element("button", { type: "button", class: "link", onclick: () => look(run) }, run.question)));
  show(byId("earlier"), true);
  byId("follow").disabled = !earlier.some((one) => one.own && one.answer);
}

// ── What the page asks ──

const token = () => byId("token").value.trim();

function scope() {
  const fields = [...byId("scopes").querySelectorAll("[data-field]")];
  return Object.fromEntries(fields.filter((one) => one.value).map((one) => [one.dataset.field, one.value]));
}

function request(question) {
  const text = byId("context").value.trim();
  let context = {};
  if (text) {
    try {
      context = JSON.parse(text);
    } catch (error) {
      throw new Refused(0, `The context is no JSON: ${error.message}`);
    }
  }
  const asked = { question, context, scope: scope() };
  if (byId("thread").value) asked.thread_id = byId("thread").value;
  if (byId("follow").checked) {
    const turns = earlier.filter((run) => run.own && run.answer).slice(0, 10).reverse();
    asked.history = turns.map((run) => ({ question: run.question, answer: run.answer.text }));
  }
  return asked;
}

async function ask(question) {
  if (asking) return;
  tell("");
  let asked;
  try {
    asked = request(question);
  } catch (error) {
    return trouble(error);
  }
  const run = Object.assign(newRun(question, asked.thread_id), { own: true });
  await under_way(run, async (signal) => {
    look(run);
    for await (const event of streamed("ask/stream", token(), asked, signal)) {
      happened(run, event);
      if (shown === run) draw();
    }
    if (!["answered", "waiting", "failed"].includes(run.state)) failed(run, "The stream ended before the answer.");
  });
  if (run.answer) remember(run);
}

async function resume(run, reply) {
  await under_way(run, async (signal) => {
    run.state = "running";
    const path = `threads/${encodeURIComponent(run.thread)}/resume`;
    const answer = await postJson(path, token(), { scope: scope(), reply }, signal);
    if (answer.questions) Object.assign(run, { state: "waiting", questions: answer.questions });
    else happened(run, { name: "done", data: answer });
  });
  if (run.answer) remember(run);
}

/** Work on a run until it ends, is stopped, or fails. */
async function under_way(run, work) {
  const stop = new AbortController();
  asking = { run, stop };
  byId("send").disabled = true;
  show(byId("stop"), true);
  byId("waiting").replaceChildren();
  try {
    await work(stop.signal);
    run.took = performance.now() - run.began;
  } catch (error) {
    if (error.name === "AbortError") failed(run, "", "stopped");
    else {
      failed(run, error.message);
      trouble(error);
    }
  } finally {
    asking = null;
    byId("send").disabled = false;
    show(byId("stop"), false);
    if (shown === run) draw();
  }
}

// ── Runs that were kept ──

async function openFile(file) {
  if (!file) return;
  try {
    const run = savedRun(file.name, await postJson("runs/read", token(), await file.text()));
    look(run);
    remember(run);
  } catch (error) {
    trouble(error);
  }
}

async function openThread(name) {
  try {
    const thread = await getJson(`threads/${encodeURIComponent(name)}`, token());
    if (thread.status === "waiting") {
      const run = Object.assign(newRun(thread.question, name), { own: true, state: "waiting", questions: thread.questions });
      return look(run);
    }
    if (!thread.answer) throw new Refused(0, `The thread is ${thread.status}: it has no answer yet.`);
    const whole = newRun(thread.question);
    whole.answer = thread.answer;
    const run = savedRun(thread.question, await postJson("runs/read", token(), fileOf(whole)), name);
    look(run);
    remember(run);
  } catch (error) {
    trouble(error);
  }
}

function save() {
  const url = URL.createObjectURL(new Blob([fileOf(shown)], { type: "application/json" }));
  element("a", { href: url, download: `run-${shown.answer.run_id.slice(0, 8) || "saved"}.json` }).click();
  // A browser reads it after the click's handlers.
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

async function approve() {
  const run = shown;
  try {
    run.answer.retained = await postJson(`runs/${run.answer.run_id}/approve`, token(), {});
    draw();
    const { outcome, reason } = run.answer.retained;
    byId("status").textContent = `As a case: ${outcome}.${reason ? ` ${reason}` : ""}`;
  } catch (error) {
    trouble(error);
  }
}

// ── The page itself ──

async function learn() {
  try {
    about = await getJson("about", token());
  } catch (error) {
    return trouble(error);
  }
  tell("");
  byId("about").textContent = `${about.domain}: ${about.description} Planner: ${about.planner}. Generator: ${about.generator}.`;
  byId("examples").replaceChildren(...about.questions.slice(0, 4).map((question) => element("li", {},
    element("button", { type: "button", class: "link", onclick: () => { byId("question").value = question; ask(question); } }, question))));
  byId("scopes").replaceChildren(...Object.entries(about.scopes).map(([field, values]) => element("label", {}, field,
    values.length
      ? element("select", { "data-field": field }, ...values.map((value) => element("option", { value }, value)))
      : element("input", { "data-field": field, autocomplete: "off", spellcheck: "false" }))));
}

function listen() {
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    const question = byId("question").value.trim();
    if (question) ask(question);
  });
  byId("question").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    byId("ask").requestSubmit();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && asking) asking.stop.abort();
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select")) return;
    event.preventDefault();
    byId("question").focus();
  });
  byId("stop").addEventListener("click", () => asking?.stop.abort());
  byId("token").addEventListener("change", learn);
  byId("save").addEventListener("click", save);
  byId("approve").addEventListener("click", approve);
  byId("file").addEventListener("change", (event) => {
    openFile(event.target.files[0]);
    event.target.value = "";
  });
  byId("look").addEventListener("submit", (event) => {
    event.preventDefault();
    openThread(byId("look-thread").value.trim());
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    openFile(event.dataTransfer.files[0]);
  });
}

listen();
learn();
