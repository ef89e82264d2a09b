// Cameras of the map: { x, y, zoom } shows the window from (x, y) with side 1 / zoom of the unit
// square.

const RHO = Math.SQRT2; // how far a flight zooms out
const SHORTEST = 250; // milliseconds of a flight
const LONGEST = 1100;

const limit = (x, from, to) => Math.max(from, Math.min(to, x));

/** Returns the camera, moved so that its window is within the unit square. */
export function within({ x, y, zoom }) {
  return { x: limit(x, 0, 1 - 1 / zoom), y: limit(y, 0, 1 - 1 / zoom), zoom };
}

/** Zooms by a factor, so that a point of the viewport (x and y from 0 to 1) stays where it is. */
export function zoomAt(camera, factor, point, mostZoom) {
  const zoom = limit(camera.zoom * factor, 1, mostZoom);
  const change = 1 / camera.zoom - 1 / zoom;
  return within({ x: camera.x + point.x * change, y: camera.y + point.y * change, zoom });
}

/** Returns the camera that shows a rectangle, `room` times as large. */
export function fit(rectangles, i, mostZoom, room) {
  const [x0, y0, x1, y1] = rectangles.subarray(i, i + 4);
  const zoom = limit(1 / (room * Math.max(x1 - x0, y1 - y0, 1e-9)), 1, mostZoom);
  return within({ x: (x0 + x1) / 2 - 0.5 / zoom, y: (y0 + y1) / 2 - 0.5 / zoom, zoom });
}

/** Returns a flight between cameras: { at(part), duration }. Its path is the one by van Wijk and
 * Nuij ("Smooth and efficient zooming and panning", 2003), which looks equally fast everywhere. */
export function flight(from, to) {
  const centre = ({ x, y, zoom }) => [x + 0.5 / zoom, y + 0.5 / zoom, 1 / zoom];
  const [ax, ay, a] = centre(from);
  const [bx, by, b] = centre(to);
  const d2 = (bx - ax) ** 2 + (by - ay) ** 2;
  const d = Math.sqrt(d2);
  let length;
  let at;
  if (d < 1e-9) {
    length = Math.abs(Math.log(b / a)) / RHO;
    at = (s) => [ax, ay, a * (b / a) ** (length ? s / length : 1)];
  } else {
    const r = (w, sign) => {
      const beta = (b * b - a * a + sign * RHO ** 4 * d2) / (2 * w * RHO * RHO * d);
      return Math.log(Math.sqrt(beta * beta + 1) - beta);
    };
    const r0 = r(a, 1);
    length = (r(b, -1) - r0) / RHO;
    at = (s) => {
      const u = (a / (RHO * RHO * d)) * (Math.cosh(r0) * Math.tanh(RHO * s + r0) - Math.sinh(r0));
      return [ax + u * (bx - ax), ay + u * (by - ay), (a * Math.cosh(r0)) / Math.cosh(RHO * s + r0)];
    };
  }
  const ease = (x) => (x < 0.5 ? 2 * x * x : 1 - 2 * (1 - x) * (1 - x));
  return {
    duration: limit(260 * length, SHORTEST, LONGEST),
    at(part) {
      const [x, y, w] = at(ease(part) * length);
      const zoom = Math.max(1, 1 / w);
      return within({ x: x - 0.5 / zoom, y: y - 0.5 / zoom, zoom });
    },
  };
}
