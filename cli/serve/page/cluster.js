// SPDX-License-Identifier: Apache-2.0
// The cluster of a scenario, drawn from its preview (rehearse.scenario/1): nodes with GPUs, NVLink, NICs and the
// network between them. Every part can be picked by mouse or keyboard; parts that were changed, that are to blame
// or that are busy show it.
import {duration, rate} from './api.js';

const CELL = 62, HIGH = 40, CARD = 36, GAP = 8, PAD = 12, TITLE = 24, BAR = 16, CABLE = 34, MOST = 32, LETTER = 8;

const down = (part) => (part.down ? ' down' : '');

// Words in lines of at most so many letters.
function lines(text, most) {
  const out = [''];
  for (const word of text.split(' ')) {
    const last = out[out.length - 1];
    if (last && last.length + 1 + word.length > most) out.push(word);
    else out[out.length - 1] = last ? `${last} ${word}` : word;
  }
  return out;
}

// What stands where; pure.
function layout(nodes, narrow) {
  const places = [];
  const perRow = (n) => Math.min(narrow ? 4 : 8, Math.max(1, n));
  let width = 0;
  for (const node of nodes) {
    const columns = perRow(Math.max(node.gpus.length, Math.min(node.nics.length, 8)));
    const gpuRows = Math.ceil(node.gpus.length / columns), nicRows = Math.ceil(node.nics.length / columns);
    const inner = columns * (CELL + GAP) - GAP;
    const hasNv = node.nvswitch?.count > 0 || node.nvlinks?.length > 0;
    const top = TITLE + (hasNv ? BAR + 14 : 4);
    const high = top + gpuRows * (HIGH + GAP) + 10 + nicRows * (CARD + GAP) + PAD - GAP;
    places.push({width: inner + 2 * PAD, height: high, columns, top, hasNv, nicTop: top + gpuRows * (HIGH + GAP) + 10});
    width = Math.max(width, inner + 2 * PAD);
  }
  const columns = narrow ? 1 : Math.max(1, nodes.length <= 2 ? nodes.length : Math.min(nodes.length, Math.max(2, Math.floor(1250 / (width + 20)))));
  let x = 0, y = 0, rowHigh = 0;
  places.forEach((place, i) => {
    if (i > 0 && i % columns === 0) { x = 0; y += rowHigh + CABLE; rowHigh = 0; }
    place.x = x; place.y = y;
    x += place.width + 20;
    rowHigh = Math.max(rowHigh, place.height);
  });
  return {places, width: Math.min(columns, nodes.length) * (width + 20) - 20, height: y + rowHigh};
}

// Which picture belongs to a link's name: "node1/mlx5_0/tx" -> "node1/mlx5_0".
const linkStem = (name) => name.replace(/\/(tx|rx|nvlink-out|nvlink-in|pcie-up|pcie-down)$/, '');

