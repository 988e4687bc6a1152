// Numbers and pixels on canvases.
import {ramp} from './palette.js';

/** Gray levels (bytes) on a canvas of exactly that size. */
export function drawGray(canvas, bytes, w, h) {
  const context = canvas.getContext('2d');
  const image = context.createImageData(w, h);
  for (let i = 0; i < w * h; i += 1) {
    image.data[4 * i] = image.data[4 * i + 1] = image.data[4 * i + 2] = bytes[i];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

/** A picture (h × w or h × w × 3 bytes) as a canvas of its size. */
export function pictureCanvas({data, shape}) {
  const [h, w, channels = 1] = shape;
  const canvas = Object.assign(document.createElement('canvas'), {width: w, height: h});
  if (channels === 1) drawGray(canvas, data, w, h);
  else {
    const context = canvas.getContext('2d');
    const image = context.createImageData(w, h);
    for (let i = 0; i < w * h; i += 1) {
      for (let c = 0; c < 3; c += 1) image.data[4 * i + c] = data[3 * i + c];
      image.data[4 * i + 3] = 255;
    }
    context.putImageData(image, 0, 0);
  }
  return canvas;
}

/** Least and greatest number, with no regard to holes. */
export function spanOf(data) {
  let low = Infinity;
  let high = -Infinity;
  for (const v of data) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return low <= high ? [low, high] : [0, 1];
}

/** A matrix as a canvas, one pixel a cell; a hole is left clear. */
export function heatCanvas(data, rows, columns, {kind = 'sequential', low, high, skip} = {}) {
  const canvas = Object.assign(document.createElement('canvas'), {width: columns, height: rows});
  const context = canvas.getContext('2d');
  const image = context.createImageData(columns, rows);
  const table = ramp(kind);
  const scale = 255 / (high - low || 1);
  for (let i = 0; i < rows * columns; i += 1) {
    const v = data[i];
    if (Number.isNaN(v) || skip?.[i]) continue;
    const k = 3 * Math.max(0, Math.min(255, Math.round((v - low) * scale)));
    image.data[4 * i] = table[k];
    image.data[4 * i + 1] = table[k + 1];
    image.data[4 * i + 2] = table[k + 2];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** Limits for colors: around zero where the numbers have both signs, outliers set aside. */
export function limitsOf(data) {
  const some = Float32Array.from(data.length > 4000 ? data.filter((_, i) => i % Math.ceil(data.length / 4000) === 0)
    : data).filter((v) => !Number.isNaN(v)).sort();
  const low = some[Math.floor(0.01 * (some.length - 1))] ?? 0;
  const high = some[Math.ceil(0.99 * (some.length - 1))] ?? 1;
  if (low < 0 && high > 0 && low > -20 * high && high < -20 * low) {
    const reach = Math.max(-low, high);
    return {kind: 'diverging', low: -reach, high: reach};
  }
  return {kind: 'sequential', low, high: high > low ? high : low + 1};
}
