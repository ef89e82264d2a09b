// The capabilities of a template, found by rendering test conversations, as llama-server does.

// Bits that jinja_note returns.
const USED = 1;
const ARRAY_ACCESS = 2;
const IS_STRING = 8;
const SELECTATTR = 16;

// Template variables that decide whether earlier reasoning stays in the prompt, each with the value
// for which it stays.
export const PRESERVING = {
  preserve_thinking: true,
  clear_thinking: false,
  truncate_history_thinking: false,
  drop_thinking: false,
};
export const EFFORTS = ["reasoning_effort", "reasoning_strength"];

const MARKER = "STRING_MARKER";
const OBJECT = { arg: "value" };
const TEXT = '{"arg": "value"}';
const USER = { role: "user", content: "User message" };
const TOOLS = [
  {
    name: "tool",
    type: "function",
    function: {
      name: "tool1",
      description: "Tool description",
      parameters: {
        type: "object",
        properties: { arg: { type: "string", description: "Arg description" } },
        required: ["arg"],
      },
    },
  },
];
const TOOL_NAME = ["tools", 0, "function", "name"];
const CALLS = ["messages", 1, "tool_calls"];
const CONTENT = ["messages", 0, "content"];

/** Finds the capabilities that decide how messages are written. */
export function find(template) {
  const caps = { string: true, typed: false, toolCalls: true, systemRole: true };
  const probe = (messages, paths, tools = []) =>
    template.probe(
      { messages, tools, bos_token: "", eos_token: "", add_generation_prompt: true },
      paths,
    );
  findContent(probe, caps);
  const system = [{ role: "system", content: "System message" }, USER];
  caps.systemRole = Boolean(probe(system, [CONTENT]).notes[0] & USED);
  findCalls(probe, caps);
  caps.onlyString = caps.string && !caps.typed;
  caps.onlyTyped = caps.typed && !caps.string;
  return caps;
}

function findContent(probe, caps) {
  const asList = (note) => Boolean(note & (SELECTATTR | ARRAY_ACCESS));
  const { text, notes } = probe([{ role: "user", content: MARKER }], [CONTENT]);
  caps.typed = asList(notes[0]);
  if (text === null || (caps.typed && !text.includes(MARKER))) caps.string = false;
  if (notes[0] & IS_STRING) {
    const list = probe([{ role: "user", content: [] }], [CONTENT]);
    if (list.text !== null && asList(list.notes[0])) caps.typed = true;
  }
}

function conversation(args) {
  const call = { id: "call00001", type: "function", function: { name: "tool1", arguments: args } };
  return [
    USER,
    { role: "assistant", content: "", tool_calls: [call] },
    { role: "tool", content: "Tool response", tool_call_id: "call00001" },
    { role: "assistant", content: "The tool response was 'tool response'" },
    USER,
  ];
}

/** Tests tool calls whose arguments are first an object, then text. */
function findCalls(probe, caps) {
  const argument = [...CALLS, 0, "function", "arguments", "arg"];
  const object = probe(conversation(OBJECT), [TOOL_NAME, CALLS, argument], TOOLS);
  caps.objectArguments = false;
  if (object.text !== null) {
    caps.toolCalls = Boolean(object.notes[1] & USED);
    caps.objectArguments = caps.toolCalls && Boolean(object.notes[2] & USED);
  }
  if (caps.objectArguments) return;
  const text = probe(conversation(TEXT), [TOOL_NAME, CALLS], TOOLS);
  // A capability stays false if its test with object arguments failed.
  caps.toolCalls &&= text.text !== null && Boolean(text.notes[1] & USED);
}
