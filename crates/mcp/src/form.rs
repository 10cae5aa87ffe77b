//! A form of a server: its fields, the texts for the person who fills it in, and the check of the values.

use archon_types::Json;
use rmcp::model::ElicitationSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use crate::text::plain;

/// Maximum number of fields of a form.
const FIELDS: usize = 20;
/// Maximum number of choices of a field.
const CHOICES: usize = 100;
/// Maximum numbers of characters of a field's name, of a choice, and of a field's description.
const NAME: usize = 100;
const CHOICE: usize = 200;
const ABOUT: usize = 500;
/// Maximum number of choices that are listed for a person.
const SHOWN: usize = 20;

/// A form that a server asks a person to fill in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Form {
    fields: Vec<Field>,
}

/// A field of a form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Field {
    name: String,
    about: String,
    is_required: bool,
    kind: Kind,
    default: Option<Json>,
}

/// The type of a field, and the limits of its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Text { shortest: Option<u64>, longest: Option<u64>, format: Option<Format> },
    Number { least: Option<f64>, most: Option<f64> },
    Integer { least: Option<i64>, most: Option<i64> },
    Boolean,
    Choice { choices: Vec<Choice> },
    Choices { choices: Vec<Choice>, fewest: Option<u64>, most: Option<u64> },
}

/// The format that a text field requires.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Format {
    Email,
    Uri,
    Date,
    DateTime,
}

/// A choice: its value, and the title that people see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Choice {
    value: String,
    title: Option<String>,
}

impl Form {
    /// Reads the schema of a form.
    ///
    /// # Errors
    /// The form cannot be shown to a person as it is.
    pub(crate) fn new(schema: &ElicitationSchema) -> Result<Self, String> {
        if schema.properties.len() > FIELDS {
            return Err(format!("its form has more than {FIELDS} fields"));
        }
        let order = schema.property_order.iter().flatten();
        let unordered = schema.properties.keys().filter(|name| !order.clone().any(|other| other == *name));
        let names = order.clone().chain(unordered);
        let required = schema.required.as_deref().unwrap_or_default();
        if let Some(name) = required.iter().find(|name| !schema.properties.contains_key(*name)) {
            return Err(format!("its form requires a field '{}' that it does not have", plain(name, NAME)));
        }
        let fields = names.filter_map(|name| {
            let definition = serde_json::to_value(schema.properties.get(name)?).unwrap_or_default();
            Some(Field::new(name, required.contains(name), &definition))
        });
        Ok(Self { fields: fields.collect::<Result<_, _>>()? })
    }

