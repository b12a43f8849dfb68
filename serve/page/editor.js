// The editor of a plan: its steps, tools and arguments are chosen, never written as plan text.

import { element } from "./dom.js";

/** A reference to a step's result, with its step and, in place of any other result, the first. */
const REFERENCE = /^s(\d+)(?:\[\d+\])?\.(.+)$/;
/** What a person writes or puts together, by its name in the choices. */
const WRITTEN = { text: "a text…", span: "words of the question…", number: "a number…" };
const LIST = "a list…";

/** Return a form that edits steps, and passes the edited plan's text to `submit`. */
function planEditor({ steps: given, finished, choices }, submit) {
  const steps = structuredClone(given);
  const tools = new Map(choices.tools.map((tool) => [tool.name, tool]));
  const rows = element("ol", { class: "plain fields" });
  const add = element("button", { type: "button", onclick: () => changed(() => steps.push({ tool: choices.tools[0].name, arguments: {} }), `tool ${steps.length}`) }, "Add a step");
  const form = element("form", { class: "fields", onsubmit: (event) => {
    event.preventDefault();
    submit(steps.map(line).join("\n"));
  } }, rows, element("div", { class: "row" }, add, element("button", { type: "submit" }, "Run the edited plan")));

  /** Change the steps and draw them; the focus stays at its control, or goes to the one of a key. */
  function changed(change, key = document.activeElement?.dataset.key) {
    change();
    draw();
    rows.querySelector(`[data-key="${CSS.escape(key ?? "")}"]`)?.focus();
  }

  function draw() {
    rows.replaceChildren(...steps.map((step, at) => (at < finished ? element("li", {}, line(step, at), " (has run)") : row(step, at))));
    add.disabled = steps.length >= choices.most_steps;
  }

  function row(step, at) {
    const name = `s${at + 1}`;
    const tool = tools.get(step.tool) ?? choices.tools[0];
    step.tool = tool.name;
    const chosen = picker(`Tool of ${name}`, `tool ${at}`, [...tools.keys()].map((each) => [each, each]), tool.name, (value) => { step.tool = value; });
    const button = (label, key, order) => element("button", { type: "button", "data-key": `${key} ${at}`, "aria-label": `${label} ${name}`, onclick: () => changed(() => reorder(order)) }, label);
    const numbers = steps.map((_, number) => number);
    const up = numbers.toSpliced(at - 1, 2, at, at - 1);
    return element("li", {}, element("fieldset", { class: "fields" },
      element("legend", {}, name),
      element("div", { class: "row" }, chosen,
        at > finished ? button("Move up", "up", up) : null,
        steps.length > 1 ? button("Remove", "remove", numbers.toSpliced(at, 1)) : null),
      element("small", {}, tool.description),
      ...tool.parameters.map((parameter) => argument(step, parameter, at))));
  }

  /** The controls of one argument: alone, or as a list of items. */
  function argument(step, parameter, at) {
    const { name, required, alone, items } = parameter;
    const key = `${at} ${name}`;
    const value = step.arguments[name] ?? null;
    const set = (next) => { step.arguments[name] = next; };
    const listed = items && Array.isArray(value);
    const label = `${name} of s${at + 1}`;
    const first = source(label, key, alone, at, listed ? LIST : value, set, required ? "choose…" : "left out", items ? [[LIST, LIST]] : []);
    if (!listed) return element("div", {}, element("span", {}, name), ...first);
    const each = value.map((item, number) => element("li", { class: "row" }, ...source(`${label}, item ${number + 1}`, `${key} ${number}`, items, at, item, (next) => { value[number] = next; }, "choose…")));
    return element("div", {}, element("span", {}, name), ...first, element("ol", {}, ...each), element("div", { class: "row" },
      element("button", { type: "button", "data-key": `${key} more`, onclick: () => changed(() => value.push(null)) }, `One more of ${label}`),
      value.length > 1 ? element("button", { type: "button", "data-key": `${key} less`, onclick: () => changed(() => value.pop()) }, `One fewer of ${label}`) : null));
  }

  /** A choice of a value's source, and what some sources need beside it. */
  function source(label, key, admitted, at, value, set, none, more = []) {
    const references = admitted.step ? steps.slice(0, at).flatMap((step, n) => tools.get(step.tool).results.map((field) => `s${n + 1}.${field}`)) : [];
    const kind = kindOf(value, admitted, references);
    // What may no longer be there is to be chosen anew.
    if (kind === "" && value !== null) set(null);
    const options = [["", none], ...[...admitted.values, ...references].map((each) => [each, each])];
    if (kind === value && value !== LIST && !options.some(([each]) => each === value)) options.push([value, value]);
    options.push(...Object.entries(WRITTEN).filter(([written]) => admitted[written] && (written !== "span" || choices.words.length)), ...more);
    const begun = { "": null, text: '""', span: span(0, 0), number: "0", [LIST]: [null] };
    const select = picker(label, key, options, kind, (next) => set(next in begun ? begun[next] : next), none === "choose…");
    return [select, ...beside(label, key, kind, value, set)];
  }

  function beside(label, key, kind, value, set) {
    if (kind === "text") {
      return [element("input", { "aria-label": `${label}, text`, "data-key": `${key} text`, required: true, autocomplete: "off", value: JSON.parse(value), oninput: ({ target }) => set(JSON.stringify(target.value)) })];
    }
    if (kind === "number") {
      return [element("input", { "aria-label": `${label}, number`, "data-key": `${key} number`, type: "number", step: "any", required: true, value, oninput: ({ target }) => set(target.value) })];
    }
    if (kind !== "span") return [];
    const [first, last] = place(value);
    const words = choices.words.map(([word], number) => [String(number), word]);
    return [
      picker(`${label}, first word`, `${key} first`, words, String(first), (next) => set(span(+next, Math.max(+next, last)))),
      picker(`${label}, last word`, `${key} last`, words.slice(first), String(last), (next) => set(span(first, +next))),
    ];
  }

  function picker(label, key, options, value, set, required = true) {
    const made = element("select", { "aria-label": label, "data-key": key, required, onchange: ({ target }) => changed(() => set(target.value)) },
      ...options.map(([each, shown]) => element("option", { value: each, selected: each === value }, shown)));
    return made;
  }

  function kindOf(value, admitted, references) {
    if (value === LIST || value === null) return value ?? "";
    if (Array.isArray(value)) return "";
    const [, step, field] = value.match(REFERENCE) ?? [];
    if (admitted.values.includes(value) || references.includes(`s${step}.${field}`)) return value;
    if (value.startsWith('"')) return admitted.text ? "text" : admitted.span && place(value) ? "span" : "";
    return admitted.number && /^-?\d/.test(value) ? "number" : "";
  }

  const joined = (first, last) => choices.words.slice(first, last + 1).map(([word, gap], n) => (first + n < last ? word + gap : word)).join("");
  const span = (first, last) => (choices.words.length ? JSON.stringify(joined(first, last)) : null);

  /** The first and the last word of a span; null if it is none. */
  function place(value) {
    const text = JSON.parse(value).toLowerCase();
    for (let first = 0; first < choices.words.length; first += 1) {
      for (let last = first; last < choices.words.length; last += 1) if (joined(first, last).toLowerCase() === text) return [first, last];
    }
    return null;
  }

  /** Put the steps of these numbers in their order; references follow, those to other steps go. */
  function reorder(order) {
    const moved = (value) => {
      if (Array.isArray(value)) return value.map(moved);
      const [, step] = value?.match(REFERENCE) ?? [];
      if (!step) return value;
      const to = order.indexOf(step - 1);
      return to < 0 ? null : value.replace(/^s\d+/, `s${to + 1}`);
    };
    const kept = order.map((number) => steps[number]);
    for (const step of kept) step.arguments = Object.fromEntries(Object.entries(step.arguments).map(([name, value]) => [name, moved(value)]));
    steps.splice(0, steps.length, ...kept);
  }

  function line({ tool, arguments: values }, at) {
    const written = (value) => (Array.isArray(value) ? `[${value.join(", ")}]` : value);
    const names = tools.get(tool)?.parameters.map(({ name }) => name) ?? Object.keys(values);
    const given = names.filter((name) => values[name] !== null && values[name] !== undefined);
    return `s${at + 1} = ${tool}(${given.map((name) => `${name}=${written(values[name])}`).join(", ")})`;
  }

  draw();
  return form;
}

export { planEditor };
