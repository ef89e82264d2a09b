// Converts a request's messages for a template, as llama-server does: each message is read into a
// structure and written again.
import { KINDS, Marker } from "./media.js";
import {
  dump,
  isObject,
  isText,
  joined,
  json,
  kindOf,
  own,
  owned,
  plain,
  refuse,
  role,
  textOf,
  wellFormed,
} from "./values.js";

export const SPACES = " \\t\\n\\v\\f\\r"; // the characters of C's isspace, for regular expressions
const STRIPPED = new RegExp(`^[${SPACES}]+|[${SPACES}]+$`, "g");

export function strip(text) {
  return text.replace(STRIPPED, "");
}

const CONTENT = "content";
const REASONING = "reasoning_content";

export class Message {
  constructor(role, fields = {}) {
    this.role = role;
    this.content = "";
    this.parts = []; // strings, and a Marker for each part that isn't text
    this.calls = [];
    this.reasoning = "";
    this.name = "";
    this.callId = "";
    this.marks = undefined; // or a set of the fields that count as the template's own
    Object.assign(this, fields);
  }

  /** Whether the message has nothing except its role. */
  get isEmpty() {
    const { content, parts, calls, reasoning, name, callId } = this;
    return !(content || parts.length || calls.length || reasoning || name || callId);
  }

  get hasMedia() {
    return this.parts.some((part) => part instanceof Marker);
  }

  /** Returns the content as pieces, with a blank line between parts, and without parts that aren't
   * text. */
  pieces() {
    if (!this.parts.length) return [this.piece(CONTENT, this.content)];
    const texts = this.parts.filter((part) => !(part instanceof Marker));
    return separated(texts, "\n\n", this.owns(CONTENT));
  }

  /** Returns a text from a field of the message as a piece: [text, isOwn]. */
  piece(field, text) {
    return [text, this.owns(field)];
  }

  owns(field) {
    return Boolean(this.marks?.has(field));
  }

  trimmed() {
    return new Message(this.role, {
      ...this,
      content: strip(this.content),
      parts: this.parts.map((part) => (part instanceof Marker ? part : strip(part))),
      reasoning: strip(this.reasoning),
    });
  }
}

/** Returns the parts as pieces. After the first non-empty part, a separator comes between two
 * adjacent texts, but not between a text and a marker. */
export function separated(parts, separator, isOwn = false) {
  const pieces = [];
  let begun = false;
  let afterMarker = false;
  for (const part of parts) {
    const isMarker = part instanceof Marker;
    if (begun && !isMarker && !afterMarker) pieces.push([separator, true]);
    pieces.push([isMarker ? part.text : part, isMarker || isOwn]);
    begun ||= part !== "";
    afterMarker = isMarker;
  }
  return pieces;
}

// ---- reading ----

/** Reads a message of a request, with `marker` for parts that aren't text. Throws if the server
 * refuses the message. `marks`: the set of fields that count as the template's own, or
 * undefined. */
export function read(message, index, marker, marks) {
  const where = `messages[${index}]`;
  fields(message, where);
  if (!has(message, "role")) throw refuse(`${where} has no 'role'`);
  const found = new Message(string(message, "role", where), { marks });
  const hasContent = has(message, "content");
  const hasCalls = has(message, "tool_calls");
  if (!hasContent && (found.role !== "assistant" || !hasCalls)) {
    const wanted = found.role === "assistant" ? "'content' or 'tool_calls'" : "'content'";
    throw refuse(`${where} has no ${wanted}`);
  }
  if (hasContent) readContent(found, message.content, `${where}.content`, marker);
  if (hasCalls && message.tool_calls !== null) {
    found.calls = readCalls(message.tool_calls, `${where}.tool_calls`);
  }
  if (has(message, "reasoning_content")) {
    found.reasoning = string(message, "reasoning_content", where);
  }
  if (has(message, "name")) found.name = string(message, "name", where);
  if (has(message, "tool_call_id")) found.callId = string(message, "tool_call_id", where);
  return found;
}

function has(object, key) {
  return Object.hasOwn(object, key) && object[key] !== undefined;
}

function readContent(to, content, where, marker) {
  if (typeof content === "string") {
    to.content = wellFormed(content, where);
  } else if (Array.isArray(content)) {
    to.parts = content.map((part, i) => readPart(part, `${where}[${i}]`, marker));
  } else if (content !== null) {
    throw refuse(`${where} must be a string, an array of parts or null, not ${kindOf(content)}`);
  }
}

