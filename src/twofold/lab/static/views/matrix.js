// A table with holes filling in: what is given, what the model says, and the singular values that hold it.
import {signal} from '@preact/signals';
import {Board, fitBox} from '../board.js';
import {heatCanvas, limitsOf} from '../heat.js';
import {html} from '../html.js';
import {Bars} from '../parts.js';
import {comparing} from '../state.js';
import {readNumber, wordsOf} from '../text.js';

const cell = signal(null); // linked: the same cell in both runs

function Picture({run, frame}) {
  const {truth, hidden, filled} = frame.arrays;
  const [rows, columns] = filled.shape;
  const limits = limitsOf(truth.data);
  const boxes = (w, h) => {
    const two = !comparing.value && w > 520;
    const inset = [6, 6, 24, 6];
    if (!two) return [null, fitBox(w, h, columns, rows, inset, false)];
    const half = (w - 18) / 2;
    const right = fitBox(half, h, columns, rows, inset, false);
    return [{...right}, {...right, x: right.x + half + 18}];
  };
  const draw = (c, w, h, ink) => {
    const [given, full] = boxes(w, h);
    const skip = Uint8Array.from(truth.data, (v, i) => (Number.isNaN(v) || hidden?.data[i] ? 1 : 0));
    c.imageSmoothingEnabled = false;
    const put = (data, box, word, options) => {
      if (!box) return;
      c.fillStyle = ink.grid;
      c.fillRect(box.x, box.y, box.w, box.h);
      c.drawImage(heatCanvas(data, rows, columns, {...limits, ...options}), box.x, box.y, box.w, box.h);
      c.fillStyle = ink.soft;
      c.textBaseline = 'bottom';
      c.fillText(word, box.x, box.y - 6);
      if (cell.value) {
        const [i, j] = cell.value;
        c.strokeStyle = ink.ink;
        c.lineWidth = 1.5;
        c.strokeRect(box.x + j * box.sx - 1, box.y + i * box.sy - 1, box.sx + 2, box.sy + 2);
      }
    };
    put(truth.data, given, 'given to the method', {skip});
    put(filled.data, full, 'filled');
  };
  const onPointer = (kind, x, y, event) => {
    const [given, full] = boxes(event.currentTarget.clientWidth, event.currentTarget.clientHeight);
    const box = [given, full].find((b) => b && x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + b.h);
    const next = kind === 'leave' || !box ? null : [Math.floor((y - box.y) / box.sy), Math.floor((x - box.x) / box.sx)];
    if (String(next) !== String(cell.value)) cell.value = next;
  };
  cell.value;
  return html`<${Board} draw=${draw} onPointer=${onPointer} cursor="crosshair"
    label=${`A table of ${rows} rows and ${columns} columns, its holes filled; after sweep ${frame.sweep}`} />`;
}

function Details({frame}) {
  const {truth, hidden, filled, singular} = frame.arrays;
  const {error, baseline} = frame.meta;
  const [, columns] = filled.shape;
  const at = cell.value && cell.value[0] * columns + cell.value[1];
  const holes = truth.data.reduce((n, v) => n + Number.isNaN(v), 0);
  const kept = hidden ? hidden.data.reduce((n, v) => n + (v ? 1 : 0), 0) : 0;
  const known = at !== null && at !== undefined && at < filled.data.length;
  const [row, column] = cell.value ?? [];
  const named = known && (frame.meta.columns?.[column] ?? `column ${column + 1}`);
  const truly = Number.isNaN(truth.data[at]) ? 'a hole' : readNumber(truth.data[at]) + (hidden?.data[at] ? ' (hidden)'
    : '');
  const told = known
    ? `Row ${frame.meta.rows?.[row] ?? row}, ${named}: ${truly}, the model says ${readNumber(filled.data[at])}.`
    : 'Point at a cell to read it.';
  return html`<h2>How good it is</h2>
    <dl class="facts"><div><dt>Error on cells hidden from it</dt><dd>${readNumber(error)}</dd></div>
      <div><dt>Column means give</dt><dd>${readNumber(baseline)}</dd></div>
      <div><dt>Shown</dt><dd>${wordsOf(holes, 'hole')}, ${wordsOf(kept, 'hidden cell')}</dd></div></dl>
    <p class="note" aria-live="off">${told}</p>
    ${singular && html`<h2>Singular values</h2><${Bars} values=${singular.data} most=${10}
      label="Singular values" />`}`;
}

const caption = ({meta}) => (meta.error === undefined || meta.error === null ? ''
  : `error on hidden cells ${readNumber(meta.error)}, column means ${readNumber(meta.baseline)}`);

export default {Picture, Details, caption};
