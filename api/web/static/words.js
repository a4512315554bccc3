// Says the few sentences of the other modules in the language of the page, which brings along what its catalogue has of them.

const { lang, dataset } = document.documentElement;
const words = JSON.parse(dataset.words ?? "{}");

// The reader's own kind of the language of the page where the browser knows one: en-GB rather than en.
export const locale = navigator.languages?.find((l) => l.split("-")[0] === lang.split("-")[0]) ?? lang;

const rules = new Intl.PluralRules(lang);

// say puts an English sentence into the language of the page. %s and %d stand for value, which chooses among the forms of the sentence
// where it has several. A sentence that English itself has forms of is said in the one that is handed over as well.
export function say(key, value, english = key) {
  const said = words[key] ?? english;
  const form = typeof said === "string" ? said : said[rules.select(value)] ?? said.other;
  return form.replace(/%[sd]/, () => value);
}
