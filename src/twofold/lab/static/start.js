// The first page: a file of one's own, or one of the stories, each of which is a link to the frame that tells it.
import {html} from './html.js';
import {catalog} from './state.js';

export const Start = () => html`<section class="start" aria-label="Start">
  <h2>Bring a file, choose data on the left, or begin with a story</h2>
  <p class="note">A table, ratings, texts or a picture: drop it here. It stays on this machine.</p>
  <ul class="stories">${catalog.value.stories.map((s) => html`<li key=${s.id}>
    <a href=${`#${s.address}&story=${s.id}`}>${s.title}</a><p>${s.sentence}</p></li>`)}</ul>
</section>`;
