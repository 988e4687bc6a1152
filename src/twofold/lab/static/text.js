// Numbers, rows and masks as short text.

const plain = new Intl.NumberFormat('en-US', {maximumSignificantDigits: 4});

/** A number as people write it: four digits, and a power of ten where it is far from one. */
export function readNumber(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-3)) {
    const [digits, power] = value.toExponential(2).split('e');
    return `${Number(digits)}·10${superscript(Number(power))}`.replace('-', '−');
  }
  return plain.format(value).replace('-', '−');
}
/** The numbers of an axis, with as many decimals as tell one from the next. */
export function readTicks(ticks) {
  const whole = (d) => ticks.every((t) => Math.abs(t * 10 ** d - Math.round(t * 10 ** d)) < 1e-6);
  const digits = [0, 1, 2, 3, 4, 5].find(whole);
  if (digits === undefined || Math.max(...ticks.map(Math.abs)) >= 1e7) return ticks.map(readNumber);
  const format = new Intl.NumberFormat('en-US', {minimumFractionDigits: digits, maximumFractionDigits: digits});
  return ticks.map((t) => format.format(t).replace('-', '−'));
}
const superscript = (n) => String(n).replace(/[-0-9]/g, (c) => (c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[c]));

export const wordsOf = (n, noun) => `${n.toLocaleString('en-US')} ${noun}${n === 1 ? '' : 's'}`;
export const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);
export const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;
export const clip = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/** A cell as it stands, but for the tail of digits of a number. */
export const brief = (cell) => (/^-?\d*\.\d{6,}$/.test(cell) ? String(+Number(cell).toPrecision(6)) : clip(cell, 80));

export function bytes(n) {
  if (n < 1000) return `${n} bytes`;
  return n < 1e6 ? `${(n / 1000).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`;
}

/** Sorted rows as gaps and lengths in base 36: "3.2-a" is 3, 5 … : short for what a lasso gives. */
export function encodeRows(rows) {
  const parts = [];
  let last = -1;
  for (let i = 0; i < rows.length;) {
    let j = i;
    while (j + 1 < rows.length && rows[j + 1] === rows[j] + 1) j += 1;
    const gap = (rows[i] - last - 1).toString(36);
    parts.push(j > i ? `${gap}-${(j - i).toString(36)}` : gap);
    last = rows[j];
    i = j + 1;
  }
  return parts.join('.');
}

export function decodeRows(text) {
  const rows = [];
  let last = -1;
  for (const part of text.split('.')) {
    const [gap, more] = part.split('-').map((x) => parseInt(x, 36));
    if (Number.isNaN(gap) || (more !== undefined && !(more < 1e6))) break;
    for (let k = 0; k <= (more ?? 0); k += 1) rows.push(last + 1 + gap + k);
    last = rows[rows.length - 1];
  }
  return Int32Array.from(rows);
}

/** A painted mask {width, height, runs: [[start, length]…]} as text, and back. */
export function maskOf({width, height, runs}) {
  return `${width}x${height}:${runs.map(([start, length]) =>
    `${start.toString(36)}-${length.toString(36)}`).join('.')}`;
}
maskOf.read = (text) => {
  const [size, runs] = text.split(':');
  const [width, height] = size.split('x').map(Number);
  if (!(width > 0 && height > 0) || !runs) return null;
  return {width, height, runs: runs.split('.').map((r) => r.split('-').map((x) => parseInt(x, 36)))};
};
