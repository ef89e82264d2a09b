// The map's colours: for each token a swatch, by script, rank, length or use in the text.
//
// A swatch is a fill, an edge and an ink for its label. Colours are computed in Oklab, in which equal
// steps look equal.

import { nextByte } from "./map-layout.js";
import { strings } from "./strings.js";

const t = strings.map;

// Hues in degrees; neighbours on the map differ. Names are those of VocabularyTable.scripts.
const HUES = {
  Latin: 242, Han: 28, Cyrillic: 318, Arabic: 155, Hangul: 352, Hiragana: 8, Katakana: 50, Devanagari: 65, Greek: 182, Hebrew: 168,
  Thai: 110, Bengali: 40, Tamil: 330, Telugu: 290, Kannada: 75, Malayalam: 130, Gujarati: 20, Gurmukhi: 225, Sinhala: 95, Khmer: 170,
  Lao: 125, Myanmar: 60, Tibetan: 355, Georgian: 275, Armenian: 315, Ethiopic: 140, Mongolian: 215, Digits: 100, Emoji: 85,
  "Other scripts": 240,
};
const GREY = { "Punctuation and space": 80, Symbols: 195, "Parts of characters": 30, Special: 270 };

const BRANCHES = 5; // hues of the large branches of one script
const SHADES = 5; // lightnesses of smaller branches, and of tiles
const STEPS = 24; // of a scale
const MOST_BYTES = 16; // longer tokens have the colour of this length

/** Returns [red, green, blue] from 0 to 255 of a colour in OKLCH. Colours outside sRGB are clipped. */
export function rgbOf(lightness, chroma, hue) {
  const angle = (hue * Math.PI) / 180;
  const a = chroma * Math.cos(angle);
  const b = chroma * Math.sin(angle);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map((x) => Math.round(255 * Math.max(0, Math.min(1, x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055))));
}

const css = (rgb) => `rgb(${rgb.join(" ")})`;
const packed = ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r;
const hash = (n) => (Math.imul(n + 1, 0x9e3779b1) >>> 8) & 0xffff;

/** Swatches that are added one by one. `fills` and `edges` are pixels; `css` and `inks` are texts. */
class Swatches {
  fills = [];
  edges = [];
  css = [];
  inks = [];

  constructor(dark) {
    this.dark = dark;
  }

  add(lightness, chroma, hue) {
    const rgb = rgbOf(lightness, chroma, hue);
    this.css.push(css(rgb));
    this.fills.push(packed(rgb));
    this.edges.push(packed(rgbOf(lightness - (this.dark ? 0.09 : 0.085), chroma, hue)));
    this.inks.push(css(lightness > 0.6 ? rgbOf(0.22, chroma * 0.45, hue) : rgbOf(0.97, chroma * 0.12, hue)));
    return this.css.length - 1;
  }

  /** Adds a scale from few to many: steps of rising (or, in the light theme, falling) lightness. */
  addScale() {
    const first = this.css.length;
    for (let i = 0; i < STEPS; i += 1) {
      const x = i / (STEPS - 1);
      const lightness = this.dark ? 0.88 - 0.56 * x : 0.93 - 0.5 * x;
      this.add(lightness, 0.09 + 0.06 * Math.sin(Math.PI * x), 95 + 185 * x);
    }
    return first;
  }
}

const step = (x) => Math.max(0, Math.min(STEPS - 1, Math.floor(x * STEPS)));

/** Returns the swatch of each number, the swatches, and the legend: `items` of
 * { name, n, swatch } or a `scale` of { from, to, swatches }. */
export function colourBy(mode, { map, forest, vocab, used, dark }) {
  const swatches = new Swatches(dark);
  const of = new Uint16Array(map.ids.length);
  const legend = { items: [] };
  const modes = { script: byScript, rank: byRank, length: byLength, text: byUse };
  (modes[mode] ?? byScript)({ map, forest, vocab, used, dark, swatches, of, legend });
  const { fills, edges } = swatches;
  const dim = packed(rgbOf(dark ? 0.27 : 0.92, 0.006, 80));
  return { of, legend, dim, ink: dark ? "#fff" : "#000", rim: dark ? "#000" : "#fff", css: swatches.css, inks: swatches.inks, fills: Int32Array.from(fills), edges: Int32Array.from(edges) };
}

