(function () {
  // A dot of a history that stands for a run leads to its row below, and from there to its report.
  for (const figure of document.querySelectorAll("figure.linked")) {
    figure.addEventListener("click", (event) => {
      const dot = event.target.closest("[data-run]");
      const row = dot && document.getElementById(`run-${dot.dataset.run}`);
      if (row) {
        row.scrollIntoView({ block: "center" });
        row.classList.add("pointed");
      }
    });
  }
  // What was chosen last must not exceed what one comparison shows.
  for (const form of document.querySelectorAll('form[action="/compare"]')) {
    const boxes = [...form.querySelectorAll('input[name="run"]')];
    const button = form.querySelector("button");
    const update = () => {
      const chosen = boxes.filter((box) => box.checked).length;
      button.disabled = chosen < 2;
      for (const box of boxes) box.disabled = !box.checked && chosen >= 8;
    };
    form.addEventListener("change", update);
    update();
  }
  for (const select of document.querySelectorAll("form.filters[action] select")) {
    if (select.form.method === "get") select.addEventListener("change", () => select.form.requestSubmit());
  }
})();
