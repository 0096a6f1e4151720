"use strict";
(() => {
  const $ = id => document.getElementById(id);
  const events = JSON.parse($("events").textContent);
  const NS = "http://www.w3.org/2000/svg";
  const el = (tag, attrs, text) => {
    const e = document.createElementNS(NS, tag);
    for (const k in attrs) e.setAttribute(k, attrs[k]);
    if (text !== undefined) e.textContent = text;
    return e;
  };

  // ---- what there is to choose from, in the order of appearance
  const inOrder = pick => {
    const seen = new Map();
    for (const e of events) for (const v of pick(e)) if (v) seen.set(v, (seen.get(v) || 0) + 1);
    return seen;
  };
  const hosts = inOrder(e => e.fate === "note" ? [] : [e.from, e.to]);
  const flows = inOrder(e => [e.flow]);
  const kinds = inOrder(e => e.kind ? e.kind.split("+") : []);
  const colour = new Map([...flows.keys()].map((f, i) => [f, `var(--f${i % 8})`]));
  const off = { hosts: new Set(), flows: new Set(), kinds: new Set() };

  const chips = (id, values, dot) => {
    for (const [v, n] of values) {
      const b = document.createElement("button");
      b.className = "chip"; b.type = "button"; b.title = `${n} packets; double click shows only this`;
      b.setAttribute("aria-pressed", "true");
      if (dot) { const i = document.createElement("i"); i.style.color = colour.get(v); b.append(i); }
      b.append(v);
      b.onclick = () => { off[id].has(v) ? off[id].delete(v) : off[id].add(v); sync(id); };
      b.ondblclick = () => { off[id] = new Set([...values.keys()].filter(x => x !== v)); sync(id); };
      b.dataset.value = v;
      $(id).append(b);
    }
  };
  const sync = id => {
    for (const b of $(id).children) b.setAttribute("aria-pressed", String(!off[id].has(b.dataset.value)));
    draw();
  };
  chips("hosts", hosts); chips("flows", flows, true); chips("kinds", kinds);

  // ---- words
  const span = us => {
    const a = Math.abs(us);
    if (a >= 60e6) return `${Math.floor(us / 60e6)} min ${+((us % 60e6) / 1e6).toFixed(1)} s`;
    if (a >= 1e6) return `${+(us / 1e6).toFixed(3)} s`;
    if (a >= 1e3) return `${+(us / 1e3).toFixed(3)} ms`;
    return `${+us.toFixed(3)} µs`;
  };
  const clock = us => us >= 60e6
    ? `${Math.floor(us / 60e6)}:${((us % 60e6) / 1e6).toFixed(3).padStart(6, "0")}`
    : `${(us / 1e6).toFixed(us % 1e3 >= 1 ? 6 : 3)}`;
  const bytes = n => n >= 10240 ? `${(n / 1024).toFixed(1)} KiB` : `${n} B`;
  const short = g => {
    const e = g.first;
    let s = e.proto === "udp" && e.kind === "DGRAM" ? "UDP" : e.kind;
    if (g.count > 1) s += ` ×${g.count}`;
    if (g.bytes) s += ` ${bytes(g.bytes)}`;
    if (e.again) s += " again";
    if (e.probe) s += " probe";
    if (e.copy) s += " copy";
    if (e.fate === "dropped") s += `: ${e.why}`;
    return s;
  };
  const long = g => {
    const e = g.first, lines = [`${e.from} → ${e.to}  ${e.proto} ${e.kind}${g.count > 1 ? ` ×${g.count}` : ""}`];
    lines.push(e.fate === "dropped" ? `sent ${clock(e.sent)}, lost: ${e.why}` : `sent ${clock(e.sent)}, arrived after ${span(e.at - e.sent)}`);
    if (e.proto === "tcp") lines.push(`seq ${e.seq || 0}, ack ${e.ack || 0}, ${g.bytes} bytes`);
    else if (g.bytes) lines.push(`${g.bytes} bytes`);
    if (e.src) lines.push(`${e.src} → ${e.dst}`);
    if (e.again || e.probe || e.copy) lines.push([e.again && "sent again", e.probe && "a probe", e.copy && "a copy made by the network"].filter(Boolean).join(", "));
    if (e.fate !== "dropped" && e.why) lines.push(e.why);
    if (e.flow) lines.push(e.flow);
    return lines.join("\n");
  };

  // ---- what is drawn: packets that pass the boxes, bursts joined
  const chosen = () => {
    const text = $("search").value.trim().toLowerCase();
    return events.filter(e => {
      if (text && !JSON.stringify(Object.values(e)).toLowerCase().includes(text)) return false;
      if (e.fate === "note") return !(e.flow && off.flows.has(e.flow));
      if (off.hosts.has(e.from) || off.hosts.has(e.to) || off.flows.has(e.flow)) return false;
      if (e.kind.split("+").every(k => off.kinds.has(k))) return false;
      if ($("lost").checked) return e.fate === "dropped" || e.again;
      return $("acks").checked || e.kind !== "ACK" || e.fate === "dropped";
    });
  };
  const BURST = 1000; // µs from one packet of a burst to the next
  const groups = list => {
    const open = new Map(), out = [];
    for (const e of [...list].sort((a, b) => a.sent - b.sent)) {
      const key = [e.from, e.to, e.flow, e.kind, e.fate, e.again, e.probe, e.copy, e.why].join("|");
      const g = open.get(key);
      if ($("bursts").checked && e.fate !== "note" && g && e.sent - g.last.sent <= BURST) {
        g.last = e; g.count++; g.bytes += e.len || 0;
        continue;
      }
      const n = { first: e, last: e, count: 1, bytes: e.len || 0 };
      for (const [k, o] of open) if (o.first.flow === e.flow && o.first.from !== e.from) open.delete(k); // an answer ends a burst
      open.set(key, n); out.push(n);
    }
    return out;
  };

  // ---- the axis: the longer nothing happens, the more room, but never much; long gaps are marked
  const ROW = 19, FOLD = 46;
  const layout = gs => {
    const points = [];
    gs.forEach((g, i) => {
      points.push({ t: g.first.sent, g, i, leaves: true });
      if (g.first.fate === "delivered") points.push({ t: g.last.at, g, i, leaves: false });
    });
    // In one instant: first what was sent earlier, so that an answer leaves after the question has arrived.
    points.sort((a, b) => a.t - b.t || a.i - b.i || (a.leaves ? -1 : 1));
    const gaps = points.slice(1).map((p, i) => p.t - points[i].t).filter(d => d > 0).sort((a, b) => a - b);
    const usual = gaps.length ? gaps[Math.floor(gaps.length * 0.75)] : 0;
    const folded = d => d >= 5e4 && d > 6 * usual;
    let y = 26, lastLeft = -ROW, lastT = points.length ? points[0].t : 0;
    const ticks = [], folds = [];
    for (const p of points) {
      const d = p.t - lastT;
      if (folded(d)) { folds.push({ y: y + FOLD / 2, d }); y += FOLD; }
      else if (d > 0) y += Math.min(24, 3 + 3.2 * Math.log10(1 + d));
      lastT = p.t;
      if (p.leaves) { y = Math.max(y, lastLeft + ROW); lastLeft = y; p.g.y1 = y; }
      else { y = Math.max(y, p.g.y1 + 5); p.g.y2 = y; }
      if (!ticks.length || y - ticks[ticks.length - 1].y >= 15) ticks.push({ y, t: p.t });
    }
    return { height: y + 34, ticks, folds };
  };

  const LEFT = 92, TOP = 44;
  function draw() {
    const gs = groups(chosen());
    const names = [...hosts.keys()].filter(h => !off.hosts.has(h));
    const wide = Math.max(660, Math.min(document.body.clientWidth - 100, 1240));
    const gap = names.length > 1 ? Math.max(170, Math.min(430, (wide - LEFT - 130) / (names.length - 1))) : 0;
    const x = new Map(names.map((n, i) => [n, LEFT + 70 + i * gap]));
    const width = LEFT + 140 + Math.max(0, names.length - 1) * gap + 40;
    const { height, ticks, folds } = layout(gs);

    const head = el("svg", { width, height: TOP, class: "head" });
    for (const n of names) {
      const w = Math.max(64, n.length * 8 + 22);
      head.append(el("rect", { x: x.get(n) - w / 2, y: 4, width: w, height: 28, rx: 8 }));
      head.append(el("text", { x: x.get(n), y: 23 }, n));
      head.append(el("line", { class: "life", x1: x.get(n), x2: x.get(n), y1: 32, y2: TOP }));
    }
    $("heads").replaceChildren(head);

    placed = [];
    const svg = el("svg", { width, height });
    for (const t of ticks) {
      svg.append(el("line", { class: "tick", x1: LEFT - 6, x2: width - 20, y1: t.y, y2: t.y }));
      svg.append(el("text", { class: "axis", x: LEFT - 12, y: t.y + 3.5 }, clock(t.t)));
    }
    for (const n of names) svg.append(el("line", { class: "life", x1: x.get(n), x2: x.get(n), y1: 0, y2: height - 8 }));
    for (const f of folds) {
      const g = el("g", { class: "fold" });
      g.append(el("rect", { x: LEFT, y: f.y - 5, width: width - LEFT - 20, height: 10, fill: "var(--card)" }));
      for (const dy of [-3, 3]) g.append(el("line", { x1: LEFT - 6, x2: width - 20, y1: f.y + dy, y2: f.y + dy }));
      g.append(el("text", { x: LEFT - 12, y: f.y + 3.5 }, span(f.d)));
      svg.append(g);
    }
    for (const g of gs) svg.append(g.first.fate === "note" ? note(g, x, width) : packet(g, x));
    $("drawing").replaceChildren(svg);
    const n = gs.reduce((s, g) => s + g.count, 0);
    $("count").textContent = n === events.length ? `${n} events` : `${n} of ${events.length} events`;
  }

  const note = (g, x, width) => {
    const e = g.first, out = el("g", { class: "note" });
    const ends = [e.from, e.to].filter(h => x.has(h)).map(h => x.get(h));
    const text = (e.to ? `${e.from} – ${e.to}: ` : e.from ? `${e.from}: ` : "") + e.why;
    const w = text.length * 6.7 + 20;
    const middle = ends.length ? ends.reduce((a, b) => a + b) / ends.length : (LEFT + width) / 2;
    const cx = Math.max(LEFT + w / 2, Math.min(width - 20 - w / 2, middle));
    out.append(el("line", { x1: LEFT - 6, x2: width - 20, y1: g.y1, y2: g.y1 }));
    out.append(el("rect", { x: cx - w / 2, y: g.y1 - 9, width: w, height: 18, rx: 9 }));
    out.append(el("text", { x: cx, y: g.y1 + 4 }, text));
    return out;
  };

  const packet = (g, x) => {
    const e = g.first, lost = e.fate === "dropped";
    const x1 = x.get(e.from) ?? LEFT, x2full = x.get(e.to) ?? x1 + 60;
    const c = colour.get(e.flow) || "var(--soft)", rst = e.kind.includes("RST");
    const stroke = rst ? "var(--bad)" : c;
    const self = x1 === x2full;
    const y1 = g.y1, y2 = lost ? g.y1 + 6 : g.y2;
    const x2 = lost ? x1 + (x2full - x1) * 0.62 : x2full;
    const out = el("g", { class: `packet${lost ? " lost" : ""}${rst ? " rst" : ""}` });
    out.dataset.flow = e.flow || "";
    const path = self ? `M${x1},${y1} C${x1 + 60},${y1} ${x1 + 60},${y2} ${x1},${y2}` : `M${x1},${y1} L${x2},${y2}`;
    out.append(el("path", { class: `arrow${e.again || e.probe ? " again" : ""}${e.kind === "ACK" ? " bare" : ""}`, d: path, stroke }));
    const dir = self ? -1 : Math.sign(x2 - x1);
    const angle = self ? Math.PI : Math.atan2(y2 - y1, x2 - x1);
    if (lost) {
      for (const s of [1, -1]) out.append(el("line", { class: "cross", x1: x2 - 5, y1: y2 - 5 * s, x2: x2 + 5, y2: y2 + 5 * s }));
    } else {
      const tip = (a, r) => `${x2 - r * Math.cos(angle + a)},${y2 - r * Math.sin(angle + a)}`;
      out.append(el("path", { d: `M${x2},${y2} L${tip(0.42, 9)} L${tip(-0.42, 9)} Z`, fill: stroke }));
    }
    const words = short(g);
    const { tx, ty } = self ? { tx: x1 + 64, ty: (y1 + y2) / 2 - 5 } : room(words, x1, y1, x2, y2);
    const label = el("text", { x: tx, y: ty, "text-anchor": "middle" }, words);
    if (!lost && !rst) label.style.fill = c;
    out.append(label);
    const hit = el("path", { class: "hit", d: path });
    out.append(hit);
    out.onmouseenter = ev => { tip(ev, long(g)); dim(e.flow); };
    out.onmousemove = ev => place(ev);
    out.onmouseleave = () => { $("tip").hidden = true; dim(null); };
    return out;
  };

  // room finds a place on an arrow for its words where no others are.
  let placed = [];
  const room = (words, x1, y1, x2, y2) => {
    const w = words.length * 6.7 / 2 + 3;
    let best = null;
    for (const at of [0.5, 0.3, 0.7, 0.4, 0.6, 0.2, 0.8]) {
      const tx = x1 + (x2 - x1) * at, ty = y1 + (y2 - y1) * at - 5;
      best ??= { tx, ty, w };
      if (!placed.some(p => Math.abs(p.ty - ty) < 13 && Math.abs(p.tx - tx) < p.w + w)) { best = { tx, ty, w }; break; }
    }
    placed.push(best);
    return best;
  };

  const dim = flow => {
    for (const p of document.querySelectorAll(".packet")) p.classList.toggle("dim", flow !== null && p.dataset.flow !== (flow || ""));
  };
  const tip = (ev, text) => { $("tip").textContent = text; $("tip").hidden = false; place(ev); };
  const place = ev => {
    const t = $("tip"), r = t.getBoundingClientRect();
    t.style.left = Math.min(ev.clientX + 16, innerWidth - r.width - 12) + "px";
    t.style.top = Math.min(ev.clientY + 16, innerHeight - r.height - 12) + "px";
  };

  for (const id of ["bursts", "acks", "lost"]) $(id).onchange = draw;
  $("search").oninput = draw;
  $("theme").onclick = () => {
    const dark = document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
  };
  addEventListener("resize", draw);
  draw();
})();
