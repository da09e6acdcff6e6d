(function () {
  // On a phone the pages' names are wider than the screen: the current one must be in sight.
  const current = document.querySelector(".site nav [aria-current]");
  if (current) {
    const nav = current.parentElement;
    nav.scrollLeft = current.offsetLeft - nav.offsetLeft - (nav.clientWidth - current.offsetWidth) / 2;
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
