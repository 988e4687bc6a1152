// Pictures drawn pixel by pixel, each from those above and to the left of it.
import {html} from '../html.js';
import {percent, wordsOf} from '../text.js';
import {Sheet} from './atoms.js';

const Picture = ({frame}) => html`<${Sheet} pictures=${frame.arrays.samples} stretch=${false}
  label=${`${wordsOf(frame.arrays.samples.shape[0], 'picture')} drawn pixel by pixel`} />`;

const Details = ({frame}) => html`<h2>Pixel by pixel</h2><p
  class="about">The network is trained first; then each picture is drawn from its upper left corner, every pixel
  from the odds the network gives it after those before.</p>`;

export default {Picture, Details, caption: ({meta, final}) => (final ? 'all pixels drawn' : meta.drawn
  ? `${percent(meta.drawn)} of the pixels drawn` : 'training')};
