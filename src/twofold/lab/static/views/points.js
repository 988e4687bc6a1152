// Groups in the plane: points, centers on their way, Voronoi cells or the ellipses of a mixture.
import {useState} from 'preact/hooks';
import {html} from '../html.js';
import {colorOf} from '../palette.js';
import {Groups, Tip, tipAt} from '../parts.js';
import {PlotView, rangeOf} from '../plot.js';
import {wordsOf} from '../text.js';
import {drawCells} from '../voronoi.js';

const read = ({arrays}) => ({
  points: arrays.points.data, labels: arrays.centers?.shape[0] === 0 ? null
    : arrays.labels?.data, rows: arrays.rows?.data, range: rangeOf(arrays.points.data),
});

function drawTrails(c, run, frame, map) {
  const k = frame.arrays.centers.shape[0];
  const path = [...run.cache.values()].filter((f) => f.index <= frame.index
    && f.arrays.centers?.shape[0] === k).sort((a, b) => a.index - b.index);
  c.lineWidth = 1.5;
  for (let j = 0; j < k; j += 1) {
    c.beginPath();
    path.forEach((f, i) => {
      const [x, y] = [map.x(f.arrays.centers.data[2 * j]), map.y(f.arrays.centers.data[2 * j + 1])];
      if (i) c.lineTo(x, y);
      else c.moveTo(x, y);
    });
    c.strokeStyle = colorOf(j);
    c.globalAlpha = 0.7;
    c.stroke();
  }
  c.globalAlpha = 1;
}

/** The curve at `s` standard deviations of a normal distribution in the plane. */
function ellipse(c, map, cx, cy, [a, b, , d], s) {
  const l11 = Math.sqrt(Math.max(a, 0));
  const l21 = l11 ? b / l11 : 0;
  const l22 = Math.sqrt(Math.max(d - l21 * l21, 0));
  c.beginPath();
  for (let i = 0; i <= 72; i += 1) {
    const [u, v] = [s * Math.cos((i * Math.PI) / 36), s * Math.sin((i * Math.PI) / 36)];
    c.lineTo(map.x(cx + l11 * u), map.y(cy + l21 * u + l22 * v));
  }
}

function Picture({run, frame}) {
  const [tip, setTip] = useState(null);
  const over = (c, {map, tween, ink}) => {
    const centers = tween('centers');
    if (!centers) return;
    drawTrails(c, run, frame, map);
    const spread = tween('covariances');
    const weights = tween('weights');
    for (let j = 0; j < centers.length / 2; j += 1) {
      const [x, y] = [centers[2 * j], centers[2 * j + 1]];
      if (spread) {
        for (const s of [1, 2]) {
          ellipse(c, map, x, y, spread.subarray(4 * j, 4 * j + 4), s);
          if (s === 2) { c.fillStyle = `${colorOf(j)}1c`; c.fill(); }
          c.lineWidth = s === 1 ? 2 : 1;
          c.strokeStyle = colorOf(j);
          c.stroke();
        }
      }
      c.beginPath();
      c.arc(map.x(x), map.y(y), weights ? 4 + 8 * Math.sqrt(weights[j]) : 8, 0, 7);
      c.fillStyle = colorOf(j);
      c.fill();
      c.lineWidth = 2.5;
      c.strokeStyle = ink.panel;
      c.stroke();
      c.lineWidth = 1;
      c.strokeStyle = ink.ink;
      c.beginPath();
      c.arc(map.x(x), map.y(y), (weights ? 4 + 8 * Math.sqrt(weights[j]) : 8) + 1.5, 0, 7);
      c.stroke();
    }
  };
  const under = (c, {map, tween, ink}) => {
    if (frame.meta.cells ?? frame.meta.flat) drawCells(c, map, tween('centers'), colorOf, ink.soft);
  };
  const n = frame.arrays.points.shape[0];
  const k = frame.arrays.centers?.shape[0] ?? 0;
  return html`<${PlotView} run=${run} read=${read} over=${over} under=${under} axes=${frame.meta.axes}
    alpha=${frame.arrays.covariances ? 0.45 : undefined} onHover=${tipAt(setTip)}
    label=${`${wordsOf(n, 'point')} in ${wordsOf(k, 'group')}, after sweep ${frame.sweep}${frame.meta.axes
      ? `; axes: ${frame.meta.axes.join(' and ')}` : ''}`}>
    <${Tip} tip=${tip} /><//>`;
}

function Details({run, frame}) {
  return html`<h2>Groups</h2>${frame.arrays.centers?.shape[0] === 0 ? html`<p
    class="note">None before the first sweep.</p>` : html`<${Groups} run=${run} frame=${frame} editable=${true} />`}`;
}

const caption = ({arrays, sweep}) => {
  const k = arrays.centers?.shape[0] ?? 0;
  const groups = k || sweep ? `in ${wordsOf(k, 'group')}` : 'whose groups are being counted';
  return `${wordsOf(arrays.points.shape[0], 'point')} ${groups}`;
};

export default {Picture, Details, caption, plane: true, selectable: true};
