// SPDX-License-Identifier: Apache-2.0
// Jobs: the list, one of them with what came out, several side by side.
import {ago, append, bytes, doing, duration, fill, follow, get, h, onJob, percent, post, rate, remove, tell} from './api.js';
import {compareBars, rankBars, stepBars} from './charts.js';

const TONES = {completed: 'good', hang: 'bad', crash: 'bad', rejected: 'bad', 'wrong-semantics': 'warn'};
export const toneOf = (outcome) => (outcome.symptom?.id === 'healthy' || outcome.symptom === 'healthy' ? 'good'
  : outcome.verdict === 'completed' ? 'warn' : TONES[outcome.verdict] || 'warn');

const describe = (edit) => edit.fault || edit.set || (edit.patch || '').replace(/\s+/g, ' ');
export function titleOf(job) {
  const request = job.request;
  if (request.title) return request.title;
  if (request.kind === 'report') return 'report of ' + request.outcomes.map((id) => '#' + id).join(', ');
  if (request.kind === 'import') return 'import of ' + (request.file || 'a trace');
  const s = request.subject || {};
  const what = s.scenario || s.trace || (s.yaml || '').match(/^name:\s*(\S+)/m)?.[1] || 'scenario';
  return [what, ...(s.edits || []).map(describe)].join(' + ');
}

export function progressBar(job) {
  const p = job.progress;
  const bar = h('progress', {max: p?.total || 1, 'aria-label': 'progress'});
  if (p?.total) bar.value = p.done;
  return h('div.progress', null, bar, h('span.soft', null,
    job.state === 'queued' ? 'waiting for a free worker' : p ? `${p.what}${p.total ? ` ${p.done} of ${p.total}` : ''}` : 'starting'));
}

// of a summary
const outcomePill = (s) => h('span.pill.' + toneOf(s), null, s.symptom === 'healthy' ? 'healthy' : s.verdict === s.label ? s.verdict : `${s.verdict}, ${s.label}`);

function stateOf(job) {
  if (job.state === 'done' && job.summary?.verdict) return outcomePill(job.summary);
  const tone = {done: 'good', failed: 'bad', cancelled: 'plain', running: 'busy', queued: 'plain'}[job.state];
  return h('span.pill.' + tone, null, job.state);
}

export async function runsView(box) {
  const rows = new Map(), chosen = new Set();
  const body = h('tbody'), more = h('button.quiet', {type: 'button', hidden: true}, 'Older ones');
  const compare = h('button', {type: 'button', disabled: true, onclick: () => { location.hash = '#/compare?jobs=' + [...chosen].join(','); }}, 'Compare');
  const choice = () => {
    compare.disabled = chosen.size < 2;
    compare.textContent = chosen.size < 2 ? 'Compare (choose two or more runs)' : `Compare ${chosen.size} runs`;
  };
  choice();
  fill(box, h('div.head', null, h('h1', null, 'Runs'), compare), h('div.scroll', null, h('table.list', null,
    h('thead', null, h('tr', null, h('th', null, h('span.only-read', null, 'chosen')), h('th', null, 'job'), h('th', null, 'what'), h('th', null, 'state'), h('th.number', null, 'step time'), h('th', null, ''))),
    body)), more, h('p.soft.empty', null, 'Nothing has run yet. Start at the workbench.'));

  const over = new Set();  // a list that was asked for earlier may arrive later
  const draw = (job) => {
    const s = job.summary || {};
    const active = job.state === 'queued' || job.state === 'running';
    if (active && over.has(job.id)) return;
    if (!active) over.add(job.id);
    const done = job.state === 'done' && job.request.kind === 'run';
    const row = h('tr', {'data-job': job.id},
      h('td', null, done ? h('input', {type: 'checkbox', 'aria-label': `choose job ${job.id}`, checked: chosen.has(job.id),
        onchange: (e) => { if (e.target.checked) chosen.add(job.id); else chosen.delete(job.id); choice(); }}) : null),
      h('td', null, h('a', {href: '#/run/' + job.id}, '#' + job.id), h('div.soft', null, job.request.kind)),
      h('td', null, titleOf(job), h('div.soft', null, ago(job.created))),
      h('td', null, active && job.state === 'running' ? progressBar(job) : stateOf(job), job.error ? h('div.soft', null, job.error.what) : null),
      h('td.number', null, s.step_time_ns ? duration(s.step_time_ns) : '', s.step_time_ns && s.baseline_step_time_ns
        ? h('div.soft', null, percent(s.step_time_ns / s.baseline_step_time_ns - 1)) : null),
      h('td.actions', null, active
        ? h('button.quiet', {type: 'button', onclick: doing(() => post(`/jobs/${job.id}/cancel`, {}))}, 'Cancel')
        : h('button.quiet', {type: 'button', onclick: doing(async () => {
          await remove('/jobs/' + job.id);
          chosen.delete(job.id); choice();
          rows.get(job.id)?.remove(); rows.delete(job.id);
        })}, 'Delete')));
    if (rows.has(job.id)) rows.get(job.id).replaceWith(row);
    else {
      const below = [...rows.keys()].filter((id) => Number(id) < Number(job.id)).sort((a, b) => b - a)[0];
      body.insertBefore(row, below ? rows.get(below) : null);
    }
    rows.set(job.id, row);
    box.querySelector('.empty').hidden = true;
  };
  const load = async (before) => {
    const {jobs} = await get('/jobs?limit=50' + (before ? '&before=' + before : ''));
    jobs.forEach(draw);
    more.hidden = jobs.length < 50;
    if (jobs.length) more.onclick = doing(() => load(jobs[jobs.length - 1].id));
  };
  // Heard before it is asked: what changes meanwhile is not missed.
  const stop = onJob(draw);
  try { await load(); } catch (error) { stop(); throw error; }
  return stop;
}

