// Runs before a program: defines `console` and the functions of the tools. It keeps references to all built-ins that it
// needs, so that a program that changes built-in objects harms only itself. Values of the program become JSON here, where
// the limits of memory and time apply.
(write, call, names) => {
  const { stringify } = JSON;
  const { isArray } = Array;
  const { keys } = Object;
  const { isFinite } = Number;
  const [AnyError, AnyDate, Text, Wrong] = [Error, Date, String, TypeError];
  const bound = (method) => Function.prototype.call.bind(method);
  const dateText = bound(Date.prototype.toJSON);
  const join = bound(Array.prototype.join);
  const push = bound(Array.prototype.push);
  const map = bound(Array.prototype.map);
  const wellFormed = bound(String.prototype.toWellFormed);

  // Returns the JSON of a value; undefined if it has none. Unlike JSON.stringify it writes a BigInt as a number.
  const show = (value, depth = 0) => {
    switch (typeof value) {
      case "string": return stringify(wellFormed(value));
      case "number": return isFinite(value) ? Text(value) : "null";
      case "bigint": return Text(value);
      case "boolean": return value ? "true" : "false";
      case "object": break;
      default: return undefined;
    }
    if (value === null) return "null";
    if (depth > 100) throw new Wrong("the value holds itself, or is too deep to be JSON");
    if (value instanceof AnyDate) return stringify(dateText(value));
    const parts = [];
    if (isArray(value)) {
      for (let i = 0; i < value.length; i++) push(parts, show(value[i], depth + 1) ?? "null");
      return `[${join(parts, ",")}]`;
    }
    for (const key of keys(value)) {
      const shown = show(value[key], depth + 1);
      if (shown !== undefined) push(parts, `${stringify(wellFormed(key))}:${shown}`);
    }
    return `{${join(parts, ",")}}`;
  };

  // Returns the value as text for people.
  const text = (value) => {
    try {
      if (typeof value === "string") return wellFormed(value);
      if (typeof value === "function") return `[Function: ${value.name}]`;
      if (typeof value === "number" || value === undefined) return Text(value);
      if (value instanceof AnyError) return `${value.name}: ${value.message}`;
      return show(value) ?? Text(value);
    } catch {
      return "[a value without a text]";
    }
  };

  const log = (...values) => write(`${join(map(values, (value) => text(value)), " ")}\n`);
  globalThis.console = { log, info: log, debug: log, warn: log, error: log };
  names.forEach((name, place) => {
    globalThis[name] = (given = {}) => {
      if (typeof given !== "object" || given === null || isArray(given)) {
        throw new Wrong(`${name}() takes an object with its arguments, for instance ${name}({key: 1})`);
      }
      return call(place, show(given));
    };
  });
  // A value of the program, as JSON or else as text; null for undefined.
  return (value) => {
    if (value === undefined) return null;
    const json = typeof value === "number" && !isFinite(value) ? undefined : show(value);
    return json === undefined ? `r${text(value)}` : `j${json}`;
  };
}
