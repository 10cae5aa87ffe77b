//! Operations as their documents declare them, and the arguments that a request has by that declaration. It is code of its
//! own, which shares nothing with the code that writes requests.

use archon_testkit::RecordedRequest;
use archon_types::Json;
use serde_json::Map;

const FORM: &str = "application/x-www-form-urlencoded";

/// An operation of a document.
pub(crate) struct Declared<'d> {
    root: &'d Json,
    pub(crate) id: &'d str,
    pub(crate) method: String,
    /// The path with that of the server before it, and its parameters in braces.
    pub(crate) path: String,
    pub(crate) parameters: Vec<Parameter<'d>>,
    pub(crate) body: Option<Body<'d>>,
}

/// A parameter that calls have as an argument, which has its name.
pub(crate) struct Parameter<'d> {
    pub(crate) name: &'d str,
    pub(crate) place: &'d str,
    pub(crate) style: &'d str,
    explode: bool,
    pub(crate) is_required: bool,
    pub(crate) schema: &'d Json,
}

pub(crate) struct Body<'d> {
    /// The name of the argument.
    pub(crate) key: &'static str,
    pub(crate) media: &'d str,
    content: &'d Json,
    pub(crate) is_required: bool,
}

impl Body<'_> {
    pub(crate) fn schema(&self) -> &Json {
        &self.content["schema"]
    }
}

/// Returns the operations of a document. `base` is the path of the base address, if one is set in place of the servers.
pub(crate) fn operations<'d>(root: &'d Json, base: Option<&str>) -> Vec<Declared<'d>> {
    let mut found = Vec::new();
    for (path, item) in root["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Some(id) = operation["operationId"].as_str() else { continue };
            let lists = [&item["parameters"], &operation["parameters"]];
            let list = lists.into_iter().filter_map(Json::as_array).flatten();
            let parameters = list.map(|one| target(root, one)).filter(|one| one["in"] != "cookie");
            let parameters: Vec<_> = parameters.map(parameter).collect();
            let server = [&operation["servers"], &item["servers"], &root["servers"]];
            let server = server.into_iter().find(|servers| servers.is_array());
            let base = base.map_or_else(|| server_path(&server.unwrap()[0]), str::to_owned);
            let body = operation.get("requestBody").map(|body| {
                let (media, content) = body["content"].as_object().unwrap().iter().next().unwrap();
                let has_body = parameters.iter().any(|one| one.name == "body");
                let key = if has_body { "_request_body" } else { "body" };
                Body { key, media, content, is_required: body["required"] == true }
            });
            let (method, path) = (method.to_uppercase(), format!("{base}{path}"));
            found.push(Declared { root, id, method, path, parameters, body });
        }
    }
    found
}

/// Returns what a reference leads to.
pub(crate) fn target<'d>(root: &'d Json, value: &'d Json) -> &'d Json {
    match value["$ref"].as_str() {
        Some(reference) => root.pointer(reference.strip_prefix('#').unwrap()).unwrap(),
        None => value,
    }
}

fn parameter(parameter: &Json) -> Parameter<'_> {
    let place = parameter["in"].as_str().unwrap();
    let usual = if place == "query" { "form" } else { "simple" };
    let style = parameter["style"].as_str().unwrap_or(usual);
    Parameter {
        name: parameter["name"].as_str().unwrap(),
        place,
        style,
        explode: parameter["explode"].as_bool().unwrap_or(style == "form"),
        is_required: parameter["required"] == true,
        schema: &parameter["schema"],
    }
}

/// Returns the path of a server of a document that is at `/docs/openapi.yaml`.
fn server_path(server: &Json) -> String {
    let mut path = server["url"].as_str().unwrap().to_owned();
    for (name, variable) in server["variables"].as_object().into_iter().flatten() {
        path = path.replace(&format!("{{{name}}}"), variable["default"].as_str().unwrap());
    }
    if path.starts_with('/') { path } else { format!("/docs/{path}") }
}

