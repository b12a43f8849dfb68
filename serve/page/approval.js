// The price of a plan, and the card of a plan that waits for approval.

import { counted, element } from "./dom.js";

/** A price in words; empty for runs of before there were prices. */
function priced(price) {
  if (!price) return "";
  const calls = Object.entries(price.calls).map(([tool, count]) => (count > 1 ? `${tool} ×${count}` : tool));
  const parts = [counted(Object.values(price.calls).reduce((sum, count) => sum + count, 0), "call")];
  if (calls.length) parts[0] += ` (${calls.join(", ")})`;
  parts.push(price.seconds === null ? "time unknown" : `about ${Number(price.seconds.toPrecision(3))} s`);
  if (price.cost !== null) parts.push(`cost at most ${Number(price.cost.toPrecision(6))}`);
  if (price.tokens !== null) parts.push(`at most ${price.tokens} tokens`);
  return `Price: ${parts.join("; ")}.`;
}

/** Yes, no, or the plan as it should be; `reply` takes one of them. */
function approvalCard(question, reply) {
  const { why, plan, price, left_out, edited, violations } = question;
  const text = element("textarea", { rows: "4", required: true, spellcheck: "false" });
  text.value = edited || plan;
  const edits = (event) => {
    event.preventDefault();
    reply(text.value);
  };
  const button = (label, value) => element("button", { type: "button", onclick: () => reply(value) }, label);
  return element("div", { id: "approval-card" },
    element("p", {}, `${why} Run this plan?`),
    element("pre", { tabindex: "0" }, plan),
    ...[priced(price), ...left_out].map((line) => element("p", { class: "note" }, line)),
    ...violations.map((line) => element("p", { class: "alert", role: "alert" }, line)),
    element("div", { class: "row" }, button("Yes, run it", "yes"), button("No", "no")),
    element("details", { open: violations.length > 0 },
      element("summary", {}, "Edit the plan"),
      element("form", { class: "fields", onsubmit: edits },
        element("label", {}, "The plan as it should be, a step a line", text),
        element("button", { type: "submit" }, "Run the edited plan"))));
}

export { approvalCard, priced };
