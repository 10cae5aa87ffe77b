//! Makes the tools of a document.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use archon_types::{Json, Tool};
use reqwest::{Method, Url, header::LOCATION};

use crate::{
    OpenApiAuth, OpenApiConfig, OpenApiError, OpenApiTool, OpenApiWarning, OperationFilter,
    document::{Document, below},
    error::Problem,
    hosts::{Base, client},
    names::{Names, by_path},
    operation::{Operation, Source},
    swagger::METHODS,
    text::{one_line, with_causes},
    tool::Shared,
};

/// Maximum size of a document that is fetched, in bytes.
const LARGEST: usize = 64 << 20;
/// Time limit of fetching a document.
const LIMIT: Duration = Duration::from_secs(60);

/// The tools of an OpenAPI document, and the warnings about its other operations.
///
/// Pass the value to `archon::ArchonBuilder::tools`, which takes all of its tools.
///
/// ```
/// use archon_openapi::{OpenApiConfig, OpenApiTools, OperationFilter};
/// use archon_types::Tool;
///
/// # fn main() -> Result<(), archon_openapi::OpenApiError> {
/// let document = r##"
/// openapi: 3.1.0
/// info: { title: Pets, version: "1" }
/// servers: [{ url: https://pets.example.com/v1 }]
/// paths:
///   /pets/{petId}:
///     get:
///       operationId: getPet
///       summary: Returns a pet.
///       parameters: [{ name: petId, in: path, required: true, schema: { type: integer } }]
///     delete:
///       summary: Has no operationId.
/// "##;
/// let config = OpenApiConfig::default().with_name_prefix("pets");
/// let pets = OpenApiTools::from_str(document, config, OperationFilter::All)?;
/// assert_eq!(pets.tools[0].spec().name, "pets__getPet");
/// assert_eq!(pets.warnings[0].pointer, "#/paths/~1pets~1{petId}/delete");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct OpenApiTools {
    /// The tools, in the order of the document.
    pub tools: Vec<Arc<OpenApiTool>>,
    /// Warnings about operations that did not become tools, and about other parts that were left out.
    pub warnings: Vec<OpenApiWarning>,
}

impl OpenApiTools {
    /// Makes tools of a text: JSON if its first character that is not white space is `{` or `[`, otherwise YAML.
    ///
    /// # Errors
    /// The text is not an OpenAPI document of version 3 or 2.0, a setting cannot be used, or the operations would send the
    /// credentials to several servers and no base address is set.
    pub fn from_str(
        text: &str,
        config: OpenApiConfig,
        filter: OperationFilter,
    ) -> Result<Self, OpenApiError> {
        Self::read(&Document::read(text.to_owned(), "the text", None)?, config, &filter)
    }

    /// Makes tools of a document that is already parsed.
    ///
    /// # Errors
    /// As [`from_str`](Self::from_str).
    pub fn from_value(
        document: Json,
        config: OpenApiConfig,
        filter: OperationFilter,
    ) -> Result<Self, OpenApiError> {
        Self::read(&Document::new(document, "the document", None, String::new())?, config, &filter)
    }

    /// Makes tools of a file.
    ///
    /// ```no_run
    /// use archon_openapi::{OpenApiConfig, OpenApiTools, OperationFilter};
    ///
    /// # fn main() -> Result<(), archon_openapi::OpenApiError> {
    /// let tools = OpenApiTools::from_file("shop.yaml", OpenApiConfig::default(), OperationFilter::All)?;
    /// tools.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The file cannot be read; else as [`from_str`](Self::from_str).
    pub fn from_file(
        path: impl AsRef<Path>,
        config: OpenApiConfig,
        filter: OperationFilter,
    ) -> Result<Self, OpenApiError> {
        let (text, place) = read_file(path.as_ref())?;
        Self::read(&Document::read(text, &place, None)?, config, &filter)
    }

    /// Fetches a document of at most 64 MiB, and makes its tools. The request for the document contains no
    /// credentials. If a server in the document has no host, it is the server of the address.
    ///
    /// ```no_run
    /// use archon_openapi::{OpenApiConfig, OpenApiTools, OperationFilter};
    ///
    /// # async fn run() -> Result<(), archon_openapi::OpenApiError> {
    /// let orders = OperationFilter::ByPathPrefix("/orders".to_owned());
    /// let address = "https://shop.example.com/openapi.json";
    /// let tools = OpenApiTools::from_url(address, OpenApiConfig::default(), orders).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The document cannot be fetched; else as [`from_str`](Self::from_str).
    pub async fn from_url(
        address: &str,
        config: OpenApiConfig,
        filter: OperationFilter,
    ) -> Result<Self, OpenApiError> {
        let (text, place, url) = fetch(address).await?;
        Self::read(&Document::read(text, &place, Some(url))?, config, &filter)
    }

