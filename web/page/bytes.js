// Texts of a trace, in which bytes that aren't UTF-8 are lone surrogates (U+DC80 to U+DCFF).

import { partsOf, visible } from "./vocabulary-table.js";
import { partsTemplate } from "./tokens.js";

const utf8 = new TextEncoder();

export function bytesOf(text) {
  const bytes = [];
  for (const character of text) {
    const code = character.codePointAt(0);
    if (code >= 0xdc80 && code <= 0xdcff) bytes.push(code - 0xdc00);
    else bytes.push(...utf8.encode(character));
  }
  return Uint8Array.from(bytes);
}

/** The text with visible white space and bytes. */
export const textTemplate = (text, most) => partsTemplate(partsOf(bytesOf(text), most));

/** The same as one line of plain text, for screen readers. */
export const spoken = (text) => visible(partsOf(bytesOf(text), 60));
