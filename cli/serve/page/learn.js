// SPDX-License-Identifier: Apache-2.0
// Labs: find and repair what is wrong with a job, in the browser.
import {doing, duration, fill, get, h, post} from './api.js';
import {prose} from './prose.js';
import {outcomeDetails, verdictBanner} from './runs.js';

export async function learnView(box, [id]) {
  if (id) return labView(box, id);
  const {labs} = await get('/labs');
  const done = labs.filter((lab) => lab.done).length;
  fill(box, h('div.head', null, h('h1', null, 'Learn'), h('span.soft', null, `${labs.length} labs, ${done} done`)),
    h('div.cards', null, labs.map((lab) => h('article.card', null,
      h('h3', null, lab.title), h('p.soft', null, lab.learn || ''),
      h('div.actions', null, h('span.soft', null, [lab.id, lab.level, lab.minutes ? `${lab.minutes} min` : null].filter(Boolean).join(' · ')),
        lab.done ? h('span.pill.good', null, `done${lab.score ? `, ${lab.score}` : ''}`) : null,
        h('a.button' + (lab.done ? '.quiet' : ''), {href: '#/learn/' + lab.id}, lab.done ? 'Again' : 'Begin'))))));
}

async function labView(box, id) {
  const lab = await get('/labs/' + encodeURIComponent(id));
  const at = '/labs/' + encodeURIComponent(id);
  let files = [], open = 'README.md';
  const changed = new Map();
  const tabs = h('div.tabs.files', {role: 'tablist'}), text = h('div'), answers = h('div.stack', {'aria-live': 'polite'});
  const mine = () => ({files: Object.fromEntries(changed)});
  const act = (word, show) => doing(async () => { answers.prepend(show(await post(`${at}/${word}`, mine()))); });
  const remarks = (check) => h('section.panel', null, h('div.verdict.' + (check.passed ? 'good' : 'warn'), null,
    h('div.big', null, check.passed ? `Repaired, ${check.score} points` : 'Not repaired yet'),
    h('ul', null, h('li', null, check.symptom_gone ? 'the symptom is gone' : 'the symptom is still there'),
      h('li', null, check.performance_back ? 'the performance is back' : 'the performance is not back'),
      check.step_time_ns > 0 ? h('li', null, `step time ${duration(check.step_time_ns)}, healthy ${duration(check.healthy_step_time_ns)}`) : null,
      (check.remarks || []).map((r) => h('li', null, r.text)))),
    check.explanation ? prose(check.explanation) : null);
  const buttons = h('div.actions', null,
    h('button.second', {type: 'button', onclick: act('run', (o) => h('section.panel', null, verdictBanner(o), h('div.grid', null, outcomeDetails(o))))}, 'Run it'),
    h('button', {type: 'button', id: 'lab-check', onclick: act('check', remarks)}, 'Check my repair'),
    h('button.quiet', {type: 'button', onclick: act('hint', (x) => h('section.panel', null, h('h3', null, 'Hint'), h('p', null, x.text), h('p.soft', null, `${x.cost} points, ${x.left} more`)))}, 'Hint'),
    h('button.quiet', {type: 'button', onclick: act('solution', (x) => h('section.panel', null, h('h3', null, 'Solution'), h('pre', null, x.solution), prose(x.explanation)))}, 'Give up'));
  const start = doing(async () => {
    await post(`${at}/start`, {seed: 1 + Math.floor(Math.random() * 1e6)});
    changed.clear();
    await load();
  });
  function show(name) {
    open = name;
    const file = files.find((f) => f.name === name) || files[0];
    if (!file) return;
    fill(tabs, files.map((f) => h('button.tab' + (f.yours ? '.yours' : ''), {type: 'button', role: 'tab', 'data-file': f.name, 'aria-selected': f.name === file.name ? 'true' : 'false', onclick: () => show(f.name)},
      f.name + (changed.has(f.name) ? ' •' : ''))));
    if (!file.yours) return fill(text, h('pre.file', {tabindex: 0}, file.text));
    const area = h('textarea.yaml.file', {rows: 22, spellcheck: 'false', 'aria-label': file.name, oninput: () => {
      const first = !changed.has(file.name);
      changed.set(file.name, area.value);
      if (first) [...tabs.children].find((t) => t.dataset.file === file.name).textContent = file.name + ' •';
    }}, changed.get(file.name) ?? file.text);
    fill(text, area);
  }
  async function load() {
    const work = await get(at + '/files');
    files = work.files;
    if (!work.started) {
      return fill(box, head(), h('section.panel', null, prose(lab.background), h('p', null, h('strong', null, lab.goal || '')),
        h('button', {type: 'button', id: 'lab-start', onclick: start}, 'Start')));
    }
    fill(box, head(h('button.quiet', {type: 'button', onclick: start}, 'Begin anew')), h('section.panel', null, h('p', null, h('strong', null, lab.goal || '')), tabs, text, buttons), answers);
    show(open);
  }
  const head = (...more) => h('div.head', null, h('div', null, h('h1', null, lab.title), h('p.soft', null, `${lab.id} · ${lab.level || ''} · ${lab.minutes || '?'} min`)),
    h('div.actions', null, ...more, h('a.button.quiet', {href: '#/learn'}, 'All labs')));
  await load();
}
