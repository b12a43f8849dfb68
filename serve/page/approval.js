// Makes a card with a run's open questions, which are plans to approve or questions of tools.

import { element } from "./dom.js";
import { planEditor } from "./editor.js";

/** Return the price as the service states it; empty for runs without a price. */
const priceText = (price) => (price?.text ? `Price: ${price.text}.` : "");

const isApproval = (question) => question?.kind === "approval";

/** Return a card with all questions; `reply` gets all replies together, by question id. */
function waitingCard(questions, reply) {
  const isSingle = questions.length === 1;
  const replies = {};
  const sections = questions.map(({ id, question }) => {
    if (!isApproval(question)) return questionField(question, (value) => { replies[id] = value; });
    if (isSingle) return approval(question, (value) => reply({ [id]: value }));
    const choiceText = element("p", { class: "note", role: "status" }, "Choose yes, no or an edited plan.");
    const choiceSection = element("section", { tabindex: "-1" }, choiceText, approval(question, (value) => {
      replies[id] = value;
      choiceText.textContent = `Chosen: ${["yes", "no"].includes(value) ? value : "the edited plan"}.`;
    }));
    choiceSection.dataset.reply = id;
    return choiceSection;
  });
  // A separate form, since an editor in the card is also a form, and forms cannot be nested.
  const submitReplies = (event) => {
    event.preventDefault();
    const unanswered = sections.find(({ dataset }) => dataset.reply && !(dataset.reply in replies));
    if (unanswered) unanswered.focus();
    else reply(replies);
  };
  const form = element("form", { id: "replies", onsubmit: submitReplies }, element("button", { type: "submit" }, isSingle ? "Reply" : "Send all replies"));
  return element("div", { id: "waiting-card" }, ...sections, isSingle && isApproval(questions[0].question) ? null : form);
}

/** Return a tool's question with a field; `setReply` gets the text of the field. */
function questionField(question, setReply) {
  setReply("");
  const questionText = typeof question === "string" ? question : JSON.stringify(question);
  const field = element("input", { form: "replies", required: true, autocomplete: "off", oninput: ({ target }) => setReply(target.value) });
  return element("fieldset", {}, element("legend", {}, questionText), element("label", {}, "Reply ", field));
}

/** Return a plan that waits for approval; `setReply` gets yes, no, or the edited plan's text. */
function approval(question, setReply) {
  const { why, plan, price, left_out, violations } = question;
  const button = (label, value) => element("button", { type: "button", onclick: () => setReply(value) }, label);
  return element("div", { class: "approval" },
    element("p", {}, `${why} Run this plan?`),
    element("pre", { tabindex: "0" }, plan),
    ...[priceText(price), ...left_out].map((line) => element("p", { class: "note" }, line)),
    ...violations.map((line) => element("p", { class: "alert", role: "alert" }, line)),
    element("div", { class: "row" }, button("Yes, run it", "yes"), button("No", "no")),
    element("details", { open: violations.length > 0 },
      element("summary", {}, "Edit the plan"),
      planEditor(question, setReply)));
}

export { isApproval, priceText, waitingCard };
