// Points by the hundred thousand: WebGL2, or a plain canvas where there is none. Positions of two frames are held at
// once, so that the way from one to the next costs one number a picture.

const POINTS = `#version 300 es
in vec2 a; in vec2 b; in float label; in float picked; in float scale;
uniform vec4 view; uniform float mixed, size, dim; uniform vec3 palette[24]; uniform vec3 none;
out vec4 color; flat out float radius;
void main() {
  gl_Position = vec4(mix(a, b, mixed) * view.xy + view.zw, 0.0, 1.0);
  radius = size * scale * (picked > 0.5 ? 1.35 : 1.0);
  gl_PointSize = radius + 1.0;
  vec3 c = label > 254.5 ? none : palette[int(label) % 24];
  color = vec4(c, picked > 0.5 ? 1.0 : dim);
}`;
const DISC = `#version 300 es
precision mediump float;
in vec4 color; flat in float radius; out vec4 result;
void main() {
  float alpha = 1.0;
  if (radius > 2.5) {
    float d = length(gl_PointCoord - 0.5) * (radius + 1.0);
    alpha = clamp(radius * 0.5 + 0.5 - d, 0.0, 1.0);
    if (alpha == 0.0) discard;
  }
  alpha *= color.a;
  result = vec4(color.rgb * alpha, alpha);
}`;
function program(gl, vertex, fragment) {
  const made = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
  return {
    made,
    uniform: (name) => gl.getUniformLocation(made, name),
    attribute: (name) => gl.getAttribLocation(made, name),
  };
}

class WebGLLayer {
  kind = 'WebGL2';

  constructor(canvas, gl) {
    this.canvas = canvas;
    this.gl = gl;
    this.points = program(gl, POINTS, DISC);
    this.buffers = {};
    for (const name of ['a', 'b', 'label', 'picked', 'scale']) this.buffers[name] = gl.createBuffer();
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  set(name, array) {
    const {gl} = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, array, gl.DYNAMIC_DRAW);
    this[`${name}Set`] = array;
  }

  /** The new positions are where the points go; the old ones, where they come from. */
  move(points, keepOld) {
    if (keepOld && this.bSet?.length === points.length) {
      [this.buffers.a, this.buffers.b] = [this.buffers.b, this.buffers.a];
      this.aSet = this.bSet;
    } else this.set('a', points);
    this.set('b', points);
  }

  clear() {
    const {gl} = this;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
  }

  drawPoints({view, mixed, size, dim, palette, count}) {
    const {gl, points} = this;
    gl.useProgram(points.made);
    for (const [name, width, type] of [['a', 2], ['b', 2], ['label', 1, 'byte'], ['picked', 1, 'byte'], ['scale', 1]]) {
      const at = points.attribute(name);
      if (at < 0) continue;
      if (this[`${name}Set`]?.length >= count * width) {
        gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
        gl.enableVertexAttribArray(at);
        gl.vertexAttribPointer(at, width, type === 'byte' ? gl.UNSIGNED_BYTE : gl.FLOAT, false, 0, 0);
      } else {
        gl.disableVertexAttribArray(at);
        gl.vertexAttrib1f(at, {label: 255, picked: 0, scale: 1}[name] ?? 0);
      }
    }
    gl.uniform4fv(points.uniform('view'), view);
    gl.uniform1f(points.uniform('mixed'), mixed);
    gl.uniform1f(points.uniform('size'), size);
    gl.uniform1f(points.uniform('dim'), dim);
    gl.uniform3fv(points.uniform('palette'), palette.flat);
    gl.uniform3fv(points.uniform('none'), palette.none.map((x) => x / 255));
    gl.drawArrays(gl.POINTS, 0, count);
  }

  destroy() { this.gl.getExtension('WEBGL_lose_context')?.loseContext(); }
}

/** The same on a plain canvas: dots of one color after the other; many points as single pixels. */
class CanvasLayer {
  kind = 'canvas';

  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
  }

  set(name, array) { this[`${name}Set`] = array; }

  move(points, keepOld) {
    this.aSet = keepOld && this.bSet?.length === points.length ? this.bSet : points;
    this.bSet = points;
  }

  clear() { this.context.clearRect(0, 0, this.canvas.width, this.canvas.height); }

  drawPoints({view, mixed, size, dim, palette, count}) {
    const {width, height} = this.canvas;
    const {aSet: a, bSet: b, labelSet: labels, pickedSet: picked, scaleSet: scales} = this;
    const c = this.context;
    const byColor = new Map();
    for (let i = 0; i < count; i += 1) {
      const key = (labels?.[i] ?? 255) + (picked?.[i] ? 1000 : 0);
      if (!byColor.has(key)) byColor.set(key, []);
      byColor.get(key).push(i);
    }
    const square = count > 20000;
    for (const [key, members] of [...byColor].sort((p, q) => p[0] - q[0])) {
      const label = key % 1000;
      c.fillStyle = label === 255 ? `rgb(${palette.none.join(' ')})` : palette.hex[label % 24];
      c.globalAlpha = key >= 1000 ? 1 : dim;
      c.beginPath();
      for (const i of members) {
        const px = a[2 * i] + (b[2 * i] - a[2 * i]) * mixed;
        const py = a[2 * i + 1] + (b[2 * i + 1] - a[2 * i + 1]) * mixed;
        const x = ((px * view[0] + view[2] + 1) / 2) * width;
        const y = ((1 - (py * view[1] + view[3])) / 2) * height;
        const r = (size * (scales?.[i] ?? 1)) / 2;
        if (square) c.rect(x - r, y - r, 2 * r, 2 * r);
        else { c.moveTo(x + r, y); c.arc(x, y, r, 0, 7); }
      }
      c.fill();
    }
    c.globalAlpha = 1;
  }

  destroy() {}
}

export function layer(canvas) {
  const gl = canvas.getContext('webgl2', {antialias: false, premultipliedAlpha: true});
  if (gl) {
    try {
      return new WebGLLayer(canvas, gl);
    } catch (error) {
      const fresh = canvas.cloneNode();
      canvas.replaceWith(fresh);
      return new CanvasLayer(fresh);
    }
  }
  return new CanvasLayer(canvas);
}
