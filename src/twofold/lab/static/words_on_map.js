// Words at their places on a map, the most important first, none over another.
import {clip} from './text.js';

export function placeWords(c, {map, ink}, points, words, order, most, marked = new Map()) {
  const taken = [];
  c.font = '11.5px system-ui, sans-serif';
  c.textBaseline = 'middle';
  c.textAlign = 'left';
  c.lineJoin = 'round';
  const ids = [...marked.keys(), ...(order ?? words.keys())];
  let placed = 0;
  const seen = new Set();
  for (const i of ids) {
    if (seen.has(i) || i * 2 >= points.length) continue;
    seen.add(i);
    const strong = marked.get(i);
    const [x, y] = [map.x(points[2 * i]), map.y(points[2 * i + 1])];
    if (x < 0 || y < 8 || x > map.w || y > map.h - 8) continue;
    const word = clip(String(words[i]), 28);
    c.font = strong ? '600 13px system-ui, sans-serif' : '11.5px system-ui, sans-serif';
    const width = c.measureText(word).width;
    const flip = x + 6 + width > map.w;
    const box = [flip ? x - 6 - width : x + 6, y - 7, width + 3, 14];
    if (!strong && taken.some((b) => box[0] < b[0] + b[2] && b[0] < box[0] + box[2] && box[1] < b[1] + b[3]
      && b[1] < box[1] + box[3])) continue;
    taken.push(box);
    c.lineWidth = 3;
    c.strokeStyle = ink.panel;
    c.strokeText(word, box[0], y);
    c.fillStyle = strong ?? ink.ink;
    c.fillText(word, box[0], y);
    placed += 1;
    if (placed >= most) break;
  }
}
