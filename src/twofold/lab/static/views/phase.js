// Where few measurements are enough: the share of signals found again, cell by cell, against what theory says.
import {useState} from 'preact/hooks';
import {Board, fitBox} from '../board.js';
import {heatCanvas} from '../heat.js';
import {html} from '../html.js';
import {colorOf} from '../palette.js';
import {percent} from '../text.js';

const round = value => String(Number(value.toFixed(2)));

function Picture({frame}) {
  const [at, setAt] = useState(null);
  const {theory} = frame.arrays;
  const [columns, rows] = frame.arrays.success.shape; // the first index is x
  const success = {data: Float32Array.from({length: rows * columns},
    (_, i) => frame.arrays.success.data[(i % columns) * rows + Math.floor(i / columns)])};
  const {x = [], y = [], labels: axes = ['measurements / unknowns', 'nonzeros / measurements']} = frame.meta;
  const inset = [58, 16, 26, 44];
  const edges = (v) => [v[0] - (v[1] - v[0]) / 2, v.at(-1) + (v.at(-1) - v.at(-2)) / 2];
  const draw = (c, w, h, ink) => {
    const box = fitBox(w, h, columns, rows, inset, false);
    c.fillStyle = ink.grid;
    c.fillRect(box.x, box.y, box.w, box.h);
    c.imageSmoothingEnabled = false;
    c.save();
    c.translate(0, box.y + box.h);
    c.scale(1, -1); // small fractions below
    c.drawImage(heatCanvas(success.data, rows, columns, {low: 0, high: 1}), box.x, 0, box.w, box.h);
    c.restore();
    const [[x0, x1], [y0, y1]] = [edges(x), edges(y)];
    const px = (v) => box.x + ((v - x0) / (x1 - x0)) * box.w;
    const py = (v) => box.y + box.h - ((v - y0) / (y1 - y0)) * box.h;
    if (theory) {
      c.save();
      c.beginPath();
      c.rect(box.x, box.y, box.w, box.h);
      c.clip();
      c.beginPath();
      for (let i = 0; i < theory.shape[0]; i += 1) c.lineTo(px(theory.data[2 * i]), py(theory.data[2 * i + 1]));
      c.lineWidth = 2.5;
      c.strokeStyle = colorOf(1);
      c.stroke();
      c.restore();
    }
    c.fillStyle = ink.soft;
    c.textAlign = 'center';
    c.textBaseline = 'top';
    for (let j = 0; j < columns; j += Math.ceil(columns / 6)) c.fillText(round(x[j]), px(x[j]), box.y + box.h + 5);
    c.textAlign = 'right';
    c.textBaseline = 'middle';
    for (let i = 0; i < rows; i += Math.ceil(rows / 6)) c.fillText(round(y[i]), box.x - 6, py(y[i]));
    c.fillStyle = ink.ink;
    c.textBaseline = 'bottom';
    c.fillText(axes[0], box.x + box.w, h - 4);
    c.textAlign = 'left';
    c.fillText(axes[1], box.x, box.y - 6);
    if (at && at[0] < rows && at[1] < columns) {
      const i = at[0] * columns + at[1];
      c.strokeStyle = ink.ink;
      c.strokeRect(box.x + at[1] * box.sx, box.y + box.h - (at[0] + 1) * box.sy, box.sx, box.sy);
      c.textAlign = 'right';
      c.fillText(Number.isNaN(success.data[i]) ? 'not yet' : `${percent(success.data[i])} found again`, box.x + box.w,
        box.y - 6);
    }
  };
  const onPointer = (kind, px, py, event) => {
    const box = fitBox(event.currentTarget.clientWidth, event.currentTarget.clientHeight, columns, rows, inset, false);
    const inside = kind !== 'leave' && px >= box.x && py >= box.y && px < box.x + box.w && py < box.y + box.h;
    setAt(inside ? [Math.floor((box.y + box.h - py) / box.sy), Math.floor((px - box.x) / box.sx)] : null);
  };
  const filled = success.data.filter((v) => !Number.isNaN(v));
  const share = filled.reduce((a, b) => a + b, 0) / (filled.length || 1);
  return html`<${Board} draw=${draw} onPointer=${onPointer} cursor="crosshair"
    label=${`Phase diagram, ${filled.length} of ${success.data.length} cells swept, ${percent(share)} found again`} />`;
}

const ABOUT = 'Each cell is a size of problem; its color is the share of random signals found again exactly. '
  + 'The line is where theory puts the border.';

const Details = () => html`<h2>Reading it</h2><p class="about">${ABOUT}</p>
  <p class="note"><i class="line still" style=${{background: colorOf(1)}}></i> Donoho and Tanner</p>`;

export default {Picture, Details};
