//! An operation of a document, as a tool of an agent.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use archon_types::{
    BoxFuture, Content, Context, Json, Preview, Secret, Subject, Tool, ToolAnnotations, ToolContext,
    ToolError, ToolResult, ToolResultStatus, ToolSpec, metadata,
};
use hmac_sha256::Hash;
use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, LOCATION},
};
use serde_json::Map;

use crate::{
    OpenApiAuth, OpenApiConfig, OpenApiError,
    hosts::client,
    names::group,
    operation::Operation,
    pagination::next_arguments,
    request::{Prepared, fields, header},
    text::{one_line, plain, with_causes, without_tags},
};

/// Additional time that a tool call may take beyond its request, for instance to fetch a token.
const MARGIN: Duration = Duration::from_secs(35);
/// Maximum number of groups of a tool.
const MOST_GROUPS: usize = 8;

/// The state that all tools of one document share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: OpenApiConfig,
    /// The title of the document, on one line.
    pub(crate) title: String,
    /// Two HTTP clients: one for servers that only the document names, and one for servers that a person named.
    pub(crate) clients: [OnceLock<Result<Client, OpenApiError>>; 2],
}

impl Shared {
    fn client(&self, is_named: bool) -> Result<&Client, ToolError> {
        let limit = Duration::from_secs(self.config.timeout_secs);
        let made = self.clients[usize::from(is_named)].get_or_init(|| client(is_named, limit));
        made.as_ref().map_err(|error| ToolError::Resource(error.to_string()))
    }
}

/// An operation of an OpenAPI document, as a tool.
///
/// GET and HEAD only read. A call of any other method may change something and destroy data, so a person is asked
/// before it, unless a rule allows it. The result is `{METHOD} {URL} → {STATUS}`, a blank line, and the body. This
/// URL never shows credentials in the query. A status of 400 or more is a failed call.
pub struct OpenApiTool {
    spec: ToolSpec,
    operation: Operation,
    shared: Arc<Shared>,
}

archon_types::debug_fields!(OpenApiTool: name = spec.name);

impl OpenApiTool {
    pub(crate) fn new(name: String, mut operation: Operation, shared: Arc<Shared>) -> Self {
        let schema = std::mem::take(&mut operation.schema);
        let spec = spec(name, &operation, schema, &shared);
        Self { spec, operation, shared }
    }

    /// Returns the tags of the operation. They are untrusted.
    pub fn tags(&self) -> &[String] {
        &self.operation.tags
    }

    /// Returns the server of the operation: the scheme, the host and the port.
    pub(crate) fn server(&self) -> String {
        self.operation.base.server()
    }

    /// Returns whether requests contain the credentials or the headers of the settings.
    pub(crate) fn sends_secrets(&self) -> bool {
        let config = &self.shared.config;
        let has_auth = !self.operation.is_open && !matches!(config.auth, OpenApiAuth::None);
        has_auth || !config.custom_headers.is_empty()
    }

    async fn run(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let arguments = fields(arguments)?;
        let prepared = self.operation.request(&arguments)?;
        let (shown, url) = (prepared.url.to_string(), prepared.url.clone());
        let (request, token) = self.request(prepared, context).await?;
        let response = request.send().await.map_err(|e| self.failure(&shown, e))?;
        let status = response.status();
        if let (StatusCode::UNAUTHORIZED, OpenApiAuth::Token(source), Some(token)) =
            (status, &self.shared.config.auth, &token)
        {
            source.forget(token);
        }
        let (headers, is_redirect) = (response.headers().clone(), status.is_redirection());
        let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (body, is_cut) = self.read(response, &shown).await?;
        let mut text =
            format!("{} {shown} → {}\n\n{}", self.operation.method, status.as_u16(), readable(&body, media));
        if is_cut {
            text.push_str(&format!("\n\n(The body was cut off after {} bytes.)", body.len()));
        }
        if let Some(to) = headers.get(LOCATION).filter(|_| is_redirect).and_then(|to| to.to_str().ok()) {
            text.push_str(&format!("\n\n(The redirect to {} was not followed.)", one_line(to, 500)));
        }
        let mut result = match status.as_u16() >= 400 {
            true => ToolResult::failed(ToolResultStatus::Error, text.clone(), text)
                .with_metadata(metadata::ERROR_TYPE, "execution_error"),
            false => ToolResult::success(text),
        };
        if status.is_success() {
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let next = next_arguments(&self.operation, &arguments, &url, &headers, &body);
            result.content.extend(next.map(|next| self.hint(next)));
        }
        let mut result = result
            .with_metadata(metadata::SOURCE_URL, shown)
            .with_metadata("http_status", status.as_u16())
            .with_metadata("content_type", plain(media, 200))
            .with_metadata("truncated", is_cut);
        context.hide_secrets(&mut result);
        Ok(result)
    }

