// SPDX-License-Identifier: Apache-2.0
// The page as a whole: views by address, theme, and how many jobs are at work.
import {fill, get, h, listen, onJob} from './api.js';
import {learnView} from './learn.js';
import {libraryView} from './library.js';
import {compareView, runView, runsView} from './runs.js';
import {workbenchView} from './workbench.js';

const views = {workbench: workbenchView, runs: runsView, run: runView, compare: compareView, library: libraryView, learn: learnView};
const main = document.getElementById('main');
let leave = null, visit = 0;

async function show() {
  const now = ++visit;
  const [path, query] = (location.hash.slice(2) || 'workbench').split('?');
  const [name, ...rest] = path.split('/');
  const view = views[name] || workbenchView;
  leave?.();
  leave = null;
  for (const link of document.querySelectorAll('header nav a')) {
    const here = link.getAttribute('href') === '#/' + name
      || (link.getAttribute('href') === '#/runs' && (name === 'run' || name === 'compare'));
    if (here) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
  }
  const box = h('div.view.' + name);
  fill(main, box);
  try {
    const left = await view(box, rest.map(decodeURIComponent), new URLSearchParams(query)) || null;
    if (now === visit) leave = left; else left?.();  // gone before it was all there
  } catch (error) {
    fill(box, h('section.panel', null, h('h1', null, 'That did not work'), h('p', null, error.message),
      error.fix ? h('p.soft', null, error.fix) : null));
  }
}

function theme() {
  const kept = localStorage.getItem('theme');
  if (kept) document.documentElement.dataset.theme = kept;
  document.getElementById('theme').addEventListener('click', () => {
    const dark = document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    document.documentElement.dataset.theme = dark ? 'light' : 'dark';
    localStorage.setItem('theme', document.documentElement.dataset.theme);
  });
}

const active = new Set();
function count(job) {
  if (job.state === 'queued' || job.state === 'running') active.add(job.id); else active.delete(job.id);
  const badge = document.getElementById('active-jobs');
  badge.hidden = active.size === 0;
  badge.textContent = active.size;
  badge.title = `${active.size} at work or waiting`;
}

get('').then((about) => { document.querySelector('a[href="#/learn"]').hidden = !about.labs; }, () => {});
theme();
onJob(count);
listen();
get('/jobs?limit=100').then((list) => list.jobs.forEach(count), () => {});
addEventListener('hashchange', show);
show();
