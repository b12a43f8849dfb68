// The service's operations, with a form to try each.

const addElement = (name, text, parent) => {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.append(node);
  return node;
};
const resolve = (schema, schemas) =>
  schema && schema.$ref ? schemas[schema.$ref.split("/").pop()] : schema || {};
function example(schema, schemas) {
  schema = resolve(schema, schemas);
  if (schema.examples) return schema.examples[0];
  if (schema.type !== "object") return null;
  const result = {};
  for (const [name, part] of Object.entries(schema.properties || {})) {
    const value = example(part, schemas);
    if ((schema.required || []).includes(name) || value !== null) result[name] = value;
  }
  return result;
}
async function send(method, path, fields, body, output) {
  for (const [name, field] of Object.entries(fields.path))
    path = path.replace("{" + name + "}", encodeURIComponent(field.value));
  const query = new URLSearchParams();
  for (const [name, field] of Object.entries(fields.query))
    if (field.value) query.set(name, field.value);
  const headers = {}, token = document.getElementById("token").value;
  if (token) headers.Authorization = "Bearer " + token;
  if (body) headers["Content-Type"] = "application/json";
  output.textContent = "…";
  try {
    const options = { method: method.toUpperCase(), headers, body: body ? body.value : undefined };
    const reply = await fetch("." + path + (query.size ? "?" + query : ""), options);
    output.textContent = reply.status + " " + reply.statusText + "\n";
    const reader = reply.body && reply.body.getReader(), decoder = new TextDecoder();
    let text = "";
    for (; reader;) {
      const part = await reader.read();
      if (part.done) break;
      text += decoder.decode(part.value, { stream: true });
      output.textContent = reply.status + "\n" + text;
    }
    try {
      output.textContent = reply.status + "\n" + JSON.stringify(JSON.parse(text), null, 2);
    } catch {}
  } catch (error) { output.textContent = String(error); }
}
function operation(method, path, info, schemas, parent) {
  const box = addElement("details", undefined, parent), head = addElement("summary", undefined, box);
  addElement("span", method.toUpperCase(), head).className = "method";
  addElement("code", path, head); addElement("span", " " + (info.summary || ""), head);
  for (const part of (info.description || "").split("\n\n")) addElement("p", part, box);
  const fields = { path: {}, query: {} };
  for (const item of info.parameters || []) {
    if (!fields[item.in]) continue;
    const label = addElement("label", item.name + " ", box);
    fields[item.in][item.name] = addElement("input", undefined, label);
  }
  let body = null;
  if (info.requestBody) {
    const schema = info.requestBody.content["application/json"].schema;
    body = addElement("textarea", undefined, box);
    body.value = JSON.stringify(example(schema, schemas), null, 2);
    const inner = addElement("details", undefined, box);
    addElement("summary", "Schema", inner);
    addElement("pre", JSON.stringify(resolve(schema, schemas), null, 2), inner);
  }
  const button = addElement("button", "Send", box), output = addElement("pre", undefined, box);
  output.hidden = true;
  button.onclick = () => { output.hidden = false; send(method, path, fields, body, output); };
  const table = addElement("table", undefined, box);
  for (const [status, item] of Object.entries(info.responses)) {
    const row = addElement("tr", undefined, table);
    addElement("td", status, row); addElement("td", item.description.split("\n")[0], row);
  }
}
fetch("openapi.json").then(reply => reply.json()).then(api => {
  document.getElementById("about").textContent = api.info.description;
  const parent = document.getElementById("operations");
  parent.textContent = "";
  const schemas = (api.components || {}).schemas || {};
  for (const [path, methods] of Object.entries(api.paths))
    for (const [method, info] of Object.entries(methods))
      operation(method, path, info, schemas, parent);
});
