// The map as a picture to keep: PNG, or SVG whose tiles are shapes.

import { REGION, TilePainter, drawLabels, drawRegions, nameWidth, placeLabels, placeRegions, scaleOf } from "./map-paint.js";
import { drawMarks, labelMeasure, regionNames } from "./map-canvas.js";

const WIDTH = 2400; // pixels of a picture
const FOOT = 96; // pixels below the map
const MARGIN = 28;
const TITLE = 34; // pixels of the title's text
const LEGEND = 20; // pixels of the legend's text
const SMALLEST = 8; // square pixels; an SVG has smaller subtrees as one tile
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
  const names = placeRegions(map, camera, { width: WIDTH, height, nameOf: regionNames(vocab), widthOf: nameWidth(context, font) });
  drawRegions(context, names, { ...colours, font });
  drawMarks(context, map, colours, camera, { marks, width: WIDTH, height });
  const measure = labelMeasure(context, map, vocab, font);
  drawLabels(context, placeLabels(map, camera, { numbers: painter.labels, names, width: WIDTH, height, most: MOST_LABELS, measure }), colours, font);
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
/** Returns the paths of the tiles that a camera shows, by colour, and the numbers of large tiles. */
function tilePaths({ map, colours, camera, isDimmed }, width, height) {
  const { outer, inner, next } = map;
  const view = scaleOf(camera, width, height);
  const paths = new Map();
  const numbers = [];
  const add = (n, rectangles) => {
    const i = 4 * n;
    const x0 = Math.max(0, Math.round(rectangles[i] * view.sx - view.dx));
    const y0 = Math.max(0, Math.round(rectangles[i + 1] * view.sy - view.dy));
    const w = Math.min(width, Math.round(rectangles[i + 2] * view.sx - view.dx)) - x0;
    const h = Math.min(height, Math.round(rectangles[i + 3] * view.sy - view.dy)) - y0;
    if (w <= 0 || h <= 0) return;
    const colour = isDimmed?.(n) ? cssOf(colours.dim) : colours.css[colours.of[n]];
    const path = paths.get(colour);
    const shape = `M${x0} ${y0}h${w}v${h}h${-w}z`;
    if (path) path.push(shape);
    else paths.set(colour, [shape]);
    if (w > 24 && h > 16) numbers.push(n);
  };
  for (let n = 0; n < next.length; ) {
    const i = 4 * n;
    const w = (outer[i + 2] - outer[i]) * view.sx;
    const h = (outer[i + 3] - outer[i + 1]) * view.sy;
    const x = outer[i] * view.sx - view.dx;
    const y = outer[i + 1] * view.sy - view.dy;
    const outside = x >= width || y >= height || x + w <= 0 || y + h <= 0;
    if (outside || w * h < SMALLEST || next[n] === n + 1) {
      if (!outside) add(n, outer);
      n = next[n];
    } else {
      add(n, inner);
      n += 1;
    }
  }
  return { paths, numbers };
}

const cssOf = (pixel) => `rgb(${pixel & 255} ${(pixel >> 8) & 255} ${(pixel >> 16) & 255})`;

/** Returns the map as the camera shows it, as SVG text. */
export function svg(view) {
  const { map, colours, camera, vocab, font, title, note, ink, paper } = view;
  const height = Math.round(WIDTH / map.aspect);
  const size = { width: WIDTH, height };
  const { paths, numbers } = tilePaths(view, WIDTH, height);
  const context = document.createElement("canvas").getContext("2d");
  const names = placeRegions(map, camera, { ...size, nameOf: regionNames(vocab), widthOf: nameWidth(context, font) });
  const labels = placeLabels(map, camera, { ...size, numbers, names, most: MOST_LABELS, measure: labelMeasure(context, map, vocab, font) });
  const text = (label, x, y, attributes) => `<text x="${Math.round(x)}" y="${Math.round(y)}" ${attributes} xml:space="preserve">${escaped(label)}</text>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height + FOOT}" font-family="${escaped(font)}">`,
    `<title>${escaped(title)}</title><rect width="100%" height="100%" fill="${paper}"/>`,
    '<g shape-rendering="crispEdges">',
    ...Array.from(paths, ([colour, shapes]) => `<path fill="${colour}" d="${shapes.join("")}"/>`),
    `</g><g text-anchor="middle" dominant-baseline="central"><g font-weight="600" fill="${colours.ink}" fill-opacity="${REGION.alpha}">`,
    ...names.map(({ text: name, x, y, size }) => text(name, x, y, `font-size="${size}"`)),
    '</g><g font-weight="500">',
    ...labels.map(({ n, text: label, x, y, size }) => text(label, x, y, `font-size="${size}" fill="${colours.inks[colours.of[n]]}"`)),
    `</g></g><text x="${MARGIN}" y="${height + FOOT / 2}" dominant-baseline="central" font-size="${TITLE}" font-weight="600" fill="${ink}">${escaped(title)}`,
    `<tspan font-size="${LEGEND}" font-weight="400" dx="${MARGIN}">${escaped(note)}</tspan></text></svg>`,
  ].join("\n");
}
