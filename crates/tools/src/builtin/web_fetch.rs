//! The tool `web_fetch`: returns a web page as readable text.

use std::{
    io::{self, Read},
    time::{Duration, Instant},
};

use archon_types::{Effect, Json, Tool, ToolContext, ToolError, ToolResult, ToolSpec, metadata};
use reqwest::header::HeaderMap;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    WebOptions,
    arguments::clip,
    web::{Page, Web},
};

/// Default number of characters of a page that are returned.
const DEFAULT_LENGTH: usize = 20_000;
const HIGHEST_LENGTH: usize = 200_000;

/// Width of the text made from HTML, in columns.
const WIDTH: usize = 120;

/// Fetches pages from public servers. It needs the permission `network`. HTML becomes readable text; content
/// that is not text is refused. The result is untrusted: it is marked with its address, and cannot grant a permission.
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
    /// Creates the tool.
    pub fn new(options: WebOptions) -> Self {
        let annotations = super::reads_network().with_timeout(Duration::from_secs(60));
        let about =
            "Fetches a page from the web and returns its text. Use it to read a page whose address you know.";
        let example = serde_json::json!({ "url": "https://example.com" });
        let spec = super::spec::<Arguments>(["web_fetch", "Fetch page"], about, annotations, example);
        Self { spec, web: Web::new(options) }
    }

    /// Makes each fetch count as a change, so that a person must approve it unless a rule allows the
    /// address. An address can carry secrets out of the machine.
    ///
    /// ```
    /// use archon_tools::{WebOptions, builtin::WebFetch};
    /// let tool = WebFetch::new(WebOptions::default()).asking();
    /// ```
    #[must_use]
    pub fn asking(mut self) -> Self {
        self.spec.annotations.effect = Effect::Idempotent;
        self
    }

    async fn fetch(&self, arguments: Json, _: &ToolContext) -> Result<ToolResult, ToolError> {
        let Arguments { url, start, max_length } = crate::macro_support::arguments(arguments)?;
        let page = self.web.clone()?.get(&url, HeaderMap::new()).await?;
        let (url, status, truncated, bytes) =
            (page.url.to_string(), page.status, page.truncated, page.body.len());
        let content_type = page.content_type.clone();
        let text = readable(page).await?;
        if status >= 400 {
            let said = clip(text.trim(), 300);
            return Err(match status {
                404 | 410 => ToolError::NotFound(format!(
                    "{url} does not exist (HTTP {status}). Check the address, or search for the page."
                )),
                _ => ToolError::Failed(format!("{url} answered with HTTP {status}: {said}")),
            });
        }
        let length = max_length.unwrap_or(DEFAULT_LENGTH).min(HIGHEST_LENGTH);
        let (part, more) = part(&text, start.unwrap_or(0), length);
        let mut result = ToolResult::success(format!("Content of {url}:\n\n{part}"));
        if let Some(next) = more {
            super::add_note(&mut result, format!("There is more. Go on with start={next}."));
        } else if truncated {
            super::add_note(&mut result, format!("Only the first {bytes} bytes were read."));
        }
        Ok(result
            .with_metadata(metadata::SOURCE_URL, url)
            .with_metadata("http_status", status)
            .with_metadata("content_type", content_type)
            .with_metadata("truncated", truncated || more.is_some()))
    }
}

impl Tool for WebFetch {
    tool_methods!(fetch);

    fn subject(&self, arguments: &Json) -> archon_types::Subject {
        let url = arguments.get("url").and_then(Json::as_str).unwrap_or_default();
        // The parsed address, so that rules match the one that is requested.
        match reqwest::Url::parse(url) {
            Ok(url) => archon_types::Subject::Urls(vec![url.into()]),
            Err(_) => archon_types::Subject::Unknown,
        }
    }
}

/// Returns the text of a page. HTML is laid out on a blocking thread.
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
    let (address, until) = (page.url.clone(), Instant::now() + PARSING);
    let work = tokio::task::spawn_blocking(move || laid_out(&page.body, until));
    match work.await {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(problem)) => Err(ToolError::Failed(format!("{address} {problem}."))),
        Err(_) => {
            Err(ToolError::Failed(format!("{address} cannot be converted to text. Fetch another page.")))
        }
    }
}

