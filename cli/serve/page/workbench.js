// SPDX-License-Identifier: Apache-2.0
// Where one works: what runs on what, what is changed in it, what happens then. Every change goes through the
// server's preview, so that the picture and the YAML are what would be simulated.
import {doing, fill, follow, get, h, once, post, show, tell} from './api.js';
import {blamedParts, changedParts, drawCluster, usedWires} from './cluster.js';
import {causesPanel, checkPanel, fixesPanel, openReport, outcomeDetails, progressBar, verdictBanner} from './runs.js';

// What can be placed on a part, most specific first.
const PLACES = {gpu: ['on-gpu', 'on-rank'], nic: ['on-nic'], node: ['on-node'], link: ['on-link', 'on-nic'], switch: [], job: ['on-job', 'on-stage', 'on-group']};
const PART_NAMES = {gpu: 'GPU', nic: 'network card', node: 'node', link: 'link', switch: 'switch link', job: 'the whole job'};

// What a newcomer can do at once; everything else is simulated on the spot.
const STORIES = [
  ['It crawls since this morning', 'One node has InfiniBand switched off; NCCL falls back to sockets.', 'ddp-16', 'F16'],
  ['It hangs', 'One rank leaves out a gradient bucket; all others wait for it.', 'ddp-16', 'F21'],
  ['Who is the slow one?', 'One GPU works at two thirds of its speed and everybody waits.', 'ddp-16', 'F60'],
  ['A network card dies', 'In the middle of a GPT run on four nodes.', 'gpt-32', 'F63'],
];

// Kept while other views are looked at.
const state = {subject: {scenario: 'ddp-16'}, edits: [], built: null, outcome: null, answers: {}};

const count = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;
const quote = (text) => JSON.stringify(String(text));
// A scenario of the form as YAML; quoted strings are JSON, which YAML reads.
function yamlOf(form) {
  const lines = [`name: ${quote(form.name || 'mine')}`, `trace: ${quote(form.trace)}`,
    `platform: {like: ${quote(form.platform)}, scale: ${Number(form.nodes) || 1}}`, 'launch:', `  framework: ${form.framework}`];
  if (form.nccl) lines.push(`  nccl_version: ${quote(form.nccl)}`);
  const env = form.env.split('\n').map((l) => l.trim()).filter((l) => l.includes('='));
  if (env.length) lines.push('  env:', ...env.map((l) => `    ${quote(l.slice(0, l.indexOf('=')))}: ${quote(l.slice(l.indexOf('=') + 1))}`));
  return lines.join('\n') + '\n';
}

