//! Converts a JSON Schema into a grammar of valid documents.
//!
//! The grammar allows less than the schema in some ways: keys come in the order of their declaration,
//! objects with declared properties have no others, and texts and lists have a maximum length. It allows
//! more for keywords that a grammar cannot check cheaply (`pattern`, `format`, `multipleOf`, `uniqueItems`,
//! most number bounds, `not`, `if`): the arguments are validated before a tool call anyway.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::grammar::{Grammar, GrammarBuilder};
use crate::grammar_node::NodeId;
use crate::json_text::json_text;

/// The maximum lengths of texts and lists whose schema sets no maximum. Without them, a confused small model
/// repeats the same words for ever.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SchemaLimits {
    /// The maximum number of characters of a string without `maxLength`. Default 4,000.
    pub string: u32,
    /// The maximum number of items of an array without `maxItems`, and of entries of an object without
    /// declared properties. Default 64.
    pub items: u32,
}

impl Default for SchemaLimits {
    fn default() -> Self {
        Self { string: 4_000, items: 64 }
    }
}

/// Returns the grammar of the documents that are valid against `schema`.
pub(crate) fn schema_grammar(schema: &Value, limits: SchemaLimits) -> Grammar {
    let mut builder = GrammarBuilder::new();
    let root = SchemaNodes::new(&mut builder, schema, limits).value(schema);
    builder.finish(root)
}

/// Adds the nodes of one schema document to a grammar.
pub(crate) struct SchemaNodes<'a> {
    builder: &'a mut GrammarBuilder,
    document: &'a Value,
    limits: SchemaLimits,
    references: HashMap<String, NodeId>,
    anything: Option<NodeId>,
}

impl<'a> SchemaNodes<'a> {
    pub(crate) fn new(builder: &'a mut GrammarBuilder, document: &'a Value, limits: SchemaLimits) -> Self {
        Self { builder, document, limits, references: HashMap::new(), anything: None }
    }

    /// Returns the node for a value that is valid against `schema`.
    pub(crate) fn value(&mut self, schema: &Value) -> NodeId {
        match schema {
            Value::Bool(false) => self.builder.any(&[]),
            Value::Object(schema) => self.keyword(schema),
            _ => self.anything(),
        }
    }

