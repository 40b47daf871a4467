// SPDX-License-Identifier: Apache-2.0
// The cluster: nodes with their GPUs, NICs and wires, coloured by use at a time, what is to blame outlined. A cluster of
// many nodes is a field of small ones of which one is drawn large.
'use strict';

(() => {
  const MANY = 8;

  // cluster: as in the page's data. options.culprits: of the outcome; options.select(part): called on a click with
  // {kind: 'node'|'gpu'|'nic'|'switch', node, index, name, ranks}.
  rehearse.cluster = (place, cluster, options = {}) => {
    const culprits = options.culprits || [];
    const links = cluster.links || [];
    const slices = d3.max(links, (link) => link.levels.length) || 0;
    const byDevice = new Map(), bySwitch = new Map();
    const put = (map, key, link) => { if (!map.has(key)) map.set(key, []); map.get(key).push(link); };
    for (const link of links) {
      if (link.node === undefined) {
        for (const end of new Set(link.name.split('-').filter((part) => /^(leaf|spine|pod|group)\d/.test(part)))) put(bySwitch, end, link);
        continue;
      }
      const device = link.device || '';
      put(byDevice, `${link.node}/${device}`, link);
      if (device.includes('-')) for (const one of device.split('-')) put(byDevice, `${link.node}/${one}`, link);
    }
    const of = (node, device, ...kinds) => (byDevice.get(`${node}/${device}`) || []).filter((link) => kinds.includes(link.kind));

    let slice = -1;  // -1: mean of the run
    const level = (link) => (slice < 0 || !link.levels.length ? link.use : link.levels[Math.min(slice, link.levels.length - 1)] / 255);
    const most = (list) => d3.max(list, level) || 0;
    const lines = (list) => list.slice(0, 8).map((link) => `${link.part || link.name}: ${rehearse.percent(level(link))} of ${rehearse.bandwidth(link.capacity)}${link.down ? ', down' : ''}`);

    // Who is to blame
    const badRanks = new Set(), badNodes = new Map(), badDevices = new Map();
    for (const culprit of culprits) {
      if (culprit.rank !== undefined) badRanks.add(culprit.rank);
      else if (culprit.node !== undefined) badNodes.set(culprit.node, culprit.why);
      else if (culprit.link) badDevices.set(culprit.link.split('/').slice(0, 2).join('/'), culprit.why);
    }
    const deviceBad = (n, device) => badDevices.has(`${cluster.nodes[n].name}/${device.name}`) || (device.ranks || []).some((rank) => badRanks.has(rank));
    const nodeBad = (n) => badNodes.has(n) || [...cluster.nodes[n].gpus, ...cluster.nodes[n].nics].some((device) => deviceBad(n, device));

    // Controls
    const tools = rehearse.element(place, 'div', {class: 'bar-tools'});
    const mean = rehearse.element(tools, 'button', {type: 'button', 'aria-pressed': 'true'}, 'Mean of the run');
    const play = rehearse.element(tools, 'button', {type: 'button', 'aria-label': 'Play', title: 'Play'}, '▶');
    const slider = rehearse.element(tools, 'input', {type: 'range', min: 0, max: Math.max(0, slices - 1), value: 0, 'aria-label': 'time'});
    const when = rehearse.element(tools, 'span', {class: 'note'}, '');
    if (!slices) tools.hidden = true;
    let painters = [];
    const paint = () => {
      mean.setAttribute('aria-pressed', slice < 0 ? 'true' : 'false');
      when.textContent = slice < 0 ? '' : `${rehearse.duration(slice * cluster.slice)} – ${rehearse.duration((slice + 1) * cluster.slice)}`;
      for (const painter of painters) painter();
    };
    const goTo = (to) => { slice = to; if (to >= 0) slider.value = to; paint(); };
    mean.addEventListener('click', () => goTo(-1));
    slider.addEventListener('input', () => goTo(+slider.value));
    let timer = null;
    play.addEventListener('click', () => {
      if (timer) { clearInterval(timer); timer = null; play.textContent = '▶'; return; }
      play.textContent = '❚❚';
      timer = setInterval(() => goTo((Math.max(0, slice) + 1) % slices), 180);
    });

    const wire = (svg, list, x1, y1, x2, y2, down) => {
      const line = svg.append('path').attr('class', `wire${down ? ' down' : ''}`).attr('d', `M${x1} ${y1}L${x2} ${y2}`);
      painters.push(() => line.attr('stroke', list.length ? rehearse.heat(most(list)) : 'var(--line)').attr('stroke-width', list.length ? 1.5 + 4 * most(list) : 1));
    };
    const part = (svg, what, tip, bad) => {
      const group = svg.append('g').attr('class', `part${bad ? ' culprit' : ''}`).attr('tabindex', 0).attr('role', 'button').attr('aria-label', what.name)
        .attr('data-kind', what.kind).attr('data-node', what.node).attr('data-index', what.index)
        .on('mousemove', () => rehearse.tip(d3.event, tip())).on('mouseleave', () => rehearse.tip());
      const act = () => { if (options.select) options.select(what); };
      group.on('click', act).on('keydown', () => { if (d3.event.key === 'Enter' || d3.event.key === ' ') { d3.event.preventDefault(); act(); } });
      return group;
    };

    // One node, large: NICs above, PCIe between, GPUs, NVLink below. Returns its height.
    const NODE_HEIGHT = 204;
    const drawNode = (svg, n, x0, y0, width, ports) => {
      const node = cluster.nodes[n], pad = 12, inner = width - 2 * pad, bad = badNodes.has(n);
      svg.append('rect').attr('class', `box shape${bad ? ' culprit' : ''}`).attr('x', x0).attr('y', y0).attr('width', width).attr('height', NODE_HEIGHT).attr('rx', 8);
      const title = part(svg, {kind: 'node', node: n, index: n, name: node.name, ranks: node.gpus.flatMap((gpu) => gpu.ranks || [])},
        () => [node.name, node.model, ...(bad ? [badNodes.get(n)] : [])].filter(Boolean), false);
      title.append('text').attr('x', x0 + pad).attr('y', y0 + NODE_HEIGHT - 10).attr('font-weight', 600).attr('class', bad ? 'flag' : '').text(node.name);
      if (bad) svg.append('text').attr('x', x0 + width - pad).attr('y', y0 + NODE_HEIGHT - 10).attr('text-anchor', 'end').attr('class', 'flag small').text('to blame');
      const nicY = y0 + 14, nicH = 24, barY = nicY + nicH + 18, gpuY = barY + 8 + 18, gpuH = 40, nvY = gpuY + gpuH + 18;
      const host = links.filter((link) => link.node === n && (link.kind === 'host' || link.kind === 'interface' || link.kind === 'storage'));
      const bar = svg.append('rect').attr('class', 'shape').attr('x', x0 + pad).attr('y', barY).attr('width', inner).attr('height', 8).attr('rx', 2)
        .on('mousemove', () => rehearse.tip(d3.event, ['PCIe, host memory and sockets', ...lines(host)])).on('mouseleave', () => rehearse.tip());
      painters.push(() => bar.attr('fill', host.length ? rehearse.heat(most(host)) : 'var(--grid)'));
      const cells = (devices, y, h, kind) => {
        const w = Math.min(kind === 'gpu' ? 96 : 96, inner / Math.max(1, devices.length)), left = x0 + pad + (inner - w * devices.length) / 2;
        devices.forEach((device, i) => {
          const own = kind === 'gpu' ? of(n, device.name, 'nvlink', 'pcie', 'c2c') : of(n, device.name, 'nic', 'pcie');
          const flagged = deviceBad(n, device), x = left + i * w, centre = x + w / 2;
          if (kind === 'nic') {
            wire(svg, of(n, device.name, 'nic'), centre, y, ports[0] + (ports[1] - ports[0]) * ((centre - x0) / width), ports[2], device.down);
            wire(svg, of(n, device.name, 'pcie'), centre, y + h, centre, barY, false);
          } else {
            wire(svg, of(n, device.name, 'pcie', 'c2c'), centre, y, centre, barY + 8, false);
            const nv = of(n, device.name, 'nvlink');
            if (nv.length || node.nvswitches) wire(svg, nv, centre, y + h, centre, nvY, false);
          }
          const group = part(svg, {kind, node: n, index: i, name: `${node.name}/${device.name}`, ranks: device.ranks || []},
            () => [`${node.name} ${device.name}${device.ranks ? `, rank ${rehearse.ranges(device.ranks)}` : ''}`, device.what, ...(device.down ? ['down'] : []), ...lines(own)], flagged);
          group.append('rect').attr('class', 'shape').attr('x', x + 2).attr('y', y).attr('width', Math.max(3, w - 4)).attr('height', h).attr('rx', 4)
            .attr('fill', device.down ? 'var(--bad-panel)' : 'var(--paper)');
          if (w > 30) {
            const text = group.append('text').attr('text-anchor', 'middle').attr('x', centre).attr('y', y + (kind === 'gpu' ? 17 : 16)).attr('class', `small${flagged ? ' flag' : ''}`)
              .text(kind === 'gpu' ? (w > 56 ? device.name : device.name.replace(/^\D+/, '')) : (w > 52 ? device.name : device.name.replace(/^.*?(\d+)$/, '$1')));
            if (kind === 'gpu' && device.ranks && device.ranks.length) {
              group.append('text').attr('text-anchor', 'middle').attr('x', centre).attr('y', y + 32).attr('class', `small ${flagged ? 'flag' : 'soft'}`)
                .text(w > 56 ? `rank ${rehearse.clip(rehearse.ranges(device.ranks), 7)}` : rehearse.clip(rehearse.ranges(device.ranks), 4));
            } else if (kind === 'gpu') text.attr('y', y + 24);
          }
        });
      };
      const nvAll = links.filter((link) => link.node === n && link.kind === 'nvlink');
      if (node.nvswitches || nvAll.length) {
        svg.append('rect').attr('class', 'shape').attr('x', x0 + pad).attr('y', nvY).attr('width', inner).attr('height', 20).attr('rx', 4).attr('fill', 'var(--paper)')
          .on('mousemove', () => rehearse.tip(d3.event, [node.nvswitches ? `${node.nvswitches} NVSwitches` : 'NVLink between pairs of GPUs', ...lines(nvAll)])).on('mouseleave', () => rehearse.tip());
        svg.append('text').attr('class', 'small soft').attr('text-anchor', 'middle').attr('x', x0 + width / 2).attr('y', nvY + 14).attr('pointer-events', 'none').text(node.nvswitches ? 'NVSwitch' : 'NVLink');
      }
      cells(node.nics, nicY, nicH, 'nic');
      cells(node.gpus, gpuY, gpuH, 'gpu');
    };

    const drawFabric = (svg, width) => {
      svg.append('rect').attr('class', 'box').attr('x', 0.5).attr('y', 0.5).attr('width', width - 1).attr('height', 44).attr('rx', 8);
      const switches = [...bySwitch].sort((a, b) => a[0].localeCompare(b[0], 'en', {numeric: true}));
      // Where no switches stand there is room for a second line.
      const words = rehearse.lines(cluster.fabric === 'none' ? 'no fabric' : `fabric: ${cluster.fabric}`, Math.floor(width / 6.4), switches.length ? 1 : 2);
      words.forEach((line, i) => svg.append('text').attr('x', 12).attr('y', switches.length ? 17 : 30 - 8 * words.length + 15 * i + 5).attr('class', 'small soft').text(line));
      const w = Math.min(72, (width - 24) / Math.max(1, switches.length));
      switches.forEach(([name, list], i) => {
        const group = part(svg, {kind: 'switch', node: -1, index: i, name, ranks: []}, () => [name, ...lines(list)], badDevices.has(name));
        const chip = group.append('rect').attr('class', 'shape').attr('x', 12 + i * w).attr('y', 24).attr('width', Math.max(2, w - 3)).attr('height', 15).attr('rx', 3);
        painters.push(() => chip.attr('fill', rehearse.heat(most(list))));
        if (w > 46) group.append('text').attr('class', 'small').attr('x', 12 + i * w + (w - 3) / 2).attr('y', 35.5).attr('text-anchor', 'middle').attr('pointer-events', 'none').text(name);
      });
    };

    const large = () => {
      const across = (width) => (width < 560 ? 1 : Math.min(cluster.nodes.length, width < 1000 ? 2 : cluster.nodes.length > 4 ? 4 : cluster.nodes.length));
      rehearse.svg(place, (width) => 76 + Math.ceil(cluster.nodes.length / across(width)) * (NODE_HEIGHT + 26) - 24, (svg, width) => {
        painters = [];
        const columns = across(width), gap = 14, w = (width - gap * (columns - 1)) / columns;
        cluster.nodes.forEach((node, n) => {
          const x = (n % columns) * (w + gap), y = 76 + Math.floor(n / columns) * (NODE_HEIGHT + 26);
          // Rows below the first end their wires at their own upper edge: the bar is out of reach.
          const ports = Math.floor(n / columns) === 0 ? [x, x + w, 45] : [x, x + w, y - 14];
          drawNode(svg, n, x + 0.5, y, w - 1, ports);
        });
        drawFabric(svg, width);
        paint();
      });
    };

    const field = () => {
      let chosen = d3.range(cluster.nodes.length).find(nodeBad) || 0;
      const size = 58, tall = 46;
      let detail = null;
      const columnsOf = (width) => Math.max(1, Math.floor((width + 8) / (size + 8)));
      let fieldPainters = [], detailPainters = [];
      const both = () => { painters = [...fieldPainters, ...detailPainters]; paint(); };
      const drawDetail = (svg, width) => {
        painters = [];
        drawNode(svg, chosen, 0.5, 22, Math.min(width - 1, 860), [0, Math.min(width, 860), 4]);
        detailPainters = painters;
        both();
      };
      const fieldDrawn = rehearse.svg(place, (width) => 60 + Math.ceil(cluster.nodes.length / columnsOf(width)) * (tall + 8), (svg, width) => {
        painters = [];
        const columns = columnsOf(width);
        cluster.nodes.forEach((node, n) => {
          const x = (n % columns) * (size + 8), y = 60 + Math.floor(n / columns) * (tall + 8), bad = nodeBad(n);
          const own = links.filter((link) => link.node === n), ports = own.filter((link) => link.kind === 'nic');
          const group = svg.append('g').attr('class', `part${bad ? ' culprit' : ''}`).attr('tabindex', 0).attr('role', 'button').attr('aria-label', node.name)
            .attr('data-kind', 'node').attr('data-node', n).attr('data-index', n)
            .on('mousemove', () => rehearse.tip(d3.event, [node.name, `rank ${rehearse.ranges(node.gpus.flatMap((gpu) => gpu.ranks || []))}`, `NICs: ${rehearse.percent(most(ports))}`, `busiest link: ${rehearse.percent(most(own))}`]))
            .on('mouseleave', () => rehearse.tip());
          const act = () => { chosen = n; if (detail) detail.redraw(); if (options.select) options.select({kind: 'node', node: n, index: n, name: node.name, ranks: node.gpus.flatMap((gpu) => gpu.ranks || [])}); };
          group.on('click', act).on('keydown', () => { if (d3.event.key === 'Enter') act(); });
          group.append('rect').attr('class', 'shape').attr('x', x).attr('y', y).attr('width', size).attr('height', tall).attr('rx', 5).attr('fill', 'var(--panel)');
          const bar = group.append('rect').attr('x', x + 5).attr('y', y + 5).attr('width', size - 10).attr('height', 5).attr('rx', 1);
          painters.push(() => bar.attr('fill', rehearse.heat(most(ports))));
          const perRow = Math.ceil(node.gpus.length / 2) || 1, cell = Math.min(12, (size - 10) / perRow);
          node.gpus.forEach((gpu, g) => {
            const nv = of(n, gpu.name, 'nvlink', 'pcie', 'c2c');
            const dot = group.append('rect').attr('x', x + 5 + (g % perRow) * cell).attr('y', y + 14 + Math.floor(g / perRow) * 9).attr('width', cell - 1.5).attr('height', 7.5).attr('rx', 1)
              .attr('class', deviceBad(n, gpu) ? 'shape' : '');
            painters.push(() => dot.attr('fill', rehearse.heat(most(nv))));
          });
          group.append('text').attr('class', `small ${bad ? 'flag' : 'soft'}`).attr('x', x + size / 2).attr('y', y + tall - 3.5).attr('text-anchor', 'middle').text(rehearse.clip(node.name, 9));
        });
        drawFabric(svg, width);
        fieldPainters = painters;
        both();
      });
      const below = rehearse.element(place, 'div', {class: 'node-detail'});
      detail = rehearse.svg(below, NODE_HEIGHT + 26, drawDetail);
      return fieldDrawn;
    };

    if (cluster.nodes.length > MANY) field(); else large();
    const scale = rehearse.element(place, 'p', {class: 'note'});
    const ramp = rehearse.element(scale, 'span');
    const drawRamp = () => {
      ramp.replaceChildren();
      ramp.append('use of a link: ');
      for (const share of [0.01, 0.1, 0.25, 0.5, 0.75, 1]) {
        const swatch = rehearse.element(ramp, 'span', {class: 'swatch'}, ' ■ ');
        swatch.style.color = rehearse.heat(share);
        ramp.append(`${Math.round(100 * share)} %`);
      }
      if (cluster.leftOut) ramp.append(`; ${rehearse.count(cluster.leftOut)} links with the least use are left out`);
    };
    drawRamp();
    rehearse.onLook(() => { drawRamp(); });
    rehearse.onSheet(() => { drawRamp(); });
    return {goTo, slices, parts: () => place.querySelectorAll('.part').length};
  };
})();