function readPart(part, where, marker) {
  fields(part, where);
  if (KINDS.includes(part.type)) return new Marker(marker);
  if (part.type !== "text") {
    const known = KINDS.map((kind) => `'${kind}'`).join(", ");
    throw refuse(`${where}: the type of a part must be 'text' or one of ${known}`);
  }
  return string(part, "text", where);
}

function readCalls(calls, where) {
  if (isObject(calls) && !Object.keys(calls).length) return [];
  if (!Array.isArray(calls)) throw refuse(`${where} must be an array, not ${kindOf(calls)}`);
  return calls.map((call, i) => readCall(call, `${where}[${i}]`));
}

function readCall(call, where) {
  fields(call, where);
  if (call.type !== "function") throw refuse(`${where}: the type of a call must be 'function'`);
  const inside = `${where}.function`;
  fields(call.function, inside);
  const name = string(call.function, "name", inside);
  if (!has(call.function, "arguments")) throw refuse(`${inside} has no 'arguments'`);
  const given = plain(call.function.arguments, `${inside}.arguments`);
  const found = { type: own("function"), function: { name, arguments: given } };
  const id = has(call, "id") ? string(call, "id", where) : "";
  return id ? { ...found, id } : found;
}

function fields(value, where) {
  if (!isObject(value)) throw refuse(`${where} must be an object, not ${kindOf(value)}`);
}

function string(object, key, where) {
  const value = Object.hasOwn(object, key) ? object[key] : undefined;
  if (typeof value !== "string") {
    throw refuse(`${where}.${key} must be a string, not ${value === undefined ? "missing" : kindOf(value)}`);
  }
  return wellFormed(value, `${where}.${key}`);
}

// ---- writing ----

/** Returns the message for the template, before a handler changes it. */
export function write(message, caps, index) {
  const written = (field, value) => (message.owns(field) ? owned(value) : value);
  const found = {
    role: role(message.role, message.marks),
    content: written(CONTENT, writtenContent(message, caps)),
  };
  if (message.reasoning) found.reasoning_content = written(REASONING, message.reasoning);
  if (message.name) found.name = written("name", message.name);
  if (message.callId) found.tool_call_id = written("tool_call_id", message.callId);
  if (message.calls.length) {
    found.tool_calls = message.calls.map((call, i) =>
      written(
        "tool_calls",
        writtenCall(call, caps, `messages[${index}].tool_calls[${i}].function.arguments`),
      ),
    );
  }
  return found;
}

function writtenContent(message, caps) {
  const { content, parts } = message;
  if (parts.length && !message.hasMedia && !caps.onlyString) {
    return parts.map((text) => ({ type: own("text"), text }));
  }
  // The server joins all parts if one isn't text.
  const isOwn = message.owns(CONTENT);
  const text = parts.length ? joined(separated(parts, "\n", isOwn)) : content;
  return caps.onlyTyped ? [{ type: own("text"), text }] : text;
}

function writtenCall(call, caps, where) {
  let given = call.function.arguments;
  if (caps.objectArguments) {
    if (typeof given === "string") given = json(given, where);
  } else if (typeof given !== "string") {
    given = dump(given);
  }
  return { ...call, function: { ...call.function, arguments: given } };
}

/** Merges a system message into the next message if the template doesn't support system
 * messages. */
export function mergeSystem(messages, caps) {
  if (caps.systemRole || !messages.length || textOf(messages[0].role) !== "system") return messages;
  const [first, next, ...rest] = messages;
  if (!next) return [];
  if (!isText(first.content) || !isText(next.content)) {
    throw refuse(
      "the template supports no system message, and contents in parts can't be merged",
    );
  }
  const pieces = [[first.content, false], ["\n", true], [next.content, false]];
  return [{ ...next, content: joined(pieces) }, ...rest];
}

// ---- tools ----

/** Returns the tools with only the fields that the server uses: name, description and parameters.
 */
export function readTools(tools) {
  if (tools == null) return [];
  if (!Array.isArray(tools)) throw refuse(`tools must be an array, not ${kindOf(tools)}`);
  return tools.map((tool, i) => {
    const where = `tools[${i}]`;
    fields(tool, where);
    if (tool.type !== "function") throw refuse(`${where}: the type of a tool must be 'function'`);
    const inside = `${where}.function`;
    fields(tool.function, inside);
    const { description = "", parameters = {} } = tool.function;
    if (typeof description !== "string") {
      throw refuse(`${inside}.description must be a string, not ${kindOf(description)}`);
    }
    return {
      type: own("function"),
      function: {
        name: string(tool.function, "name", inside),
        description: wellFormed(description, `${inside}.description`),
        parameters: plain(parameters, `${inside}.parameters`),
      },
    };
  });
}