    /// Returns true if the form has no fields.
    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns a line for each field, which describes the field to a person.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.fields.iter().map(|field| format!("- {}: {}", field.name, field.description()))
    }

    /// Returns the fields as JSON, for a program that asks the person for the value of each field separately.
    pub(crate) fn missing(&self) -> Json {
        let field = |field: &Field| {
            json!({
                "name": field.name, "kind": field.kind.to_string(), "description": field.description(),
                "required": field.is_required, "default": field.default,
            })
        };
        self.fields.iter().map(field).collect()
    }

    /// Returns the values in a person's text: a JSON object, a value for each line `name: value`, or the value of the
    /// only field that must be filled in.
    ///
    /// # Errors
    /// It is not clear which value is meant for which field.
    pub(crate) fn read(&self, text: &str) -> Result<Map<String, Json>, String> {
        if let Ok(Json::Object(values)) = serde_json::from_str(text.trim()) {
            return Ok(values);
        }
        let named = |line: &str| {
            let (name, value) = line.split_once(':')?;
            let name = name.trim().trim_matches(['`', '-', ' ']);
            let field = self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
            Some((field.name.clone(), Json::from(value.trim())))
        };
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        if let Some(values) = lines.iter().map(|line| named(line)).collect::<Option<Map<_, _>>>() {
            return Ok(values);
        }
        let mut required = self.fields.iter().filter(|field| field.is_required && field.default.is_none());
        let only = match (required.next(), required.next(), &self.fields[..]) {
            (Some(field), None, _) | (None, None, [field]) => field,
            _ => {
                return Err(
                    "Several values are asked for: write each on a line of its own, as `name: value`"
                        .to_owned(),
                );
            }
        };
        Ok([(only.name.clone(), Json::from(text.trim()))].into_iter().collect())
    }

    /// Returns whether a field takes this value.
    pub(crate) fn takes(&self, name: &str, value: &Json) -> bool {
        let field = self.fields.iter().find(|field| field.name == name);
        field.is_some_and(|field| field.fitting(value).is_ok())
    }

    /// Checks a person's values, and adds the defaults of fields without a value. An empty value counts as no
    /// value.
    ///
    /// # Errors
    /// The problems with the values.
    pub(crate) fn check(&self, given: &Map<String, Json>) -> Result<Map<String, Json>, Vec<String>> {
        let known = |name: &String| self.fields.iter().any(|field| field.name == *name);
        let unknown = given.keys().filter(|name| !known(name));
        let mut problems: Vec<String> =
            unknown.map(|name| format!("there is no field `{}`", plain(name, NAME))).collect();
        let mut values = Map::new();
        for field in &self.fields {
            let value = given.get(&field.name).filter(|value| !matches!(value, Json::Null));
            match value.filter(|value| value.as_str() != Some("")).map(|value| field.fitting(value)) {
                Some(Ok(value)) => drop(values.insert(field.name.clone(), value)),
                Some(Err(why)) => problems.push(format!("`{}` {why}", field.name)),
                None => match (&field.default, field.is_required) {
                    (Some(default), _) => drop(values.insert(field.name.clone(), default.clone())),
                    (None, true) => problems.push(format!("`{}` is missing", field.name)),
                    (None, false) => {}
                },
            }
        }
        if problems.is_empty() { Ok(values) } else { Err(problems) }
    }
}

impl Field {
    fn new(name: &str, is_required: bool, definition: &Json) -> Result<Self, String> {
        if name.trim().is_empty() || plain(name, NAME) != name {
            return Err("its form has a field whose name is empty, too long or not readable".to_owned());
        }
        let text = |key: &str| definition[key].as_str().unwrap_or_default().trim().to_owned();
        let about = [text("title"), text("description")];
        let about = about.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(": ");
        let kind = Kind::new(name, definition)?;
        let mut field =
            Self { name: name.to_owned(), about: plain(&about, ABOUT), is_required, kind, default: None };
        let default = definition.get("default").filter(|default| !default.is_null());
        // A default that does not fit would be refused by the server.
        field.default = default.filter(|default| field.kind.problem(default).is_none()).cloned();
        Ok(field)
    }

    fn description(&self) -> String {
        let mut parts = vec![self.kind.to_string()];
        match &self.default {
            Some(Json::String(default)) => parts.push(format!("default {default}")),
            Some(default) => parts.push(format!("default {default}")),
            None if !self.is_required => parts.push("may be left out".to_owned()),
            None => {}
        }
        match self.about.is_empty() {
            true => parts.join(", "),
            false => format!("{} ({})", self.about, parts.join(", ")),
        }
    }

    /// Converts a value to the type of this field, because people write numbers and choices as text, and
    /// checks the result.
    fn fitting(&self, value: &Json) -> Result<Json, String> {
        let value = match (value.as_str(), &self.kind) {
            (Some(text), Kind::Number { .. } | Kind::Integer { .. }) => {
                serde_json::from_str(text.trim()).unwrap_or_else(|_| value.clone())
            }
            (Some(text), Kind::Boolean) => match &*text.trim().to_lowercase() {
                "true" | "yes" | "y" => true.into(),
                "false" | "no" | "n" => false.into(),
                _ => value.clone(),
            },
            (Some(text), Kind::Choice { choices }) => chosen(choices, text),
            (Some(text), Kind::Choices { choices, .. }) => {
                text.split(',').map(|part| chosen(choices, part)).collect()
            }
            _ => value.clone(),
        };
        self.kind.problem(&value).map_or(Ok(value), Err)
    }
}