    fn keyword(&mut self, schema: &Map<String, Value>) -> NodeId {
        if let Some(pointer) = schema.get("$ref").and_then(Value::as_str) {
            return self.reference(pointer);
        }
        if let Some(value) = schema.get("const") {
            return self.literal(value);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let choices: Vec<_> = values.iter().map(|value| self.literal(value)).collect();
            return self.builder.any(&choices);
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(schemas) = schema.get(word).and_then(Value::as_array) {
                let choices: Vec<_> =
                    schemas.iter().map(|part| self.value(&with_base(part, schema))).collect();
                return self.builder.any(&choices);
            }
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            let merged = self.merge(parts, schema);
            return self.keyword(&merged);
        }
        match schema.get("type") {
            Some(Value::String(kind)) => self.kind(kind, schema),
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                let choices: Vec<_> = kinds.map(|kind| self.kind(kind, schema)).collect();
                self.builder.any(&choices)
            }
            _ if schema.contains_key("properties") => self.object(schema),
            _ if schema.contains_key("items") => self.array(schema),
            _ => self.anything(),
        }
    }

    fn kind(&mut self, kind: &str, schema: &Map<String, Value>) -> NodeId {
        match kind {
            "object" => self.object(schema),
            "array" => self.array(schema),
            "string" => {
                let max = count(schema, "maxLength").unwrap_or(self.limits.string);
                self.string(count(schema, "minLength").unwrap_or(0), max)
            }
            "integer" => self.integer(schema),
            "number" => self.number(at_least_zero(schema)),
            "boolean" => {
                let choices = [self.builder.text("true"), self.builder.text("false")];
                self.builder.any(&choices)
            }
            "null" => self.builder.text("null"),
            _ => self.anything(),
        }
    }

    /// Returns the node for an object with the declared properties, in the order of their declaration;
    /// optional properties may be left out. For a schema without declared properties, the object may have any
    /// keys, with values that fit `additionalProperties`.
    fn object(&mut self, schema: &Map<String, Value>) -> NodeId {
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        if properties.is_empty() {
            return self.open_object(schema);
        }
        let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        // Built from the end: the text that follows if a property came before, and if none did.
        let end = self.builder.text("}");
        let (mut after_some, mut after_none) = (end, end);
        let comma = self.builder.text(", ");
        for (name, property) in properties.iter().rev() {
            let entry = self.entry(name, property);
            let next = self.builder.seq(&[comma, entry, after_some]);
            let first = self.builder.seq(&[entry, after_some]);
            if required.iter().any(|required| required == name) {
                (after_some, after_none) = (next, first);
            } else {
                after_some = self.builder.any(&[next, after_some]);
                after_none = self.builder.any(&[first, after_none]);
            }
        }
        let open = self.builder.text("{");
        self.builder.seq(&[open, after_none])
    }

    fn entry(&mut self, name: &str, schema: &Value) -> NodeId {
        let (key, value) = (self.literal(&Value::from(name)), self.value(schema));
        let colon = self.builder.text(": ");
        self.builder.seq(&[key, colon, value])
    }

    fn open_object(&mut self, schema: &Map<String, Value>) -> NodeId {
        let value = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => return self.builder.text("{}"),
            Some(value) => self.value(value),
            None => self.anything(),
        };
        let key = self.string(1, 64);
        let colon = self.builder.text(": ");
        let entry = self.builder.seq(&[key, colon, value]);
        let max = count(schema, "maxProperties").unwrap_or(self.limits.items);
        self.list("{", entry, count(schema, "minProperties").unwrap_or(0), max, "}")
    }

    fn array(&mut self, schema: &Map<String, Value>) -> NodeId {
        let item = match schema.get("items") {
            Some(items) => self.value(items),
            None => self.anything(),
        };
        let max = count(schema, "maxItems").unwrap_or(self.limits.items);
        self.list("[", item, count(schema, "minItems").unwrap_or(0), max, "]")
    }

    /// Returns the node for `open item (, item)* close`, with `min` to `max` items.
    fn list(&mut self, open: &str, item: NodeId, min: u32, max: u32, close: &str) -> NodeId {
        let (open, close) = (self.builder.text(open), self.builder.text(close));
        let max = max.max(min);
        if max == 0 {
            return self.builder.seq(&[open, close]);
        }
        let comma = self.builder.text(", ");
        let more = self.builder.seq(&[comma, item]);
        let more = self.builder.repeat(more, min.saturating_sub(1), max - 1);
        let mut items = self.builder.seq(&[item, more]);
        if min == 0 {
            items = self.builder.optional(items);
        }
        self.builder.seq(&[open, items, close])
    }

    /// Returns the node for a JSON string of `min` to `max` characters.
    pub(crate) fn string(&mut self, min: u32, max: u32) -> NodeId {
        let character = self.character();
        let body = self.builder.repeat(character, min, max.max(min));
        let quote = self.builder.text("\"");
        self.builder.seq(&[quote, body, quote])
    }

    /// Returns the node for one character in a JSON string: well-formed UTF-8, or an escape that
    /// `serde_json` writes.
    fn character(&mut self) -> NodeId {
        let b = &mut *self.builder;
        let plain = b.byte(&[(0x20, 0x21), (0x23, 0x5b), (0x5d, 0x7f)]);
        let tail = b.byte(&[(0x80, 0xbf)]);
        let mut choices = vec![plain];
        // The byte ranges of table 3-7 of the Unicode standard: no overlong forms, no surrogates.
        for (lead, second, tails) in [
            ((0xc2, 0xdf), (0x80, 0xbf), 0),
            ((0xe0, 0xe0), (0xa0, 0xbf), 1),
            ((0xe1, 0xec), (0x80, 0xbf), 1),
            ((0xed, 0xed), (0x80, 0x9f), 1),
            ((0xee, 0xef), (0x80, 0xbf), 1),
            ((0xf0, 0xf0), (0x90, 0xbf), 2),
            ((0xf1, 0xf3), (0x80, 0xbf), 2),
            ((0xf4, 0xf4), (0x80, 0x8f), 2),
        ] {
            let mut parts = vec![b.byte(&[lead]), b.byte(&[second])];
            parts.extend(std::iter::repeat_n(tail, tails));
            choices.push(b.seq(&parts));
        }
        let backslash = b.text("\\");
        let short = b.byte(&b"\"\\/bfnrt".map(|byte| (byte, byte)));
        let control = b.text("u00");
        let high = b.byte(&[(b'0', b'1')]);
        let low = b.byte(&[(b'0', b'9'), (b'a', b'f')]);
        let control = b.seq(&[control, high, low]);
        let escape = b.any(&[short, control]);
        choices.push(b.seq(&[backslash, escape]));
        b.any(&choices)
    }

    /// Returns the node for an integer. A range of at most 200 numbers is enforced exactly; of larger ranges
    /// only the sign is enforced.
    fn integer(&mut self, schema: &Map<String, Value>) -> NodeId {
        let bound = |word: &str| schema.get(word).and_then(Value::as_i64);
        let low = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|n| n.saturating_add(1)));
        let high = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|n| n.saturating_sub(1)));
        if let (Some(low), Some(high)) = (low, high)
            && high.checked_sub(low).is_some_and(|span| span < 200)
        {
            let choices: Vec<_> = (low..=high).map(|n| self.builder.text(&n.to_string())).collect();
            return self.builder.any(&choices);
        }
        if low == Some(1) {
            return self.digits_from_one();
        }
        self.signed(at_least_zero(schema))
    }

    fn number(&mut self, no_sign: bool) -> NodeId {
        let whole = self.signed(no_sign);
        let b = &mut *self.builder;
        let digit = b.byte(&[(b'0', b'9')]);
        let digits = b.repeat(digit, 1, 20);
        let dot = b.text(".");
        let fraction = b.seq(&[dot, digits]);
        let fraction = b.optional(fraction);
        let letter = b.byte(&[(b'e', b'e'), (b'E', b'E')]);
        let sign = b.byte(&[(b'+', b'+'), (b'-', b'-')]);
        let sign = b.optional(sign);
        // Two digits: with three, a number may be larger than a double can hold.
        let power = b.repeat(digit, 1, 2);
        let exponent = b.seq(&[letter, sign, power]);
        let exponent = b.optional(exponent);
        b.seq(&[whole, fraction, exponent])
    }

    fn signed(&mut self, no_sign: bool) -> NodeId {
        let zero = self.builder.text("0");
        let digits = self.digits_from_one();
        let whole = self.builder.any(&[digits, zero]);
        if no_sign {
            return whole;
        }
        let minus = self.builder.text("-");
        let minus = self.builder.optional(minus);
        self.builder.seq(&[minus, whole])
    }

    fn digits_from_one(&mut self) -> NodeId {
        let first = self.builder.byte(&[(b'1', b'9')]);
        let digit = self.builder.byte(&[(b'0', b'9')]);
        let rest = self.builder.repeat(digit, 0, 19);
        self.builder.seq(&[first, rest])
    }

    /// Returns the node for any JSON value.
    fn anything(&mut self) -> NodeId {
        if let Some(node) = self.anything {
            return node;
        }
        let place = self.builder.reserve();
        self.anything = Some(place);
        let none = Map::new();
        let choices =
            ["string", "number", "boolean", "null", "array", "object"].map(|kind| self.kind(kind, &none));
        let any = self.builder.any(&choices);
        self.builder.fill(place, any);
        place
    }

    fn literal(&mut self, value: &Value) -> NodeId {
        self.builder.text(&json_text(value))
    }

    /// Returns the node for a `$ref` within the document. A reference to another document, or without a
    /// target, allows any value.
    fn reference(&mut self, pointer: &str) -> NodeId {
        if let Some(&node) = self.references.get(pointer) {
            return node;
        }
        let Some(target) = pointer.strip_prefix('#').and_then(|path| self.document.pointer(path)) else {
            return self.anything();
        };
        let place = self.builder.reserve();
        self.references.insert(pointer.to_owned(), place);
        let node = self.value(target);
        self.builder.fill(place, node);
        place
    }

    /// Merges the members of `allOf` that are objects into one schema.
    fn merge(&self, parts: &[Value], base: &Map<String, Value>) -> Map<String, Value> {
        let mut merged = base.clone();
        merged.remove("allOf");
        for part in parts {
            let part = match part.get("$ref").and_then(Value::as_str).and_then(|p| p.strip_prefix('#')) {
                Some(path) => self.document.pointer(path).unwrap_or(part),
                None => part,
            };
            for (word, value) in part.as_object().into_iter().flatten() {
                match (merged.get_mut(word), value) {
                    (Some(Value::Object(have)), Value::Object(more)) => have.extend(more.clone()),
                    (Some(Value::Array(have)), Value::Array(more)) => have.extend(more.iter().cloned()),
                    _ => {
                        merged.insert(word.clone(), value.clone());
                    }
                }
            }
        }
        merged
    }
}