// One line that answers, then why.
export function verdictBanner(outcome) {
  const step = outcome.step_time_ns?.mean, base = outcome.baseline_step_time_ns?.mean;
  const healthy = outcome.symptom?.id === 'healthy';
  const line = step ? (base && base !== step ? `step time ${duration(base)} → ${duration(step)} (${percent(step / base - 1)})` : `step time ${duration(step)}`)
    : outcome.verdict === 'completed' ? 'no steps in this trace' : 'no whole step';
  return h('div.verdict.' + toneOf(outcome), null,
    h('div', null, h('strong', null, outcome.verdict === 'completed' ? (healthy ? 'Healthy' : 'Completed, but') : outcome.verdict[0].toUpperCase() + outcome.verdict.slice(1)),
      healthy ? null : h('span', null, outcome.symptom?.label === outcome.verdict ? ' ' : ` ${outcome.symptom?.label || ''} `, h('code', null, outcome.symptom?.id || ''))),
    h('div.big', null, line),
    healthy ? null : h('ul', null, (outcome.symptom?.reasons || []).slice(0, 4).map((r) => h('li', null, r))));
}

// "0-4, 6-15"; the first of many stretches.
function ranksText(list) {
  const sorted = [...list].sort((a, b) => a - b), parts = [];
  for (let i = 0; i < sorted.length;) {
    let last = i;
    while (sorted[last + 1] === sorted[last] + 1) ++last;
    parts.push(last > i ? `${sorted[i]}-${sorted[last]}` : `${sorted[i]}`);
    i = last + 1;
  }
  return parts.length > 8 ? `${parts.slice(0, 8).join(', ')} and more, ${list.length} in all` : parts.join(', ');
}

export function outcomeDetails(outcome, fixes) {
  const base = outcome.baseline_step_time_ns?.mean, now = outcome.step_time_ns?.mean;
  const bars = [];
  if (base) bars.push({name: 'healthy', ns: base, tone: 'good'});
  bars.push({name: base ? 'as changed' : outcome.scenario, ns: now || 0, tone: base ? toneOf(outcome) : '', note: outcome.verdict});
  for (const fix of (fixes?.fixes || []).filter((f) => !f.refused).slice(0, 5)) {
    bars.push({name: 'fix: ' + fix.name, ns: fix.step_time_ns || 0, tone: fix.restores ? 'good' : '', note: fix.verdict});
  }
  const out = [];
  const section = (title, ...children) => out.push(h('section.panel', null, h('h3', null, title), ...children));
  const wide = (...all) => { section(...all); out[out.length - 1].classList.add('whole'); };
  if (outcome.culprits?.length) {
    section('To blame', h('ul', null, outcome.culprits.map((c) => h('li', null, h('strong', null,
      c.rank !== undefined ? `rank ${c.rank}` : c.node !== undefined ? `node ${c.node}` : c.link || c.kind), ' ', c.why))));
  }
  if (outcome.error_text?.length) {
    const texts = new Map();
    for (const e of outcome.error_text) texts.set(e.text, [...(texts.get(e.text) || []), e.rank]);
    wide('What you would read', [...texts].slice(0, 6).map(([text, ranks]) =>
      h('div', null, h('p.soft', null, `rank ${ranksText(ranks)}`), h('pre', null, text))));
  }
  if (outcome.waits?.length) {
    const groups = new Map();
    for (const w of outcome.waits) {
      const key = `${w.operation}|${w.communicator}|${w.sequence}|${w.for_ranks.join(',')}`;
      if (!groups.has(key)) groups.set(key, {...w, ranks: []});
      groups.get(key).ranks.push(w.rank);
    }
    wide('Who waits for whom', h('div.scroll', null, h('table', null, h('thead', null, h('tr', null,
      ['waiting', 'for ranks', 'in', 'communicator', 'sequence'].map((t) => h('th', null, t)))),
    h('tbody', null, [...groups.values()].slice(0, 12).map((g) => h('tr', null, h('td', null, ranksText(g.ranks)), h('td', null, ranksText(g.for_ranks)),
      h('td', null, g.operation), h('td', null, g.communicator), h('td', null, g.sequence)))))));
  }
  const steps = stepBars(bars);
  if (steps) section('Step time', steps);
  const ranks = rankBars(outcome.breakdown);
  if (ranks && now) section('Where a step goes', ranks);
  const findings = (outcome.findings || []).filter((f) => f.severity !== 'info');
  if (findings.length) {
    section('Findings', h('ul', null, findings.slice(0, 8).map((f) => h('li', null, f.first, h('span.soft', null, ' ' + f.advice)))));
  }
  if (outcome.communicators?.length) {
    wide('Communicators', h('div.scroll', null, h('table', null, h('thead', null, h('tr', null,
      ['communicator', 'ranks', 'transport', 'algorithms', 'bus bandwidth'].map((t) => h('th', null, t)))),
    h('tbody', null, outcome.communicators.slice(0, 12).map((c) => h('tr', null, h('td', null, c.id), h('td', null, c.ranks),
      h('td', {class: c.offered && c.offered !== c.transport ? 'wrong' : null}, c.transport, c.offered && c.offered !== c.transport ? ` instead of ${c.offered}` : ''),
      h('td', null, c.algorithms), h('td', null, rate(c.busbw))))))));
  }
  out.push(h('p.soft.whole', null, `${outcome.ranks} ranks on ${outcome.platform}; `, outcome.synthetic ? 'the trace is synthetic; ' : '', `rehearse ${outcome.version}`));
  return out;
}

