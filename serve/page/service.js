// Sends requests to the service, and reads its errors and server-sent events.

/** Maximum silence of a stream, in which the service sends a comment every 15 seconds. */
const MAX_SILENCE_MS = 45000;

/** An error of the service or this page, with a message for people. */
class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** Parse JSON; integers that a JavaScript number cannot represent stay exact. */
function parseJson(text) {
  return JSON.parse(text, (key, value, context) =>
    typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && context && JSON.rawJSON
      ? JSON.rawJSON(context.source) : value);
}

async function readRefusal(reply) {
  let detail = `The service answered with ${reply.status}.`;
  try {
    detail = (await reply.json()).detail || detail;
  } catch {
    // The reply is no problem document, but for example a proxy's page.
  }
  return new Refused(reply.status, detail);
}

async function send(path, token, options) {
  const headers = { ...options.headers };
  if (token && !/^[\x21-\x7e]+$/.test(token)) throw new Refused(401, "A token has ASCII letters, digits and signs only.");
  if (token) headers.Authorization = `Bearer ${token}`;
  let reply;
  try {
    reply = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The service cannot be reached. Is it still running?");
  }
  if (!reply.ok) throw await readRefusal(reply);
  return reply;
}

async function getJson(path, token) {
  return parseJson(await (await send(path, token, {})).text());
}

/** Post a value or a JSON text, and return the JSON of the response. */
async function postJson(path, token, value, signal) {
  const body = typeof value === "string" ? value : JSON.stringify(value);
  const headers = { "Content-Type": "application/json" };
  return parseJson(await (await send(path, token, { method: "POST", headers, body, signal })).text());
}

/** Yield the events of a stream as {name, data}. */
async function* streamEvents(path, token, value, signal) {
  const headers = { "Content-Type": "application/json" };
  const reply = await send(path, token, { method: "POST", headers, body: JSON.stringify(value), signal });
  const reader = reply.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value: bytes } = await readChunk(reader);
      text += done ? decoder.decode() : decoder.decode(bytes, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop();
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event) yield event;
      }
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Return the next chunk of a stream; throw if it breaks off or is silent for too long. */
async function readChunk(reader) {
  let timer;
  const silence = new Promise((_, reject) => {
    const error = new Refused(0, `The service has sent nothing for ${MAX_SILENCE_MS / 1000} seconds.`);
    timer = setTimeout(() => reject(error), MAX_SILENCE_MS);
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } catch (error) {
    if (error.name === "AbortError" || error instanceof Refused) throw error;
    throw new Refused(0, "The connection to the service broke off.");
  } finally {
    clearTimeout(timer);
  }
}

/** Return the event in a block of lines; null for a comment. */
function parseEvent(block) {
  let name = "";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  return name ? { name, data: parseJson(data) } : null;
}

export { Refused, getJson, postJson, streamEvents };
