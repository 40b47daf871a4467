// SPDX-License-Identifier: Apache-2.0
// Drawings of figures: step times side by side, where the time of each rank goes.
import {duration, h, percent} from './api.js';

const PARTS = [
  ['compute', 'compute'],
  ['communication', 'communication, not hidden'],
  ['wait', 'waiting for other ranks'],
  ['host', 'GPU waits for its host'],
  ['idle', 'idle'],
];
const short = (text, width) => (text.length > width / 7 ? text.slice(0, width / 7 - 1) + '…' : text);
// As wide as its place, but not so wide that its words would shout.
const svgOf = (width, height, label) => d3.create('svg')
  .attr('viewBox', `0 0 ${width} ${height}`).attr('role', 'img').attr('aria-label', label).attr('class', 'chart')
  .style('max-width', `${Math.round(1.15 * width)}px`);
// Drawn for what a phone has: shrunk to it words could not be read.
const fitting = (width) => (matchMedia('(max-width: 640px)').matches ? Math.min(width, 330) : width);

// rows: [{name, ns, tone, note}]: one bar each, from 0.
export function stepBars(rows, most = 460) {
  const width = fitting(most);
  const known = rows.filter((row) => row.ns > 0);
  if (!known.length) return null;
  const line = 32, left = 0.27 * width, right = 150;
  const height = line * rows.length + 8;
  const x = d3.scaleLinear([0, d3.max(known, (row) => row.ns)], [left, width - right]);
  const svg = svgOf(width, height, 'step times: ' + rows.map((r) => `${r.name} ${duration(r.ns)}`).join(', '));
  const row = svg.selectAll('g').data(rows).join('g').attr('transform', (_, i) => `translate(0,${i * line + 4})`);
  row.append('text').attr('x', left - 10).attr('y', 18).attr('text-anchor', 'end').attr('class', 'label')
    .text((r) => short(r.name, left)).append('title').text((r) => r.name);
  row.append('rect').attr('x', left).attr('y', 3).attr('height', 22).attr('rx', 4)
    .attr('width', (r) => (r.ns > 0 ? Math.max(2, x(r.ns) - left) : 0)).attr('class', (r) => 'step ' + (r.tone || ''));
  const first = known[0].ns;
  row.append('text').attr('x', (r) => (r.ns > 0 ? x(r.ns) : left) + 8).attr('y', 18).attr('class', 'figure')
    .text((r) => (r.ns > 0 ? duration(r.ns) + (r.ns !== first ? `  ${percent(r.ns / first - 1)}` : '') : r.note || 'no whole step'));
  return svg.node();
}

function legend(parts) {
  return h('ul.legend', null, parts.map(([id, label]) => h('li', null, h('i.' + id), label)));
}

// breakdown of an outcome: one stacked bar per rank.
export function rankBars(breakdown) {
  if (!breakdown?.length) return null;
  // More ranks than pixels: the slowest, as many as can be told apart.
  const most = 128;
  const rows = breakdown.length <= most ? breakdown
    : [...breakdown].sort((a, b) => b.compute + b.host - a.compute - a.host).slice(0, most);
  const width = fitting(460), height = 170, left = 56, bottom = 24;
  const x = d3.scaleBand(rows.map((r) => r.rank), [left, width - 4]).padding(rows.length > 40 ? 0.05 : 0.18);
  const y = d3.scaleLinear([0, d3.max(rows, (r) => r.step) || 1], [height - bottom, 8]);
  const svg = svgOf(width, height, 'where a step goes, per rank');
  svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`)
    .call(d3.axisLeft(y).ticks(4).tickFormat((v) => duration(v))).call((g) => g.select('.domain').remove());
  const every = Math.ceil(rows.length / (width / 25));
  svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - bottom})`)
    .call(d3.axisBottom(x).tickValues(rows.filter((_, i) => i % every === 0).map((r) => r.rank)).tickSize(0).tickPadding(8))
    .call((g) => g.select('.domain').remove());
  const stack = d3.stack().keys(PARTS.map((p) => p[0]))(rows);
  const layer = svg.selectAll('g.layer').data(stack).join('g').attr('class', (s) => 'layer ' + s.key);
  layer.selectAll('rect').data((s) => s.map((v) => ({from: v[0], to: v[1], rank: v.data.rank, key: s.key}))).join('rect')
    .attr('x', (v) => x(v.rank)).attr('width', x.bandwidth())
    .attr('y', (v) => y(v.to)).attr('height', (v) => Math.max(0, y(v.from) - y(v.to)))
    .append('title').text((v) => `rank ${v.rank}: ${PARTS.find((p) => p[0] === v.key)[1]} ${duration(v.to - v.from)}`);
  return h('figure', null, svg.node(), legend(PARTS),
    h('figcaption.soft', null, rows.length < breakdown.length
      ? `mean step of the ${rows.length} busiest of ${breakdown.length} ranks` : 'mean step of every rank'));
}

// runs of /compare: stacked mean of each.
export function compareBars(runs) {
  const rows = runs.filter((r) => r.step_time_ns > 0);
  if (!rows.length) return null;
  const width = fitting(900), line = 32, left = 0.27 * width, right = 118;
  const total = (r) => d3.sum(PARTS, (p) => r.breakdown[p[0]] || 0);
  const x = d3.scaleLinear([0, d3.max(rows, total) || 1], [left, width - right]);
  const svg = svgOf(width, line * rows.length + 8, 'where a step goes, mean over ranks');
  const row = svg.selectAll('g').data(rows).join('g').attr('transform', (_, i) => `translate(0,${i * line + 4})`);
  row.append('text').attr('x', left - 10).attr('y', 18).attr('text-anchor', 'end').attr('class', 'label')
    .text((r) => short(`#${r.job} ${r.title || r.scenario}`, left));
  row.each(function(r) {
    let at = 0;
    const bar = d3.select(this);
    for (const [id, label] of PARTS) {
      const ns = r.breakdown[id] || 0;
      bar.append('g').attr('class', 'layer ' + id).append('rect').attr('x', x(at)).attr('y', 3).attr('height', 22)
        .attr('width', Math.max(0, x(at + ns) - x(at))).append('title').text(`${label} ${duration(ns)}`);
      at += ns;
    }
    bar.append('text').attr('x', x(at) + 8).attr('y', 18).attr('class', 'figure').text(duration(at));
  });
  return h('figure', null, svg.node(), legend(PARTS));
}