export async function workbenchView(box, _, query) {
  const [{scenarios}, {faults}, {platforms}, {traces}] = await Promise.all([once('/scenarios'), once('/faults'), once('/platforms'), get('/traces')]);
  let preview = null, asked = 0, alive = true;

  const source = h('div'), picture = h('div.picture'), changes = h('ul.changes'), yaml = h('pre.yaml', {tabindex: 0, 'aria-label': 'scenario as YAML'});
  const results = h('div.stack', {id: 'results', 'aria-live': 'polite'}), inspector = h('section.panel.inspector', {hidden: true, 'aria-label': 'faults for the chosen part'});
  const problem = h('p.wrong', {hidden: true});
  const busy = {};
  const action = (kind, label, tone) => (busy[kind] = h('button' + tone, {type: 'button', id: 'do-' + kind, onclick: doing(() => start(kind))}, label));

  fill(box,
    h('div.work', null,
      h('div.stage', null,
        h('section.panel.hero', null, h('div.head', null, h('h2', null, 'Cluster'), h('span.soft', {id: 'cluster-name'})),
          problem, picture,
          h('p.hint.soft', null, 'Choose a GPU, network card, cable or node to see what can go wrong there. ',
            h('button.link', {type: 'button', onclick: () => inspect({kind: 'job', name: 'the whole job'})}, 'Or break the whole job'), '.')),
        results),
      h('aside.side', null,
        inspector,
        h('section.panel', null, h('h2', null, 'Scenario'), source),
        h('section.panel', null, h('h2', null, 'Changes'), changes,
          h('details', null, h('summary', null, 'Change any value'), freeForm()),
          h('div.actions.main', null, action('run', 'Run', ''), action('diagnose', 'Diagnose', '.second'), action('fix', 'Try fixes', '.second'), action('check', 'Check', '.quiet'))),
        h('section.panel', null, h('div.head', null, h('h2', null, 'As YAML'), h('div.actions', null,
          h('button.quiet', {type: 'button', onclick: doing(() => navigator.clipboard.writeText(yaml.textContent))}, 'Copy'),
          h('button.quiet', {type: 'button', id: 'save-yaml', onclick: () => save(`${preview?.name || 'scenario'}.yaml`, yaml.textContent)}, 'Save'),
          h('button.quiet', {type: 'button', onclick: editYaml}, 'Edit'))), yaml))));

  function save(name, text) {
    const link = h('a', {href: URL.createObjectURL(new Blob([text], {type: 'text/yaml'})), download: name});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function drawStories() {
    if (results.childElementCount) return;
    fill(results, h('section.panel.start', null, h('h2', null, 'Break something'), h('div.stories', null, STORIES.map(([title, text, scenario, fault]) =>
      h('button.story', {type: 'button', onclick: doing(async () => {
        Object.assign(state, {subject: {scenario}, edits: [{fault}], built: null, outcome: null});
        drawSource();
        if (await refresh()) await start('run');
      })}, h('strong', null, title), h('span.soft', null, text))))));
  }

  // ---- what runs -------------------------------------------------------------------------------------------------
  function drawSource() {
    const s = state.subject;
    const pick = h('select', {id: 'scenario', onchange: () => {
      const [kind, name] = [pick.value.slice(0, pick.value.indexOf(':')), pick.value.slice(pick.value.indexOf(':') + 1)];
      state.built = null;
      if (kind === 'build') state.built = blank();
      choose(kind === 'scenario' ? {scenario: name} : kind === 'trace' ? {trace: name} : kind === 'build' ? {yaml: yamlOf(state.built)} : s);
    }},
    h('optgroup', {label: 'Shipped'}, scenarios.map((x) => h('option', {value: 'scenario:' + x.name, selected: s.scenario === x.name}, x.name))),
    traces.length ? h('optgroup', {label: 'Your traces'}, traces.map((t) => h('option', {value: 'trace:' + t.name, selected: s.trace === t.name}, t.name))) : null,
    h('optgroup', {label: 'Other'}, h('option', {value: 'build:', selected: Boolean(s.yaml && state.built)}, 'Build one: trace × platform'),
      s.yaml && !state.built ? h('option', {value: 'yaml:', selected: true}, 'Edited YAML') : null));
    const about = scenarios.find((x) => x.name === s.scenario)?.description;
    fill(source, h('label', null, 'What runs', pick), about ? h('p.soft', null, about) : null, state.built ? buildForm() : null);
  }
  const blank = () => ({name: 'mine', trace: state.subject.scenario || state.subject.trace || 'ddp-16', platform: 'dgx-h100', nodes: 2, framework: 'pytorch', nccl: '', env: ''});
  function buildForm() {
    const f = state.built;
    const change = (key) => (e) => { f[key] = e.target.value; choose({yaml: yamlOf(f)}, true); };
    const option = (value, label, now) => h('option', {value, selected: value === now}, label);
    return h('div.form', null,
      h('label', null, 'Name', h('input', {value: f.name, onchange: change('name')})),
      h('label', null, 'Trace of', h('select', {onchange: change('trace')}, scenarios.map((x) => option(x.name, x.name, f.trace)), traces.map((t) => option(t.name, t.name, f.trace)))),
      h('label', null, 'Platform', h('select', {id: 'build-platform', onchange: change('platform')}, platforms.map((p) => option(p.id, p.name, f.platform)))),
      h('label', null, 'Nodes', h('input', {type: 'number', min: 1, max: 512, value: f.nodes, onchange: change('nodes')})),
      h('label', null, 'Framework', h('select', {onchange: change('framework')}, ['pytorch', 'horovod', 'tensorflow', 'keras'].map((x) => option(x, x, f.framework)))),
      h('label', null, 'NCCL version', h('input', {value: f.nccl, placeholder: 'as usual', onchange: change('nccl')})),
      h('label.wide', null, 'Environment of every rank', h('textarea', {rows: 2, placeholder: 'NCCL_ALGO=Ring', onchange: change('env')}, f.env)));
  }
  function editYaml() {
    const text = h('textarea.yaml', {rows: 16, 'aria-label': 'scenario as YAML', spellcheck: 'false'}, yaml.textContent);
    const bar = h('div.actions', null, h('button', {type: 'button', onclick: doing(async () => {
      const subject = {yaml: text.value};
      await post('/preview', subject);  // refused before it replaces anything
      state.built = null;
      state.edits = [];
      bar.remove(); text.replaceWith(yaml);
      choose(subject);
    })}, 'Use this'), h('button.quiet', {type: 'button', onclick: () => { bar.remove(); text.replaceWith(yaml); }}, 'Leave as it was'));
    yaml.replaceWith(text);
    text.after(bar);
    text.focus();
  }
  function choose(subject, keepForm) {
    state.subject = subject;
    state.outcome = null;
    if (!keepForm) drawSource();
    refresh();
  }

  // ---- changes ---------------------------------------------------------------------------------------------------
  const wordOf = (edit) => edit.fault ? faults.find((f) => f.id === edit.fault.split(':')[0])?.name || '' : '';
  function drawChanges() {
    fill(changes, state.edits.length ? state.edits.map((edit, i) => h('li', null,
      h('div', null, edit.fault ? h('strong', null, wordOf(edit)) : null, ' ', h('code', null, edit.fault || edit.set || edit.patch)),
      h('button.quiet', {type: 'button', 'aria-label': 'Take back', title: 'Take back', onclick: () => {
        state.edits.splice(i, 1);
        state.outcome = null;
        refresh();
      }}, '✕'))) : h('li.soft', null, 'None: the job as it should be.'));
  }
  async function add(edit) {
    const before = [...state.edits];
    state.edits.push(edit);
    state.outcome = null;
    if (!await refresh()) { state.edits = before; await refresh(); return false; }
    return true;
  }
  function freeForm() {
    const text = h('input', {placeholder: 'platform.nodes[1].nics[*].bandwidth=100Gbps', 'aria-label': 'path=value'});
    const patch = h('input', {placeholder: 'slow-rank: {rank: 6, slowdown: 2}', 'aria-label': 'patch as YAML'});
    return h('div.form', null,
      h('form.wide', {onsubmit: (e) => { e.preventDefault(); if (text.value) add({set: text.value}).then((ok) => { if (ok) text.value = ''; }); }}, h('label', null, 'A value', text), h('button.second', null, 'Set')),
      h('form.wide', {onsubmit: (e) => { e.preventDefault(); if (patch.value) add({patch: patch.value}).then((ok) => { if (ok) patch.value = ''; }); }}, h('label', null, 'A patch', patch), h('button.second', null, 'Apply')));
  }

  // ---- the picture -----------------------------------------------------------------------------------------------
  async function refresh() {
    const turn = ++asked;
    drawChanges();
    picture.classList.add('waiting');
    try {
      const seen = await post('/preview', {...state.subject, edits: state.edits});
      if (turn !== asked || !alive) return true;
      preview = seen;
      problem.hidden = true;
      yaml.textContent = preview.yaml;
      document.getElementById('cluster-name').textContent =
        [preview.scenario.platform.name, count(preview.scenario.platform.nodes.length, 'node'), count(preview.scenario.launch.ranks.length, 'rank')].join(', ');
      draw();
      return true;
    } catch (error) {
      if (turn !== asked || !alive) return true;
      problem.hidden = false;
      problem.textContent = [error.message, error.where, error.fix].filter(Boolean).join('; ');
      tell(error);
      return false;
    } finally {
      if (turn === asked) picture.classList.remove('waiting');
    }
  }
  function draw() {
    if (!preview) return;
    const marks = {changed: changedParts(state.edits, preview), blamed: blamedParts(state.outcome?.culprits), use: usedWires(state.outcome?.links)};
    const {element, hidden} = drawCluster(preview, {pick: inspect, marks, narrow: picture.clientWidth < 640});
    fill(picture, element, hidden > 0 ? h('p.soft', null, `and ${hidden} more nodes`) : null,
      state.outcome ? h('p.legend-line.soft', null, h('i.wire-cool'), 'idle ', h('i.wire-hot'), 'busy links in the last run', state.outcome.culprits?.length ? h('span', null, ' ', h('i.dot-blamed'), 'to blame') : null) : null);
  }

  // ---- what can go wrong at a part ---------------------------------------------------------------------------------
  function inspect(part, origin) {
    const places = PLACES[part.kind] || [];
    const fitting = [];
    for (const place of places) {
      for (const fault of faults) if (fault.placement.includes(place) && !fitting.includes(fault)) fitting.push(fault);
    }
    const words = h('input.search', {type: 'search', placeholder: `Search ${fitting.length} faults`, 'aria-label': 'Search faults', oninput: () => list()});
    const rows = h('div.faults');
    // Back to the part, which may have been drawn anew meanwhile.
    const key = origin?.dataset?.part;
    const close = () => {
      inspector.hidden = true;
      const there = origin?.isConnected ? origin : key ? picture.querySelector(`[data-part="${CSS.escape(key)}"]`) : null;
      there?.focus({preventScroll: true});
    };
    const list = () => fill(rows, fitting.filter((f) => `${f.id} ${f.name} ${f.cause}`.toLowerCase().includes(words.value.toLowerCase())).map((f) => faultForm(f, part, close)));
    list();
    fill(inspector, h('div.head', null, h('h2', null, part.kind === 'job' ? 'The whole job' : part.kind === 'gpu' || part.kind === 'nic' ? `${part.name} of ${preview.scenario.platform.nodes[part.node].name}` : part.name),
      h('button.quiet', {type: 'button', 'aria-label': 'Close', onclick: close}, '✕')),
    part.text || part.rank !== undefined ? h('p.soft', null, [PART_NAMES[part.kind], part.text, part.rank !== undefined && part.kind === 'gpu' ? `rank ${part.rank}` : null, part.node !== undefined ? `node ${part.node}` : null].filter(Boolean).join(', ')) : null,
    part.kind === 'switch' || (part.kind === 'link' && part.nic === undefined) ? linkForm(part, close) : null,
    fitting.length > 4 ? words : null, rows);
    inspector.hidden = false;
    show(inspector);
    inspector.onkeydown = (e) => { if (e.key === 'Escape') close(); };
    inspector.querySelector('summary, input, button:not(.quiet)')?.focus({preventScroll: true});
  }
  const preset = (parameter, part) => ({rank: part.rank, node: part.node, gpu: part.gpu, nic: part.nic}[parameter.kind]);
  function faultForm(fault, part, close) {
    const used = new Set();
    const inputs = fault.parameters.map((p) => {
      // The first parameter of a kind is the part itself; a second one is somebody else.
      let value = used.has(p.kind) ? undefined : preset(p, part);
      used.add(p.kind);
      value = value === undefined ? p.default : String(value);
      const control = p.choices.length ? h('select', null, p.choices.map((c) => h('option', {value: c, selected: c === value}, c))) : h('input', {value, name: p.name});
      return {p, control};
    });
    const place = doing(async () => {
      const values = inputs.map(({p, control}) => `${p.name}=${control.value}`);
      const ok = await add({fault: fault.id + (values.length ? ':' + values.join(',') : '')});
      if (ok) close();
    });
    return h('details.fault', {'data-fault': fault.id}, h('summary', null, h('code', null, fault.id), ' ', fault.name),
      h('p.soft', null, fault.cause),
      inputs.length ? h('div.form', null, inputs.map(({p, control}) => h('label', {title: p.meaning}, p.name, control, h('small.soft', null, p.meaning)))) : null,
      h('button', {type: 'button', class: 'inject', onclick: place}, 'Inject'));
  }
  function linkForm(part, close) {
    const speed = h('input', {value: '10Gbps', 'aria-label': 'bandwidth'});
    // One list holds all exceptions of links: earlier ones stay.
    const set = doing(async (what) => {
      const prefix = 'platform.fabric.links=';
      const old = state.edits.findIndex((e) => e.set?.startsWith(prefix));
      const rows = (old >= 0 ? JSON.parse(state.edits[old].set.slice(prefix.length)) : []).filter((l) => l.name !== part.name);
      rows.push({name: part.name, ...what});
      const edits = state.edits.filter((_, i) => i !== old);
      const before = state.edits;
      state.edits = edits;
      if (await add({set: prefix + JSON.stringify(rows)})) close(); else { state.edits = before; refresh(); }
    });
    return h('div.form', null, h('label', null, 'Limit it to', speed), h('button', {type: 'button', onclick: () => set({bandwidth: speed.value})}, 'Slow it down'),
      h('button.second', {type: 'button', onclick: () => set({down: true})}, 'Cut it'));
  }

  // ---- what happens then -------------------------------------------------------------------------------------------
  async function start(kind) {
    const subject = {...state.subject, edits: [...state.edits]};
    // Diagnosis and fixes belong into the report of a run of the same job.
    const key = JSON.stringify(subject);
    const same = () => state.answers.key === key;
    if (!same()) state.answers = {key};
    const job = await post('/jobs', {kind, subject});
    const card = h('section.panel.job', {'data-kind': kind, 'data-job': job.id});
    results.querySelector('.start')?.remove();
    results.prepend(card);
    show(card);
    const names = {run: 'Run', diagnose: 'Diagnosis', fix: 'Fixes', check: 'Check'};
    const head = (done, ...more) => h('div.head', null, h('h2', null, `${names[kind]} `, h('a.soft', {href: '#/run/' + job.id}, '#' + job.id)),
      h('div.actions', null, ...more, done ? h('button.quiet', {type: 'button', 'aria-label': 'Put away', onclick: () => card.remove()}, '✕') : null));
    const ended = await follow(job.id, (j) => {
      if (j.state === 'queued' || j.state === 'running') {
        fill(card, head(false, h('button.quiet', {type: 'button', onclick: doing(() => post(`/jobs/${job.id}/cancel`, {}))}, 'Cancel')), progressBar(j));
      }
    });
    if (ended.state !== 'done') {
      fill(card, head(true), h('div.verdict.' + (ended.state === 'failed' ? 'bad' : 'plain'), null, h('strong', null, ended.state),
        ended.error ? h('div', null, ended.error.what, ' ', h('span.soft', null, [ended.error.where, ended.error.fix].filter(Boolean).join('; '))) : null));
      return;
    }
    const result = await get(`/jobs/${job.id}/result`);
    if (same()) state.answers[kind] = job.id;
    if (kind === 'run') {
      const report = h('button.second', {type: 'button', onclick: doing((e) =>
        openReport([job.id, ...(same() ? [state.answers.diagnose, state.answers.fix].filter(Boolean) : [])], e.currentTarget))}, 'Report');
      fill(card, head(true, report), verdictBanner(result), h('div.grid', null, outcomeDetails(result)));
      const healthy = result.symptom?.id === 'healthy';
      if (!healthy) card.querySelector('.verdict').append(h('div.actions', null,
        h('button', {type: 'button', onclick: doing(() => start('diagnose'))}, 'Why?'),
        h('button', {type: 'button', class: 'try-fixes', onclick: doing(() => start('fix'))}, 'What helps?')));
      state.outcome = result;
      draw();
    }
    if (kind === 'diagnose') fill(card, head(true), causesPanel(result));
    if (kind === 'check') fill(card, head(true), checkPanel(result));
    if (kind === 'fix') {
      fill(card, head(true), fixesPanel(result, async (fix) => {
        for (const patch of fix.patches) if (!await add({patch})) return;
        await start('run');
      }));
    }
  }

  // ---- where others sent us ------------------------------------------------------------------------------------------
  if (query.get('trace')) Object.assign(state, {subject: {trace: query.get('trace')}, edits: [], built: null, outcome: null});
  if (query.get('platform')) {
    state.built = {...blank(), platform: query.get('platform')};
    Object.assign(state, {subject: {yaml: yamlOf(state.built)}, edits: [], outcome: null});
  }
  if (query.get('fault')) {
    const fault = faults.find((f) => f.id === query.get('fault'));
    if (fault?.scenario) state.subject = {scenario: fault.scenario};
    if (fault) state.edits = [{fault: fault.id}];
    state.outcome = null;
  }
  if (query.get('job')) {
    const {request} = await get('/jobs/' + encodeURIComponent(query.get('job')));
    const s = request.subject;
    const outcome = await get(`/jobs/${encodeURIComponent(query.get('job'))}/result`);
    Object.assign(state, {built: null, outcome, edits: s.edits.map((e) => (e.fault ? {fault: e.fault} : e.set ? {set: e.set} : {patch: e.patch})),
      subject: s.scenario ? {scenario: s.scenario} : s.trace ? {trace: s.trace} : {yaml: s.yaml}});
    fill(results, h('section.panel.job', null, h('h2', null, 'Run #' + query.get('job')), verdictBanner(outcome), h('div.grid', null, outcomeDetails(outcome))));
  }
  if (query.toString()) history.replaceState(null, '', '#/workbench');
  drawSource();
  drawStories();
  await refresh();
  return () => { alive = false; };
}
