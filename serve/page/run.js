// Makes the state of a run from a question, a file or a thread, and changes it by events.

/** The fields of an answer in a saved run; other fields of a response belong to its request. */
const SAVED_FIELDS = [
  "text", "citations", "evidence", "missing", "plan", "planner", "generator", "steps", "usage", "run_id",
  "refused",
];
/** The final status of a step that had not ended when its run ended. */
const FINAL_STATUS = { waiting: "not_run", running: "stopped", asks: "stopped" };

function newRun(question, request = null) {
  return {
    question, request, thread: request?.thread_id ?? null, token: "",
    state: "planning", // then running, wording; at the end answered, waiting, stopped or failed
    startedAt: performance.now(), elapsed: 0,
    steps: [], planner: null, text: "", answer: null, questions: [], error: "",
  };
}

/** Return a finished run from a file or a thread. */
function savedRun(question, answer, steps, thread = null) {
  const run = { ...newRun(question), thread };
  setPlan(run, steps, answer.planner);
  setAnswer(run, answer);
  return run;
}

/** Return a thread's run without an answer, which waits for a reply or was interrupted. */
function openRun(thread) {
  const run = { ...newRun(thread.question), thread: thread.thread_id, questions: thread.questions };
  setPlan(run, thread.plan_steps, null);
  run.state = thread.status;
  for (const { id, status, milliseconds } of thread.steps) {
    const step = run.steps.find((candidate) => candidate.id === id);
    if (step) Object.assign(step, { status, milliseconds });
  }
  const doneIds = new Set(run.steps.filter((step) => step.status === "done").map((step) => step.id));
  for (const step of run.steps) {
    const hasBegun = step.status === "waiting" && step.needs.every((id) => doneIds.has(id));
    if (hasBegun) step.status = thread.status === "waiting" ? "asks" : "stopped";
  }
  return run;
}

function setPlan(run, steps, planner) {
  run.state = "running";
  run.planner = planner;
  // Replanning adds steps to the steps that have run.
  const earlierSteps = new Map(run.steps.map((step) => [`${step.id} ${step.call}`, step]));
  run.steps = steps.map((step) => earlierSteps.get(`${step.id} ${step.call}`) ?? {
    ...step, status: "waiting", milliseconds: null, results: null, error: "", reports: [], sentences: [], outcome: null,
  });
}

function setAnswer(run, answer) {
  run.state = "answered";
  run.answer = answer;
  run.text = answer.text;
  run.planner = answer.planner;
  for (const outcome of answer.steps) {
    const step = run.steps.find((candidate) => candidate.id === outcome.step);
    if (!step) continue;
    const { status, milliseconds, error, reports } = outcome;
    Object.assign(step, { status, milliseconds, error, reports, outcome, results: outcome.rows.length });
  }
}

/** Change a run by one event of its stream. */
function applyEvent(run, { name, data }) {
  const step = run.steps.find((candidate) => candidate.id === data.id);
  if (name === "plan") setPlan(run, data.steps, data.planner);
  else if (name === "step" && step) {
    Object.assign(step, data, { status: data.status === "started" ? "running" : data.status });
  } else if (name === "report" && step) step.reports = [...step.reports, data.report];
  else if (name === "token") {
    run.state = "wording";
    run.text += data.text;
  } else if (name === "waiting") setWaiting(run, data.questions);
  else if (name === "done") setAnswer(run, data);
  else if (name === "error") endWithoutAnswer(run, data.detail);
}

function setWaiting(run, questions) {
  Object.assign(run, { state: "waiting", questions });
  for (const step of run.steps) if (step.status === "running") step.status = "asks";
}

/** Mark a run as running again after a reply. */
function setResumed(run) {
  Object.assign(run, { state: "running", startedAt: performance.now(), error: "" });
  for (const step of run.steps) if (["asks", "stopped"].includes(step.status)) step.status = "running";
}

/** End a run without an answer, and its steps that have not ended. */
function endWithoutAnswer(run, error, state = "failed") {
  Object.assign(run, { state, error });
  for (const step of run.steps) step.status = FINAL_STATUS[step.status] ?? step.status;
}

/** Return the text of a file that `casewright show` and this page can open. */
function fileText(run) {
  const answer = Object.fromEntries(SAVED_FIELDS.map((name) => [name, run.answer[name]]));
  const file = { format: 1, kind: "casewright run", question: run.question, answer };
  return JSON.stringify(file, null, 1) + "\n";
}

export { endWithoutAnswer, fileText, applyEvent, newRun, openRun, setPlan, setResumed, savedRun, setWaiting };
