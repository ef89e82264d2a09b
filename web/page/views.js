// The tabs of the page, in order.
//
// A view is a custom element derived from View (view.js). To add a view, write a module that defines
// the element, import it here, and add a row:
//   name        the tab's name in the address and in strings.tab
//   tag         the element's tag
//   needsModel  whether it is shown only once a model is open (default: true)
//
// The shell creates the element when its tab is first chosen, sets its property `app` and keeps it.
// `app` (state.js) has
//   app.models        the open models: [{ name, tok, info, vocab, source }] (models.js)
//   app.model         the model in use, or undefined
//   app.values.text   the text, shared by all views
//   app.options       the options for encoding: { addSpecial, parseSpecial, continuation }
//   app.set({...})    changes settings: app.set({ text: "..." }), app.set({ view: "why" })
//   app.say(message)  shows a short message to the user
// `tok` has the methods of a WorkerTokenizer (../js), which return promises. `vocab`
// (vocabulary-table.js) has all pieces, types and scores, for synchronous use. A view declares the
// settings that belong in links with `declare` (state.js). `<gg-tokens>` and `tokenPiece`
// (tokens.js) draw tokens; texts come from strings.js; colours are CSS variables (style.css).

import "./models-view.js";
import "./text-view.js";
import "./why-view.js";
import "./compare-view.js";
import "./vocabulary-view.js";
import "./chat-view.js";
import "./file-view.js";

export const views = [
  { name: "models", tag: "gg-models-view", needsModel: false },
  { name: "text", tag: "gg-text-view" },
  { name: "why", tag: "gg-why-view" },
  { name: "compare", tag: "gg-compare-view" },
  { name: "vocabulary", tag: "gg-vocabulary-view" },
  { name: "chat", tag: "gg-chat-view" },
  { name: "file", tag: "gg-file-view" },
];
