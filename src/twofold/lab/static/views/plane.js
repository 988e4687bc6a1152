// Generator against critic in the plane: real points, made points, and what the critic thinks of every place.
import {useRef} from 'preact/hooks';
import {heatCanvas, limitsOf} from '../heat.js';
import {html} from '../html.js';
import {colorOf, theme} from '../palette.js';
import {PlotView} from '../plot.js';
import {wordsOf} from '../text.js';

const square = ([low, high] = [-3, 3]) => [low, high, low, high];

function read({arrays, meta}) {
  const {real, fake} = arrays;
  const points = new Float32Array(real.data.length + fake.data.length);
  points.set(real.data);
  points.set(fake.data, real.data.length);
  const labels = new Uint8Array(points.length / 2).fill(1);
  labels.fill(0, 0, real.data.length / 2);
  return {points, labels, range: square(meta.range)};
}

function Picture({run, frame}) {
  const kept = useRef({});
  const under = (c, {map}) => {
    const {critic} = frame.arrays;
    const [x0, x1, y0, y1] = square(frame.meta.range);
    if (!critic) return;
    if (kept.current.critic !== critic || kept.current.theme !== theme.value) {
      kept.current = {critic, theme: theme.value, canvas: heatCanvas(critic.data, critic.shape[0], critic.shape[1],
        limitsOf(critic.data))};
    }
    c.save();
    c.globalAlpha = 0.75;
    c.translate(map.x(x0), map.y(y0)); // the first row of the critic lies at the bottom
    c.scale(1, -1);
    c.imageSmoothingEnabled = true;
    c.drawImage(kept.current.canvas, 0, 0, map.x(x1) - map.x(x0), map.y(y0) - map.y(y1));
    c.restore();
  };
  return html`<${PlotView} run=${run} read=${read} under=${under} size=${4} alpha=${0.8} selectable=${false}
    label=${`${wordsOf(frame.arrays.real.shape[0], 'real point')} and ${wordsOf(frame.arrays.fake.shape[0],
      'made point')} after sweep ${frame.sweep}`} />`;
}

const Details = () => html`<h2>Reading it</h2><ul class="groups">
  <li><i class="swatch" style=${{background: colorOf(0)}}></i><span>real points</span></li>
  <li><i class="swatch" style=${{background: colorOf(1)}}></i><span>points the generator makes</span></li></ul>
  <p class="about">The ground is the critic: bluer where it takes a point for real.</p>`;

export default {Picture, Details, plane: true};