    fn hint(&self, next: Map<String, Json>) -> Content {
        let next = without_tags(&Json::Object(next).to_string());
        Content::text(format!("There is a next page. To read it, call {} with {next}", self.spec.name))
    }

    /// Returns the request with its credentials, and the bearer token in it, if there is one.
    async fn request(
        &self,
        mut prepared: Prepared,
        context: &ToolContext,
    ) -> Result<(RequestBuilder, Option<Secret>), ToolError> {
        let (config, redactor) = (&self.shared.config, &context.run.redactor);
        for (name, value) in &config.custom_headers {
            redactor.add(value);
            let (name, value) = secret_header(name, value.expose())?;
            prepared.headers.insert(name, value);
        }
        let (mut token, mut basic) = (None, None);
        let auth = if self.operation.is_open { &OpenApiAuth::None } else { &config.auth };
        match auth {
            OpenApiAuth::None => {}
            OpenApiAuth::Bearer(secret) => {
                redactor.add(secret);
                token = Some(secret.clone());
            }
            OpenApiAuth::Token(source) => {
                let fetched = source.token(context).await?;
                redactor.add_expiring(&fetched);
                token = Some(fetched);
            }
            OpenApiAuth::ApiKey { header, value } => {
                redactor.add(value);
                let (name, value) = secret_header(header, value.expose())?;
                prepared.headers.insert(name, value);
            }
            OpenApiAuth::QueryKey { name, value } => {
                redactor.add(value);
                prepared.url.query_pairs_mut().append_pair(name, value.expose());
            }
            OpenApiAuth::Basic { user, password } => {
                redactor.add(password);
                basic = Some((user, password));
            }
        }
        if let Some(token) = &token {
            let (_, value) = secret_header("authorization", &format!("Bearer {}", token.expose()))?;
            prepared.headers.insert(AUTHORIZATION, value);
        }
        let client = self.shared.client(self.operation.base.is_named)?;
        let mut request =
            client.request(self.operation.method.clone(), prepared.url).headers(prepared.headers);
        if let Some((user, password)) = basic {
            request = request.basic_auth(user, Some(password.expose()));
        }
        if let Some(body) = prepared.body {
            request = request.body(body);
        }
        Ok((request, token))
    }

    /// Reads the body up to its maximum size. Returns true if the rest was cut off.
    async fn read(&self, mut response: Response, shown: &str) -> Result<(Vec<u8>, bool), ToolError> {
        let most = self.shared.config.max_response_bytes;
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await.map_err(|e| self.failure(shown, e))? {
            let room = most - body.len();
            body.extend_from_slice(&part[..part.len().min(room)]);
            if part.len() > room {
                body.truncate(whole_characters(&body));
                return Ok((body, true));
            }
        }
        Ok((body, false))
    }

    /// Returns the error of a request that got no response. `shown` is the address without credentials.
    fn failure(&self, shown: &str, error: reqwest::Error) -> ToolError {
        if error.is_timeout() {
            return ToolError::Timeout(Duration::from_secs(self.shared.config.timeout_secs));
        }
        let is_connect = error.is_connect();
        let why = with_causes(&error.without_url());
        let text = format!("{} {shown} failed: {}", self.operation.method, one_line(&why, 500));
        if is_connect { ToolError::Resource(text) } else { ToolError::Failed(text) }
    }
}

