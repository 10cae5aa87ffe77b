//! Tools of OpenAPI documents, as parts of an agent.

use std::path::Path;

use archon_openapi::{OpenApiConfig, OpenApiError, OpenApiTools, OperationFilter};

use super::ArchonBuilder;

impl ArchonBuilder {
    /// Adds the operations of an OpenAPI document in a file as tools, after the tools added before. These tools are
    /// deferrable: if the definitions of all deferrable tools exceed the [budget](Self::definition_budget), requests
    /// may leave these tools out, and the model then finds them with a search.
    ///
    /// The parts of the document that are left out are logged. [`OpenApiTools`] returns them.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), archon::openapi::OpenApiError> {
    /// use archon::{Archon, openapi::{OpenApiConfig, OperationFilter}};
    /// let config = OpenApiConfig::default().with_name_prefix("shop");
    /// let builder = Archon::builder().with_openapi_file("shop.yaml", config, OperationFilter::All)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The file cannot be read, it is not an OpenAPI document of version 3 or 2.0, or a setting cannot be used.
    pub fn with_openapi_file(
        self,
        path: impl AsRef<Path>,
        config: OpenApiConfig,
        filter: OperationFilter,
    ) -> Result<Self, OpenApiError> {
        Ok(self.tools(OpenApiTools::from_file(path, config, filter)?))
    }

    /// Does the same as [`with_openapi_file`](Self::with_openapi_file) with a document at an address.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), archon::openapi::OpenApiError> {
    /// use archon::{Archon, openapi::{OpenApiConfig, OperationFilter}};
    /// let address = "https://shop.example.com/openapi.json";
    /// let builder = Archon::builder();
    /// let builder = builder.with_openapi_url(address, OpenApiConfig::default(), OperationFilter::All).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The document cannot be fetched; else as [`with_openapi_file`](Self::with_openapi_file).
    pub async fn with_openapi_url(
        self,
        address: &str,
        config: OpenApiConfig,
        filter: OperationFilter,
    ) -> Result<Self, OpenApiError> {
        Ok(self.tools(OpenApiTools::from_url(address, config, filter).await?))
    }

    /// Does the same as [`with_openapi_file`](Self::with_openapi_file) with the text of a document.
    ///
    /// ```
    /// # fn main() -> Result<(), archon::openapi::OpenApiError> {
    /// use archon::{Archon, openapi::{OpenApiConfig, OperationFilter}};
    /// let document = r#"{
    ///     "openapi": "3.1.0",
    ///     "servers": [{ "url": "https://pets.example.com" }],
    ///     "paths": { "/pets": { "get": { "operationId": "listPets" } } }
    /// }"#;
    /// let builder = Archon::builder().with_openapi_spec(document, OpenApiConfig::default(), OperationFilter::All)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`with_openapi_file`](Self::with_openapi_file), except for the file.
    pub fn with_openapi_spec(
        self,
        document: &str,
        config: OpenApiConfig,
        filter: OperationFilter,
    ) -> Result<Self, OpenApiError> {
        Ok(self.tools(OpenApiTools::from_str(document, config, filter)?))
    }
}
