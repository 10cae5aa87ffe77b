//! An OpenAPI document as JSON: how a text is read, and where its references lead.

use std::{borrow::Cow, collections::HashMap, sync::OnceLock};

use archon_types::Json;
use reqwest::Url;

use crate::{
    OpenApiError,
    error::Problem,
    swagger::{METHODS, converted},
    text::one_line,
};

/// Maximum number of references that are followed one after the other.
const LONGEST_CHAIN: usize = 32;

/// The lines of a text that begin with a path or a method as a key: the line number and the key of each. Then, for
/// each key, the index of its first entry in this list.
type Keys = (Vec<(usize, String)>, HashMap<String, usize>);

/// A document with its origin.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) root: Json,
    /// The file or the address, for messages.
    pub(crate) place: String,
    /// The address that it was fetched from.
    pub(crate) url: Option<Url>,
    /// The text, to find lines in it.
    text: String,
    /// The lines of the text that begin with a path or a method; computed when the first line is looked up.
    keys: OnceLock<Keys>,
    /// True for version 3.0, whose schemas differ from JSON Schema.
    pub(crate) is_3_0: bool,
}

impl Document {
    /// Parses a text: as JSON if its first character that is not white space is `{` or `[`, otherwise as YAML.
    pub(crate) fn read(text: String, place: &str, url: Option<Url>) -> Result<Self, OpenApiError> {
        let is_json = text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']);
        let root = if is_json { json(&text, place)? } else { yaml(&text, place)? };
        Self::new(root, place, url, text)
    }

    /// Creates a document from parsed JSON. Checks the version, and converts version 2.0.
    pub(crate) fn new(root: Json, place: &str, url: Option<Url>, text: String) -> Result<Self, OpenApiError> {
        let wrong = |problem: String| OpenApiError::NotOpenApi { place: place.to_owned(), problem };
        if !root.is_object() {
            return Err(wrong("it is not an object".to_owned()));
        }
        let is_2 = match &root["swagger"] {
            Json::String(version) => version == "2.0",
            version => version.as_f64() == Some(2.0),
        };
        let root = if is_2 { converted(root) } else { root };
        let version = match &root["openapi"] {
            Json::String(version) => version.clone(),
            // `openapi: 3.0` without quotes, in YAML.
            Json::Number(version) => version.to_string(),
            _ => return Err(wrong("the field `openapi` with its version is missing".to_owned())),
        };
        if !version.starts_with("3.") {
            return Err(wrong(format!("it has version {}", one_line(&version, 20))));
        }
        let is_3_0 = version == "3.0" || version.starts_with("3.0.");
        Ok(Self { root, place: place.to_owned(), url, text, keys: OnceLock::new(), is_3_0 })
    }

    /// Returns the text that the document was read from; empty if it was given as JSON.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Follows the `$ref` of an object, and the `$ref` of each target in turn. Returns the last target and its
    /// pointer.
    ///
    /// # Errors
    /// A reference leads out of the document, to nothing, or in a circle.
    pub(crate) fn resolve<'d>(&'d self, value: &'d Json, at: &str) -> Result<(&'d Json, String), Problem> {
        let (mut value, mut pointer) = (value, at.to_owned());
        for _ in 0..LONGEST_CHAIN {
            let Some(reference) = value.get("$ref").and_then(Json::as_str) else {
                return Ok((value, pointer));
            };
            pointer = local(reference, &pointer)?;
            value = self.target(&pointer, at)?;
        }
        Err(Problem::new(at, "its `$ref` leads in a circle"))
    }

    /// Returns the part of the document at a pointer, such as `#/components/schemas/Pet`.
    pub(crate) fn target(&self, pointer: &str, at: &str) -> Result<&Json, Problem> {
        let found = self.root.pointer(pointer.strip_prefix('#').unwrap_or(pointer));
        found.ok_or_else(|| {
            Problem::new(at, format!("it refers to `{}`, which does not exist", one_line(pointer, 200)))
        })
    }

    /// Returns the line of an operation, counted from 1: the line of the method below the path, or of the path if the
    /// method is not found; `None` if the path is not found. The parsers keep no line numbers, so the text is
    /// searched.
    pub(crate) fn line(&self, path: &str, method: &str) -> Option<usize> {
        let (keys, places) = self.keys.get_or_init(|| keys(&self.text));
        let at = *places.get(path)?;
        let below = keys[at + 1..].iter().take_while(|(_, key)| !key.starts_with('/'));
        let line = below.clone().find(|(_, key)| key.eq_ignore_ascii_case(method)).or(keys.get(at));
        line.map(|(line, _)| *line)
    }
}

fn keys(text: &str) -> Keys {
    let (mut found, mut places) = (Vec::new(), HashMap::new());
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let key = match line.chars().next() {
            Some(quote @ ('"' | '\'')) => line[1..].split(quote).next().unwrap_or_default(),
            _ => line.split(": ").next().unwrap_or_default().trim_end().trim_end_matches(':'),
        };
        let is_method = || METHODS.iter().any(|method| key.eq_ignore_ascii_case(method));
        if key.starts_with('/') || is_method() {
            places.entry(key.to_owned()).or_insert(found.len());
            found.push((index + 1, key.to_owned()));
        }
    }
    (found, places)
}

