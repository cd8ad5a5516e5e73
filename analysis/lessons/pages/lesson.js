(() => {
  // a control shows those variants that belong to the values chosen
  const chosen = {};
  const show = () => {
    for (const part of document.querySelectorAll(".variant")) {
      const wanted = part.dataset.key.split(" ").every((entry) => {
        const [name, place] = entry.split(":");
        return String(chosen[name]) === place;
      });
      if (part.hidden === wanted) part.hidden = !wanted;
    }
    window.dispatchEvent(new Event("resize")); // a chart drawn while it was hidden takes its width
  };
  // what is wider than the screen is reached by keyboard, too
  const reach = () => {
    for (const part of document.querySelectorAll(".display, .part > span > table")) {
      if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
      else part.removeAttribute("tabindex");
    }
  };
  window.addEventListener("resize", reach);
  reach();
  for (const control of document.querySelectorAll(".control")) {
    const words = JSON.parse(control.querySelector("script").textContent);
    chosen[control.dataset.name] = Number(control.dataset.default);
    for (const input of control.querySelectorAll("input")) {
      input.addEventListener("input", () => {
        const place = Number(input.value);
        chosen[control.dataset.name] = place;
        const output = control.querySelector("output");
        if (output) {
          output.textContent = words[place];
          input.setAttribute("aria-valuetext", words[place]);
        }
        show();
      });
    }
  }
})();