/// Returns the value of the choice that a person named by its value or its title, otherwise the text.
fn chosen(choices: &[Choice], text: &str) -> Json {
    let text = text.trim();
    let exact = choices.iter().find(|choice| choice.value == text);
    let is_meant = |choice: &&Choice| {
        choice.value.eq_ignore_ascii_case(text)
            || choice.title.as_ref().is_some_and(|title| title.eq_ignore_ascii_case(text))
    };
    let mut meant = choices.iter().filter(is_meant);
    match (exact, meant.next(), meant.next()) {
        (Some(choice), ..) | (None, Some(choice), None) => choice.value.clone().into(),
        _ => text.into(),
    }
}

impl Kind {
    fn new(name: &str, definition: &Json) -> Result<Self, String> {
        let number = |key: &str| definition[key].as_u64();
        let choices = choices(name, definition)?;
        Ok(match (definition["type"].as_str(), choices) {
            (Some("string"), Some(choices)) => Self::Choice { choices },
            (Some("array"), Some(choices)) => {
                Self::Choices { choices, fewest: number("minItems"), most: number("maxItems") }
            }
            (Some("string"), None) => {
                let format = serde_json::from_value(definition["format"].clone()).ok();
                Self::Text { shortest: number("minLength"), longest: number("maxLength"), format }
            }
            (Some("number"), None) => {
                Self::Number { least: definition["minimum"].as_f64(), most: definition["maximum"].as_f64() }
            }
            (Some("integer"), None) => {
                Self::Integer { least: definition["minimum"].as_i64(), most: definition["maximum"].as_i64() }
            }
            (Some("boolean"), None) => Self::Boolean,
            _ => {
                return Err(format!(
                    "its form has a field '{name}' of a kind that the protocol does not have"
                ));
            }
        })
    }

    /// Returns the reason why a value does not fit, if there is one.
    fn problem(&self, value: &Json) -> Option<String> {
        let fits = match self {
            Self::Text { shortest, longest, format } => value.as_str().is_some_and(|text| {
                let length = text.chars().count() as u64;
                shortest.is_none_or(|least| length >= least)
                    && longest.is_none_or(|most| length <= most)
                    && format.is_none_or(|format| format.fits(text))
            }),
            Self::Number { least, most } => value.as_f64().is_some_and(|number| {
                least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most)
            }),
            Self::Integer { least, most } => value.as_i64().is_some_and(|number| {
                least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most)
            }),
            Self::Boolean => value.is_boolean(),
            Self::Choice { choices } => has(choices, value),
            Self::Choices { choices, fewest, most } => value.as_array().is_some_and(|values| {
                let count = values.len() as u64;
                values.iter().all(|value| has(choices, value))
                    && fewest.is_none_or(|fewest| count >= fewest)
                    && most.is_none_or(|most| count <= most)
            }),
        };
        (!fits).then(|| format!("must be {self}"))
    }
}

fn has(choices: &[Choice], value: &Json) -> bool {
    choices.iter().any(|choice| value.as_str() == Some(&choice.value))
}

/// Returns the choices of a field, which the protocol can write in four ways; `None` if the field has no
/// choices.
fn choices(name: &str, definition: &Json) -> Result<Option<Vec<Choice>>, String> {
    let of = match definition["type"] == "array" {
        true => &definition["items"],
        false => definition,
    };
    let titles = &definition["enumNames"];
    let named = of.get("oneOf").or_else(|| of.get("anyOf")).and_then(Json::as_array);
    let choices: Vec<(&Json, &Json)> = match (of["enum"].as_array(), named) {
        (Some(values), _) => values.iter().enumerate().map(|(n, value)| (value, &titles[n])).collect(),
        (None, Some(values)) => values.iter().map(|value| (&value["const"], &value["title"])).collect(),
        (None, None) => return Ok(None),
    };
    let choice = |(value, title): (&Json, &Json)| {
        let value = value.as_str().filter(|value| plain(value, CHOICE) == *value)?;
        let title = title.as_str().map(|title| plain(title.trim(), CHOICE)).filter(|title| title != value);
        Some(Choice { value: value.to_owned(), title })
    };
    let count = choices.len();
    let choices: Option<Vec<Choice>> = choices.into_iter().map(choice).collect();
    match choices.filter(|_| (1..=CHOICES).contains(&count)) {
        Some(choices) => Ok(Some(choices)),
        None => Err(format!(
            "the choices of its form's field '{name}' are none, more than {CHOICES}, or not readable"
        )),
    }
}