    /// Returns the servers that the tools send requests to, in the order of their names: each with scheme, host and
    /// port, such as `https://api.example.com`. A redirect never leads to another server.
    pub fn servers(&self) -> Vec<String> {
        servers(self.tools.iter())
    }

    pub(crate) fn read(
        document: &Document,
        config: OpenApiConfig,
        filter: &OperationFilter,
    ) -> Result<Self, OpenApiError> {
        config.check()?;
        let base = config.base_url.as_deref().map(Base::of_setting).transpose()?;
        let title = document.root["info"]["title"].as_str().unwrap_or("no title");
        let title = one_line(title, 60).replace(['[', ']', '\''], "");
        let shared = Shared { config, title, clients: [OnceLock::new(), OnceLock::new()] };
        let mut reader = Reader {
            document,
            shared: Arc::new(shared),
            filter,
            base,
            names: Names::of_tools(),
            tools: Vec::new(),
            warnings: Vec::new(),
        };
        reader.paths();
        let Reader { tools, warnings, base, .. } = reader;
        let servers = servers(tools.iter().filter(|tool| tool.sends_secrets()));
        if base.is_none() && servers.len() > 1 {
            return Err(OpenApiError::SeveralServers { place: document.place.clone(), servers });
        }
        if let Some(first) = warnings.first() {
            let (count, place) = (warnings.len(), &document.place);
            tracing::warn!(target: "archon::openapi", %place, count, "parts were left out, the first: {first}");
        }
        Ok(Self { tools, warnings })
    }
}

fn servers<'t>(tools: impl Iterator<Item = &'t Arc<OpenApiTool>>) -> Vec<String> {
    let servers: BTreeSet<String> = tools.map(|tool| tool.server()).collect();
    servers.into_iter().collect()
}

impl IntoIterator for OpenApiTools {
    type Item = Arc<dyn Tool>;
    type IntoIter =
        std::iter::Map<std::vec::IntoIter<Arc<OpenApiTool>>, fn(Arc<OpenApiTool>) -> Arc<dyn Tool>>;

    fn into_iter(self) -> Self::IntoIter {
        self.tools.into_iter().map(|tool| tool as Arc<dyn Tool>)
    }
}

/// Reads the operations of a document one after the other.
struct Reader<'d> {
    document: &'d Document,
    shared: Arc<Shared>,
    filter: &'d OperationFilter,
    /// The base address from the settings; `None` if it is not set.
    base: Option<Base>,
    names: Names,
    tools: Vec<Arc<OpenApiTool>>,
    warnings: Vec<OpenApiWarning>,
}

