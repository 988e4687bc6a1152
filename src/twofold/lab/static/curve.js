// The objective, sweep by sweep; a click on it goes there.
import {useEffect, useRef} from 'preact/hooks';
import uPlot from 'uplot';
import {html} from './html.js';
import {colorOf, ink, theme} from './palette.js';
import {capital, readNumber, readTicks} from './text.js';

export function Curve({run, name, color = 0}) {
  const host = useRef(null);
  const chart = useRef(null);
  const state = run.state.value;
  const frame = run.frame.value;
  const ys = (state?.objective ?? []).map((v) => (Number.isFinite(v) ? v : null));
  const xs = state?.sweeps ?? ys.map((_, i) => i);
  const mode = theme.value;
  const at = useRef(0);

  useEffect(() => {
    const place = host.current;
    if (!place) return undefined; // the run was left before it was drawn
    const paint = ink.value;
    const axis = {stroke: paint.soft, grid: {stroke: paint.grid, width: 1}, ticks: {show: false},
      font: '11px system-ui, sans-serif'};
    const marker = (u) => {
      const x = Math.round(u.valToPos(at.current, 'x', true)) + 0.5;
      if (!Number.isFinite(x)) return;
      const {ctx, bbox} = u;
      ctx.save();
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.strokeStyle = paint.ink;
      ctx.lineWidth = devicePixelRatio;
      ctx.stroke();
      ctx.restore();
    };
    const made = new uPlot({
      width: place.clientWidth, height: place.clientHeight,
      legend: {show: false}, cursor: {y: false, drag: {x: false, y: false}}, padding: [6, 10, 0, 0],
      scales: {x: {time: false, range: (u, low, high) => [low ?? 0, Math.max(high ?? 1, (low ?? 0) + 1)]}},
      axes: [
        {...axis, size: 22, gap: 2, space: 60, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 1e5]},
        {...axis, size: 62, gap: 4, space: 26, values: (u, splits) => readTicks(splits)},
      ],
      series: [{}, {stroke: colorOf(color), width: 2, points: {show: (u) => u.data[0].length < 3, size: 7,
        fill: colorOf(color)}}],
      hooks: {draw: [marker]},
    }, [[], []], place);
    made.over.addEventListener('click', () => {
      const kept = run.kept;
      const last = run.state.value?.sweeps?.at(-1);
      if (!kept.length || !last) return; // frames and sweeps keep the same order; the nearest frame is near enough
      const share = made.posToVal(made.cursor.left, 'x') / last;
      run.seek(kept[Math.max(0, Math.min(kept.length - 1, Math.round(share * (kept.length - 1))))]);
    });
    const observer = new ResizeObserver(() => made.setSize({width: place.clientWidth, height: place.clientHeight}));
    observer.observe(place);
    chart.current = made;
    return () => { observer.disconnect(); made.destroy(); chart.current = null; };
  }, [run, mode]);

  useEffect(() => {
    at.current = frame?.sweep ?? 0;
    chart.current?.setData([xs, ys]);
  }, [frame, ys.length, state?.status, mode, run]);

  const finite = ys.filter((v) => v !== null);
  const now = frame && Number.isFinite(frame.objective) ? frame.objective : finite.at(-1);
  const told = state?.objective_name || 'Objective';
  const way = finite.length > 1
    ? `from ${readNumber(finite[0])} to ${readNumber(finite.at(-1))} in ${finite.length} sweeps`
      : readNumber(finite[0]);
  const words = `${capital(told)} of ${name}: ${finite.length ? way : 'nothing yet'}`;
  return html`<div class="curve">
    <div class="curve-head"><span>${capital(told)}</span><span class="value">${finite.length ? readNumber(now)
      : ''}</span></div>
    <div class="curve-plot" role="img" aria-label=${words} ref=${host}></div>
  </div>`;
}
