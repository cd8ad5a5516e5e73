"use strict";
(() => {
  const config = JSON.parse((document.getElementById("chart-config") || { textContent: "{}" }).textContent);
  const rows = (data) => {
    const names = Object.keys(data);
    const count = names.length ? data[names[0]].length : 0;
    return Array.from({ length: count }, (_, k) => Object.fromEntries(names.map((name) => [name, data[name][k]])));
  };

  // a chart is drawn when it comes near the window, the others one by one while nothing else is to do: a long page opens
  // at once, and is whole when it is printed
  async function draw(figure) {
    const it = JSON.parse(figure.querySelector(":scope > script").textContent);
    const spec = { ...it.spec, config, datasets: { [it.name]: rows(it.data) } };
    const place = document.createElement("div"); // Vega gives it a label of its own: the words are on the one around it
    place.className = "canvas";
    place.setAttribute("aria-hidden", "true");
    figure.querySelector(".drawing").append(place);
    const result = await vegaEmbed(place, spec, { actions: false, renderer: "svg", ast: true, mode: "vega-lite" });
    figure.view = result.view;
    figure.classList.add("drawn");
    figure.dispatchEvent(new Event("drawn"));
  }
  function fail(figure, error) {
    figure.querySelector(".drawing").textContent = "This chart could not be drawn; its words and numbers are below.";
    console.error(error);
  }
  const begin = async (figure) => {
    if (figure.classList.contains("begun")) return;
    figure.classList.add("begun");
    await draw(figure).catch((error) => fail(figure, error));
  };
  const figures = [...document.querySelectorAll("figure.chart")];
  const near = new IntersectionObserver((seen) => {
    for (const one of seen) if (one.isIntersecting) { near.unobserve(one.target); begin(one.target); }
  }, { rootMargin: "800px" });
  for (const figure of figures) near.observe(figure);
  const idle = window.requestIdleCallback || ((then) => setTimeout(then, 50));
  const others = async () => {
    const figure = figures.find((one) => !one.classList.contains("begun") && !folded(one));
    if (figure) await begin(figure).then(() => idle(others));
  };
  const folds = [...document.querySelectorAll("details.fold")];
  window.addEventListener("beforeprint", () => {
    for (const fold of folds) fold.open = true;
    figures.forEach(begin);
  });
  // a chart in a closed fold has no width: its turn comes when the fold is opened
  const folded = (figure) => figure.closest("details.fold:not([open])");
  for (const fold of folds) fold.addEventListener("toggle", () => { if (fold.open) idle(others); });
  const unfold = () => {
    const fold = folds.find((one) => `#${one.id}` === location.hash);
    if (fold) { fold.open = true; fold.scrollIntoView(); }
  };
  window.addEventListener("hashchange", unfold);
  unfold();
  window.addEventListener("load", () => idle(others));

  // the numbers of a chart, made when they are asked for
  for (const details of document.querySelectorAll("details.numbers")) {
    details.addEventListener("toggle", () => {
      const place = details.querySelector(".scroll");
      if (!details.open || place.firstChild) return;
      const it = JSON.parse(details.parentElement.querySelector(":scope > script").textContent);
      const names = Object.keys(it.headings);
      const table = document.createElement("table");
      const head = table.createTHead().insertRow();
      for (const name of names) {
        const cell = document.createElement("th");
        cell.scope = "col";
        cell.textContent = it.headings[name];
        head.append(cell);
      }
      const body = table.createTBody();
      for (let k = 0; k < it.data[names[0]].length; k++) {
        const row = body.insertRow();
        for (const name of names) {
          const value = it.data[name][k];
          row.insertCell().textContent = value === null ? "-" : typeof value === "number" ? value.toLocaleString("en") : String(value);
        }
      }
      place.append(table);
    });
  }

  // a slider in front of a chart
  for (const root of document.querySelectorAll(".stepper")) {
    const steps = JSON.parse(root.querySelector("script.steps").textContent);
    const choice = root.querySelector(".choice"), slider = root.querySelector(".step");
    const seen = root.querySelector(".seen"), figure = root.querySelector("figure.chart");
    let mine = [];
    const show = () => {
      const step = mine[Number(slider.value)];
      seen.textContent = step.words;
      slider.setAttribute("aria-valuetext", step.words);
      if (figure.view) figure.view.signal("step", step.step).runAsync();
    };
    const choose = () => {
      mine = steps.filter((step) => step.who === Number(choice.value));
      slider.max = String(mine.length - 1);
      slider.value = slider.max;
      slider.disabled = mine.length < 2;
      show();
    };
    choice.addEventListener("change", choose);
    slider.addEventListener("input", show);
    figure.addEventListener("drawn", show);
    choose();
  }
})();