// marks: {blamed: Set, changed: Set, use: Map of stem -> share}; keys of parts are 'node 1', 'rank 3', 'gpu 1 3',
// 'nic 1 0', 'link NAME'.
// narrow: one node below the other, four parts in a row.
export function drawCluster(preview, {pick, marks, narrow}) {
  const platform = preview.scenario.platform;
  const shown = platform.nodes.slice(0, MOST);
  const ranks = new Map();
  for (const r of preview.scenario.launch.ranks) {
    const key = `${r.node} ${r.gpu}`;
    if (!ranks.has(key)) ranks.set(key, []);
    ranks.get(key).push(r.rank);
  }
  const switches = preview.links.filter((l) => l.kind === 'switch');
  const at = layout(shown, narrow);
  const fabricY = at.height + CABLE;
  const several = platform.nodes.length > 1;
  const stems = [...new Set(switches.map((l) => l.name))];
  const perLine = Math.max(1, Math.floor((at.width - 20) / 112));
  const about = several ? lines('network: ' + preview.fabric, Math.floor((at.width - 2 * PAD) / LETTER)) : [];
  const fabricTop = 14 + 16 * about.length;
  const fabricHigh = several ? fabricTop + 4 + Math.ceil(Math.min(stems.length, 64) / perLine) * 30 : 0;
  const height = several ? fabricY + fabricHigh : at.height;
  const svg = d3.create('svg').attr('class', 'cluster').attr('viewBox', `-2 -2 ${at.width + 4} ${height + 4}`)
    .attr('role', 'group').attr('aria-label', `${platform.name}, ${platform.nodes.length} nodes: choose a part to break it`);
  svg.style('--natural', `${Math.round(at.width)}px`);

  const part = (parent, what, label, keys) => {
    const blamed = keys.some((k) => marks.blamed.has(k)), changed = keys.some((k) => marks.changed.has(k));
    const g = parent.append('g').attr('class', `part ${what.kind}${down(what)}${blamed ? ' blamed' : ''}${changed ? ' changed' : ''}`)
      .attr('tabindex', 0).attr('role', 'button').attr('data-part', keys[0])
      .attr('aria-label', label + (blamed ? ', to blame' : '') + (changed ? ', changed' : ''));
    g.append('title').text(label);
    const choose = (event) => { event.stopPropagation(); pick(what, g.node()); };
    g.node().addEventListener('click', choose);
    g.node().addEventListener('keydown', (event) => {
      if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose(event); }
    });
    return g;
  };
  // Busier is warmer; nothing known is plain.
  const warmth = (stem) => (marks.use.size ? marks.use.get(stem) ?? 0 : undefined);
  const cable = (g, stem, d) => {
    const share = warmth(stem);
    const line = g.append('path').attr('class', 'wire').attr('d', d);
    if (share !== undefined) line.style('stroke', `color-mix(in srgb, var(--hot) ${Math.round(100 * Math.min(1, share * 1.4))}%, var(--cool))`)
      .style('stroke-width', 1.5 + 4 * share);
    g.append('path').attr('class', 'grip').attr('d', d);
  };

  shown.forEach((node, n) => {
    const place = at.places[n];
    const box = svg.append('g').attr('transform', `translate(${place.x},${place.y})`);
    const frame = part(box, {kind: 'node', node: n, name: node.name, text: node.model}, `node ${node.name} (${node.model || 'machine'})`, [`node ${n}`]);
    frame.append('rect').attr('class', 'frame').attr('width', place.width).attr('height', place.height).attr('rx', 10);
    frame.append('text').attr('class', 'title').attr('x', PAD).attr('y', 17).text(node.name);
    frame.append('text').attr('class', 'sub').attr('x', place.width - PAD).attr('y', 17).attr('text-anchor', 'end').text(node.model || '');
    const cellX = (i) => PAD + (i % place.columns) * (CELL + GAP);
    const gpuY = (i) => place.top + Math.floor(i / place.columns) * (HIGH + GAP);
    if (place.hasNv) {
      box.append('rect').attr('class', 'nvbar').attr('x', PAD).attr('y', TITLE).attr('width', place.width - 2 * PAD).attr('height', BAR).attr('rx', 4);
      box.append('text').attr('class', 'tiny').attr('x', PAD + 6).attr('y', TITLE + 11.5)
        .text(node.nvswitch?.count > 0 ? `${node.nvswitch.count} NVSwitch` : 'NVLink');
    }
    node.gpus.forEach((gpu, i) => {
      const here = ranks.get(`${n} ${i}`) || [];
      const stem = `${node.name}/${gpu.name}`;
      if (place.hasNv && gpu.nvlink?.links > 0 && i < place.columns) {
        const wire = part(box, {kind: 'link', node: n, gpu: i, rank: here[0], name: stem + '/nvlink-out', text: 'NVLink'},
          `NVLink of ${gpu.name} of ${node.name}`, [`link ${stem}/nvlink-out`]);
        cable(wire, stem + ' nvlink', `M${cellX(i) + CELL / 2} ${TITLE + BAR}V${gpuY(i)}`);
      }
      const label = `${gpu.name} of ${node.name}` + (here.length ? `, rank ${here.join(', ')}` : ', no rank') + (gpu.model ? `, ${gpu.model}` : '');
      const cell = part(box, {kind: 'gpu', node: n, gpu: i, rank: here[0], name: gpu.name, text: gpu.model}, label,
        [`gpu ${n} ${i}`, ...here.map((r) => `rank ${r}`)]);
      cell.attr('transform', `translate(${cellX(i)},${gpuY(i)})`);
      cell.append('rect').attr('width', CELL).attr('height', HIGH).attr('rx', 6);
      cell.append('text').attr('x', CELL / 2).attr('y', 17).attr('text-anchor', 'middle').text(gpu.name);
      cell.append('text').attr('class', 'sub').attr('x', CELL / 2).attr('y', 31).attr('text-anchor', 'middle')
        .text(here.length ? `rank ${here.join(',')}` : '–');
    });
    node.nics.forEach((nic, i) => {
      const stem = `${node.name}/${nic.name}`;
      const x = cellX(i), y = place.nicTop + Math.floor(i / place.columns) * (CARD + GAP);
      if (several) {
        const wire = part(box, {kind: 'link', node: n, nic: i, name: stem + '/tx', down: nic.down, text: rate(nic.bandwidth)},
          `cable of ${nic.name} of ${node.name}, ${rate(nic.bandwidth)}`, [`link ${stem}/tx`, `link ${stem}/rx`]);
        cable(wire, stem, `M${x + CELL / 2} ${y + CARD}V${fabricY - place.y}`);
      }
      const cell = part(box, {kind: 'nic', node: n, nic: i, name: nic.name, down: nic.down, text: rate(nic.bandwidth)},
        `network card ${nic.name} of ${node.name}, ${rate(nic.bandwidth)}${nic.down ? ', down' : ''}`, [`nic ${n} ${i}`]);
      cell.attr('transform', `translate(${x},${y})`);
      cell.append('rect').attr('width', CELL).attr('height', CARD).attr('rx', 6);
      cell.append('text').attr('x', CELL / 2).attr('y', 14).attr('text-anchor', 'middle').text(nic.name);
      cell.append('text').attr('class', 'sub').attr('x', CELL / 2).attr('y', 29).attr('text-anchor', 'middle').text(rate(nic.bandwidth));
    });
  });

  if (several) {
    const box = svg.append('g').attr('transform', `translate(0,${fabricY})`);
    box.append('rect').attr('class', 'fabric').attr('width', at.width).attr('height', fabricHigh).attr('rx', 10);
    about.forEach((line, i) => box.append('text').attr('class', 'title').attr('x', PAD).attr('y', 20 + 16 * i).text(line));
    switches.slice(0, 64).forEach((link, i) => {
      const cell = part(box, {kind: 'switch', name: link.name, down: link.down, text: rate(link.bandwidth)},
        `switch link ${link.name}, ${rate(link.bandwidth)}, ${duration(link.latency_ns)}`, [`link ${link.name}`]);
      cell.attr('transform', `translate(${PAD + (i % perLine) * 112},${fabricTop + Math.floor(i / perLine) * 30})`);
      const back = cell.append('rect').attr('width', 104).attr('height', 24).attr('rx', 6);
      const share = warmth(link.name);
      if (share !== undefined) back.style('stroke', `color-mix(in srgb, var(--hot) ${Math.round(100 * Math.min(1, share * 1.4))}%, var(--cool))`);
      cell.append('text').attr('x', 52).attr('y', 16).attr('text-anchor', 'middle').text(link.name.length > 16 ? link.name.slice(0, 15) + '…' : link.name);
    });
  }
  return {element: svg.node(), hidden: platform.nodes.length - shown.length};
}

