// The page's state of a run: made by a question or read from a file, changed by events.

/** The fields of an answer in a saved run; the service adds those of its request. */
const SAVED = [
  "text", "citations", "evidence", "missing", "plan", "planner", "generator", "steps", "usage", "run_id",
  "refused",
];
/** States of a step during its run; the other states are the service's. */
const UNDER_WAY = { waiting: "not_run", running: "stopped", asks: "stopped" };

function newRun(question, asked = null) {
  return {
    question, asked, thread: asked?.thread_id ?? null, token: "",
    state: "planning", // then running, wording; at the end answered, waiting, stopped or failed
    began: performance.now(), took: 0,
    steps: [], planner: null, text: "", answer: null, questions: [], error: "",
  };
}

/** A finished run, from a file or a thread. */
function savedRun(question, answer, steps, thread = null) {
  const run = { ...newRun(question), thread };
  planned(run, steps, answer.planner);
  ended(run, answer);
  return run;
}

/** A thread's run without an answer: it waits for a reply, or was interrupted. */
function openRun(thread) {
  const run = { ...newRun(thread.question), thread: thread.thread_id, questions: thread.questions };
  planned(run, thread.plan_steps, null);
  run.state = thread.status;
  for (const { id, status, milliseconds } of thread.steps) {
    const step = run.steps.find((one) => one.id === id);
    if (step) Object.assign(step, { status, milliseconds });
  }
  const done = new Set(run.steps.filter((step) => step.status === "done").map((step) => step.id));
  for (const step of run.steps) {
    const begun = step.status === "waiting" && step.needs.every((id) => done.has(id));
    if (begun) step.status = thread.status === "waiting" ? "asks" : "stopped";
  }
  return run;
}

function planned(run, steps, planner) {
  run.state = "running";
  run.planner = planner;
  // Mending adds steps to those that have run.
  const known = new Map(run.steps.map((step) => [`${step.id} ${step.call}`, step]));
  run.steps = steps.map((step) => known.get(`${step.id} ${step.call}`) ?? {
    ...step, status: "waiting", milliseconds: null, results: null, error: "", reports: [], sentences: [], outcome: null,
  });
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
  } else if (name === "report" && step) step.reports = [...step.reports, data.report];
  else if (name === "token") {
    run.state = "wording";
    run.text += data.text;
  } else if (name === "waiting") waits(run, data.questions);
  else if (name === "done") ended(run, data);
  else if (name === "error") failed(run, data.detail);
}

function waits(run, questions) {
  Object.assign(run, { state: "waiting", questions });
  for (const step of run.steps) if (step.status === "running") step.status = "asks";
}

/** Continue after a reply. */
function resumed(run) {
  Object.assign(run, { state: "running", began: performance.now(), error: "" });
  for (const step of run.steps) if (["asks", "stopped"].includes(step.status)) step.status = "running";
}

/** End without an answer: steps at work will report no more. */
function failed(run, error, state = "failed") {
  Object.assign(run, { state, error });
  for (const step of run.steps) step.status = UNDER_WAY[step.status] ?? step.status;
}

/** The text of a file for `casewright show` and this page. */
function fileOf(run) {
  const answer = Object.fromEntries(SAVED.map((name) => [name, run.answer[name]]));
  const file = { format: 1, kind: "casewright run", question: run.question, answer };
  return JSON.stringify(file, null, 1) + "\n";
}

export { failed, fileOf, happened, newRun, openRun, planned, resumed, savedRun, waits };