impl Format {
    /// Returns whether a text has this format.
    fn fits(self, text: &str) -> bool {
        let has_no_spaces = !text.chars().any(|c| c.is_whitespace() || c.is_control());
        match self {
            Self::Email => {
                let parts = text.rsplit_once('@');
                has_no_spaces && parts.is_some_and(|(who, at)| !who.is_empty() && is_host(at))
            }
            Self::Uri => {
                let scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
                has_no_spaces
                    && text.split_once(':').is_some_and(|(name, rest)| {
                        name.starts_with(|c: char| c.is_ascii_alphabetic())
                            && name.chars().all(scheme)
                            && !rest.is_empty()
                    })
            }
            Self::Date => is_date(text),
            Self::DateTime => {
                text.split_once(['T', 't']).is_some_and(|(date, time)| is_date(date) && is_time(time))
            }
        }
    }
}

fn is_host(text: &str) -> bool {
    !text.contains('@') && text.split('.').all(|label| !label.is_empty())
}

/// Returns the number in a text of exactly `count` digits; `None` for any other text.
fn digits(text: &str, count: usize) -> Option<u32> {
    (text.len() == count && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let mut part = |count| parts.next().and_then(|part| digits(part, count));
    let (Some(year), Some(month), Some(day)) = (part(4), part(2), part(2)) else { return false };
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// Returns whether a text is a time of RFC 3339, with its offset.
fn is_time(text: &str) -> bool {
    let is_offset = |text: &str| is_clock(text, 2);
    let (time, is_placed) = match text.strip_suffix(['Z', 'z']) {
        Some(time) => (time, true),
        None => match text.rsplit_once(['+', '-']) {
            Some((time, offset)) => (time, is_offset(offset)),
            None => (text, false),
        },
    };
    let (time, is_fraction) = match time.split_once('.') {
        Some((time, fraction)) => {
            (time, !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit()))
        }
        None => (time, true),
    };
    is_placed && is_fraction && is_clock(time, 3)
}

/// Returns whether a text is a time of day: hours and minutes, or with `parts` = 3 also seconds.
fn is_clock(text: &str, parts: usize) -> bool {
    let most = [23, 59, 60];
    let given: Vec<&str> = text.split(':').collect();
    given.len() == parts
        && given.iter().zip(most).all(|(part, most)| digits(part, 2).is_some_and(|number| number <= most))
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text { shortest, longest, format } => {
                f.write_str(match format {
                    None => "text",
                    Some(Format::Email) => "an e-mail address",
                    Some(Format::Uri) => "an address like https://example.com",
                    Some(Format::Date) => "a date like 2026-01-31",
                    Some(Format::DateTime) => "a time like 2026-01-31T08:00:00Z",
                })?;
                bounds(f, shortest.as_ref(), longest.as_ref(), " characters")
            }
            Self::Number { least, most } => {
                f.write_str("a number")?;
                bounds(f, least.as_ref(), most.as_ref(), "")
            }
            Self::Integer { least, most } => {
                f.write_str("a whole number")?;
                bounds(f, least.as_ref(), most.as_ref(), "")
            }
            Self::Boolean => f.write_str("yes or no"),
            Self::Choice { choices } => {
                f.write_str("one of ")?;
                list(f, choices)
            }
            Self::Choices { choices, fewest, most } => {
                f.write_str("any of ")?;
                list(f, choices)?;
                f.write_str(", with commas between them")?;
                bounds(f, fewest.as_ref(), most.as_ref(), " of them")
            }
        }
    }
}

fn bounds<N: std::fmt::Display>(
    f: &mut std::fmt::Formatter<'_>,
    least: Option<&N>,
    most: Option<&N>,
    unit: &str,
) -> std::fmt::Result {
    match (least, most) {
        (Some(least), Some(most)) => write!(f, " of {least} to {most}{unit}"),
        (Some(least), None) => write!(f, " of at least {least}{unit}"),
        (None, Some(most)) => write!(f, " of at most {most}{unit}"),
        (None, None) => Ok(()),
    }
}

