// The language of factors: a loss, a constraint on each factor, and the model they make.
import {Board} from '../board.js';
import {heatCanvas, limitsOf} from '../heat.js';
import {html} from '../html.js';
import {wordsOf} from '../text.js';

function Picture({frame}) {
  const {left, right, residual} = frame.arrays;
  const draw = (c, w, h, ink) => {
    const [n, k] = left.shape;
    const d = right.shape[1];
    const gap = 54;
    const head = 24;
    const thick = Math.max(34, Math.min(110, 0.16 * Math.min(w, h), 16 * k));
    const wide = (w - thick - 2 * gap - 16) / (residual ? 2 : 1);
    const tall = h - head - 16;
    const y = head + 4;
    c.imageSmoothingEnabled = false;
    const put = ({data, shape}, x, top, bw, bh, word, options) => {
      c.drawImage(heatCanvas(data, shape[0], shape[1], options ?? limitsOf(data)), x, top, bw, bh);
      c.strokeStyle = ink.line;
      c.lineWidth = 1;
      c.strokeRect(x, top, bw, bh);
      c.fillStyle = ink.soft;
      c.textAlign = 'left';
      c.textBaseline = 'bottom';
      c.fillText(word, x, top - 5);
    };
    let x = 8;
    put(left, x, y, thick, tall, `left, ${n} × ${k}`);
    x += thick;
    const sign = (text, at) => {
      c.fillStyle = ink.ink;
      c.font = '20px ui-serif, Georgia, serif';
      c.textAlign = 'center';
      c.textBaseline = 'middle';
      c.fillText(text, at + gap / 2, y + tall / 2);
      c.font = '12px system-ui, sans-serif';
    };
    sign('×', x);
    x += gap;
    put(right, x, y + (tall - thick) / 2, wide, thick, `right, ${k} × ${d}`);
    x += wide;
    if (residual) {
      sign('+', x);
      x += gap;
      put(residual, x, y, wide, tall, 'what is left over');
    }
  };
  const {formula, name} = frame.meta;
  return html`<div class="factors"><p class="formula"><b>${name ?? 'no name of its own'}</b><span>${formula}</span></p>
    <${Board} draw=${draw}
      label=${`${name ?? 'A model'}: ${formula ?? ''}; left factor with ${wordsOf(left.shape[1], 'column')}`} /></div>`;
}

function Details({frame}) {
  const {formula, name} = frame.meta;
  return html`<h2>The model this makes</h2><p class="name-of">${name ?? 'It has no name of its own.'}</p><p
    class="about formula-small">${formula}</p>
    <p class="note">Change the loss or what a factor may be: the method has another name, the loop is the same.</p>`;
}

export default {Picture, Details};
