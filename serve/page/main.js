// Handles the page's buttons, keys and fields.

import { ask, resume, stop, reportError } from "./asking.js";
import { byId } from "./dom.js";
import { loadAbout } from "./form.js";
import { approve, copy, correct, openFile, openThread, save } from "./run_actions.js";
import { page, showError } from "./view.js";

const questionText = () => byId("question").value.trim();
/** Return true if a key event belongs to an input method that composes a word. */
const isComposingKey = (event) => event.isComposing || event.keyCode === 229;

function submitQuestion(event) {
  event.preventDefault();
  ask(questionText());
}

function handleKey(event) {
  if (isComposingKey(event) || event.defaultPrevented) return;
  // Esc stops the shown run only.
  if (event.key === "Escape" && page.asking?.run === page.shown) stop();
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  byId("question").focus();
}

function handleQuestionKey(event) {
  if (event.key !== "Enter" || event.shiftKey || isComposingKey(event)) return;
  event.preventDefault();
  byId("ask").requestSubmit();
}

/** Open the details that hide an invalid field. */
function unfold(event) {
  const details = event.target.closest("details");
  if (details) details.open = true;
}

function handleDrop(event) {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  if (event.type === "drop") openFile(event.dataTransfer.files[0]);
}

async function loadService(reload = false) {
  try {
    await loadAbout(reload);
    showError("");
  } catch (error) {
    reportError(error);
  }
}

function listen() {
  const on = (id, event, handler) => byId(id).addEventListener(event, handler);
  on("ask", "submit", submitQuestion);
  on("question", "keydown", handleQuestionKey);
  on("examples", "click", ({ target }) => {
    if (!target.dataset.question) return;
    byId("question").value = target.dataset.question;
    ask(questionText());
  });
  on("stop", "click", stop);
  on("token", "change", () => loadService(true));
  on("save", "click", save);
  on("copy", "click", copy);
  on("approve", "click", approve);
  on("correction", "submit", correct);
  on("again", "click", () => ask(page.shown.question));
  on("resume", "click", () => resume(page.shown));
  on("file", "change", ({ target }) => {
    openFile(target.files[0]);
    target.value = "";
  });
  on("look", "submit", (event) => {
    event.preventDefault();
    openThread(byId("look-thread").value);
  });
  document.addEventListener("keydown", handleKey);
  document.addEventListener("invalid", unfold, true);
  document.addEventListener("dragover", handleDrop);
  document.addEventListener("drop", handleDrop);
}

listen();
loadService();
