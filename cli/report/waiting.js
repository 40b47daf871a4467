// SPDX-License-Identifier: Apache-2.0
// Who waits for whom in a run that stopped: groups of ranks in a circle, an arrow from those that wait to those they
// wait for.
'use strict';

(() => {
  // waits: [{ranks, ranksText, for, forText, communicator, sequence, operation, since}]; culprits as in the outcome
  rehearse.waiting = (place, waits, culprits) => {
    const shown = waits.slice(0, 24);
    const groups = shown.map((wait) => ({label: wait.ranksText, ranks: wait.ranks, wait}));
    const waiting = new Set(shown.flatMap((wait) => wait.ranks));
    const gone = new Set();
    for (const wait of shown) for (const rank of wait.for) if (!waiting.has(rank)) gone.add(rank);
    if (gone.size) {
      const ranks = [...gone].sort((a, b) => a - b);
      groups.push({label: rehearse.ranges(ranks), ranks, wait: null});
    }
    const blamed = new Set(culprits.filter((c) => c.rank !== undefined).map((c) => c.rank));
    const home = new Map();
    groups.forEach((group, i) => group.ranks.forEach((rank) => home.set(rank, i)));
    const edges = [];
    groups.forEach((group, i) => {
      if (!group.wait) return;
      const targets = new Map();
      for (const rank of group.wait.for) {
        const to = home.get(rank);
        if (to === undefined) continue;
        if (!targets.has(to)) targets.set(to, []);
        targets.get(to).push(rank);
      }
      for (const [to, ranks] of targets) edges.push({from: i, to, ranks, wait: group.wait});
    });

    rehearse.svg(place, (width) => (groups.length > 6 ? Math.min(620, width) : (groups.length <= 2 ? 150 : Math.min(400, 200 + groups.length * 50))), (svg, width, height) => {
      const centre = [width / 2, height / 2];
      const spread = [Math.min(width / 2 - 90, 330), height / 2 - 48];
      groups.forEach((group, i) => {
        const angle = groups.length === 2 ? Math.PI * (1 - i) : 2 * Math.PI * i / groups.length - Math.PI / 2;
        group.x = centre[0] + spread[0] * Math.cos(angle);
        group.y = centre[1] + (groups.length === 2 ? 0 : spread[1] * Math.sin(angle));
        group.width = Math.min(240, Math.max(150, 26 + 7.2 * Math.min(30, `rank ${group.label}`.length)));
      });
      svg.append('defs').append('marker').attr('id', 'arrow').attr('viewBox', '0 0 10 10').attr('refX', 9).attr('refY', 5)
        .attr('markerWidth', 8).attr('markerHeight', 8).attr('orient', 'auto-start-reverse')
        .append('path').attr('d', 'M0 1L9 5L0 9z').attr('fill', 'var(--soft)');
      // Where a line from the middle of a box to a point leaves it.
      const edgeOf = (group, towards) => {
        const dx = towards[0] - group.x, dy = towards[1] - group.y;
        const scale = Math.min(Math.abs((group.width / 2 + 4) / (dx || 1e-9)), Math.abs(26 / (dy || 1e-9)));
        return [group.x + dx * scale, group.y + dy * scale];
      };
      for (const edge of edges) {
        const from = groups[edge.from], to = groups[edge.to];
        const middle = [(from.x + to.x) / 2, (from.y + to.y) / 2];
        const dx = to.x - from.x, dy = to.y - from.y, length = Math.hypot(dx, dy) || 1;
        const bend = edge.from === edge.to ? 0 : 46;
        const control = edge.from === edge.to ? [from.x, from.y - 100] : [middle[0] - dy / length * bend, middle[1] + dx / length * bend];
        const a = edge.from === edge.to ? [from.x - 24, from.y - 26] : edgeOf(from, control);
        const b = edge.from === edge.to ? [from.x + 24, from.y - 26] : edgeOf(to, control);
        svg.append('path').attr('class', 'wire').attr('stroke', 'var(--soft)').attr('stroke-width', 1.6).attr('marker-end', 'url(#arrow)')
          .attr('d', `M${a[0]} ${a[1]}Q${control[0]} ${control[1]} ${b[0]} ${b[1]}`);
        const at = [(a[0] + 2 * control[0] + b[0]) / 4, (a[1] + 2 * control[1] + b[1]) / 4];
        const words = edge.wait.communicator ? `${edge.wait.operation} ${edge.wait.sequence}` : edge.wait.operation;
        const label = svg.append('text').attr('class', 'small').attr('text-anchor', 'middle').attr('x', at[0])
          .attr('y', at[1] + (control[1] > middle[1] ? 16 : -7));
        label.append('tspan').text(words);
        if (edge.wait.communicator) label.append('tspan').attr('class', 'soft').attr('dx', 6).text(`on ${rehearse.clip(edge.wait.communicator, 28)}`);
      }
      const box = svg.selectAll('g.part').data(groups).enter().append('g')
        .attr('class', (g) => `part${g.ranks.some((rank) => blamed.has(rank)) ? ' culprit' : ''}`)
        .attr('transform', (g) => `translate(${g.x},${g.y})`)
        .on('mousemove', (g) => rehearse.tip(d3.event, g.wait
          ? [`rank ${rehearse.clip(g.label, 200)}`, `in ${g.wait.operation} ${g.wait.sequence} of ${rehearse.clip(g.wait.communicator, 120)}`, `since ${rehearse.duration(g.wait.since)}`]
          : [`rank ${rehearse.clip(g.label, 200)}`, 'never came'])).on('mouseleave', () => rehearse.tip());
      box.append('rect').attr('class', 'shape').attr('x', (g) => -g.width / 2).attr('y', -22).attr('width', (g) => g.width).attr('height', 44).attr('rx', 8)
        .attr('fill', 'var(--panel)');
      box.append('text').attr('text-anchor', 'middle').attr('y', -2).attr('font-weight', 600).text((g) => rehearse.clip(`rank ${g.label}`, 31));
      box.append('text').attr('text-anchor', 'middle').attr('y', 14).attr('class', 'soft small')
        .text((g) => (g.wait ? `${g.ranks.length === 1 ? 'waits' : `${g.ranks.length} wait`} since ${rehearse.duration(g.wait.since)}` : 'never came'));
    });
    if (waits.length > shown.length) rehearse.element(place, 'p', {class: 'note'}, `and ${waits.length - shown.length} more groups`);
  };
})();
