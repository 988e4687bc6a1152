// One view for every kind of picture the methods send.
import atoms from './atoms.js';
import axes from './axes.js';
import codes from './codes.js';
import factors from './factors.js';
import latent from './latent.js';
import matrix from './matrix.js';
import phase from './phase.js';
import picture from './picture.js';
import pixels from './pixels.js';
import plane from './plane.js';
import points from './points.js';
import ratings from './ratings.js';
import topics from './topics.js';
import words from './words.js';

export const views = {atoms, axes, codes, factors, latent, matrix, phase, picture, pixels, plane, points, ratings,
  topics, words};