/// Returns the pointer of a local reference, with its percent-encoding decoded.
///
/// # Errors
/// The reference leads to another file or address, which is never read, or to an anchor.
pub(crate) fn local(reference: &str, at: &str) -> Result<String, Problem> {
    let shown = one_line(reference, 200);
    let Some(pointer) = reference.strip_prefix('#') else {
        let text =
            format!("it refers to `{shown}`, which is outside of the document; put it into the document");
        return Err(Problem::new(at, text));
    };
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(Problem::new(at, format!("it refers to `{shown}` by an anchor; use a JSON pointer")));
    }
    let pointer: Cow<'_, str> = percent_encoding::percent_decode_str(pointer).decode_utf8_lossy();
    Ok(format!("#{pointer}"))
}

/// Returns the pointer to the entry `key` of the value at `pointer`.
pub(crate) fn below(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

fn json(text: &str, place: &str) -> Result<Json, OpenApiError> {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
        let problem = error.to_string();
        let end = format!(" at line {} column {}", error.line(), error.column());
        OpenApiError::Syntax {
            place: place.to_owned(),
            line: error.line(),
            column: error.column(),
            format: "JSON",
            problem: problem.strip_suffix(&end).unwrap_or(&problem).to_owned(),
        }
    })
}

fn yaml(text: &str, place: &str) -> Result<Json, OpenApiError> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
        let problem = error.to_string();
        let end = format!(" at line {line}, column {column}");
        OpenApiError::Syntax {
            place: place.to_owned(),
            line: usize::try_from(line).unwrap_or(1),
            column: usize::try_from(column).unwrap_or(1),
            format: "YAML",
            problem: problem.strip_suffix(&end).unwrap_or(&problem).to_owned(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Document, String> {
        Document::read(text.to_owned(), "pets", None).map_err(|error| error.to_string())
    }

    // spec: OA-01
    #[test]
    fn read_takes_json_by_its_first_character_and_else_yaml() {
        for text in [
            "\u{feff} \n{\"openapi\": \"3.1.0\", \"paths\": {\"/a\": {\"get\": {\"responses\": {\"200\": {}}}}}}",
            "# a comment\nopenapi: 3.1.0\npaths:\n  /a:\n    get:\n      responses:\n        200: {}\n",
        ] {
            let document = read(text).unwrap();
            assert!(document.root["paths"]["/a"]["get"]["responses"]["200"].is_object(), "{text}");
            assert!(!document.is_3_0);
        }
        assert!(read("openapi: 3.0\n").unwrap().is_3_0);
        let wrong = read("{\n \"openapi\": 3,\n]").unwrap_err();
        assert!(wrong.starts_with("pets:3:1: the OpenAPI document is not JSON: "), "{wrong}");
        let wrong = read("openapi: 3.1.0\npaths: [\n").unwrap_err();
        assert!(wrong.contains("is not YAML"), "{wrong}");
    }

    // spec: OA-01
    #[test]
    fn read_refuses_documents_of_other_kinds() {
        for (text, problem) in [
            ("[]", "it is not an object"),
            ("{}", "the field `openapi` with its version is missing"),
            ("swagger: '1.2'", "the field `openapi` with its version is missing"),
            ("openapi: 4.0.0", "it has version 4.0.0"),
        ] {
            assert!(read(text).unwrap_err().ends_with(problem), "{text}");
        }
    }

    #[test]
    fn resolve_follows_local_references_and_names_what_it_cannot_follow() {
        let document = read(
            r##"{"openapi": "3.1.0", "a": {"$ref": "#/b"}, "b": {"$ref": "#/c~1d%20e"}, "c/d e": 1,
                "x": {"$ref": "#/y"}, "y": {"$ref": "#/x"}, "f": {"$ref": "f.yaml#/g"}, "n": {"$ref": "#/no"}}"##,
        )
        .unwrap();
        let resolved = |name: &str| document.resolve(&document.root[name], "#/at").map_err(|p| p.text);
        assert_eq!(resolved("a"), Ok((&Json::from(1), "#/c~1d e".to_owned())));
        assert_eq!(resolved("x").unwrap_err(), "its `$ref` leads in a circle");
        assert!(resolved("f").unwrap_err().contains("`f.yaml#/g`, which is outside of the document"));
        assert!(resolved("n").unwrap_err().contains("`#/no`, which does not exist"));
    }

    #[test]
    fn line_is_that_of_the_method_below_its_path() {
        let yaml = "openapi: 3.1.0\npaths:\n  /a/b:\n    get: {}\n  /a:\n    post: {}\n    get: {}\n";
        assert_eq!(read(yaml).unwrap().line("/a", "get"), Some(7));
        let json = "{\"openapi\": \"3.1.0\",\n\"paths\": {\n\"/a\": {\n\"get\": {}}}}";
        assert_eq!(read(json).unwrap().line("/a", "get"), Some(4));
        assert_eq!(read(json).unwrap().line("/b", "get"), None);
    }
}
