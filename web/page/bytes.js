// Texts from a trace, in which bytes that aren't UTF-8 are lone surrogates (U+DC80 to U+DCFF).

import { partsOf, visible } from "./vocabulary-table.js";
import { partsTemplate } from "./tokens.js";

const utf8 = new TextEncoder();

const BYTES = /[\udc80-\udcff]+/u;

export function bytesOf(text) {
  if (!BYTES.test(text)) return utf8.encode(text);
  const parts = text.split(/([\udc80-\udcff]+)/u);
  const encoded = parts.map((part, i) => (i % 2 ? Uint8Array.from(part, (c) => c.charCodeAt(0) - 0xdc00) : utf8.encode(part)));
  const bytes = new Uint8Array(encoded.reduce((sum, part) => sum + part.length, 0));
  encoded.reduce((at, part) => (bytes.set(part, at), at + part.length), 0);
  return bytes;
}

/** Returns the number of bytes that the text represents. */
export function byteLength(text) {
  let n = 0;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) n += 1;
    else if (unit < 0x800) n += 2;
    else if (unit >= 0xd800 && unit < 0xdc00) (n += 4), (i += 1);
    else n += unit >= 0xdc80 && unit <= 0xdcff ? 1 : 3;
  }
  return n;
}

/** Renders the text with visible white space and bytes. */
export const textTemplate = (text, most) => partsTemplate(partsOf(bytesOf(text), most));

/** Returns up to 60 characters of the text as one line of plain text for screen readers. */
export const spoken = (text) => visible(partsOf(bytesOf(text), 60));
