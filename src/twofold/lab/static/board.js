// A canvas that fills its place and is drawn again when the frame, the size or the colors change.
import {effect} from '@preact/signals';
import {useEffect, useRef} from 'preact/hooks';
import {html} from './html.js';
import {ink, theme} from './palette.js';

export function Board({draw, label, onPointer, cursor, touch, class: name = ''}) {
  const canvas = useRef(null);
  const latest = useRef(draw);
  const again = useRef(() => {});
  latest.current = draw;
  useEffect(() => {
    const host = canvas.current.parentElement;
    let asked = 0;
    const paint = () => {
      asked = 0;
      const ratio = Math.min(devicePixelRatio || 1, 2);
      const {clientWidth: w, clientHeight: h} = host;
      if (!w || !h || !canvas.current) return;
      if (canvas.current.width !== Math.round(w * ratio) || canvas.current.height !== Math.round(h * ratio)) {
        canvas.current.width = Math.round(w * ratio);
        canvas.current.height = Math.round(h * ratio);
      }
      const context = canvas.current.getContext('2d');
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, w, h);
      context.font = '12px system-ui, sans-serif';
      latest.current(context, w, h, ink.value);
    };
    again.current = () => { asked ||= requestAnimationFrame(paint); };
    const observer = new ResizeObserver(again.current);
    observer.observe(host);
    const stop = effect(() => { theme.value; ink.value; again.current(); });
    return () => { observer.disconnect(); stop(); cancelAnimationFrame(asked); };
  }, []);
  useEffect(() => again.current());
  const handler = (kind) => onPointer && ((event) => {
    const box = event.currentTarget.getBoundingClientRect();
    onPointer(kind, event.clientX - box.left, event.clientY - box.top, event);
  });
  return html`<div class=${`board ${name}`}><canvas ref=${canvas} role="img" aria-label=${label}
    style=${{cursor: cursor ?? 'default', touchAction: touch ?? 'auto'}}
    onPointerDown=${handler('down')} onPointerMove=${handler('move')} onPointerUp=${handler('up')}
      onPointerLeave=${handler('leave')}></canvas></div>`;
}

/** The largest box of a given shape inside w × h, whole multiples of a cell where that is possible. */
export function fitBox(w, h, columns, rows, [left, right, top, bottom] = [0, 0, 0, 0], square = true) {
  let sx = (w - left - right) / columns;
  let sy = (h - top - bottom) / rows;
  if (square) sx = sy = Math.min(sx, sy);
  if (sx > 2 && sy > 2 && square) sx = sy = Math.floor(sx);
  const [bw, bh] = [sx * columns, sy * rows];
  return {x: left + (w - left - right - bw) / 2, y: top + (h - top - bottom - bh) / 2, w: bw, h: bh, sx, sy};
}