function byScript({ map, forest, vocab, dark, swatches, of, legend }) {
  const { names, of: scripts } = vocab.scripts;
  const numbers = new Uint32Array(names.length);
  const first = names.map((name) => {
    const grey = name in GREY;
    const at = swatches.css.length;
    for (let branch = 0; branch < BRANCHES; branch += 1)
      for (let shade = 0; shade < SHADES; shade += 1) {
        const off = shade / (SHADES - 1) - 0.5;
        const lightness = (dark ? 0.53 : 0.82) + (dark ? 0.11 : 0.075) * off - (name === "Special" ? 0.12 : 0);
        const hue = (HUES[name] ?? GREY[name] ?? 240) + (branch / (BRANCHES - 1) - 0.5) * (grey ? 30 : 24);
        swatches.add(lightness, grey ? 0.025 : dark ? 0.105 : 0.088, hue);
      }
    return at;
  });
  const branches = new Uint8Array(map.ids.length);
  const shades = new Uint8Array(map.ids.length);
  for (let n = 0; n < map.ids.length; n += 1) {
    const id = map.ids[n];
    const parent = map.numbers[forest.parents[id]];
    const depth = map.depths[n];
    branches[n] = depth < 2 ? hash(nextByte(forest, vocab, id) + 300 * depth) % BRANCHES : branches[parent];
    shades[n] = depth < 4 ? hash(7 * id) % SHADES : shades[parent];
    const shade = Math.round((shades[n] + (hash(13 * id) % SHADES)) / 2);
    of[n] = first[scripts[id]] + branches[n] * SHADES + shade;
    numbers[scripts[id]] += 1;
  }
  const middle = SHADES * (BRANCHES >> 1) + (SHADES >> 1);
  legend.items = names.map((name, i) => ({ name, n: numbers[i], swatch: first[i] + middle, value: i })).filter(({ n }) => n).sort((a, b) => b.n - a.n);
  legend.has = (n, value) => scripts[map.ids[n]] === value;
}

function byRank({ map, forest, vocab, swatches, of, legend }) {
  const grey = swatches.add(swatches.dark ? 0.4 : 0.84, 0.01, 80);
  const first = swatches.addScale();
  const { size, rank: ranks } = forest.merges;
  const hasMerges = size > 0;
  const most = hasMerges ? size : vocab.size;
  for (let n = 0; n < of.length; n += 1) {
    const rank = hasMerges ? ranks[map.ids[n]] : map.ids[n];
    of[n] = rank < 0 ? grey : first + step(Math.log1p(rank) ** 3 / Math.log1p(most) ** 3);
  }
  legend.scale = { from: hasMerges ? t.firstMerge : t.firstId, to: hasMerges ? t.lastMerge(most) : t.lastId(most), swatches: Array.from({ length: STEPS }, (_, i) => first + i) };
  if (hasMerges) legend.items = [{ name: t.noMerge, swatch: grey }];
}

function byLength({ map, vocab, swatches, of, legend }) {
  const first = swatches.addScale();
  for (let n = 0; n < of.length; n += 1) of[n] = first + step((Math.min(MOST_BYTES, vocab.length(map.ids[n])) - 1) / (MOST_BYTES - 1) - 1e-9);
  legend.scale = { from: t.shortest, to: t.longest(MOST_BYTES), swatches: Array.from({ length: STEPS }, (_, i) => first + i) };
}

function byUse({ map, used, dark, swatches, of, legend }) {
  const rest = Array.from({ length: SHADES }, (_, i) => swatches.add((dark ? 0.27 : 0.9) + 0.012 * i, 0.006, 80));
  const once = swatches.add(dark ? 0.74 : 0.72, 0.13, 75);
  const often = swatches.add(dark ? 0.64 : 0.58, 0.19, 30);
  const counts = used ?? new Map();
  for (let n = 0; n < of.length; n += 1) {
    const times = counts.get(map.ids[n]) ?? 0;
    of[n] = times > 1 ? often : times ? once : rest[hash(map.ids[n]) % SHADES];
  }
  const times = [...counts.values()];
  legend.items = [
    { name: t.usedOnce, n: times.filter((n) => n === 1).length, swatch: once },
    { name: t.usedOften, n: times.filter((n) => n > 1).length, swatch: often },
    { name: t.notUsed, n: of.length - times.length, swatch: rest[0] },
  ];
}