/// Returns the text of HTML, or the reason why there is none. The nesting depth is measured in the parsed
/// tree, as it cannot be known from the tags.
///
/// The time of parsing and layout grows with the square of the depth, so a hostile page would keep a thread
/// busy for minutes, and a thread cannot be stopped from outside. Therefore parsing has a deadline, and the
/// parser first gets a small part of the page and then ever larger ones, so that most deep pages are found
/// cheaply.
fn laid_out(html: &[u8], until: Instant) -> Result<String, String> {
    let config = html2text::config::plain();
    let problem = |error| match error {
        html2text::Error::IoError(_) => format!("takes more than {} s to be read as HTML", PARSING.as_secs()),
        error => format!("cannot be converted to text: {error}"),
    };
    let mut length = FIRST_PART;
    let tree = loop {
        let part = html.get(..length).unwrap_or(html);
        let tree = config.parse_html(InTime { html: part, until }).map_err(problem)?;
        if is_deeper(&tree, DEEPEST) {
            return Err("is nested too deeply to be converted to text".to_owned());
        }
        if part.len() == html.len() {
            break tree;
        }
        length *= 4;
    };
    let text = config.dom_to_render_tree(&tree).and_then(|tree| config.render_to_string(tree, WIDTH));
    text.map_err(problem)
}

/// Number of bytes of a page that are parsed first.
const FIRST_PART: usize = 8_192;

/// Returns whether a parsed page has more than `most` levels of nested elements.
fn is_deeper(tree: &html2text::RcDom, most: usize) -> bool {
    let mut level = vec![tree.document.clone()];
    for _ in 0..=most {
        level = level.iter().flat_map(|node| node.children.borrow().clone()).collect();
    }
    !level.is_empty()
}

/// A reader of a page that fails after a deadline.
struct InTime<'h> {
    html: &'h [u8],
    until: Instant,
}

impl Read for InTime<'_> {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        match Instant::now() < self.until {
            true => self.html.read(piece),
            false => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Time limit of parsing a page. Ordinary pages take milliseconds.
const PARSING: Duration = Duration::from_secs(5);

/// Maximum number of levels of nested elements; deeper pages are refused.
const DEEPEST: usize = 500;

/// Returns `length` characters from `start` on, and the position after them if there are more.
fn part(text: &str, start: usize, length: usize) -> (&str, Option<usize>) {
    let from = text.char_indices().nth(start).map_or(text.len(), |(at, _)| at);
    let rest = &text[from..];
    match rest.char_indices().nth(length) {
        Some((end, _)) => (&rest[..end], Some(start + length)),
        None => (rest, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(html: &str) -> Result<String, String> {
        laid_out(html.as_bytes(), Instant::now() + Duration::from_secs(60))
    }

    // spec: TE-48
    #[test]
    fn laid_out_refuses_deeply_nested_pages_of_any_tags() {
        for piece in [
            "<div>",
            "<div></x>",
            "<div><!--</div>-->",
            "<div a='</div>'>",
            "<div><script></div></script>",
            "<div><textarea></div></textarea>",
            "<x><table><td></x>",
            "<path>",
            "<b><div></b>",
        ] {
            let refused = read(&piece.repeat(3_000)).unwrap_err();
            assert!(refused.contains("nested too deeply"), "{piece}: {refused}");
        }
        for (piece, text) in
            [("<p>word", "word"), ("<div>word</div>", "word"), ("<svg><path/></svg>word<br>", "word")]
        {
            assert!(read(&piece.repeat(3_000)).unwrap().contains(text), "{piece}");
        }
    }

    // spec: TE-48
    #[test]
    fn laid_out_stops_when_its_time_is_up() {
        let refused = laid_out(b"<p>word", Instant::now()).unwrap_err();
        assert_eq!(refused, "takes more than 5 s to be read as HTML");
    }
}
