// What the box finds. Every word has to match; "is:", "class:", "rule:", "at:", "host:" say where to look
const CUT = 400; // letters of one query

const hostList = (word) => {
  // gpu[001-032,040]-x as a test; null where it is no host list. Literal parts are compared, never read as a pattern
  const parts = [];
  let rest = word;
  while (rest.includes("[")) {
    const from = rest.indexOf("["), to = rest.indexOf("]", from);
    if (to < 0) return null;
    const words = rest.slice(from + 1, to).split(",");
    const ranges = words.map((each) => each.trim().match(/^(\d{1,15})(?:-(\d{1,15}))?$/));
    if (ranges.some((each) => !each)) return null;
    const bounds = ranges.map(([, first, last]) => [Number(first), Number(last || first), first.length]);
    parts.push([rest.slice(0, from), bounds]);
    rest = rest.slice(to + 1);
  }
  if (!parts.length) return null;
  return (name) => {
    let at = 0;
    for (const [text, ranges] of parts) {
      if (!name.startsWith(text, at)) return false;
      at += text.length;
      let end = at;
      while (end < name.length && name[end] >= "0" && name[end] <= "9") end += 1;
      const value = Number(name.slice(at, end)), digits = end - at;
      const fits = ([low, high, least]) => low <= value && value <= high && digits >= least;
      if (!digits || !ranges.some(fits)) return false;
      at = end;
    }
    return name.slice(at) === rest;
  };
};
const lowered = data.names.map((each) => each.toLowerCase());
const ofLabels = (column, fits) => {
  const hits = column.labels.map(fits);
  return (node) => column.codes[node] >= 0 && hits[column.codes[node]];
};
const ofRules = (fits) => {
  const hits = data.foundSets.map((set) => set.some((at) => !isSilenced(found[at]) && fits(ruleName(found[at]).toLowerCase())));
  return (node) => foundBy[node] >= 0 && hits[foundBy[node]];
};
const ofLook = (fits) => {
  const hits = LOOKS.map(fits);
  const told = (node) => !["ok", "nothing_to_check", undefined].includes(LOOKS[verdict[node]]) && hits[verdict[node]];
  return (node) => hits[look[node]] || (stale[node] && fits("stale")) || told(node);
};
const WHERE = {
  host: (fits) => [(node) => fits(lowered[node])],
  class: (fits) => [ofLabels(classes, fits)],
  rule: (fits) => [ofRules(fits)],
  at: (fits) => places.map((each) => ofLabels(each, fits)),
  is: (fits) => [ofLook(fits)],
};
for (const each of places) WHERE[each.key] = (fits) => [ofLabels(each, fits)];

const tests = (word) => {
  // all tests of which one must hold
  const colon = word.indexOf(":"), before = word.slice(0, Math.max(0, colon));
  const key = Object.hasOwn(WHERE, before) ? before : null;
  const text = key ? word.slice(colon + 1) : word;
  const list = (!key || key === "host") && hostList(text);
  if (list) return [(node) => list(lowered[node])];
  const has = (each) => each.includes(text), low = (each) => each.toLowerCase().includes(text);
  if (key) return WHERE[key](key === "is" ? (each) => each === text : low);
  return [...WHERE.host(has), ofLabels(classes, low), ...places.map((each) => ofLabels(each, low)), ofRules(has),
    ofLook((each) => each === text)];
};
const wordsOf = (query) => {
  // split at blanks that are in no bracket
  const words = [];
  let word = "", depth = 0;
  for (const letter of query.slice(0, CUT).toLowerCase()) {
    if (letter === "[") depth += 1;
    if (letter === "]") depth = Math.max(0, depth - 1);
    if (/\s/.test(letter) && !depth) { if (word) words.push(word); word = ""; } else word += letter;
  }
  return word ? [...words, word] : words;
};
const matching = (query, picked) => {
  // a mask, or null where everything matches
  const words = wordsOf(query).filter((each) => each !== "!");
  if (!words.length) return picked;
  const all = words.map((word) => (word[0] === "!" ? [true, tests(word.slice(1))] : [false, tests(word)]));
  const mask = new Uint8Array(N);
  for (let node = 0; node < N; node += 1) {
    if (picked && !picked[node]) continue;
    mask[node] = all.every(([not, any]) => not !== any.some((test) => test(node))) ? 1 : 0;
  }
  return mask;
};
