// The price of a plan, and the card with a run's open questions: plans to approve, tools' questions.

import { element } from "./dom.js";
import { planEditor } from "./editor.js";

/** A price in the service's words; empty for runs that have none. */
const priced = (price) => (price?.text ? `Price: ${price.text}.` : "");

const isApproval = (question) => question?.kind === "approval";

/** One card for all questions; `reply` takes the replies by the questions' ids, together. */
function waitingCard(questions, reply) {
  const alone = questions.length === 1;
  const replies = {};
  const parts = questions.map(({ id, question }) => {
    if (!isApproval(question)) return asked(question, (said) => { replies[id] = said; });
    if (alone) return approval(question, (said) => reply({ [id]: said }));
    const chosen = element("p", { class: "note", role: "status" }, "Choose yes, no or an edited plan.");
    const part = element("section", { tabindex: "-1" }, chosen, approval(question, (said) => {
      replies[id] = said;
      chosen.textContent = `Chosen: ${["yes", "no"].includes(said) ? said : "the edited plan"}.`;
    }));
    part.dataset.reply = id;
    return part;
  });
  // A form of its own, since an editor within the card is one.
  const sends = (event) => {
    event.preventDefault();
    const open = parts.find((part) => part.dataset.reply && !(part.dataset.reply in replies));
    if (open) open.focus();
    else reply(replies);
  };
  const send = element("form", { id: "replies", onsubmit: sends }, element("button", { type: "submit" }, alone ? "Reply" : "Send all replies"));
  return element("div", { id: "waiting-card" }, ...parts, alone && isApproval(questions[0].question) ? null : send);
}

/** A tool's question, with a field for the reply. */
function asked(question, says) {
  says("");
  const shown = typeof question === "string" ? question : JSON.stringify(question);
  const field = element("input", { form: "replies", required: true, autocomplete: "off", oninput: ({ target }) => says(target.value) });
  return element("fieldset", {}, element("legend", {}, shown), element("label", {}, "Reply ", field));
}

/** A plan that waits: `says` takes yes, no, or the plan as it should be. */
function approval(question, says) {
  const { why, plan, price, left_out, violations } = question;
  const button = (label, value) => element("button", { type: "button", onclick: () => says(value) }, label);
  return element("div", { class: "approval" },
    element("p", {}, `${why} Run this plan?`),
    element("pre", { tabindex: "0" }, plan),
    ...[priced(price), ...left_out].map((line) => element("p", { class: "note" }, line)),
    ...violations.map((line) => element("p", { class: "alert", role: "alert" }, line)),
    element("div", { class: "row" }, button("Yes, run it", "yes"), button("No", "no")),
    element("details", { open: violations.length > 0 },
      element("summary", {}, "Edit the plan"),
      planEditor(question, says)));
}

export { isApproval, priced, waitingCard };
