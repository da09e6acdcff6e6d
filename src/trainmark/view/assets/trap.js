"use strict";
document.documentElement.classList.add("scripted");
document.documentElement.dataset.plots = "0";
document.documentElement.dataset.errors = "";
window.onerror = function (message) {
  document.documentElement.dataset.errors += message + "\n";
};
window.addEventListener("unhandledrejection", function (event) {
  document.documentElement.dataset.errors += String(event.reason) + "\n";
});