// Parts that edits point at: "F16:node=1" -> node 1.
export function changedParts(edits, preview) {
  const keys = new Set();
  for (const edit of edits) {
    const text = edit.fault || edit.set || edit.patch || '';
    const number = (name) => text.match(new RegExp(`\\b${name}\\s*[=:]\\s*"?(\\d+)`))?.[1];
    if (edit.fault !== undefined) {
      const node = number('node'), nic = number('nic'), gpu = number('gpu'), rank = number('rank');
      if (rank !== undefined) keys.add(`rank ${rank}`);
      else if (node !== undefined && nic !== undefined) { keys.add(`nic ${node} ${nic}`); }
      else if (node !== undefined && gpu !== undefined) keys.add(`gpu ${node} ${gpu}`);
      else if (node !== undefined) keys.add(`node ${node}`);
    } else {
      for (const m of text.matchAll(/nodes\[(\d+)\](?:\.nics\[(\d+)\]|\.gpus\[(\d+)\])?/g)) {
        keys.add(m[2] !== undefined ? `nic ${m[1]} ${m[2]}` : m[3] !== undefined ? `gpu ${m[1]} ${m[3]}` : `node ${m[1]}`);
      }
      const rank = edit.patch !== undefined ? number('rank') : undefined;
      if (rank !== undefined) keys.add(`rank ${rank}`);
    }
    for (const link of preview?.links || []) if (text.includes(`"${link.name}"`)) keys.add(`link ${link.name}`);
  }
  return keys;
}

export function blamedParts(culprits) {
  const keys = new Set();
  for (const culprit of culprits || []) {
    if (culprit.rank !== undefined) keys.add(`rank ${culprit.rank}`);
    else if (culprit.node !== undefined) keys.add(`node ${culprit.node}`);
    if (culprit.link) keys.add(`link ${culprit.link}`);
  }
  return keys;
}

// Share of capacity per drawn wire, from an outcome.
export function usedWires(links) {
  const use = new Map();
  for (const link of links || []) {
    const stem = /\/nvlink-(out|in)$/.test(link.name) ? linkStem(link.name) + ' nvlink'
      : /\/(tx|rx)$/.test(link.name) ? linkStem(link.name) : link.name;
    use.set(stem, Math.max(use.get(stem) || 0, link.utilisation));
  }
  return use;
}
