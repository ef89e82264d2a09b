// How files store the texts of tokens: with a character for each byte ("Ġthe"), with "▁" for a
// space ("▁the"), or as they are.

const BYTE_LEVEL_SPACE = "Ġ";
const SPACE = "▁";

const utf8 = new TextEncoder();

/** The characters of the byte-level form, with the byte that each represents. */
const BYTE_OF = new Map();
{
  const isPrinted = (byte) => (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
  let others = 0;
  for (let byte = 0; byte < 256; byte += 1) BYTE_OF.set(String.fromCodePoint(isPrinted(byte) ? byte : 256 + others++), byte);
}

/** Returns the character with which a token's stored text begins, if the token begins with a space
 * and the file stores a space as another character; otherwise "". */
export const spaceIn = (stored) => [BYTE_LEVEL_SPACE, SPACE].find((space) => stored.startsWith(space)) ?? "";

/** Returns the bytes that a stored text represents, in a file that stores a space as `space`;
 * undefined if it isn't a stored text. */
export function bytesOfStored(text, space) {
  if (space === SPACE && text.includes(SPACE)) return utf8.encode(text.replaceAll(SPACE, " "));
  if (space !== BYTE_LEVEL_SPACE) return undefined;
  const bytes = Array.from(text, (character) => BYTE_OF.get(character));
  return bytes.includes(undefined) ? undefined : Uint8Array.from(bytes);
}
