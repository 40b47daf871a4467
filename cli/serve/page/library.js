// SPDX-License-Identifier: Apache-2.0
// What there is: traces that were brought in, platforms, faults.
import {bytes, counted, doing, fill, follow, get, h, once, post, rate, remove, send} from './api.js';

const TABS = [['traces', 'Traces'], ['platforms', 'Platforms'], ['faults', 'Faults']];

export async function libraryView(box, [tab = 'traces', id]) {
  const head = h('div.head', null, h('h1', null, 'Library'),
    h('div.tabs', {role: 'tablist'}, TABS.map(([key, label]) =>
      h('a', {href: '#/library/' + key, role: 'tab', 'aria-selected': key === tab ? 'true' : 'false'}, label))));
  const body = h('div');
  fill(box, head, body);
  await ({traces, platforms, faults}[tab] || traces)(body, id);
}

async function traces(body) {
  const list = h('div.cards'), progress = h('div.uploads');
  const symmetric = h('input', {type: 'checkbox', id: 'symmetric'});
  const files = h('input.hidden-input', {type: 'file', multiple: true, id: 'files', onchange: () => {
    bring([...files.files]);
    files.value = '';
  }});
  const drop = h('label.drop', {for: 'files', tabindex: 0,
    onkeydown: (e) => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); files.click(); } },
    ondragover: (e) => { e.preventDefault(); drop.classList.add('over'); },
    ondragleave: () => drop.classList.remove('over'),
    ondrop: (e) => { e.preventDefault(); drop.classList.remove('over'); bring([...e.dataTransfer.files]); }},
  h('strong', null, 'Drop trace files here'), h('span', null, 'or choose them. One file per rank, dropped together, becomes one trace.'),
  h('span.soft', null, 'PyTorch profiler, Nsight Systems (sqlite), Chakra, Horovod timeline, TensorFlow, NCCL logs, flight recorder, CSV; compressed or not'));
  fill(body, drop, files, h('label.check', null, symmetric, ' clone ranks that were not recorded from those that were'), progress, list);

  async function bring(dropped) {
    if (!dropped.length) return;
    const name = dropped[0].name, state = h('p');
    progress.append(state);
    const wrong = (text) => { state.className = 'wrong'; state.textContent = `${name}: ${text}`; };
    try {
      const uploads = [];
      for (const [i, file] of dropped.entries()) {
        state.textContent = `uploading ${file.name} (${i + 1} of ${dropped.length}, ${bytes(file.size)})`;
        uploads.push((await send('/uploads?name=' + encodeURIComponent(file.name), file)).upload);
      }
      const job = await post('/traces', {uploads, name, assume_symmetric: symmetric.checked});
      const ended = await follow(job.id, (j) => { state.textContent = `importing ${name}: ${j.progress?.what || j.state}`; });
      if (ended.state === 'done') state.remove();
      else wrong([ended.error?.what || ended.state, ended.error?.where, ended.error?.fix].filter(Boolean).join('; '));
    } catch (error) { wrong(error.message); }
    await refresh();
  }

  async function refresh() {
    const found = (await get('/traces')).traces;
    if (!found.length) return fill(list, h('p.soft', null, 'No traces yet. Shipped scenarios bring their own.'));
    fill(list, found.map((trace) => {
      const facts = h('p.soft', null, bytes(trace.bytes));
      get('/traces/' + encodeURIComponent(trace.name)).then((t) => {
        facts.textContent = [counted(t.ranks, 'rank'), counted(t.operations, 'operation'), counted(t.collectives, 'collective'), counted(t.steps, 'step'), bytes(trace.bytes)].join(', ');
      }, () => {});
      return h('article.card', null, h('h3', null, trace.name), facts, h('div.actions', null,
        h('a.button', {href: '#/workbench?trace=' + encodeURIComponent(trace.name)}, 'Rehearse it'),
        h('a.button.quiet', {href: `/api/v1/traces/${encodeURIComponent(trace.name)}/file`, download: trace.name}, 'Download'),
        h('button.quiet', {type: 'button', onclick: doing(async () => {
          await remove('/traces/' + encodeURIComponent(trace.name));
          await refresh();
        })}, 'Delete')));
    }));
  }
  await refresh();
}

function search(placeholder, change) {
  return h('input.search', {type: 'search', placeholder, 'aria-label': placeholder, oninput: (e) => change(e.target.value.toLowerCase())});
}

async function platforms(body) {
  const {platforms: all} = await once('/platforms');
  const list = h('div.cards');
  const show = (words) => fill(list, all.filter((p) => `${p.id} ${p.name} ${p.description} ${p.gpu}`.toLowerCase().includes(words)).map((p) =>
    h('article.card', null, h('h3', null, p.name), h('p', null, p.description),
      h('p.soft', null, `${p.gpus_per_node} × ${p.gpu || 'GPU'} per node`, h('br'),
        p.nics_per_node ? `${p.nics_per_node} × ${rate(p.nic_bandwidth)} network` : 'no network card'),
      h('div.actions', null, h('code', null, p.id), h('a.button.quiet', {href: '#/workbench?platform=' + encodeURIComponent(p.id)}, 'Run a job on it')))));
  fill(body, search('Search machines', show), list);
  show('');
}

async function faults(body, id) {
  const {faults: all} = await once('/faults');
  const list = h('div.cards.wide');
  const rows = (label, value) => (value?.length ? [h('dt', null, label), h('dd', null, value)] : null);
  const card = (f) => h('details.card', {open: f.id === id}, h('summary', null, h('code', null, f.id), ' ', h('strong', null, f.name),
    h('span.soft', null, ' ' + f.symptoms.join(' '))),
  h('dl', null, rows('Cause', f.cause), rows('Effect', f.effect), rows('In traces', f.in_traces), rows('In logs', f.in_logs),
    rows('Parameters', f.parameters.map((p) => h('div', null, h('code', null, p.name), ` ${p.meaning} (default ${p.default})`))),
    rows('Fixes', f.fixes.map((x) => h('div', null, x.change))),
    rows('Sources', f.sources.map((s) => h('div', null, /^https?:\/\//.test(s) ? h('a', {href: s, rel: 'noreferrer noopener', target: '_blank'}, s) : s)))),
  h('div.actions', null, h('a.button', {href: '#/workbench?fault=' + encodeURIComponent(f.id)}, 'Inject it')));
  const show = (words) => fill(list, all.filter((f) => JSON.stringify([f.id, f.name, f.cause, f.effect, f.in_logs, f.in_traces, f.symptoms]).toLowerCase().includes(words)).map(card));
  fill(body, search('Search faults: a word of a log, a symptom, a cause', show), list);
  show('');
}
