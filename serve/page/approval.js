// The price of a plan, and the card of a plan that waits for approval.

import { element } from "./dom.js";
import { planEditor } from "./editor.js";

/** A price in the service's words; empty for runs that have none. */
const priced = (price) => (price?.text ? `Price: ${price.text}.` : "");

/** Yes, no, or the plan as it should be; `reply` takes one of them. */
function approvalCard(question, reply) {
  const { why, plan, price, left_out, violations } = question;
  const button = (label, value) => element("button", { type: "button", onclick: () => reply(value) }, label);
  return element("div", { id: "approval-card" },
    element("p", {}, `${why} Run this plan?`),
    element("pre", { tabindex: "0" }, plan),
    ...[priced(price), ...left_out].map((line) => element("p", { class: "note" }, line)),
    ...violations.map((line) => element("p", { class: "alert", role: "alert" }, line)),
    element("div", { class: "row" }, button("Yes, run it", "yes"), button("No", "no")),
    element("details", { open: violations.length > 0 },
      element("summary", {}, "Edit the plan"),
      planEditor(question, reply)));
}

export { approvalCard, priced };
