// The service's operations, with a form to try each.

const make = (name, text, parent) => {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.append(node);
  return node;
};
const resolve = (schema, all) =>
  schema && schema.$ref ? all[schema.$ref.split("/").pop()] : schema || {};
function example(schema, all) {
  schema = resolve(schema, all);
  if (schema.examples) return schema.examples[0];
  if (schema.type !== "object") return null;
  const made = {};
  for (const [name, part] of Object.entries(schema.properties || {})) {
    const value = example(part, all);
    if ((schema.required || []).includes(name) || value !== null) made[name] = value;
  }
  return made;
}
async function send(method, path, fields, body, shown) {
  for (const [name, field] of Object.entries(fields.path))
    path = path.replace("{" + name + "}", encodeURIComponent(field.value));
  const query = new URLSearchParams();
  for (const [name, field] of Object.entries(fields.query))
    if (field.value) query.set(name, field.value);
  const headers = {}, token = document.getElementById("token").value;
  if (token) headers.Authorization = "Bearer " + token;
  if (body) headers["Content-Type"] = "application/json";
  shown.textContent = "…";
  try {
    const asked = { method: method.toUpperCase(), headers, body: body ? body.value : undefined };
    const reply = await fetch("." + path + (query.size ? "?" + query : ""), asked);
    shown.textContent = reply.status + " " + reply.statusText + "\n";
    const reader = reply.body && reply.body.getReader(), decoder = new TextDecoder();
    let text = "";
    for (; reader;) {
      const part = await reader.read();
      if (part.done) break;
      text += decoder.decode(part.value, { stream: true });
      shown.textContent = reply.status + "\n" + text;
    }
    try {
      shown.textContent = reply.status + "\n" + JSON.stringify(JSON.parse(text), null, 2);
    } catch {}
  } catch (error) { shown.textContent = String(error); }
}
function operation(method, path, about, all, parent) {
  const box = make("details", undefined, parent), head = make("summary", undefined, box);
  make("span", method.toUpperCase(), head).className = "method";
  make("code", path, head); make("span", " " + (about.summary || ""), head);
  for (const part of (about.description || "").split("\n\n")) make("p", part, box);
  const fields = { path: {}, query: {} };
  for (const one of about.parameters || []) {
    if (!fields[one.in]) continue;
    const label = make("label", one.name + " ", box);
    fields[one.in][one.name] = make("input", undefined, label);
  }
  let body = null;
  if (about.requestBody) {
    const schema = about.requestBody.content["application/json"].schema;
    body = make("textarea", undefined, box);
    body.value = JSON.stringify(example(schema, all), null, 2);
    const inner = make("details", undefined, box);
    make("summary", "Schema", inner);
    make("pre", JSON.stringify(resolve(schema, all), null, 2), inner);
  }
  const button = make("button", "Send", box), shown = make("pre", undefined, box);
  shown.hidden = true;
  button.onclick = () => { shown.hidden = false; send(method, path, fields, body, shown); };
  const table = make("table", undefined, box);
  for (const [status, one] of Object.entries(about.responses)) {
    const row = make("tr", undefined, table);
    make("td", status, row); make("td", one.description.split("\n")[0], row);
  }
}
fetch("openapi.json").then(reply => reply.json()).then(api => {
  document.getElementById("about").textContent = api.info.description;
  const parent = document.getElementById("operations");
  parent.textContent = "";
  const all = (api.components || {}).schemas || {};
  for (const [path, methods] of Object.entries(api.paths))
    for (const [method, about] of Object.entries(methods))
      operation(method, path, about, all, parent);
});
