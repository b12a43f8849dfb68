// Asking, stopping, and resuming a run that waits or was interrupted.

import { byId, show } from "./dom.js";
import { learn, request, scope, token } from "./form.js";
import { failed, happened, newRun, planned, resumed, waits } from "./run.js";
import { Refused, postJson, streamed } from "./service.js";
import { changed, does, draw, look, page, tell } from "./view.js";

/** Show an error; ask for a token if one is required. */
function trouble(error) {
  if (error.status === 401) {
    show(byId("token-field"), true);
    byId("token").focus();
  }
  // Any other error is a defect of this page: the console shows it too.
  if (!(error instanceof Refused)) console.error(error);
  tell(error.message);
}

async function ask(question) {
  if (!question) return tell("Write a question.");
  if (page.asking) return tell("Another question is under way. Stop it, or wait for its answer.");
  tell("");
  let run;
  try {
    await learn();
    // Fields that have just appeared may need input.
    if (!byId("ask").reportValidity()) return;
    const asked = request(question);
    run = { ...newRun(question, asked), token: token() };
  } catch (error) {
    return trouble(error);
  }
  await underWay(run, async (signal) => {
    look(run);
    for await (const event of streamed("ask/stream", run.token, run.asked, signal)) {
      happened(run, event);
      changed();
    }
    if (["planning", "running", "wording"].includes(run.state)) throw new Refused(0, "The stream ended before the answer.");
  });
}

/** Resume a run, with the replies by their questions' ids if it waits for replies. */
async function resume(run, replies) {
  if (page.asking) return tell("Another question is under way. Stop it, or wait for its answer.");
  tell("");
  const { state } = run;
  const statuses = run.steps.map((step) => step.status);
  await underWay(run, async (signal) => {
    resumed(run);
    draw();
    byId("answer").focus();
    // Without replies, JSON leaves the field out.
    const body = { scope: run.asked?.scope ?? scope(), replies };
    let answer;
    try {
      answer = await postJson(`threads/${encodeURIComponent(run.thread)}/resume`, token(), body, signal);
    } catch (error) {
      // The replies stay in their fields, and can be sent again.
      if (error instanceof Refused) {
        run.state = state;
        run.steps.forEach((step, at) => { step.status = statuses[at]; });
      }
      throw error;
    }
    // Another plan than the one that was shown: it was edited.
    const calls = (steps) => JSON.stringify(steps.map((step) => step.call));
    if (calls(answer.plan_steps) !== calls(run.steps)) {
      planned(run, answer.plan_steps, answer.planner);
      if (page.shown === run) look(run);
    }
    if (answer.questions) waits(run, answer.questions);
    else happened(run, { name: "done", data: answer });
  });
}

/** Work on a run until it ends, is stopped, or fails. */
async function underWay(run, work) {
  const stop = new AbortController();
  page.asking = { run, stop };
  run.began = performance.now();
  try {
    await work(stop.signal);
  } catch (error) {
    const waits = ["waiting", "interrupted"].includes(run.state);
    if (error.name === "AbortError") failed(run, "", "stopped");
    else if (!waits) failed(run, error.message);
    // A run shows its own error.
    if (error.name !== "AbortError" && (page.shown === run || error.status === 401)) trouble(error);
  } finally {
    run.took += performance.now() - run.began;
    page.asking = null;
    const focused = document.activeElement === byId("stop");
    draw();
    if (focused) byId("question").focus();
    byId("follow").disabled = !page.runs.some((one) => one.asked && one.answer);
  }
}

function stop() {
  page.asking?.stop.abort();
}

does.resume = resume;

export { ask, resume, stop, trouble };
