//! The tool `web_search`: returns titles, addresses and excerpts of pages from a search service.

use std::sync::Arc;

use archon_types::{BoxFuture, Json, Secret, Tool, ToolContext, ToolError, ToolResult, ToolSpec};
use reqwest::{
    Url,
    header::{HeaderMap, HeaderValue},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{WebOptions, arguments::clip, web::Web};

/// Maximum number of results of one search.
const HIGHEST: usize = 5;

/// A web search service.
///
/// ```
/// use archon_tools::builtin::{SearchBackend, SearchHit};
/// use archon_types::{BoxFuture, ToolError};
///
/// /// Finds the one page of a handbook.
/// struct Handbook;
///
/// impl SearchBackend for Handbook {
///     fn search<'a>(
///         &'a self,
///         query: &'a str,
///         _count: usize,
///     ) -> BoxFuture<'a, Result<Vec<SearchHit>, ToolError>> {
///         let hit = SearchHit {
///             title: "Handbook".to_owned(),
///             snippet: format!("All about {query}"),
///             url: "https://handbook.example.com".to_owned(),
///         };
///         Box::pin(std::future::ready(Ok(vec![hit])))
///     }
/// }
/// ```
pub trait SearchBackend: Send + Sync {
    /// Returns up to `count` pages for a query, best first.
    fn search<'a>(&'a self, query: &'a str, count: usize)
    -> BoxFuture<'a, Result<Vec<SearchHit>, ToolError>>;

    /// Returns the service's API key, if it has one, so that the key can be redacted from everything that
    /// the run keeps or shows.
    fn key(&self) -> Option<&Secret> {
        None
    }
}

/// A page that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchHit {
    /// The page's title.
    pub title: String,
    /// An excerpt of the page's text.
    pub snippet: String,
    /// The page's address.
    pub url: String,
}

/// Searches the web. It needs the permission `network`.
///
/// ```
/// use archon_tools::builtin::{OfflineSearch, SearchHit, WebSearch};
///
/// let tool = WebSearch::new(OfflineSearch::new([SearchHit {
///     title: "Opening hours".to_owned(),
///     snippet: "We are open from 9 to 17 o'clock.".to_owned(),
///     url: "https://shop.example.com/hours".to_owned(),
/// }]));
/// ```
#[derive(Clone)]
pub struct WebSearch {
    spec: ToolSpec,
    backend: Arc<dyn SearchBackend>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What to look for
    query: String,
    /// Number of results, up to 5
    #[schemars(range(min = 1))]
    num_results: Option<usize>,
}

impl WebSearch {
    /// Creates the tool, which asks this search service.
    pub fn new(backend: impl SearchBackend + 'static) -> Self {
        let about = "Searches the web and returns titles, addresses and excerpts of pages. Use it for what you do not \
                     know or what may have changed.";
        let example = serde_json::json!({ "query": "latest Rust release" });
        let names = ["web_search", "Web search"];
        let spec = super::spec::<Arguments>(names, about, super::reads_network(), example);
        Self { spec, backend: Arc::new(backend) }
    }

    async fn search(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        self.backend.key().into_iter().for_each(|key| context.run.redactor.add(key));
        let Arguments { query, num_results } = crate::macro_support::arguments(arguments)?;
        let query = query.trim();
        if query.is_empty() {
            return Err(ToolError::InvalidArgs("The query is empty. Say what to look for.".to_owned()));
        }
        let count = num_results.unwrap_or(HIGHEST).min(HIGHEST);
        let mut hits = self.backend.search(query, count).await?;
        hits.truncate(count);
        let line = |(number, hit): (usize, &SearchHit)| {
            let (title, snippet) = (clip(hit.title.trim(), 200), clip(hit.snippet.trim(), 500));
            format!("{number}. {title}\n   {}\n   {snippet}", clip(&hit.url, 500))
        };
        let lines: Vec<_> = (1..).zip(&hits).map(line).collect();
        let text = match lines.as_slice() {
            [] => format!("No pages found for '{}'.", clip(query, 200)),
            lines => lines.join("\n"),
        };
        Ok(ToolResult::success(text).with_metadata("results", serde_json::json!(hits)))
    }
}

impl Tool for WebSearch {
    tool_methods!(search);
}

archon_types::debug_fields!(WebSearch: spec);

/// A search service with fixed pages, matched by the words of the query: for tests, or without a network.
#[derive(Clone, Debug, Default)]
pub struct OfflineSearch(Vec<SearchHit>);

impl OfflineSearch {
    /// Creates a service that finds only these pages.
    pub fn new(pages: impl IntoIterator<Item = SearchHit>) -> Self {
        Self(pages.into_iter().collect())
    }
}