export function causesPanel(diagnosis) {
  if (!diagnosis.causes.length) {
    return h('section.panel', null, h('h3', null, 'Cause'), h('p', null, diagnosis.symptom.id === 'healthy'
      ? 'Nothing is wrong with this job.' : 'No fault of the catalogue explains this.'));
  }
  return h('section.panel', null, h('h3', null, 'Cause'), diagnosis.causes.slice(0, 4).map((c, i) =>
    h('details', {open: i === 0}, h('summary', null, h('meter', {min: 0, max: 1, value: c.score, title: `score ${c.score.toFixed(2)}`}), ' ',
      h('strong', null, c.name), ' ', h('code', null, c.use), h('span.soft', null, c.simulated ? ` score ${c.score.toFixed(2)}` : ' by rules only')),
    h('ul.evidence', null, c.evidence.map((e) => h('li.for', null, e)), c.against.map((e) => h('li.against', null, e))))),
  h('p.soft', null, `${diagnosis.simulations} runs simulated`));
}

// `apply` takes the patches of a fix; without it fixes are only shown.
export function fixesPanel(report, apply) {
  if (!report.fixes.length) return h('section.panel', null, h('h3', null, 'Fixes'), h('p', null, 'There is nothing to fix, or no fix in the catalogue.'));
  return h('section.panel', null, h('h3', null, 'Fixes, tried in simulation'), h('div.fixes', null, report.fixes.map((f) =>
    h('article.fix' + (f.restores ? '.good' : ''), null,
      h('p', null, h('strong', null, f.change)),
      h('p', null, f.refused ? `not tried: ${f.refused}` : [f.restores ? h('span.pill.good', null, 'healthy again') : h('span.pill.plain', null, 'does not restore'), ' ',
        f.step_time_ns ? duration(f.step_time_ns) : f.verdict, f.recovered_ns > 0 ? `, ${duration(f.recovered_ns)} per step recovered` : '']),
      h('p.soft', null, `against ${f.use}; error band: ${f.band}; this pattern helped ${f.paper_count === 1 ? 'once' : `${f.paper_count} times`} in the study`),
      apply && !f.refused ? h('button', {type: 'button', onclick: doing(() => apply(f))}, 'Apply and run') : null))));
}

// Has a report made and opens it.
export async function openReport(ids, button) {
  const job = await post('/jobs', {kind: 'report', outcomes: ids});
  const label = button?.textContent;
  if (button) button.textContent = 'Making the report…';
  const ended = await follow(job.id);
  if (button) button.textContent = label;
  if (ended.state !== 'done') throw new Error(ended.error?.what || 'the report was not made');
  location.hash = '#/run/' + ended.id;
}