/// Returns a branch of `anyOf` with the `type`, `properties` and `required` that are declared next to
/// `anyOf`.
fn with_base(part: &Value, base: &Map<String, Value>) -> Value {
    let (Value::Object(part), true) = (part, base.contains_key("properties")) else { return part.clone() };
    let mut merged = part.clone();
    if let Some(properties) = base.get("properties").and_then(Value::as_object) {
        let mut all = properties.clone();
        all.extend(part.get("properties").and_then(Value::as_object).cloned().unwrap_or_default());
        merged.insert("properties".into(), Value::Object(all));
    }
    let required = [base.get("required"), part.get("required")];
    let required: Vec<_> =
        required.into_iter().flatten().filter_map(Value::as_array).flatten().cloned().collect();
    merged.insert("required".into(), Value::Array(required));
    merged.insert("type".into(), Value::from("object"));
    Value::Object(merged)
}

fn count(schema: &Map<String, Value>, word: &str) -> Option<u32> {
    schema.get(word).and_then(Value::as_u64).map(|n| u32::try_from(n).unwrap_or(u32::MAX - 1))
}

fn at_least_zero(schema: &Map<String, Value>) -> bool {
    ["minimum", "exclusiveMinimum"]
        .iter()
        .any(|word| schema.get(*word).and_then(Value::as_f64).is_some_and(|n| n >= 0.0))
}
