// A run as the page knows it: made by a question or read from a file, changed by events.

/** What a saved run holds of an answer; the service adds what belongs to its request. */
const SAVED = [
  "text", "citations", "evidence", "missing", "plan", "planner", "generator", "steps", "usage", "run_id",
];

function newRun(question, thread = null) {
  return {
    question, thread, began: performance.now(),
    state: "planning", // then running, wording; at the end answered, waiting, stopped or failed
    steps: [], planner: null, text: "", answer: null, questions: [], error: "",
  };
}

/** A run that is over, of what the service read from a file. */
function savedRun(question, { answer, plan_steps: steps }, thread = null) {
  const run = newRun(question, thread);
  planned(run, steps, answer.planner);
  ended(run, answer);
  return run;
}

function planned(run, steps, planner) {
  run.state = "running";
  run.planner = planner;
  run.steps = steps.map((step) => ({
    ...step, status: "waiting", milliseconds: null, results: 0, error: "", reports: [], outcome: null,
  }));
}

function ended(run, answer) {
  run.state = "answered";
  run.answer = answer;
  run.text = answer.text;
  run.planner = answer.planner;
  for (const outcome of answer.steps) {
    const step = run.steps.find((one) => one.id === outcome.step);
    if (!step) continue;
    const { status, milliseconds, error, reports } = outcome;
    Object.assign(step, { status, milliseconds, error, reports, outcome, results: outcome.rows.length });
  }
}

/** Change a run by one event of its stream. */
function happened(run, { name, data }) {
  const step = run.steps.find((one) => one.id === data.id);
  if (name === "plan") planned(run, data.steps, data.planner);
  else if (name === "step" && step) {
    Object.assign(step, data, { status: data.status === "started" ? "running" : data.status });
  }
  else if (name === "report" && step) step.reports = [...step.reports, data.report];
  else if (name === "token") {
    run.state = "wording";
    run.text += data.text;
  } else if (name === "waiting") Object.assign(run, { state: "waiting", questions: data.questions });
  else if (name === "done") ended(run, data);
  else if (name === "error") failed(run, data.detail);
}

function failed(run, detail, state = "failed") {
  run.state = state;
  run.error = detail;
  // What was under way will not be told of any more.
  for (const step of run.steps) if (step.status === "running") step.status = "stopped";
}

/** The text of a file that `casewright show`, and this page, open. */
function fileOf(run) {
  const answer = Object.fromEntries(SAVED.map((name) => [name, run.answer[name]]));
  return JSON.stringify({ format: 1, kind: "casewright run", answer }, null, 1) + "\n";
}

export { failed, fileOf, happened, newRun, savedRun };
