// Asks questions, stops runs, and resumes runs that wait or were interrupted.

import { byId, show } from "./dom.js";
import { loadAbout, makeRequest, scope, token } from "./form.js";
import { endWithoutAnswer, applyEvent, newRun, setPlan, setResumed, setWaiting } from "./run.js";
import { Refused, postJson, streamEvents } from "./service.js";
import { scheduleDraw, handlers, draw, showRun, page, showError } from "./view.js";

/** Show an error; ask for a token if one is required. */
function reportError(error) {
  if (error.status === 401) {
    show(byId("token-field"), true);
    byId("token").focus();
  }
  // Any other error is a defect of this page: the console shows it too.
  if (!(error instanceof Refused)) console.error(error);
  showError(error.message);
}

async function ask(question) {
  if (!question) return showError("Write a question.");
  if (page.asking) return showError("Another question is under way. Stop it, or wait for its answer.");
  showError("");
  let run;
  try {
    await loadAbout();
    // Scope fields that have just appeared may need input.
    if (!byId("ask").reportValidity()) return;
    const request = makeRequest(question);
    run = { ...newRun(question, request), token: token() };
  } catch (error) {
    return reportError(error);
  }
  await trackRun(run, async (signal) => {
    showRun(run);
    for await (const event of streamEvents("ask/stream", run.token, run.request, signal)) {
      applyEvent(run, event);
      scheduleDraw();
    }
    if (["planning", "running", "wording"].includes(run.state)) throw new Refused(0, "The stream ended before the answer.");
  });
}

/** Resume a run; `replies`, by question id, are for a run that waits for them. */
async function resume(run, replies) {
  if (page.asking) return showError("Another question is under way. Stop it, or wait for its answer.");
  showError("");
  const { state } = run;
  const statuses = run.steps.map((step) => step.status);
  await trackRun(run, async (signal) => {
    setResumed(run);
    draw();
    byId("answer").focus();
    // Without replies, JSON leaves the field out.
    const body = { scope: run.request?.scope ?? scope(), replies };
    let answer;
    try {
      answer = await postJson(`threads/${encodeURIComponent(run.thread)}/resume`, token(), body, signal);
    } catch (error) {
      // The replies stay in their fields, so that the user can send them again.
      if (error instanceof Refused) {
        run.state = state;
        run.steps.forEach((step, index) => { step.status = statuses[index]; });
      }
      throw error;
    }
    // A plan that differs from the shown plan was edited.
    const calls = (steps) => JSON.stringify(steps.map((step) => step.call));
    if (calls(answer.plan_steps) !== calls(run.steps)) {
      setPlan(run, answer.plan_steps, answer.planner);
      if (page.shown === run) showRun(run);
    }
    if (answer.questions) setWaiting(run, answer.questions);
    else applyEvent(run, { name: "done", data: answer });
  });
}

/** Call `execute` for a run, and record its time and whether it is stopped or fails. */
async function trackRun(run, execute) {
  const stop = new AbortController();
  page.asking = { run, stop };
  run.startedAt = performance.now();
  try {
    await execute(stop.signal);
  } catch (error) {
    const isWaiting = ["waiting", "interrupted"].includes(run.state);
    if (error.name === "AbortError") endWithoutAnswer(run, "", "stopped");
    else if (!isWaiting) endWithoutAnswer(run, error.message);
    // The error of a run that is not shown appears with that run.
    if (error.name !== "AbortError" && (page.shown === run || error.status === 401)) reportError(error);
  } finally {
    run.elapsed += performance.now() - run.startedAt;
    page.asking = null;
    const hadFocus = document.activeElement === byId("stop");
    draw();
    if (hadFocus) byId("question").focus();
    byId("follow").disabled = !page.runs.some((other) => other.request && other.answer);
  }
}

function stop() {
  page.asking?.stop.abort();
}

handlers.resume = resume;

export { ask, resume, stop, reportError };
