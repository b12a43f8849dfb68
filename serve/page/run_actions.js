// Opens files and threads; saves, copies and approves answers; corrects plans.

import { reportError } from "./asking.js";
import { byId, element } from "./dom.js";
import { token } from "./form.js";
import { fileText, openRun, savedRun } from "./run.js";
import { Refused, getJson, postJson } from "./service.js";
import { draw, showRun, page } from "./view.js";

/** Maximum size of a saved run in bytes, as in PATH_LIMITS of the service. */
const MAX_BYTES = 8 * 1024 * 1024;

async function openFile(file) {
  if (!file) return;
  try {
    if (file.size > MAX_BYTES) throw new Refused(0, `${file.name} is larger than a saved run can be.`);
    const { question, answer, plan_steps: steps } = await postJson("runs/read", token(), await file.text());
    showRun(savedRun(question || file.name, answer, steps));
  } catch (error) {
    reportError(error);
  }
}

async function openThread(name) {
  try {
    const thread = await getJson(`threads/${encodeURIComponent(name)}`, token());
    if (thread.status === "running") throw new Refused(0, "The thread is at work: open it again when it has ended.");
    showRun(thread.answer ? savedRun(thread.question, thread.answer, thread.plan_steps, name) : openRun(thread));
  } catch (error) {
    reportError(error);
  }
}

function save() {
  const url = URL.createObjectURL(new Blob([fileText(page.shown)], { type: "application/json" }));
  element("a", { href: url, download: `run-${page.shown.answer.run_id.slice(0, 8) || "saved"}.json` }).click();
  // The browser reads the URL only after the handlers of the click.
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

async function copy() {
  await navigator.clipboard.writeText(page.shown.answer.text);
  byId("kept").textContent = "Copied.";
}

async function approve() {
  const run = page.shown;
  try {
    run.answer.retained = await postJson(`runs/${run.answer.run_id}/approve`, token(), {});
    draw();
  } catch (error) {
    reportError(error);
  }
}

/** Send the right plan for the shown run's question. */
async function correct(event) {
  event.preventDefault();
  const { question, context, history } = page.shown.request;
  const plan = byId("right-plan").value.trim();
  const body = history ? { question, plan, context, history } : { question, plan, context };
  try {
    const { outcome } = await postJson("corrections", page.shown.token, body);
    byId("corrected").textContent = `As an annotated message: ${outcome}.`;
  } catch (error) {
    byId("corrected").textContent = "";
    reportError(error);
  }
}

export { approve, copy, correct, openFile, openThread, save };
