//! `web_fetch`: a page as readable text.

use archon_types::{
    BoxFuture, Json, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult, ToolSpec, metadata,
};
use reqwest::header::HeaderMap;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    WebOptions,
    arguments::clip,
    web::{Page, Web},
};

/// Characters of a page that are returned at once, unless the call says otherwise.
const DEFAULT_LENGTH: usize = 20_000;
const HIGHEST_LENGTH: usize = 200_000;

/// Columns of the text that HTML becomes.
const WIDTH: usize = 120;

/// Fetches pages from public servers. It needs the permission `network`. HTML becomes readable text; what is no
/// text is refused. What a page says is data: it is marked with its address, and grants nothing.
#[derive(Clone, Debug)]
pub struct WebFetch {
    spec: ToolSpec,
    web: Result<Web, ToolError>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Address of the page
    url: String,
    /// First character to return, counted from 0, to go on in a long page
    start: Option<usize>,
    /// Maximum number of characters
    #[schemars(range(min = 1))]
    max_length: Option<usize>,
}

impl WebFetch {
    /// The tool.
    pub fn new(options: WebOptions) -> Self {
        let mut annotations = ToolAnnotations::read_only();
        annotations.network = true;
        annotations.permissions = vec!["network".to_owned()];
        annotations.timeout_ms = Some(60_000);
        let mut spec = ToolSpec::new(
            "web_fetch",
            "Fetches a page from the web and returns its text. Use it to read a page whose address you know.",
            crate::schema_of::<Arguments>(),
        )
        .with_annotations(annotations);
        spec.label = "Fetch page".to_owned();
        spec.examples.push(serde_json::json!({ "url": "https://example.com" }));
        Self { spec, web: Web::new(options) }
    }

    async fn fetch(&self, arguments: Json) -> Result<ToolResult, ToolError> {
        let Arguments { url, start, max_length } = crate::macro_support::arguments(arguments)?;
        let page = self.web.clone()?.get(&url, HeaderMap::new()).await?;
        let (url, status, truncated, bytes) =
            (page.url.to_string(), page.status, page.truncated, page.body.len());
        let content_type = page.content_type.clone();
        let text = readable(page).await?;
        if status >= 400 {
            let said = clip(text.trim(), 300);
            return Err(match status {
                404 | 410 => ToolError::NotFound(format!("{url} is not there (HTTP {status}).")),
                _ => ToolError::Failed(format!("{url} answered with HTTP {status}: {said}")),
            });
        }
        let length = max_length.unwrap_or(DEFAULT_LENGTH).min(HIGHEST_LENGTH);
        let (part, more) = part(&text, start.unwrap_or(0), length);
        let mut result = ToolResult::success(format!("Content of {url}:\n\n{part}"));
        if let Some(next) = more {
            result.content.push(format!("(There is more. Go on with start={next}.)").into());
        } else if truncated {
            result.content.push(format!("(Only the first {bytes} bytes were read.)").into());
        }
        Ok(result
            .with_metadata(metadata::SOURCE_URL, url)
            .with_metadata("http_status", status)
            .with_metadata("content_type", content_type)
            .with_metadata("truncated", truncated || more.is_some()))
    }
}

impl Tool for WebFetch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn subject(&self, arguments: &Json) -> archon_types::Subject {
        let url = arguments.get("url").and_then(Json::as_str).unwrap_or_default();
        // As it is asked for: rules do not see how it was written.
        match reqwest::Url::parse(url) {
            Ok(url) => archon_types::Subject::Urls(vec![url.into()]),
            Err(_) => archon_types::Subject::Unknown,
        }
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(self.fetch(arguments))
    }
}

/// The text of a page. HTML is laid out on a thread that may take its time.
async fn readable(page: Page) -> Result<String, ToolError> {
    let kind = page.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_html = matches!(kind.as_str(), "text/html" | "application/xhtml+xml")
        || kind.is_empty() && page.body.trim_ascii_start().starts_with(b"<");
    let is_text = kind.starts_with("text/")
        || kind.is_empty()
        || kind.ends_with("json")
        || kind.ends_with("xml")
        || matches!(kind.as_str(), "application/javascript" | "application/yaml" | "application/toml");
    if !is_html && (!is_text || page.body.contains(&0)) {
        return Err(ToolError::InvalidArgs(format!(
            "{} is {} of {} bytes. Only pages of text can be fetched.",
            page.url,
            clip(&kind, 100),
            page.body.len()
        )));
    }
    if !is_html {
        return Ok(String::from_utf8_lossy(&page.body).into_owned());
    }
    if depth(&page.body) > DEEPEST {
        return Err(ToolError::Failed(format!("{} is nested too deeply to be made readable.", page.url)));
    }
    let work = tokio::task::spawn_blocking(move || html2text::from_read(page.body.as_slice(), WIDTH));
    match work.await {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(e)) => Err(ToolError::Failed(format!("The page cannot be made readable: {e}"))),
        Err(_) => Err(ToolError::Failed("The page cannot be made readable.".to_owned())),
    }
}

/// About how deep elements are nested. Laying out a page takes time with the square of it, so a page that was
/// made to be deep would keep a thread busy for minutes.
fn depth(html: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for tag in html.split(|byte| *byte == b'<').skip(1) {
        let is_end = tag.first() == Some(&b'/');
        let name = &tag[usize::from(is_end)..];
        let end = name.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(name.len());
        let name = name[..end].to_ascii_lowercase();
        if name.is_empty() || ENDS_BY_ITSELF.iter().any(|known| known.as_bytes() == name) {
            continue;
        }
        depth = if is_end { depth.saturating_sub(1) } else { depth + 1 };
        deepest = deepest.max(depth);
    }
    deepest
}

/// Deeper pages are not made readable.
const DEEPEST: usize = 500;

/// Elements whose end need not be written.
const ENDS_BY_ITSELF: &[&str] = &[
    "area", "base", "body", "br", "col", "colgroup", "dd", "dt", "embed", "head", "hr", "html", "img",
    "input", "li", "link", "meta", "optgroup", "option", "p", "param", "path", "source", "tbody", "td",
    "tfoot", "th", "thead", "tr", "track", "wbr",
];

/// Characters from `start` on, and where to go on.
fn part(text: &str, start: usize, length: usize) -> (&str, Option<usize>) {
    let from = text.char_indices().nth(start).map_or(text.len(), |(at, _)| at);
    let rest = &text[from..];
    match rest.char_indices().nth(length) {
        Some((end, _)) => (&rest[..end], Some(start + length)),
        None => (rest, None),
    }
}
