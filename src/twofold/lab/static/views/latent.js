// Latent space walked with the mouse: the point under it is decoded at once.
import {useEffect, useRef, useState} from 'preact/hooks';
import * as api from '../api.js';
import {drawGray} from '../heat.js';
import {html} from '../html.js';
import {Groups} from '../parts.js';
import {PlotView, rangeOf} from '../plot.js';
import {readNumber, wordsOf} from '../text.js';
import {Sheet} from './atoms.js';

const read = ({arrays}) => ({
  points: arrays.points.data, labels: arrays.colors?.data, rows: arrays.rows?.data, range: rangeOf(arrays.points.data),
});

/** Asks one question at a time; while one is out, only the newest place waits. */
function useWalk(run, onPicture, onError) {
  const state = useRef({busy: false, next: null});
  return async function walk(at) {
    const s = state.current;
    s.next = at;
    if (s.busy) return;
    s.busy = true;
    while (s.next) {
      const now = s.next;
      s.next = null;
      try {
        const answer = await api.ask(run.id, {question: 'decode', at: now});
        const picture = answer.arrays ? Object.values(answer.arrays)[0]
          : {data: Uint8Array.from(answer.values ?? []), shape: answer.shape};
        onPicture(picture, now);
      } catch (error) {
        onError(error.message);
      }
    }
    s.busy = false;
  };
}

function Picture({run, frame}) {
  const canvas = useRef(null);
  const [at, setAt] = useState([0, 0]);
  const [shape, setShape] = useState(null);
  const [error, setError] = useState('');
  const done = run.answers;
  const walk = useWalk(run, (picture, now) => {
    const [h, w] = picture.shape.slice(-2);
    setShape([h, w]);
    setAt(now);
    setError('');
    const bytes = picture.data instanceof Uint8Array ? picture.data
      : Uint8ClampedArray.from(picture.data, (v) => 255 * v);
    requestAnimationFrame(() => canvas.current && drawGray(canvas.current, bytes, w, h));
  }, setError);
  useEffect(() => { if (done) walk(at); }, [done]);
  const onMove = (plot, px, py) => { if (done && px > -1e8) walk([plot.map.u(px), plot.map.v(py)]); };
  const over = (c, {map, ink}) => {
    if (!shape) return;
    const [x, y] = [map.x(at[0]), map.y(at[1])];
    c.beginPath();
    c.arc(x, y, 6, 0, 7);
    c.moveTo(x - 11, y); c.lineTo(x + 11, y);
    c.moveTo(x, y - 11); c.lineTo(x, y + 11);
    c.lineWidth = 2;
    c.strokeStyle = ink.ink;
    c.stroke();
  };
  const nudge = (event) => {
    const step = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[event.key];
    if (!step || !done) return;
    event.preventDefault();
    event.stopPropagation();
    walk([at[0] + 0.1 * step[0], at[1] + 0.1 * step[1]]);
  };
  return html`<div class="split even">
    <${PlotView} run=${run} read=${read} over=${over} onMove=${onMove} axes=${['first number of the code', 'second']}
      alpha=${0.5}
      label=${`${wordsOf(frame.arrays.points.shape[0], 'picture')} by the two numbers of their code`} />
    <div class="walk">
      <div class="decoded" tabindex="0" role="application"
        aria-label="Walk through the latent space with the arrow keys" onKeyDown=${nudge}>
        <canvas ref=${canvas} width=${shape?.[1] ?? 8} height=${shape?.[0] ?? 8} role="img"
          aria-label=${`Picture decoded at ${readNumber(at[0])}, ${readNumber(at[1])}`}></canvas>
      </div>
      <p class="note">${error
        || (done ? `The picture at ${readNumber(at[0])}, ${readNumber(at[1])}: move the mouse over the map.`
          : 'The walk begins when the run is done.')}</p>
      <div class="fill">${frame.arrays.samples && html`<${Sheet} pictures=${frame.arrays.samples} stretch=${false}
        label="Pictures drawn from the model" />`}</div>
    </div></div>`;
}

const Details = ({run, frame}) => html`<h2>Colors</h2><${Groups} run=${run} frame=${frame} labels=${frame.arrays.colors}
  given=${frame.meta.color_names ?? frame.meta.target_names} />`;

const caption = ({arrays}) => wordsOf(arrays.points.shape[0], 'row');

export default {Picture, Details, caption, plane: true, selectable: true};
