"use strict";
// Plays a stretch of an event log: the jobs at the door, in the line and at the servers.
function playQueue(root, data) {
  const NS = "http://www.w3.org/2000/svg";
  // two layouts: from left to right, and for narrow windows from top to bottom, so that its text can be read there
  const shown = Math.min(data.classes.length, 12);
  const WIDE = {
    width: 960, height: 436, gap: 58, line: { x: 300, y: 60, w: 330, h: 220 }, house: { x: 670, y: 60, w: 230, h: 220 },
    row: (k) => 52 + k * Math.min(40, 250 / shown), chart: { x: 20, y: 366, h: 60 },
    door: { x: 262, y: 32, anchor: "middle" }, walls: [[262, 40, 262, 148], [262, 192, 262, 300]],
    comes: (k) => [150, WIDE.row(k)], away: [222, 300], full: [302, 300], done: [950, 60], gaveUp: [300, 8],
    signs: [{ x: 254, y: 316, "text-anchor": "end" }, { x: 270, y: 316 }],
  };
  const wall = 28 + 40 * shown;
  const NARROW = {
    width: 420, height: wall + 476, gap: 70, line: { x: 10, y: wall + 62, w: 400, h: 150 },
    house: { x: 10, y: wall + 258, w: 400, h: 120 }, row: (k) => 18 + k * 40, chart: { x: 10, y: wall + 412, h: 56 },
    door: { x: 210, y: wall + 5, anchor: "middle" }, walls: [[10, wall, 180, wall], [240, wall, 410, wall]],
    comes: (k) => [14, 18 + k * 40], away: [90, wall - 10], full: [330, wall - 10], done: [400, wall + 400], gaveUp: [0, wall + 62],
    signs: [{ x: 10, y: wall + 18 }, { x: 410, y: wall + 18, "text-anchor": "end" }],
  };
  const NARROWEST = 740; // pixels of a window in which the wide layout's text can be read
  let form = null;
  const ADMIT = 0, REJECT = 1, BLOCK = 2, START = 3, DEPART = 4, REVIEW = 5, ABANDON = 6, RESUME = 7, BREAKDOWN = 8;
  const REPAIR = 9, SHIFT = 10, HAND_OVER = 11, ENVIRONMENT = 12, INITIAL = 13;
  const WAITING = -1, SHARED = -2; // instead of a server's number; all share all servers
  const { time, kind, job, group, server, level } = data.events;
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  const svg = root.querySelector("svg"), status = root.querySelector(".status"), clock = root.querySelector(".clock");
  const playButton = root.querySelector(".play"), seek = root.querySelector(".seek"), pace = root.querySelector(".pace");

  function add(parent, name, attributes, text) {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  }

  // a shape for each class, so that colour is never needed to tell them apart
  const SHAPES = [
    (r) => ["circle", { r }],
    (r) => ["rect", { x: -r, y: -r, width: 2 * r, height: 2 * r }],
    (r) => ["path", { d: `M0 ${-1.2 * r}L${1.15 * r} ${r}H${-1.15 * r}Z` }],
    (r) => ["path", { d: `M0 ${-1.3 * r}L${1.3 * r} 0L0 ${1.3 * r}L${-1.3 * r} 0Z` }],
    (r) => ["path", { d: `M0 ${1.2 * r}L${1.15 * r} ${-r}H${-1.15 * r}Z` }],
    (r) => ["rect", { x: -1.3 * r, y: -0.6 * r, width: 2.6 * r, height: 1.2 * r }],
    (r) => ["rect", { x: -0.6 * r, y: -1.3 * r, width: 1.2 * r, height: 2.6 * r }],
  ];
  function glyph(parent, k, r) { // of class k
    const [name, attributes] = SHAPES[k % SHAPES.length](r);
    const made = add(parent, "g", { class: "job" });
    add(made, name, { ...attributes, fill: data.colours[k % data.colours.length] });
    return made;
  }
  function place(element, x, y, size = 1) {
    element.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px) scale(${size.toFixed(3)})`;
  }

  // ---- what stands still

  const rowOf = (k) => form.row(Math.min(k, shown - 1));
  const GRID = 400; // servers; of more a bar tells how many are busy
  let back, front, counters, boxes, bar, waitingText, busyText, more, now, cell, columns, radius;

  function drawStage() {
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${form.width} ${form.height}`);
    back = add(svg, "g", {});
    front = add(svg, "g", {});
    counters = [];
    for (let k = 0; k < shown; k++) {
      place(glyph(back, k, 6), 14, rowOf(k));
      const name = data.classes[k], label = k === shown - 1 && data.classes.length > shown ? "others" : name;
      add(back, "text", { x: 28, y: rowOf(k) + 1 }, label.length > 22 ? label.slice(0, 21) + "\u2026" : label);
      counters.push(add(back, "text", { x: 28, y: rowOf(k) + 16, class: "faint" }));
    }
    for (const [x1, y1, x2, y2] of form.walls) add(back, "line", { x1, y1, x2, y2, class: "wall" });
    const { line, house } = form;
    add(back, "text", { x: form.door.x, y: form.door.y, "text-anchor": form.door.anchor }, "door");
    add(back, "text", { x: line.x, y: line.y - 28 }, "waiting");
    add(back, "text", { x: house.x, y: house.y - 28 }, "servers");
    waitingText = add(back, "text", { x: line.x + form.gap, y: line.y - 28, class: "faint" });
    busyText = add(back, "text", { x: house.x + form.gap, y: house.y - 28, class: "faint" });
    add(back, "text", { ...form.signs[0], class: "faint" }, "turned away");
    add(back, "text", { ...form.signs[1], class: "faint" }, "no room");
    more = add(back, "text", { x: line.x, y: line.y + line.h + 18, class: "faint" });
    drawServers(house);
    drawLevel();
  }

  // servers as a grid; of very many a bar tells how many are busy
  function drawServers(house) {
    boxes = [];
    cell = 0;
    columns = 1;
    if (data.servers <= GRID && !data.shared) {
      columns = Math.max(1, Math.ceil(Math.sqrt((data.servers * house.w) / house.h)));
      cell = Math.min(40, house.w / columns, house.h / Math.ceil(data.servers / columns));
      for (let k = 0; k < data.servers; k++) {
        const [x, y] = serverPlace(k), side = cell * 0.84;
        boxes.push(add(back, "rect", { x: x - side / 2, y: y - side / 2, width: side, height: side, rx: 2, class: "server" }));
      }
    }
    const many = data.servers > GRID && !data.shared;
    bar = many ? add(back, "rect", { x: house.x, y: house.y, width: 60, height: 0, class: "server busy" }) : null;
    radius = Math.max(2.2, Math.min(8, (cell || 20) * 0.28));
  }
  function serverPlace(k) {
    const { house } = form;
    if (!cell) return [house.x + 30, house.y + house.h / 2];
    return [house.x + cell * ((k % columns) + 0.5), house.y + cell * (Math.floor(k / columns) + 0.5)];
  }

  // the number of jobs in time
  const top = Math.max(1, data.most);
  const scaleX = (t) => form.chart.x + ((t - data.begin) / (data.end - data.begin)) * (form.width - 2 * form.chart.x);
  const scaleY = (n) => form.chart.y + form.chart.h - (n / top) * form.chart.h;
  function drawLevel() {
    const { x, y, h } = form.chart;
    let path = `M${scaleX(data.begin).toFixed(2)} ${scaleY(data.start.jobs.length).toFixed(2)}`;
    for (let n = 0; n < time.length; n++) path += `H${scaleX(time[n]).toFixed(2)}V${scaleY(level[n]).toFixed(2)}`;
    path += `H${scaleX(data.end).toFixed(2)}`;
    add(back, "line", { x1: x, x2: form.width - x, y1: y + h, y2: y + h, class: "zero" });
    add(back, "path", { d: path, class: "level" });
    add(back, "text", { x, y: y - 6, class: "faint" }, `jobs in the system, from 0 to ${data.most}`);
    now = add(front, "line", { y1: y - 2, y2: y + h + 2, class: "now" });
  }

  // ---- what moves

  let at, next, present, down, duty, counts, last;
  const glyphs = new Map();
  let transients = 0;

  function reset() {
    at = data.begin;
    next = 0;
    last = "";
    present = new Map(data.start.jobs.map(([number, k, s]) => [number, { k, server: s }]));
    down = new Set(data.start.down);
    duty = data.start.duty;
    counts = data.classes.map(() => [0, 0, 0, 0]);
    for (const element of glyphs.values()) element.remove();
    glyphs.clear();
  }

  function leave(element, x, y) {
    if (!element) return;
    if (root.classList.contains("still") || transients > 40) { element.remove(); return; }
    transients += 1;
    place(element, x, y);
    element.style.opacity = "0";
    setTimeout(() => { element.remove(); transients -= 1; }, 300);
  }
  function appear(k) {
    const element = glyph(front, k, radius);
    place(element, ...form.comes(Math.min(k, shown - 1)));
    element.getBoundingClientRect(); // so that it moves from here
    return element;
  }

  // one event; `visible`: somebody is watching, so that those who leave are seen to
  function happen(n, visible) {
    const number = job[n], k = group[n], s = server[n];
    switch (kind[n]) {
      case ADMIT: case INITIAL:
        present.set(number, { k, server: WAITING });
        if (kind[n] === ADMIT) counts[k][0] += 1;
        if (visible && !root.classList.contains("still")) glyphs.set(number, appear(k));
        break;
      case REJECT: case BLOCK:
        counts[k][kind[n]] += 1;
        if (visible && transients <= 40) leave(appear(k), ...(kind[n] === REJECT ? form.away : form.full));
        break;
      case START: case RESUME: present.get(number).server = s; break;
      case BREAKDOWN:
        down.add(s);
        if (number >= 0) present.get(number).server = WAITING;
        break;
      case HAND_OVER: present.get(number).server = WAITING; break;
      case REPAIR: down.delete(s); break;
      case SHIFT: duty = s; break;
      case DEPART: case ABANDON:
        if (kind[n] === ABANDON) counts[k][3] += 1;
        present.delete(number);
        if (visible) leave(glyphs.get(number), ...(kind[n] === DEPART ? form.done : form.gaveUp));
        else glyphs.get(number)?.remove();
        glyphs.delete(number);
        break;
    }
    last = `${data.kinds[kind[n]]}${k >= 0 ? `: ${data.classes[k]}, job ${number}` : ""}`;
  }

  function lay() {
    const waiting = [], served = [];
    for (const [number, one] of present) (one.server === WAITING ? waiting : served).push(number);
    waiting.sort((a, b) => a - b);
    const { line, house } = form, shareRow = Math.floor((house.w - 12) / 18);
    const room = 240, perRow = waiting.length <= 48 ? 12 : 24, step = line.w / perRow, rise = (perRow === 12 ? 0.236 : 0.1) * line.h;
    const size = Math.min(1, (0.38 * step) / radius);
    waiting.forEach((number, n) => {
      if (n >= room) { glyphs.get(number)?.remove(); glyphs.delete(number); return; }
      const x = line.x + line.w - step * ((n % perRow) + 0.5), y = line.y + 14 + rise * Math.floor(n / perRow);
      position(number, x, y, size);
    });
    served.forEach((number, n) => {
      const s = present.get(number).server;
      if (s === SHARED && n < room) position(number, house.x + 12 + 18 * (n % shareRow), house.y + 10 + 11 * Math.floor(n / shareRow));
      else if (cell && s >= 0) position(number, ...serverPlace(s));
      else { glyphs.get(number)?.remove(); glyphs.delete(number); }
    });
    boxes.forEach((box, k) => box.setAttribute("class", `server${down.has(k) ? " down" : k >= duty ? " away" : ""}`));
    for (const number of served) boxes[present.get(number).server]?.classList.add("busy");
    if (bar) {
      const height = (house.h * Math.min(served.length, data.servers)) / data.servers;
      bar.setAttribute("height", height);
      bar.setAttribute("y", house.y + house.h - height);
    }
    more.textContent = waiting.length > room ? `and ${waiting.length - room} more` : "";
    waitingText.textContent = String(waiting.length);
    busyText.textContent = data.shared ? `${served.length} jobs share ${duty}`
      : `${served.length} of ${duty} busy${down.size ? `, ${down.size} down` : ""}`;
    counters.forEach((text, k) => { text.textContent = counted(k); });
    now.setAttribute("x1", scaleX(at));
    now.setAttribute("x2", scaleX(at));
    clock.textContent = stamp(at);
    seek.value = String(Math.round(((at - data.begin) / (data.end - data.begin)) * 1000));
    seek.setAttribute("aria-valuetext", stamp(at));
    return { waiting, served };
  }
  function counted(k) {
    const of = k === shown - 1 ? counts.slice(k) : [counts[k]];
    const [admitted, rejected, blocked, lost] = [0, 1, 2, 3].map((c) => of.reduce((sum, one) => sum + one[c], 0));
    return `in ${admitted}, away ${rejected}${blocked ? `, no room ${blocked}` : ""}${lost ? `, gave up ${lost}` : ""}`;
  }
  function position(number, x, y, size) {
    let element = glyphs.get(number);
    if (!element) {
      element = glyph(front, present.get(number).k, radius);
      glyphs.set(number, element);
    }
    place(element, x, y, size);
  }
  const stamp = (t) => t.toLocaleString("en", { maximumFractionDigits: data.digits, minimumFractionDigits: data.digits });

  function say({ waiting, served }) {
    const by = data.classes.map(() => 0);
    for (const number of waiting) by[present.get(number).k] += 1;
    const line = data.classes.map((name, k) => [name, by[k]]).filter(([, count]) => count).map(([name, count]) => `${count} ${name}`).join(", ");
    status.textContent = `Time ${stamp(at)}${data.unit ? ` ${data.unit}` : ""}: `
      + (data.shared ? `${served.length} jobs share ${duty} servers, ` : `${served.length} of ${duty} servers busy, `)
      + `${waiting.length} waiting${line ? ` (${line})` : ""}.${last ? ` Last event: ${last}.` : ""}`;
  }

  // ---- the clock

  let playing = false, frame = 0, shownAt = 0, poster = true;
  const span = data.end - data.begin;
  const speed = () => (span / 60) * Number(pace.value);

  function go(t, visible) {
    poster = false;
    if (t < at) { reset(); visible = false; }
    root.classList.toggle("still", !visible || still.matches);
    while (next < time.length && time[next] <= t) happen(next++, visible && !still.matches);
    at = Math.min(Math.max(t, data.begin), data.end);
    return lay();
  }
  function tick(stampNow) {
    if (!playing) return;
    const elapsed = Math.min(0.1, (stampNow - shownAt) / 1000);
    shownAt = stampNow;
    say(go(at + elapsed * speed(), true));
    if (at >= data.end) { pause(); return; }
    frame = requestAnimationFrame(tick);
  }
  function play() {
    if (poster || at >= data.end) go(data.begin - 1, false);
    playing = true;
    status.setAttribute("aria-live", "off"); // words that change many times a second are not read out
    playButton.textContent = "Pause";
    shownAt = performance.now();
    frame = requestAnimationFrame(tick);
  }
  function pause() {
    playing = false;
    status.setAttribute("aria-live", "polite");
    cancelAnimationFrame(frame);
    playButton.textContent = "Play";
  }
  function moveTo(t) { pause(); say(go(t, false)); }
  function step(forward) {
    pause();
    if (forward) { if (next < time.length) say(go(time[next], true)); else say(go(data.end, false)); return; }
    let n = next - 1; // the event before those of the present moment
    while (n >= 0 && time[n] >= at) n -= 1;
    say(go(n >= 0 ? time[n] : data.begin - 1, false));
  }
  function faster(by) {
    const k = Math.min(pace.options.length - 1, Math.max(0, pace.selectedIndex + by));
    pace.selectedIndex = k;
  }

  playButton.addEventListener("click", (event) => {
    if (playing) { pause(); say(go(at, false)); } else play();
    if (event.detail) playButton.focus(); // by mouse: some browsers give the focus to nothing then, and keys go elsewhere
  });
  root.querySelector(".forward").addEventListener("click", () => step(true));
  root.querySelector(".backward").addEventListener("click", () => step(false));
  seek.addEventListener("input", () => moveTo(data.begin + (Number(seek.value) / 1000) * span));
  function press(event, wanted) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.tagName === "SELECT" || event.target === seek;
    const keys = {
      " ": () => playButton.click(), ArrowRight: () => step(true), ArrowLeft: () => step(false),
      "+": () => faster(1), "-": () => faster(-1), Home: () => moveTo(data.begin - 1), End: () => moveTo(data.end),
    };
    if (!(event.key in keys) || (wanted && !wanted.includes(event.key)) || (typing && event.key !== "+" && event.key !== "-")) return;
    if (event.target.tagName === "BUTTON" && event.key === " ") return; // presses the button
    event.preventDefault();
    keys[event.key]();
  }
  root.addEventListener("keydown", (event) => press(event));

  // the same as a table, made when it is asked for
  const table = root.querySelector("details");
  table.addEventListener("toggle", () => {
    const body = table.querySelector("tbody");
    if (!table.open || body.rows.length) return;
    for (let n = 0; n < time.length; n++) {
      const row = body.insertRow();
      const cells = [stamp(time[n]), data.kinds[kind[n]], job[n] >= 0 ? job[n] : "", group[n] >= 0 ? data.classes[group[n]] : "",
        server[n] >= 0 ? server[n] : "", level[n]];
      for (const value of cells) row.insertCell().textContent = String(value);
    }
  });

  function fit() {
    const wanted = root.clientWidth && root.clientWidth < NARROWEST ? NARROW : WIDE;
    if (wanted === form) return;
    form = wanted;
    root.classList.toggle("narrow", form === NARROW);
    glyphs.clear();
    drawStage();
    lay();
  }

  // it opens on a moment at which there is most to see; Play begins at the beginning
  reset();
  root.classList.add("still");
  fit();
  const fullest = level.slice(0, -1).reduce((best, jobs, n) => (jobs > (best < 0 ? data.start.jobs.length : level[best]) ? n : best), -1);
  say(fullest < 0 ? lay() : go(time[fullest], false));
  poster = true;
  new ResizeObserver(fit).observe(root);
  return press;
}
{
  const roots = [...document.querySelectorAll(".queue-animation")];
  const press = roots.map((root) => playQueue(root, JSON.parse(root.querySelector("script[type='application/json']").textContent)));
  // keys that no element has: on a page of its own a picture takes all, else the first in the window those that the page
  // has no use for
  const alone = roots.length === 1 && roots[0].parentElement.matches("main.animation");
  document.addEventListener("keydown", (event) => {
    if (event.target !== document.body && event.target !== document.documentElement) return;
    const seen = roots.findIndex((root) => {
      const box = root.querySelector("svg").getBoundingClientRect();
      return box.bottom > 0 && box.top < innerHeight;
    });
    if (alone) press[0](event);
    else if (seen >= 0) press[seen](event, ["ArrowLeft", "ArrowRight", "+", "-"]);
  });
}
