//! A document before tools are made of it: its text to keep, its title, and the credentials that it asks for.

use std::path::Path;

use reqwest::Url;

use crate::{
    OpenApiConfig, OpenApiError, OpenApiTools, OperationFilter, SecurityScheme,
    document::Document,
    security,
    text::one_line,
    tools::{fetch, read_file},
};

/// An OpenAPI document that was read, for a program that shows it to a person or keeps a copy of it.
///
/// A program that only needs the tools uses [`OpenApiTools`].
///
/// ```
/// use archon_openapi::{OpenApiConfig, OpenApiDocument, OperationFilter, SecurityKind};
///
/// # fn main() -> Result<(), archon_openapi::OpenApiError> {
/// let text = r##"
/// openapi: 3.1.0
/// info: { title: Pets, version: "1" }
/// servers: [{ url: /v1 }]
/// security: [{ token: [] }]
/// components: { securitySchemes: { token: { type: http, scheme: bearer } } }
/// paths:
///   /pets:
///     get: { operationId: listPets }
/// "##;
/// let document = OpenApiDocument::from_text(text, "https://pets.example.com/openapi.yaml")?;
/// assert_eq!(document.title(), "Pets");
/// assert_eq!(document.security_schemes()[0].kind, SecurityKind::Bearer);
/// let tools = document.tools(OpenApiConfig::default(), &OperationFilter::All)?;
/// assert_eq!((tools.tools.len(), tools.servers()), (1, vec!["https://pets.example.com".to_owned()]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct OpenApiDocument(Document);

impl OpenApiDocument {
    /// Parses the text of a document. `origin` is the file or the address that the text came from. If a server in the
    /// document has no host, it is the server of that address, which counts as named by a person.
    ///
    /// # Errors
    /// The text is not an OpenAPI document of version 3 or 2.0.
    pub fn from_text(text: impl Into<String>, origin: &str) -> Result<Self, OpenApiError> {
        let url = Url::parse(origin).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        Document::read(text.into(), &one_line(origin, 300), url).map(Self)
    }

    /// Reads a document from a file.
    ///
    /// # Errors
    /// The file cannot be read; else as [`from_text`](Self::from_text).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, OpenApiError> {
        let (text, place) = read_file(path.as_ref())?;
        Document::read(text, &place, None).map(Self)
    }

    /// Fetches a document of at most 64 MiB.
    ///
    /// # Errors
    /// The document cannot be fetched; else as [`from_text`](Self::from_text).
    pub async fn from_url(address: &str) -> Result<Self, OpenApiError> {
        let (text, place, url) = fetch(address).await?;
        Document::read(text, &place, Some(url)).map(Self)
    }

    /// Returns the text, unchanged.
    pub fn text(&self) -> &str {
        self.0.text()
    }

    /// Returns the address that the document was fetched from, after redirects, or the file.
    pub fn origin(&self) -> &str {
        self.0.url.as_ref().map_or(&self.0.place, Url::as_str)
    }

    /// Returns the title, on one line; empty if there is none. It is untrusted.
    pub fn title(&self) -> String {
        one_line(self.0.root["info"]["title"].as_str().unwrap_or_default(), 100)
    }

    /// Returns the security schemes: those that the whole document requires, then the others.
    pub fn security_schemes(&self) -> Vec<SecurityScheme> {
        security::schemes(&self.0)
    }

    /// Makes a tool of each operation that `filter` selects.
    ///
    /// # Errors
    /// A setting cannot be used, or the credentials would go to several servers.
    pub fn tools(
        &self,
        config: OpenApiConfig,
        filter: &OperationFilter,
    ) -> Result<OpenApiTools, OpenApiError> {
        OpenApiTools::read(&self.0, config, filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_text_of_an_address_resolves_servers_at_it_and_keeps_the_text() {
        let text = "openapi: 3.1.0\nservers: [{ url: /v1 }]\npaths: { /a: { get: { operationId: a } } }\n";
        let made = |origin: &str| {
            let document = OpenApiDocument::from_text(text, origin).unwrap();
            assert_eq!((document.text(), document.origin()), (text, origin));
            let made = document.tools(OpenApiConfig::default(), &OperationFilter::All).unwrap();
            (made.tools.len(), made.warnings.len())
        };
        assert_eq!(made("https://pets.example.com/openapi.yaml"), (1, 0));
        assert_eq!(made("pets.yaml"), (0, 1));
    }
}
