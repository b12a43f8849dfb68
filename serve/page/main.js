// The handlers of the page's buttons, keys and fields.

import { ask, resume, stop, trouble } from "./asking.js";
import { byId } from "./dom.js";
import { learn } from "./form.js";
import { approve, copy, correct, openFile, openThread, save } from "./kept.js";
import { page, tell } from "./view.js";

const written = () => byId("question").value.trim();
/** A key that belongs to an input method, which is composing a word. */
const composing = (event) => event.isComposing || event.keyCode === 229;

function asks(event) {
  event.preventDefault();
  ask(written());
}

function pressed(event) {
  if (composing(event) || event.defaultPrevented) return;
  // Esc stops the shown run only.
  if (event.key === "Escape" && page.asking?.run === page.shown) stop();
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  byId("question").focus();
}

function typed(event) {
  if (event.key !== "Enter" || event.shiftKey || composing(event)) return;
  event.preventDefault();
  byId("ask").requestSubmit();
}

/** An invalid field must be unfolded to be shown. */
function unfold(event) {
  const folded = event.target.closest("details");
  if (folded) folded.open = true;
}

function dropped(event) {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  if (event.type === "drop") openFile(event.dataTransfer.files[0]);
}

async function introduced(again) {
  try {
    await learn(again);
    tell("");
  } catch (error) {
    trouble(error);
  }
}

function listen() {
  const on = (id, event, does) => byId(id).addEventListener(event, does);
  on("ask", "submit", asks);
  on("question", "keydown", typed);
  on("examples", "click", ({ target }) => {
    if (!target.dataset.question) return;
    byId("question").value = target.dataset.question;
    ask(written());
  });
  on("stop", "click", stop);
  on("token", "change", () => introduced(true));
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
  document.addEventListener("keydown", pressed);
  document.addEventListener("invalid", unfold, true);
  document.addEventListener("dragover", dropped);
  document.addEventListener("drop", dropped);
}

listen();
introduced();