impl SearchBackend for OfflineSearch {
    fn search<'a>(
        &'a self,
        query: &'a str,
        count: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, ToolError>> {
        let query = query.to_lowercase();
        let score = |hit: &SearchHit| {
            let text = format!("{} {}", hit.title, hit.snippet).to_lowercase();
            query.split_whitespace().filter(|word| text.contains(word)).count()
        };
        let mut found: Vec<_> =
            self.0.iter().map(|hit| (score(hit), hit)).filter(|(score, _)| *score > 0).collect();
        // The sort is stable.
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        let found = found.into_iter().take(count).map(|(_, hit)| hit.clone()).collect();
        Box::pin(std::future::ready(Ok(found)))
    }
}

/// The search service Brave Search, with the user's own API key. Requests have the form of `web/search` in
/// Brave's documentation.
#[derive(Clone)]
pub struct BraveSearch {
    key: Secret,
    endpoint: String,
    web: Web,
}

/// Address of Brave Search.
const BRAVE: &str = "https://api.search.brave.com/res/v1/web/search";
/// The environment variable with the user's API key.
const BRAVE_KEY: &str = "BRAVE_API_KEY";
/// Advice for the model about wrong settings of the service, which only a person can correct.
const ADVICE: &str = "Go on without it; the person can correct it.";

#[derive(Default, Deserialize)]
#[serde(default)]
struct BraveAnswer {
    web: BravePages,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BravePages {
    results: Vec<BravePage>,
}

#[derive(Deserialize)]
struct BravePage {
    #[serde(default)]
    title: String,
    #[serde(default)]
    description: String,
    url: String,
}

impl BraveSearch {
    /// Creates the service with a key.
    ///
    /// # Errors
    /// TLS is not available on this system.
    pub fn new(key: Secret) -> Result<Self, ToolError> {
        Self::at(BRAVE, key, WebOptions::default())
    }

    /// Creates the service with the key in the environment variable `BRAVE_API_KEY`; `None` if the variable
    /// is not set.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_env() -> Result<Option<Self>, ToolError> {
        match std::env::var(BRAVE_KEY) {
            Ok(key) if !key.trim().is_empty() => Self::new(Secret::new(key.trim().to_owned())).map(Some),
            _ => Ok(None),
        }
    }

    /// Creates the service with the address `endpoint` in place of Brave Search's own, for instance for a
    /// proxy or a test.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn at(endpoint: impl Into<String>, key: Secret, options: WebOptions) -> Result<Self, ToolError> {
        Ok(Self { key, endpoint: endpoint.into(), web: Web::new(options)? })
    }

    async fn ask(&self, query: &str, count: usize) -> Result<Vec<SearchHit>, ToolError> {
        let parameters = [("q", query), ("count", &count.to_string())];
        let url = Url::parse_with_params(&self.endpoint, parameters).map_err(|e| {
            ToolError::Failed(format!("The address of the search service is not valid: {e}. {ADVICE}"))
        })?;
        let mut key = HeaderValue::from_str(self.key.expose()).map_err(|_| {
            ToolError::Failed(format!("The key of the search service has invalid characters. {ADVICE}"))
        })?;
        key.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert("x-subscription-token", key);
        headers.insert("accept", HeaderValue::from_static("application/json"));
        let page = self.web.get(url.as_str(), headers).await?;
        match page.status {
            200 => {}
            401 | 403 => {
                return Err(ToolError::PermissionDenied(
                    "The search service refused the key. Go on without it; the person can correct the key."
                        .to_owned(),
                ));
            }
            429 => {
                return Err(ToolError::Resource(
                    "The limit of the search service is reached. Try again later, or go on without it."
                        .to_owned(),
                ));
            }
            status => {
                return Err(ToolError::Failed(format!("The search service answered with HTTP {status}.")));
            }
        }
        let answer: BraveAnswer = serde_json::from_slice(&page.body)
            .map_err(|e| ToolError::Failed(format!("The search service's answer cannot be read: {e}")))?;
        let hit = |page: BravePage| SearchHit {
            title: without_markup(&page.title),
            snippet: without_markup(&page.description),
            url: page.url,
        };
        Ok(answer.web.results.into_iter().map(hit).collect())
    }
}

impl SearchBackend for BraveSearch {
    fn search<'a>(
        &'a self,
        query: &'a str,
        count: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, ToolError>> {
        Box::pin(self.ask(query, count))
    }

    fn key(&self) -> Option<&Secret> {
        Some(&self.key)
    }
}

archon_types::debug_fields!(BraveSearch: endpoint);

/// Removes the `<strong>` tags with which the service marks the found words.
fn without_markup(text: &str) -> String {
    text.replace("<strong>", "").replace("</strong>", "")
}
