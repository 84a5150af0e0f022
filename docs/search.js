/* In the search, "-word" would mean pages without that word; here it is an option's name. */
document.addEventListener("input", ({ target }) => {
  if (target.matches(".md-search__input")) {
    const plain = target.value.replace(/(^|\s)-+(?=\w)/g, "$1");
    if (plain !== target.value) target.value = plain;
  }
}, true);
