// The map as a picture to keep: PNG, or SVG whose tiles are shapes.

import { TilePainter, drawLabels, drawRegions, placeLabels, scaleOf } from "./map-paint.js";
import { drawMarks, labelMeasure, regionNames } from "./map-canvas.js";

const WIDTH = 2400; // pixels of a picture
const FOOT = 96; // pixels below the map
const MARGIN = 28;
const TITLE = 34; // pixels of the title's text
const LEGEND = 20; // pixels of the legend's text
const SMALLEST = 12; // square pixels; an SVG has smaller subtrees as one tile
const MOST_LABELS = 900;

/** Returns a canvas with the map as the camera shows it, a title and the legend. */
export function picture({ map, colours, camera, vocab, font, isDimmed, marks, title, note, legend, ink, paper }) {
  const height = Math.round(WIDTH / map.aspect);
  const canvas = Object.assign(document.createElement("canvas"), { width: WIDTH, height: height + FOOT });
  const context = canvas.getContext("2d", { alpha: false });
  const image = new ImageData(WIDTH, height);
  const painter = new TilePainter(map, colours, camera, { pixels: new Int32Array(image.data.buffer), width: WIDTH, height, ratio: 2, isDimmed });
  painter.step();
  context.fillStyle = paper;
  context.fillRect(0, 0, WIDTH, height + FOOT);
  context.putImageData(image, 0, 0);
  drawRegions(context, map, camera, { width: WIDTH, height, font, ink: colours.ink, nameOf: regionNames(vocab) });
  drawMarks(context, map, colours, camera, { marks, width: WIDTH, height });
  const measure = labelMeasure(context, map, vocab, font);
  drawLabels(context, placeLabels(map, camera, { numbers: painter.labels, width: WIDTH, height, most: MOST_LABELS, measure }), colours, font);
  drawFoot(context, { top: height, colours, font, title, note, legend, ink });
  return canvas;
}

function drawFoot(context, { top, colours, font, title, note, legend, ink }) {
  const middle = top + FOOT / 2;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillStyle = ink;
  context.font = `600 ${TITLE}px ${font}`;
  context.fillText(title, MARGIN, middle);
  let x = MARGIN + context.measureText(title).width + MARGIN;
  context.font = `400 ${LEGEND}px ${font}`;
  context.fillText(note, x, middle + 4);
  const left = x + context.measureText(note).width + 2 * MARGIN;
  const scale = legend.scale ? [legend.scale.from, ...legend.scale.swatches, legend.scale.to] : [];
  const items = [...scale, ...legend.items.flatMap(({ swatch, name }) => [swatch, ` ${name}   `])];
  const widths = items.map((item) => (typeof item === "number" ? LEGEND * (legend.scale ? 0.5 : 1) : context.measureText(item).width + 8));
  let fitting = items.length; // items before the first that doesn't fit
  let used = 0;
  for (let i = 0; i < items.length; i += 1) {
    used += widths[i];
    if (left + used > WIDTH - MARGIN) {
      fitting = legend.scale ? 0 : i - (i % 2);
      break;
    }
  }
  x = WIDTH - MARGIN - widths.slice(0, fitting).reduce((sum, width) => sum + width, 0);
  for (let i = 0; i < fitting; i += 1) {
    const item = items[i];
    context.fillStyle = typeof item === "number" ? colours.css[item] : ink;
    if (typeof item === "number") context.fillRect(x, middle - LEGEND / 2 + 2, widths[i], LEGEND);
    else context.fillText(item, x + 4, middle + 4);
    x += widths[i];
  }
}

const escaped = (text) => text.replace(/[&<>"\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Cs}/gu, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c] ?? "\ufffd");
const short = (x) => String(Math.round(10 * x) / 10);

/** Returns the map as the camera shows it, as SVG text. */
export function svg({ map, colours, camera, vocab, font, isDimmed, title, note, ink, paper }) {
  const width = WIDTH / 2;
  const height = Math.round(width / map.aspect);
  const view = scaleOf(camera, width, height);
  const shapes = new Map(); // the path of each colour
  const numbers = [];
  const add = (n, rectangles) => {
    const i = 4 * n;
    const x0 = Math.max(0, rectangles[i] * view.sx - view.dx);
    const y0 = Math.max(0, rectangles[i + 1] * view.sy - view.dy);
    const x1 = Math.min(width, rectangles[i + 2] * view.sx - view.dx);
    const y1 = Math.min(height, rectangles[i + 3] * view.sy - view.dy);
    if (x1 <= x0 || y1 <= y0) return;
    const fill = isDimmed?.(n) ? "dim" : colours.of[n];
    shapes.set(fill, `${shapes.get(fill) ?? ""}M${short(x0)} ${short(y0)}H${short(x1)}V${short(y1)}H${short(x0)}z`);
    if (x1 - x0 > 16 && y1 - y0 > 11) numbers.push(n);
  };
  for (let n = 0; n < map.ids.length; ) {
    const i = 4 * n;
    const w = (map.outer[i + 2] - map.outer[i]) * view.sx;
    const h = (map.outer[i + 3] - map.outer[i + 1]) * view.sy;
    const x = map.outer[i] * view.sx - view.dx;
    const y = map.outer[i + 1] * view.sy - view.dy;
    const outside = x >= width || y >= height || x + w <= 0 || y + h <= 0;
    if (outside || w * h < SMALLEST || map.next[n] === n + 1) {
      if (!outside) add(n, map.outer);
      n = map.next[n];
    } else {
      add(n, map.inner);
      n += 1;
    }
  }
  const context = document.createElement("canvas").getContext("2d");
  const labels = placeLabels(map, camera, { numbers, width, height, most: MOST_LABELS, measure: labelMeasure(context, map, vocab, font) });
  const family = escaped(font);
  const dim = `#${(colours.dim & 0xffffff).toString(16).padStart(6, "0").match(/../g).reverse().join("")}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height + 44}" font-family="${family}">`,
    `<title>${escaped(title)}</title><rect width="100%" height="100%" fill="${paper}"/>`,
    '<g stroke="#000" stroke-opacity=".18" stroke-width=".4">',
    ...[...shapes].map(([fill, path]) => `<path fill="${fill === "dim" ? dim : colours.css[fill]}" d="${path}"/>`),
    '</g><g text-anchor="middle" dominant-baseline="central" font-weight="500">',
    ...labels.map(({ n, text, x, y, size }) => `<text x="${short(x)}" y="${short(y)}" font-size="${size}" fill="${colours.inks[colours.of[n]]}" xml:space="preserve">${escaped(text)}</text>`),
    `</g><text x="14" y="${height + 27}" font-size="16" font-weight="600" fill="${ink}">${escaped(title)}<tspan font-size="11" font-weight="400" dx="14">${escaped(note)}</tspan></text></svg>`,
  ].join("\n");
}

/** Lets the user save a blob. */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