export async function runView(box, [id]) {
  const head = h('div.head'), body = h('div.stack');
  fill(box, head, body);
  const show = async (job) => {
    fill(head, h('div', null, h('h1', null, titleOf(job)), h('p.soft', null, `job #${job.id}, ${job.request.kind}, ${ago(job.created)} `, stateOf(job))));
    const actions = h('div.actions');
    head.append(actions);
    if (job.state === 'queued' || job.state === 'running') {
      actions.append(h('button.quiet', {type: 'button', onclick: doing(() => post(`/jobs/${id}/cancel`, {}))}, 'Cancel'));
      return fill(body, progressBar(job));
    }
    const file = (name) => `/api/v1/jobs/${id}/files/${encodeURIComponent(name)}`;
    if (job.request.kind === 'run' && job.state === 'done') {
      actions.append(h('button', {type: 'button', onclick: doing((e) => openReport([id], e.currentTarget))}, 'Report'));
      actions.append(h('a.button.quiet', {href: '#/workbench?job=' + id}, 'Open in the workbench'));
    }
    const files = h('section.panel', null, h('h3', null, 'Files'), h('ul', null, job.files.map((f) =>
      h('li', null, h('a', {href: file(f.name), download: f.name.endsWith('.html') ? null : f.name, target: f.name.endsWith('.html') ? '_blank' : null, rel: 'noopener'}, f.name), h('span.soft', null, ' ' + bytes(f.bytes))))));
    if (job.state === 'failed') {
      return fill(body, h('div.verdict.bad', null, h('strong', null, 'Failed'), h('div.big', null, job.error.what), job.error.where ? h('p', null, job.error.where) : null, job.error.fix ? h('p', null, job.error.fix) : null));
    }
    fill(body);
    if (job.state === 'done' && job.request.kind !== 'report' && job.request.kind !== 'import') {
      const result = await get(`/jobs/${id}/result`);
      if (job.request.kind === 'run') append(body, [verdictBanner(result), h('div.grid', null, outcomeDetails(result))]);
      if (job.request.kind === 'diagnose') append(body, [causesPanel(result)]);
      if (job.request.kind === 'fix') append(body, [fixesPanel(result)]);
      if (job.request.kind === 'check') append(body, [checkPanel(result)]);
    }
    if (job.request.kind === 'report' && job.state === 'done') {
      actions.append(h('a.button', {href: file('report.html'), target: '_blank', rel: 'noopener'}, 'Open the report'),
        h('a.button.quiet', {href: file('report.html'), download: 'report.html'}, 'Download it'));
    }
    body.append(files);
  };
  let over = false;
  const see = async (job) => {
    if (job.id !== id || over) return;
    over = job.state !== 'queued' && job.state !== 'running';
    await show(job);
  };
  // Heard before it is asked: an end that comes meanwhile is not missed.
  const stop = onJob((job) => see(job).catch(tell));
  try { await see(await get('/jobs/' + id)); } catch (error) { stop(); throw error; }
  return stop;
}

export function checkPanel(report) {
  return h('section.panel', null, h('h3', null, 'Check of the configuration'), report.findings.length
    ? h('ul', null, report.findings.map((f) => h('li', null, h('span.pill.' + (f.severity === 'error' ? 'bad' : f.severity === 'warning' ? 'warn' : 'plain'), null, f.severity),
      ' ', f.what, h('div.soft', null, `${f.where}: ${f.fix}`)))) : h('p', null, 'Nothing found.'));
}

export async function compareView(box, _, query) {
  const ids = (query.get('jobs') || '').split(',').filter(Boolean);
  const {runs} = await get('/compare?jobs=' + ids.map(encodeURIComponent).join(','));
  fill(box, h('div.head', null, h('h1', null, 'Compare'), h('div.actions', null,
    h('button', {type: 'button', onclick: doing((e) => openReport(ids, e.currentTarget))}, 'Report of these'))),
  h('section.panel', null, h('h3', null, 'Step time'), stepBars(runs.map((r) => ({name: `#${r.job} ${r.title || r.scenario}`, ns: r.step_time_ns || 0, note: r.verdict,
    tone: toneOf(r)})), 900)),
  h('section.panel', null, h('h3', null, 'Where a step goes, mean over ranks'), compareBars(runs)),
  h('div.scroll', null, h('table.list', null, h('thead', null, h('tr', null, ['job', 'what was changed', 'outcome', 'step time', 'against the first'].map((t, i) => h(i > 2 ? 'th.number' : 'th', null, t)))),
    h('tbody', null, runs.map((r) => h('tr', null, h('td', null, h('a', {href: '#/run/' + r.job}, '#' + r.job), ' ', r.title || r.scenario),
      h('td', null, r.patches.length ? r.patches.map((p) => h('div', null, h('code', null, p))) : 'nothing'),
      h('td', null, outcomePill(r)),
      h('td.number', null, r.step_time_ns ? duration(r.step_time_ns) : 'no whole step'), h('td.number', null, r.ratio ? `${r.ratio.toFixed(3)}×` : '–')))))));
}
