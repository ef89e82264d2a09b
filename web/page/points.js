// Characters. The page counts code points, as Python does; strings have UTF-16 units.

/** Returns the number of characters in a string. */
export function points(text) {
  let n = text.length;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit < 0xdc00 && i + 1 < text.length) {
      const low = text.charCodeAt(i + 1);
      if (low >= 0xdc00 && low < 0xe000) n -= 1;
    }
  }
  return n;
}