impl Reader<'_> {
    fn paths(&mut self) {
        let Some(paths) = self.document.root["paths"].as_object() else {
            self.warn(
                None,
                Problem::new("#/paths", "it is not an object, so the document has no operations"),
            );
            return;
        };
        for (path, item) in paths.iter().filter(|(path, _)| !path.starts_with("x-")) {
            let at = below("#/paths", path);
            match self.document.resolve(item, &at) {
                Ok((item, at)) if item.is_object() => self.path(path, item, &at),
                Ok(_) => self.warn(None, Problem::new(at, "it is not an object, so the path was left out")),
                Err(Problem { pointer, text }) => {
                    self.warn(None, Problem::new(pointer, format!("the path was left out: {text}")));
                }
            }
        }
        self.check_filter();
    }

    fn path(&mut self, path: &str, item: &Json, item_at: &str) {
        let known = METHODS.iter().map(|name| (*name, &item[*name], below(item_at, name)));
        let more = item["additionalOperations"].as_object().into_iter().flatten();
        let more_at = below(item_at, "additionalOperations");
        let more = more.map(|(name, operation)| (name.as_str(), operation, below(&more_at, name)));
        let all: Vec<_> = known.chain(more).filter(|(_, operation, _)| !operation.is_null()).collect();
        for (name, operation, at) in all {
            let Ok(method) = Method::from_bytes(name.to_ascii_uppercase().as_bytes()) else {
                self.warn(None, Problem::new(at, "this is not a method, so the operation was left out"));
                continue;
            };
            let (document, shared) = (self.document, self.shared.clone());
            let (config, method) = (&shared.config, &method);
            let source = Source { document, config, method, path, item, item_at, operation, at: &at };
            if let Err(Problem { pointer, text }) = self.operation(source) {
                let problem = Problem::new(pointer, format!("the operation was left out: {text}"));
                self.warn(document.line(path, name), problem);
            }
        }
    }

    fn operation(&mut self, source: Source<'_>) -> Result<(), Problem> {
        let Source { operation, at, path, .. } = source;
        if !operation.is_object() {
            return Err(Problem::new(at, "it is not an object"));
        }
        let id = operation["operationId"].as_str().filter(|id| !id.is_empty());
        let tags = operation["tags"].as_array().into_iter().flatten().filter_map(Json::as_str);
        let tags: Vec<String> = tags.map(str::to_owned).collect();
        if !self.filter.takes(path, id, &tags) {
            return Ok(());
        }
        let id = match id {
            Some(id) => id.to_owned(),
            None if source.config.name_by_path => by_path(source.method.as_str(), path),
            None => return Err(Problem::new(at, "it has no `operationId`, which would be its name")),
        };
        let base = self.base(source)?;
        let mut notes = Vec::new();
        let operation = Operation::read(source, base, &mut notes)?;
        for note in notes {
            self.warn(source.document.line(path, &source.method.as_str().to_ascii_lowercase()), note);
        }
        let name = self.names.tool(source.config.name_prefix.as_deref(), &id);
        self.tools.push(Arc::new(OpenApiTool::new(name, operation, self.shared.clone())));
        Ok(())
    }

    /// Returns the address that the path of an operation is appended to.
    fn base(&self, source: Source<'_>) -> Result<Base, Problem> {
        if let Some(base) = &self.base {
            return Ok(base.clone());
        }
        let has_some = |servers: &&Json| servers.as_array().is_some_and(|servers| !servers.is_empty());
        let servers = [&source.operation["servers"], &source.item["servers"]].into_iter().find(has_some);
        let servers = servers.unwrap_or(&source.document.root["servers"]);
        let wrong = |text: String| Problem::new(source.at, text);
        let base = Base::of_servers(source.document, servers).map_err(wrong)?;
        let has_secrets =
            !matches!(source.config.auth, OpenApiAuth::None) || !source.config.custom_headers.is_empty();
        if has_secrets && !base.is_encrypted() && !base.is_this_machine() {
            let text = "its server is not encrypted, and others could read the credentials; set the base address if you accept that";
            return Err(wrong(text.to_owned()));
        }
        Ok(base)
    }

    /// Adds a warning for each `operationId` of the filter that no operation has.
    fn check_filter(&mut self) {
        let OperationFilter::ByOperationId(ids) = self.filter else { return };
        let paths = self.document.root["paths"].as_object().into_iter().flatten();
        let operations = paths.filter_map(|(_, item)| item.as_object()).flatten();
        let known: Vec<&str> =
            operations.filter_map(|(_, operation)| operation["operationId"].as_str()).collect();
        let unknown: Vec<String> = ids.iter().filter(|id| !known.contains(&id.as_str())).cloned().collect();
        for id in unknown {
            let text = format!("no operation has the `operationId` '{}' of the filter", one_line(&id, 100));
            self.warn(None, Problem::new("#/paths", text));
        }
    }

    fn warn(&mut self, line: Option<usize>, problem: Problem) {
        let Problem { pointer, text } = problem;
        let (place, pointer) = (self.document.place.clone(), one_line(&pointer, 300));
        self.warnings.push(OpenApiWarning { place, line, pointer, problem: text });
    }
}

/// Reads a file. Returns its text and its name.
pub(crate) fn read_file(path: &Path) -> Result<(String, String), OpenApiError> {
    let place = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((text, place)),
        Err(e) => Err(OpenApiError::Unreadable { place, problem: e.to_string() }),
    }
}

/// Fetches a document. Returns its text, the address for messages, and the address after redirects on the same server.
pub(crate) async fn fetch(address: &str) -> Result<(String, String, Url), OpenApiError> {
    let place = one_line(address, 300);
    match fetch_text(address).await {
        Ok((text, url)) => Ok((text, place, url)),
        Err(problem) => Err(OpenApiError::Unreadable { place, problem }),
    }
}

async fn fetch_text(address: &str) -> Result<(String, Url), String> {
    let url = Url::parse(address).map_err(|e| e.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it is neither https nor http".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        // Settings and messages have the address.
        return Err("the address has a user name or a password in it; save the document as a file".to_owned());
    }
    let failed = |e: reqwest::Error| with_causes(&e.without_url());
    let client = client(true, LIMIT).map_err(|e| e.to_string())?;
    let response = client.get(url).send().await.and_then(reqwest::Response::error_for_status);
    let mut response = response.map_err(failed)?;
    if response.status().is_redirection() {
        // Its servers would count as named by a person, who named another one.
        let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or_default();
        return Err(format!("it redirects to another server; if you trust it, use {}", one_line(to, 300)));
    }
    let (url, mut body) = (response.url().clone(), Vec::new());
    while let Some(part) = response.chunk().await.map_err(failed)? {
        body.extend_from_slice(&part);
        if body.len() > LARGEST {
            return Err(format!("it has more than {} MiB", LARGEST >> 20));
        }
    }
    let text = String::from_utf8(body).map_err(|_| "it is not text in UTF-8".to_owned())?;
    Ok((text, url))
}