impl Tool for OpenApiTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(self.run(arguments, context))
    }

    /// Shows the HTTP method and the URL, because the name and the texts of the tool come from the document, which a
    /// person cannot rely on.
    fn preview(&self, arguments: &Json, _: &Context) -> Result<Option<Preview>, ToolError> {
        let prepared = self.operation.request(&fields(arguments.clone())?)?;
        let Operation { method, .. } = &self.operation;
        Ok(Some(Preview::new(format!("{method} {} ({})", prepared.url, self.spec.name))))
    }

    fn subject(&self, arguments: &Json) -> Subject {
        let fields = arguments.as_object().cloned().unwrap_or_default();
        match self.operation.request(&fields) {
            Ok(prepared) => Subject::Urls(vec![prepared.url.into()]),
            Err(_) => Subject::Unknown,
        }
    }
}

/// Returns the spec of a tool for an operation. Its version is a hash of everything that determines the request, so
/// that an approval of one version of the document is not valid for another.
fn spec(name: String, operation: &Operation, schema: Json, shared: &Shared) -> ToolSpec {
    let Operation { method, path, summary, description, tags, .. } = operation;
    let mut text = format!("[OpenAPI document '{}'] {summary}", shared.title);
    if !description.is_empty() && description != summary {
        text.push('\n');
        text.push_str(description);
    }
    let tags = one_line(&tags.join(", "), 200);
    let tags = if tags.is_empty() { tags } else { format!(" ({tags})") };
    text.push_str(&format!("\n{method} {}{tags}", one_line(path, 300)));
    let Operation { base, parameters, body, is_open, .. } = operation;
    let form = format!("{method} {base:?} {path} {schema} {parameters:?} {body:?} {is_open}");
    let mut spec = ToolSpec::new(name, text, schema);
    spec.label = match summary.is_empty() {
        true => format!("{method} {}", one_line(path, 100)),
        false => summary.clone(),
    };
    let hash = Hash::hash(form.as_bytes());
    let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    spec.version = format!("sha256:{hash}");
    spec.annotations = match *method == Method::GET || *method == Method::HEAD {
        true => ToolAnnotations::read_only(),
        false => ToolAnnotations::destructive(),
    }
    .with_timeout(Duration::from_secs(shared.config.timeout_secs).saturating_add(MARGIN));
    spec.annotations.network = true;
    spec.annotations.deferrable = true;
    spec.groups = groups(&operation.tags);
    spec
}

/// Returns the groups of a tool: its tags, shortened, because the search for tools lists the groups in its
/// description.
fn groups(tags: &[String]) -> Vec<String> {
    let mut groups: Vec<String> = Vec::new();
    for group in tags.iter().map(|tag| group(tag)).filter(|group| !group.is_empty()) {
        if !groups.contains(&group) && groups.len() < MOST_GROUPS {
            groups.push(group);
        }
    }
    groups
}

/// Returns a header that is marked as sensitive, so that logs do not show its value.
fn secret_header(
    name: &str,
    value: &str,
) -> Result<(reqwest::header::HeaderName, reqwest::header::HeaderValue), ToolError> {
    let made = header(name, value).map_err(|_| {
        let name = one_line(name, 60);
        ToolError::Failed(format!(
            "The configured header '{name}' or its value has characters that headers cannot have. Tell the user."
        ))
    });
    let (name, mut value) = made?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Returns the number of bytes up to the end of the last complete character. Bytes that are not UTF-8 count as
/// complete.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

/// Returns a body as text. For binary data, returns a note with the media type and the size.
fn readable(body: &[u8], media: &str) -> String {
    match std::str::from_utf8(body) {
        Ok(text) if !text.contains('\0') => without_tags(text),
        _ if media.starts_with("text/") && !body.contains(&0) => without_tags(&String::from_utf8_lossy(body)),
        _ => format!("({} of {} bytes, not shown)", one_line(media, 100), body.len()),
    }
}
