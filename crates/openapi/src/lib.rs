//! Makes tools of the operations of an HTTP API that an OpenAPI document describes.
//!
//! Use this crate without the facade to give the operations of an API to a toolbox of your own.
//!
//! An OpenAPI document describes an HTTP API: its operations, their parameters and their bodies. [`OpenApiTools`]
//! reads a document of version 3 or 2.0, and makes an [`OpenApiTool`] of each operation. Guards check its calls like
//! those of any other tool.
//!
//! *What becomes what*
//!
//! - The name of a tool is the `operationId`, with the prefix before it if one is set: `prefix__operationId`. An
//!   operation without an `operationId` is left out with a warning, unless [`OpenApiConfig::name_by_path`] is set.
//!   Illegal characters become `_`, and a name has at most 64 characters. If two tools would have the same name, the
//!   second name ends with `_2`.
//! - Parameters in the path, the query and headers become arguments. Cookie parameters are left out.
//! - The body becomes the argument `body`, or `_request_body` if a parameter is called `body`. With
//!   [`OpenApiConfig::hoist_body`], each field of the body becomes an argument. A body is JSON, a form
//!   (`application/x-www-form-urlencoded`), or a text of another media type, which the model writes itself. An
//!   operation that takes only `multipart` is left out with a warning.
//! - A `$ref` in a schema stays a `$ref`, to the `$defs` of the tool's schema. So a schema may contain itself.
//! - GET and HEAD read; a person is asked before each call of another method, unless a rule allows it.
//! - All tools are deferrable. Tools with the same prefix are deferred together. Each tag is a group of tools in
//!   the search for tools.
//! - If a response has a `Link` with the relation `next`, or a field such as `next_cursor`, the result ends with the
//!   arguments for the next page.
//!
//! *Invariants*
//!
//! - A broken operation is left out with a warning that names its place, and the others work.
//! - A `$ref` to a file or an address is never followed.
//! - Credentials go to the server of the document, or to the configured address, and never over an unencrypted
//!   connection that only the document names. A document whose operations would send them to several servers is
//!   refused ([`OpenApiError::SeveralServers`]). A redirect to another server is not followed. Results, errors and
//!   logs never contain credentials.
//! - A server that only the document names must be on the internet: addresses of this machine and of private
//!   networks are refused, also if a host name resolves to one of them. A server that a person names may be anywhere.
//! - A person who is asked about a call sees its HTTP method and its URL.
//! - The value of an argument cannot lead to another path than that of the operation, and cannot add a parameter or
//!   a header. The only exception: the keys of an object that the document spreads over the query (`form` with
//!   `explode`).
//! - Texts of a document and of responses are untrusted. Descriptions are bounded, cleared of invisible characters, and
//!   marked with the document's title.
//!
//! # Example
//!
//! ```no_run
//! use archon_openapi::{OpenApiAuth, OpenApiConfig, OpenApiTools, OperationFilter};
//!
//! # async fn run(token: archon_types::Secret) -> Result<(), archon_openapi::OpenApiError> {
//! let config = OpenApiConfig::default()
//!     .with_name_prefix("shop")
//!     .with_auth(OpenApiAuth::Bearer(token));
//! let orders = OperationFilter::ByTag(vec!["orders".to_owned()]);
//! let tools = OpenApiTools::from_url("https://shop.example.com/openapi.json", config, orders).await?;
//! println!("{} tools, {} warnings", tools.tools.len(), tools.warnings.len());
//! # Ok(())
//! # }
//! ```

// | concept | file |
// |---|---|
// | `OpenApiTools`, from a document to its tools | `tools.rs` |
// | `OpenApiDocument`, a document before tools are made of it | `openapi_document.rs` |
// | `SecurityScheme`, the credentials that a document asks for | `security.rs` |
// | `OpenApiConfig`, the settings; `OperationFilter`, which operations | `config.rs` |
// | `OpenApiAuth`, `ApiTokens`, `StoredToken`: credentials | `auth.rs` |
// | `ClientCredentials`, tokens of OAuth 2 for a program | `client_credentials.rs` |
// | `AuthorizationCode`, tokens of OAuth 2 of a person; `ApiSignIn` | `authorization_code.rs`, `redirect.rs` |
// | the address for tokens | `token_endpoint.rs` |
// | `OpenApiError`, `OpenApiWarning` | `error.rs` |
// | `OpenApiTool`, the call and its result | `tool.rs` |
// | the text as JSON, and its references; version 2.0 | `document.rs`, `swagger.rs` |
// | an operation, its parameters, its body; the arguments of its tool | `operation.rs`, `body.rs`, `arguments.rs` |
// | schemas as JSON Schema 2020-12 | `schema.rs` |
// | names of tools and arguments | `names.rs` |
// | the request of a call; the styles of its parameters | `request.rs`, `style.rs` |
// | servers, and which of them may be reached | `hosts.rs` |
// | the hint to the next page | `pagination.rs` |
// | untrusted text | `text.rs` |

mod arguments;
mod auth;
mod authorization_code;
mod body;
mod client_credentials;
mod config;
mod document;
mod error;
mod hosts;
mod names;
mod openapi_document;
mod operation;
mod pagination;
mod redirect;
mod request;
mod schema;
mod security;
mod style;
mod swagger;
mod text;
mod token_endpoint;
mod tool;
mod tools;

pub use auth::{ApiTokens, OpenApiAuth, StoredToken};
pub use authorization_code::{ApiSignIn, AuthorizationCode};
pub use client_credentials::ClientCredentials;
pub use config::{OpenApiConfig, OperationFilter};
pub use error::{OpenApiError, OpenApiWarning};
pub use openapi_document::OpenApiDocument;
pub use security::{SecurityKind, SecurityScheme};
pub use tool::OpenApiTool;
pub use tools::OpenApiTools;
