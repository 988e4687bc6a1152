// Voronoi cells as polygons: the window, cut by the line halfway to every other center.

/** The part of a polygon in which a·x + b·y ≤ c. */
function cut(polygon, a, b, c) {
  const kept = [];
  for (let i = 0; i < polygon.length; i += 1) {
    const p = polygon[i];
    const q = polygon[(i + 1) % polygon.length];
    const [u, v] = [a * p[0] + b * p[1] - c, a * q[0] + b * q[1] - c];
    if (u <= 0) kept.push(p);
    if ((u < 0 && v > 0) || (u > 0 && v < 0)) {
      const t = u / (u - v);
      kept.push([p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])]);
    }
  }
  return kept;
}

export function cellsOf(centers, [x0, x1, y0, y1]) {
  const k = centers.length / 2;
  return Array.from({length: k}, (_, i) => {
    let polygon = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]];
    const [x, y] = [centers[2 * i], centers[2 * i + 1]];
    for (let j = 0; j < k && polygon.length; j += 1) {
      const [p, q] = [centers[2 * j], centers[2 * j + 1]];
      if (p !== x || q !== y) polygon = cut(polygon, p - x, q - y, (p * p + q * q - x * x - y * y) / 2);
    }
    return polygon;
  });
}

export function drawCells(c, map, centers, colorOf, edge) {
  const polygons = cellsOf(centers, [map.u(0), map.u(map.w), map.v(map.h), map.v(0)]);
  c.lineWidth = 1;
  c.strokeStyle = edge;
  polygons.forEach((polygon, i) => {
    c.beginPath();
    for (const [x, y] of polygon) c.lineTo(map.x(x), map.y(y));
    c.closePath();
    c.globalAlpha = 0.14;
    c.fillStyle = colorOf(i);
    c.fill();
    c.globalAlpha = 0.6;
    c.stroke();
  });
  c.globalAlpha = 1;
}