fn list(f: &mut std::fmt::Formatter<'_>, choices: &[Choice]) -> std::fmt::Result {
    for (n, choice) in choices.iter().take(SHOWN).enumerate() {
        let comma = if n == 0 { "" } else { ", " };
        match &choice.title {
            Some(title) => write!(f, "{comma}{} ({title})", choice.value)?,
            None => write!(f, "{comma}{}", choice.value)?,
        }
    }
    match choices.len().saturating_sub(SHOWN) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn form(properties: Json, required: &[&str]) -> Form {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        Form::new(&serde_json::from_value(schema).unwrap()).unwrap()
    }

    fn checked(form: &Form, values: Json) -> Result<Json, String> {
        let Json::Object(values) = values else { panic!("no object") };
        form.check(&values).map(Json::Object).map_err(|problems| problems.join("; "))
    }

    fn one(definition: Json, value: Json) -> Result<Json, String> {
        let checked = checked(&form(json!({ "f": definition }), &["f"]), json!({ "f": value }));
        checked.map(|values| values["f"].clone())
    }

    #[test]
    fn check_takes_values_that_fit_as_a_person_writes_them() {
        let colours = json!({ "type": "string", "enum": ["red", "green"], "enumNames": ["Rot", "Grün"] });
        let titled = json!({ "type": "string", "oneOf": [{ "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }] });
        let several =
            json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] }, "minItems": 1 });
        for (definition, given, expected) in [
            (json!({ "type": "string" }), json!("Ann"), json!("Ann")),
            (json!({ "type": "integer", "minimum": 18 }), json!("18"), json!(18)),
            (json!({ "type": "number" }), json!(" 1.5 "), json!(1.5)),
            (json!({ "type": "boolean" }), json!("Yes"), json!(true)),
            (json!({ "type": "boolean" }), json!(false), json!(false)),
            (colours.clone(), json!("RED"), json!("red")),
            (colours, json!("Grün"), json!("green")),
            (titled, json!("Green"), json!("g")),
            (several, json!("b, a"), json!(["b", "a"])),
            (
                json!({ "type": "string", "format": "email" }),
                json!("ann@example.com"),
                json!("ann@example.com"),
            ),
            (json!({ "type": "string", "format": "date" }), json!("2024-02-29"), json!("2024-02-29")),
        ] {
            assert_eq!(one(definition.clone(), given.clone()), Ok(expected), "{definition} {given}");
        }
    }

    #[test]
    fn check_says_why_a_value_does_not_fit() {
        for (definition, given, why) in [
            (json!({ "type": "string", "minLength": 2 }), json!("A"), "text of at least 2 characters"),
            (
                json!({ "type": "string", "minLength": 1, "maxLength": 2 }),
                json!("grü"),
                "of 1 to 2 characters",
            ),
            (json!({ "type": "integer", "minimum": 18 }), json!("17"), "a whole number of at least 18"),
            (json!({ "type": "integer" }), json!(1.5), "a whole number"),
            (json!({ "type": "integer" }), json!("old"), "a whole number"),
            (json!({ "type": "number", "maximum": 1.5 }), json!(2), "a number of at most 1.5"),
            (json!({ "type": "boolean" }), json!("perhaps"), "yes or no"),
            (json!({ "type": "string", "enum": ["red"] }), json!("blue"), "one of red"),
            (
                json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] }, "maxItems": 1 }),
                json!(["a", "b"]),
                "any of a, b, with commas between them of at most 1 of them",
            ),
            (json!({ "type": "string", "format": "uri" }), json!("example"), "an address"),
        ] {
            let problem = one(definition, given).unwrap_err();
            assert!(problem.starts_with("`f` must be ") && problem.contains(why), "{problem}");
        }
        let form = form(json!({ "a": { "type": "string" } }), &["a"]);
        assert_eq!(
            checked(&form, json!({ "b": 1 })),
            Err("there is no field `b`; `a` is missing".to_owned())
        );
        assert_eq!(checked(&form, json!({ "a": "" })), Err("`a` is missing".to_owned()));
    }

    #[test]
    fn format_fits_what_the_format_says_and_nothing_else() {
        let all = |format: Format, fitting: &[&str], others: &[&str]| {
            assert!(fitting.iter().all(|text| format.fits(text)), "{format:?}");
            for text in others {
                assert!(!format.fits(text), "{format:?} {text}");
            }
        };
        all(Format::Email, &["a@b.c", "a.b+c@localhost"], &["a", "@b", "a@", "a b@c", "a@b..c"]);
        all(
            Format::Uri,
            &["https://example.com/a", "urn:x"],
            &["example.com", ":x", "1a:b", "a b:c", "https:"],
        );
        all(
            Format::Date,
            &["2026-01-31", "2000-02-29"],
            &["2026-02-29", "1900-02-29", "2026-13-01", "26-1-1", "2026-04-31"],
        );
        all(
            Format::DateTime,
            &["2026-01-31T08:00:00Z", "2026-01-31t23:59:60.123+05:30", "2026-01-31T08:00:00.1234567890123Z"],
            &[
                "2026-01-31",
                "2026-01-31T08:00Z",
                "2026-01-31T08:00:00",
                "2026-01-31T24:00:00Z",
                "2026-01-31T08:00:00.Z",
            ],
        );
    }

    #[test]
    fn check_adds_defaults_that_fit() {
        let form = form(
            json!({
                "name": { "type": "string", "default": "Ann" },
                "age": { "type": "integer", "minimum": 18, "default": 7 },
                "ok": { "type": "boolean", "default": false },
            }),
            &["name"],
        );
        assert_eq!(checked(&form, json!({})), Ok(json!({ "name": "Ann", "ok": false })));
        assert_eq!(
            checked(&form, json!({ "name": "Bob", "age": null, "ok": true })),
            Ok(json!({ "name": "Bob", "ok": true }))
        );
    }

    #[test]
    fn read_finds_the_fields_that_a_text_is_about() {
        let form = form(
            json!({ "name": { "type": "string" }, "Age": { "type": "integer" }, "note": { "type": "string" } }),
            &["name"],
        );
        let read = |text: &str| form.read(text).map(Json::Object);
        assert_eq!(read("Ann: the first"), Ok(json!({ "name": "Ann: the first" })));
        assert_eq!(read("name: Ann\n\n- age : 20"), Ok(json!({ "name": "Ann", "Age": "20" })));
        assert_eq!(read(r#" {"Age": 20} "#), Ok(json!({ "Age": 20 })));
        let both = json!({ "a": { "type": "string" }, "b": { "type": "string" } });
        let both = super::tests::form(both, &["a", "b"]);
        assert!(both.read("Ann").unwrap_err().contains("`name: value`"));
    }

    #[test]
    fn new_refuses_a_form_that_a_person_could_not_read() {
        let refused = |properties: Json, required: &[&str]| {
            let schema = json!({ "type": "object", "properties": properties, "required": required });
            Form::new(&serde_json::from_value(schema).unwrap()).unwrap_err()
        };
        let many: Map<_, _> = (0..21).map(|n| (format!("f{n}"), json!({ "type": "string" }))).collect();
        assert!(refused(many.into(), &[]).contains("more than 20 fields"));
        assert!(refused(json!({ "a\u{200b}": { "type": "string" } }), &[]).contains("not readable"));
        assert!(refused(json!({}), &["a"]).contains("requires a field 'a' that it does not have"));
        assert!(
            refused(json!({ "a": { "type": "string", "enum": ["x\u{202e}"] } }), &[]).contains("choices")
        );
    }

    #[test]
    fn lines_name_kind_default_and_description_in_the_order_of_the_server() {
        let schema = r#"{ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string", "title": "Name", "description": "Your\u200b name", "minLength": 2 },
            "colour": { "type": "string", "enum": ["red", "green"], "default": "green" },
            "age": { "type": "integer" } } }"#;
        let form = Form::new(&serde_json::from_str(schema).unwrap()).unwrap();
        assert_eq!(
            form.lines().collect::<Vec<_>>(),
            [
                "- name: Name: Your name (text of at least 2 characters)",
                "- colour: one of red, green, default green",
                "- age: a whole number, may be left out",
            ]
        );
    }
}