impl Declared<'_> {
    /// Returns the arguments that a request has. Panics if the request has anything else.
    pub(crate) fn arguments(&self, request: &RecordedRequest) -> Json {
        assert_eq!(request.method, self.method);
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let mut arguments = self.in_path(path);
        let mut pairs = Pairs::of(query);
        for parameter in &self.parameters {
            let found = match parameter.place {
                "query" => pairs.take(self.root, parameter),
                "header" => {
                    let text = request.header(&parameter.name.to_lowercase());
                    text.map(|text| listed(self.root, parameter, text, ",", str::to_owned))
                }
                _ => None,
            };
            arguments.extend(found.map(|value| (parameter.name.to_owned(), value)));
        }
        assert!(pairs.0.is_empty(), "{:?} is declared nowhere", pairs.0);
        if let Some(body) = &self.body {
            let found = self.in_body(body, request);
            arguments.extend(found.map(|value| (body.key.to_owned(), value)));
        }
        Json::Object(arguments)
    }

    fn in_path(&self, path: &str) -> Map<String, Json> {
        let (declared, parts): (Vec<_>, Vec<_>) = (self.path.split('/').collect(), path.split('/').collect());
        assert_eq!(declared.len(), parts.len(), "{path}");
        let mut arguments = Map::new();
        for (declared, part) in declared.into_iter().zip(parts) {
            let name = declared.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
            let Some(name) = name else {
                assert_eq!(declared, part);
                continue;
            };
            let parameter = self.parameters.iter().find(|one| one.place == "path" && one.name == name);
            arguments.insert(name.to_owned(), self.part(parameter.unwrap(), part));
        }
        arguments
    }

    /// Reads a part of a path.
    fn part(&self, parameter: &Parameter<'_>, part: &str) -> Json {
        let named = format!(";{}=", parameter.name);
        let (text, between) = match (parameter.style, parameter.explode, kind(self.root, parameter.schema)) {
            ("label", true, _) => (part.strip_prefix('.').unwrap(), "."),
            ("label", false, _) => (part.strip_prefix('.').unwrap(), ","),
            ("matrix", true, "array") => (part.strip_prefix(&*named).unwrap(), &*named),
            ("matrix", true, "object") => (part.strip_prefix(';').unwrap(), ";"),
            ("matrix", ..) => (part.strip_prefix(&*named).unwrap(), ","),
            _ => (part, ","),
        };
        listed(self.root, parameter, text, between, decoded)
    }

    fn in_body(&self, body: &Body<'_>, request: &RecordedRequest) -> Option<Json> {
        let media = request.header("content-type")?;
        assert_eq!(media, body.media);
        if media != FORM {
            return Some(request.body.clone());
        }
        let (mut pairs, mut fields) = (Pairs::of(&request.text), Map::new());
        for (name, schema) in target(self.root, body.schema())["properties"].as_object().unwrap() {
            let encoding = &body.content["encoding"][name];
            let style = encoding["style"].as_str().unwrap_or("form");
            let explode = encoding["explode"].as_bool().unwrap_or(style == "form");
            let field = Parameter { name, place: "query", style, explode, is_required: false, schema };
            fields.extend(pairs.take(self.root, &field).map(|value| (name.clone(), value)));
        }
        assert!(pairs.0.is_empty(), "{:?} is declared nowhere", pairs.0);
        Some(Json::Object(fields))
    }
}

/// The pairs of a query or a form that were not read yet: each with its name, and its value still encoded.
struct Pairs<'q>(Vec<(String, &'q str)>);

impl<'q> Pairs<'q> {
    fn of(query: &'q str) -> Self {
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap();
            (decoded(name), value)
        });
        Self(pairs.collect())
    }

    fn values(&mut self, is_meant: impl Fn(&str) -> bool) -> Vec<(String, &'q str)> {
        let (values, rest) = std::mem::take(&mut self.0).into_iter().partition(|(name, _)| is_meant(name));
        self.0 = rest;
        values
    }

    /// Takes a parameter out; `None` if it is not there.
    fn take(&mut self, root: &Json, parameter: &Parameter<'_>) -> Option<Json> {
        let Parameter { name, style, explode, schema, .. } = *parameter;
        let properties = &target(root, schema)["properties"];
        let fields = |values: Vec<(String, &str)>| {
            let field = |(key, text): (String, &str)| {
                let value = typed(root, &properties[&key], decoded(text));
                (key, value)
            };
            (!values.is_empty()).then(|| values.into_iter().map(field).collect())
        };
        let between = match style {
            "spaceDelimited" => "%20",
            "pipeDelimited" => "%7C",
            _ => ",",
        };
        match (style, kind(root, schema), explode) {
            ("deepObject", ..) => {
                let open = format!("{name}[");
                let values = self.values(|key| key.starts_with(&open)).into_iter();
                let key = |key: String| key[open.len()..].strip_suffix(']').unwrap().to_owned();
                fields(values.map(|(name, text)| (key(name), text)).collect())
            }
            (_, "array", true) => {
                let items = self.values(|key| key == name).into_iter().map(|(_, text)| decoded(text).into());
                Some(items.collect::<Vec<Json>>()).filter(|items| !items.is_empty()).map(Json::Array)
            }
            (_, "object", true) => fields(self.values(|key| properties.get(key).is_some())),
            _ => {
                let values = self.values(|key| key == name);
                assert!(values.len() < 2, "{name} is there {} times", values.len());
                let (_, text) = values.into_iter().next()?;
                Some(listed(root, parameter, text, between, decoded))
            }
        }
    }
}

/// Reads the parts of a value that have this text between them.
fn listed(
    root: &Json,
    parameter: &Parameter<'_>,
    text: &str,
    between: &str,
    decode: fn(&str) -> String,
) -> Json {
    let schema = target(root, parameter.schema);
    let parts: Vec<&str> = text.split(between).collect();
    let field = |(key, text): (String, String)| {
        let value = typed(root, &schema["properties"][&key], text);
        (key, value)
    };
    match (kind(root, schema), parameter.explode) {
        ("array", _) => parts.iter().map(|part| decode(part)).collect::<Vec<_>>().into(),
        ("object", true) => {
            let pairs = parts.iter().map(|part| part.split_once('=').unwrap());
            pairs.map(|(key, text)| field((decode(key), decode(text)))).collect()
        }
        ("object", false) => parts.chunks(2).map(|pair| field((decode(pair[0]), decode(pair[1])))).collect(),
        _ => typed(root, schema, decode(text)),
    }
}

/// Returns the type of a schema.
pub(crate) fn kind<'d>(root: &'d Json, schema: &'d Json) -> &'d str {
    target(root, schema)["type"].as_str().unwrap()
}

fn typed(root: &Json, schema: &Json, text: String) -> Json {
    if kind(root, schema) == "integer" { text.parse::<i64>().unwrap().into() } else { text.into() }
}

/// Decodes a text. A strict reader: nothing stays that is not allowed as it is.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            }
            byte => {
                assert!(byte.is_ascii_alphanumeric() || b"-._~".contains(&byte), "{text}");
                bytes.push(byte);
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}
