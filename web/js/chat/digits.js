// Decimal digits of doubles: Grisu2 (Loitsch, 2010), as in llama-server's JSON library. They always
// parse to the same double, but in about one case in a thousand fewer digits would do:
// 5.972269109151214e+16 becomes 5.9722691091512144e+16.

const ALPHA = -60; // the lowest exponent of a scaled number
const BITS = 64;
const LEAST_EXPONENT = -1074;
const LOG10_2 = 78913 / (1 << 18);
const STEP = 8; // the exponents in the library's table of powers of ten: FIRST, FIRST + STEP, ...
const FIRST = -300;

/** Returns the digits of a positive double, and the power of ten to multiply them by. */
export function digitsOf(value) {
  const [f, e, lowerIsCloser] = parts(value);
  const plus = normalized(2n * f + 1n, e - 1);
  const minus = lowerIsCloser ? [4n * f - 1n, e - 2] : [2n * f - 1n, e - 1];
  const low = minus[0] << BigInt(minus[1] - plus[1]);
  const [power, powerE, k] = powerFor(plus[1]);
  const w = times(normalized(f, e)[0], power);
  // Shrink the interval by one unit at each end, because the products may be off by that much.
  const high = times(plus[0], power) - 1n;
  return generated(times(low, power) + 1n, w, high, plus[1] + powerE + BITS, k);
}

/** Returns f and e of f * 2**e, and whether the next smaller double is nearer than the next larger
 * one. */
function parts(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const fraction = bits & ((1n << 52n) - 1n);
  const biased = Number((bits >> 52n) & 0x7ffn);
  if (biased === 0) return [fraction, LEAST_EXPONENT, false];
  return [fraction | (1n << 52n), biased - 1075, fraction === 0n && biased > 1];
}

function normalized(f, e) {
  const shift = BITS - length(f);
  return [f << BigInt(shift), e - shift];
}

function length(f) {
  return f.toString(2).length;
}

/** Returns the upper 64 bits of a product, rounded. */
function times(x, y) {
  return (x * y + (1n << 63n)) >> 64n;
}

/** Returns the 64 leading bits of a power of ten, rounded, and their exponent. */
function powerOfTen(k) {
  let numerator = k >= 0 ? 10n ** BigInt(k) : 1n;
  let denominator = k >= 0 ? 1n : 10n ** BigInt(-k);
  let e = length(numerator) - length(denominator) - BITS;
  if (e >= 0) denominator <<= BigInt(e);
  else numerator <<= BigInt(-e);
  if (numerator / denominator >= 1n << 64n) {
    denominator <<= 1n;
    e++;
  }
  return [(2n * numerator + denominator) / (2n * denominator), e];
}

/** Returns the power of ten in the table that scales a number with this exponent into range. */
function powerFor(e) {
  const f = ALPHA - e - 1;
  const k = Math.trunc(f * LOG10_2) + (f > 0 ? 1 : 0);
  const exponent = FIRST + Math.floor((-FIRST + k + STEP - 1) / STEP) * STEP;
  return [...powerOfTen(exponent), exponent];
}

/** Returns the shortest digits between low and high, adjusted towards w. */
function generated(low, w, high, e, k) {
  const one = BigInt(-e);
  let [delta, distance, rest] = [high - low, high - w, high];
  let power = String(high >> one).length - 1;
  let unit = 10n ** BigInt(power) << one;
  let text = "";
  for (;;) {
    text += rest / unit;
    rest %= unit;
    if (rest <= delta) return [nearer(text, distance, delta, rest, unit), power - k];
    power--;
    if (power >= 0) {
      unit /= 10n;
    } else {
      rest *= 10n;
      delta *= 10n;
      distance *= 10n;
    }
  }
}

/** Decrements the last digit as long as this brings the number nearer to w. */
function nearer(text, distance, delta, rest, ten) {
  let last = Number(text.at(-1));
  while (
    rest < distance &&
    delta - rest >= ten &&
    (rest + ten < distance || distance - rest > rest + ten - distance)
  ) {
    last--;
    rest += ten;
  }
  return text.slice(0, -1) + last;
}
