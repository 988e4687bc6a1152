// Atoms of a dictionary sharpening, in order of use.
import {Board, fitBox} from '../board.js';
import {drawGray} from '../heat.js';
import {html} from '../html.js';
import {colorOf} from '../palette.js';
import {Bars} from '../parts.js';
import {readNumber, wordsOf} from '../text.js';

/** A sheet of small gray pictures, each stretched to its own range, with bars of use under them. */
export function Sheet({pictures, usage, label, stretch = true}) {
  const [k, h, w] = pictures.shape;
  const draw = (c, width, height, ink) => {
    const aspect = w / h;
    let columns = 1;
    let best = 0;
    for (let n = 1; n <= k; n += 1) {
      const s = Math.min((width - 12) / n / aspect, (height - 12) / Math.ceil(k / n));
      if (s > best) { best = s; columns = n; }
    }
    const rows = Math.ceil(k / columns);
    const box = fitBox(width, height, columns, rows, [6, 6, 6, 6], false);
    const cell = Math.min(box.sx / aspect, box.sy);
    const [cw, ch] = [Math.floor(cell * aspect), Math.floor(cell)];
    const pad = Math.max(2, Math.round(ch * 0.07));
    const [x0, y0] = [(width - cw * columns) / 2, (height - ch * rows) / 2];
    const small = Object.assign(document.createElement('canvas'), {width: w, height: h});
    const top = usage ? Math.max(...usage.data, 1e-12) : 1;
    c.imageSmoothingEnabled = false;
    for (let i = 0; i < k; i += 1) {
      const values = pictures.data.subarray(i * h * w, (i + 1) * h * w);
      let bytes = values;
      if (stretch) {
        let reach = 1e-12;
        for (const v of values) reach = Math.max(reach, Math.abs(v));
        bytes = Uint8ClampedArray.from(values, (v) => 127.5 + (127.5 * v) / reach);
      }
      drawGray(small, bytes, w, h);
      const [x, y] = [x0 + (i % columns) * cw, y0 + Math.floor(i / columns) * ch];
      const bar = usage ? Math.max(2, Math.round(ch * 0.06)) : 0;
      c.drawImage(small, x + pad, y + pad, cw - 2 * pad, ch - 2 * pad - bar);
      if (usage) {
        c.fillStyle = ink.grid;
        c.fillRect(x + pad, y + ch - pad - bar + 1, cw - 2 * pad, bar);
        c.fillStyle = colorOf(0);
        c.fillRect(x + pad, y + ch - pad - bar + 1, ((cw - 2 * pad) * usage.data[i]) / top, bar);
      }
    }
  };
  return html`<${Board} draw=${draw} label=${label} />`;
}

const quality = (meta) => (meta.psnr !== undefined ? `${readNumber(meta.psnr)} dB` : meta.error !== undefined
  ? `error ${readNumber(meta.error)}` : '');

const Picture = ({frame}) => html`<${Sheet} pictures=${frame.arrays.atoms} usage=${frame.arrays.usage}
  stretch=${frame.arrays.atoms.data instanceof Float32Array}
  label=${`${wordsOf(frame.arrays.atoms.shape[0],
    'atom')} after sweep ${frame.sweep}, with bars of how much each is used`} />`;

function Details({frame}) {
  const {usage} = frame.arrays;
  const order = usage && Array.from(usage.data.keys()).sort((a, b) => usage.data[b] - usage.data[a]);
  return html`<h2>Atoms</h2><p class="about">${quality(frame.meta)}</p>
    ${usage && html`<h2>Most used</h2><${Bars} values=${order.map((i) => usage.data[i])}
      names=${order.map((i) => `atom ${i + 1}`)} most=${8} label="Use of each atom" />`}`;
}

export default {Picture, Details, caption: ({meta}) => quality(meta)};
