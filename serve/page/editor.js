// Makes the editor of a plan: the user chooses steps, tools and arguments, and writes no plan text.
// A change does not replace its control, so that typing in a list of options can continue.

import { element } from "./dom.js";

/** A reference to a result of a step; the groups are the step's number and the field. */
const REFERENCE = /^s(\d+)(?:\[\d+\])?\.(.+)$/;
/** The kinds of values that a user types or composes, with their labels. */
const INPUT_KINDS = { text: "a text…", span: "words of the question…", number: "a number…" };
const LIST = "a list…";

function picker(label, options, value, set, required = true) {
  return element("select", { "aria-label": label, required, onchange: ({ target }) => set(target.value) },
    ...options.map(([option, text]) => element("option", { value: option, selected: option === value }, text)));
}

const button = (label, onclick, name = label) => element("button", { type: "button", "aria-label": name, onclick }, label);

/** Return a form that edits a plan that waits, and passes the edited plan's text to `submit`. */
function planEditor({ steps: waitingSteps, finished, choices }, submit) {
  const steps = structuredClone(waitingSteps);
  const tools = new Map(choices.tools.map((tool) => [tool.name, tool]));
  const rows = element("ol", { class: "plain" });
  const add = button("Add a step", () => changeSteps(() => steps.push({ tool: choices.tools[0].name, arguments: {} }), steps.length));
  const handleSubmit = (event) => {
    event.preventDefault();
    submit(steps.map(stepText).join("\n"));
  };

  /** Change the list of steps, draw it again, and focus the step at an index. */
  function changeSteps(change, index) {
    change();
    draw();
    rows.children[Math.min(index, steps.length - 1)].querySelector("select")?.focus();
  }

  function draw() {
    rows.replaceChildren(...steps.map(row));
    add.disabled = steps.length >= choices.most_steps;
  }

  function row(step, index) {
    if (index < finished) return element("li", {}, stepText(step, index), " (has run)");
    const name = `s${index + 1}`;
    const parameterRows = element("div", {});
    const fill = () => {
      const tool = tools.get(step.tool);
      parameterRows.replaceChildren(element("small", {}, tool.description), ...tool.parameters.map((parameter) => argument(step, parameter, index)));
    };
    const toolPicker = picker(`Tool of ${name}`, [...tools.keys()].map((tool) => [tool, tool]), step.tool, (tool) => {
      step.tool = tool;
      fill();
      // The steps below can now refer to other results.
      for (let below = index + 1; below < steps.length; below += 1) rows.children[below].replaceWith(row(steps[below], below));
    });
    const moveButton = (label, order, focusIndex) => button(label, () => changeSteps(() => reorder(order), focusIndex), `${label} ${name}`);
    const indices = steps.map((_, index) => index);
    fill();
    return element("li", {}, element("fieldset", {},
      element("legend", {}, name),
      element("div", { class: "row" }, toolPicker,
        index > finished ? moveButton("Move up", indices.toSpliced(index - 1, 2, index, index - 1), index - 1) : null,
        steps.length > 1 ? moveButton("Remove", indices.toSpliced(index, 1), index) : null),
      parameterRows));
  }

  function argument(step, { name, required, alone, items }, index) {
    const set = (value) => { step.arguments[name] = value; };
    return element("div", { class: "row" }, element("span", {}, name),
      ...source(`${name} of s${index + 1}`, { ...alone, items }, index, step.arguments[name] ?? null, set, required));
  }

  /** Return a picker for the source of a value, and the controls that some sources need. */
  function source(label, admitted, index, initial, set, required) {
    const earlier = admitted.step ? steps.slice(0, index) : [];
    const references = earlier.flatMap(({ tool }, index) => (tools.get(tool)?.results ?? []).map((field) => `s${index + 1}.${field}`));
    const kind = kindOf(initial, admitted, references);
    // If a value is no longer possible, the user must choose again.
    if (kind === "") set(null);
    const offeredValues = [...new Set([...admitted.values, ...references, ...([...Object.keys(INPUT_KINDS), "", LIST].includes(kind) ? [] : [kind])])];
    const inputKinds = Object.entries(INPUT_KINDS).filter(([name]) => admitted[name] && (name !== "span" || choices.words.length));
    const options = [["", required ? "choose…" : "left out"], ...offeredValues.map((offered) => [offered, offered]), ...inputKinds, ...(admitted.items ? [[LIST, LIST]] : [])];
    const details = element("span", { class: "row" });
    const fill = (chosen, value) => details.replaceChildren(...(CONTROLS[chosen]?.(label, value, set, admitted.items, index) ?? []));
    fill(kind, initial);
    return [picker(label, options, kind, (next) => {
      const value = Object.hasOwn(INITIAL_VALUES, next) ? INITIAL_VALUES[next]() : next;
      set(value);
      fill(next, value);
    }, required), details];
  }

  /** The initial value of each source, and the controls for values that a user makes. */
  const INITIAL_VALUES = { "": () => null, text: () => '""', number: () => "0", span: () => wordsLiteral(0, 0), [LIST]: () => [null] };
  const CONTROLS = {
    text: (label, value, set) => [element("input", { "aria-label": `${label}, text`, required: true, autocomplete: "off", value: JSON.parse(value), oninput: ({ target }) => set(JSON.stringify(target.value)) })],
    number: (label, value, set) => [element("input", { "aria-label": `${label}, number`, type: "number", step: "any", required: true, value, oninput: ({ target }) => set(target.value) })],
    span: (label, value, set) => {
      let [first, last] = wordRange(value);
      const words = choices.words.map(([word], number) => [String(number), word]);
      const setRange = (from, to) => {
        [first, last] = [from, to];
        [start.value, end.value] = [from, to];
        set(wordsLiteral(from, to));
      };
      const start = picker(`${label}, first word`, words, String(first), (next) => setRange(+next, Math.max(+next, last)));
      const end = picker(`${label}, last word`, words, String(last), (next) => setRange(Math.min(first, +next), +next));
      return [start, end];
    },
    [LIST]: (label, value, set, items, index) => {
      const list = element("ol", {});
      const item = (initial, itemIndex) => element("li", { class: "row" }, ...source(`${label}, item ${itemIndex + 1}`, items, index, initial, (next) => { value[itemIndex] = next; }, true));
      const resize = (change) => {
        change();
        list.replaceChildren(...value.map(item));
      };
      resize(() => {});
      return [list, button(`One more of ${label}`, () => resize(() => value.push(null))), button(`One fewer of ${label}`, () => resize(() => value.length > 1 && value.pop()))];
    },
  };

  /** Return the option to which a value belongs; empty if no option fits. */
  function kindOf(value, admitted, references) {
    if (value === null) return "";
    if (Array.isArray(value)) return admitted.items ? LIST : "";
    const [, step, field] = value.match(REFERENCE) ?? [];
    if (admitted.values.includes(value) || references.includes(`s${step}.${field}`)) return value;
    if (value.startsWith('"')) return admitted.text ? "text" : admitted.span && wordRange(value) ? "span" : "";
    return admitted.number && /^-?\d/.test(value) ? "number" : "";
  }

  /** Return the question's words from `first` to `last` as a literal. */
  function wordsLiteral(first, last) {
    return JSON.stringify(choices.words.slice(first, last + 1).map(([word, gap], index) => (first + index < last ? word + gap : word)).join(""));
  }

  /** Return the indices of a literal's first and last word; null if it is no span of the question. */
  function wordRange(value) {
    const literal = value.toLowerCase();
    for (let first = 0; first < choices.words.length; first += 1) {
      for (let last = first; last < choices.words.length; last += 1) if (wordsLiteral(first, last).toLowerCase() === literal) return [first, last];
    }
    return null;
  }

  /** Keep the steps with these indices, in this order; references to removed steps become empty. */
  function reorder(order) {
    const renumbered = (value) => {
      if (Array.isArray(value)) return value.map(renumbered);
      const [, step] = value?.match(REFERENCE) ?? [];
      const newIndex = step ? order.indexOf(step - 1) : 0;
      return newIndex < 0 ? null : step ? value.replace(/^s\d+/, `s${newIndex + 1}`) : value;
    };
    const reordered = order.map((index) => steps[index]);
    for (const step of reordered) for (const name of Object.keys(step.arguments)) step.arguments[name] = renumbered(step.arguments[name]);
    steps.splice(0, steps.length, ...reordered);
  }

  function stepText({ tool, arguments: values }, index) {
    const valueText = (value) => (Array.isArray(value) ? `[${value.join(", ")}]` : value);
    const parameters = new Set((tools.get(tool)?.parameters ?? []).map(({ name }) => name));
    const names = Object.keys(values).filter((name) => parameters.has(name) && values[name] !== null);
    return `s${index + 1} = ${tool}(${names.map((name) => `${name}=${valueText(values[name])}`).join(", ")})`;
  }

  draw();
  return element("form", { class: "editor", onsubmit: handleSubmit }, rows, element("div", { class: "row" }, add, element("button", { type: "submit" }, "Run the edited plan")));
}

export { planEditor };
