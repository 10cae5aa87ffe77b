//! Sign-in of people at OAuth 2 services, and tokens for tools.
//!
//! Use this crate in a tool whose service wants OAuth, such as a calendar: a person signs in once, the tokens are in the
//! credential store of the tenant, and [`OAuth::token`] refreshes them when they end.
//!
//! | sign-in | for | functions |
//! |---|---|---|
//! | with a device code ([RFC 8628](https://www.rfc-editor.org/rfc/rfc8628)) | a terminal or a chat: the person opens an address and types a code | [`OAuth::begin_device`], [`OAuth::finish_device`] |
//! | with a code ([RFC 6749](https://www.rfc-editor.org/rfc/rfc6749#section-4.1), with PKCE) | a server of yours, to which the service sends the browser back | [`OAuth::begin_code`], [`OAuth::finish_code`] |
//!
//! *Invariants*
//!
//! - No error and no `Debug` text has a token, a code or a secret.
//! - The answer of another sign-in is refused: its state differs.
//! - Tokens are sent to the addresses of the service only; redirects are not followed.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use archon_oauth::{OAuth, OAuthError, OAuthService};
//! use archon_types::{Clock, CredentialKey, CredentialStore, ToolContext, ToolError};
//!
//! fn calendar(clock: Arc<dyn Clock>) -> Result<OAuth, OAuthError> {
//!     let service = OAuthService::new("calendar", "my-client", "http://localhost:9000/token")
//!         .device_address("http://localhost:9000/device")
//!         .scope("events.read");
//!     OAuth::new(service, clock)
//! }
//!
//! /// Lets a person sign in.
//! async fn connect(calendar: &OAuth, store: &dyn CredentialStore) -> Result<(), OAuthError> {
//!     let sign_in = calendar.begin_device().await?;
//!     println!("Open {} and type {}.", sign_in.address(), sign_in.code());
//!     calendar.finish_device(sign_in, store, &CredentialKey::primary("anna".into(), "calendar")).await
//! }
//!
//! /// Returns the header of a request of the tool.
//! async fn header(calendar: &OAuth, call: &ToolContext) -> Result<String, ToolError> {
//!     let token = calendar.token(&call.credentials(), "primary").await?;
//!     Ok(format!("Bearer {}", token.expose()))
//! }
//! ```

// | concept | file |
// |---|---|
// | the addresses and the client of a service | `service.rs` |
// | sign-in with a device code and with a code | `sign_in.rs` |
// | stored tokens, and their refresh | `tokens.rs` |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod service;
mod sign_in;
mod tokens;

pub use error::OAuthError;
pub use service::{OAuth, OAuthService};
pub use sign_in::{CodeSignIn, DeviceSignIn};
