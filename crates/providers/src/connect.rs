//! What it takes to reach a service, whatever is spoken there: what the provider is called, the key, more
//! headers, the way there, the clock. The options of every protocol hold it as `connect`.

use std::{fmt, sync::Arc};

use archon_types::{Clock, Secret};

use crate::{
    error::SetupError,
    http::{HttpOptions, Transport},
};

/// How a service is reached, whatever is spoken there. Everything has a default.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// The provider's id in messages and records; the protocol's name if unset, and with
    /// [`resolve`](crate::resolve) the name in front of the model.
    pub id: Option<String>,
    /// The key, sent as the protocol sends it; local servers need none. With [`resolve`](crate::resolve)
    /// the environment's if unset.
    pub api_key: Option<Secret>,
    /// More headers for every request. Values are treated as secrets.
    pub headers: Vec<(String, Secret)>,
    /// How the service is reached. Providers that are given clones share one pool of connections.
    pub http: HttpOptions,
    /// What time it is; the system's clock if unset.
    pub clock: Option<Arc<dyn Clock>>,
}

impl ConnectOptions {
    /// The same with this id.
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The same with this key.
    pub fn with_api_key(mut self, key: impl Into<Secret>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// The same with one more header.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same with other ways to reach the service.
    pub fn with_http(mut self, http: HttpOptions) -> Self {
        self.http = http;
        self
    }

    /// The same with this clock.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The service at `path` behind `base_url`. `id` is the protocol's own.
    pub(crate) fn service(
        self,
        id: &str,
        base_url: &str,
        path: &str,
        key: SentAs,
    ) -> Result<Service, SetupError> {
        self.service_with(id, base_url, path, key, |_| Ok(()))
    }

    /// The same with headers of the protocol's own, which the caller's may replace.
    pub(crate) fn service_with(
        self,
        id: &str,
        base_url: &str,
        path: &str,
        key: SentAs,
        own: impl FnOnce(&mut Transport) -> Result<(), SetupError>,
    ) -> Result<Service, SetupError> {
        let mut transport = Transport::new(base_url, path, self.http)?;
        transport.send_json();
        match (key, &self.api_key) {
            (SentAs::Bearer, Some(key)) => transport.set_bearer(key)?,
            // Keys are often read from files, with their line ends.
            (SentAs::Header(name), Some(key)) => {
                transport.set_header(name, &Secret::from(key.expose().trim()))?;
            }
            (SentAs::Later, _) => transport.check_way("a key or a token")?,
            (_, None) => {}
        }
        own(&mut transport)?;
        for (name, value) in &self.headers {
            transport.set_header(name, value)?;
        }
        let id = self.id.unwrap_or_else(|| id.to_owned());
        Ok(Service { id, clock: self.clock, transport: Arc::new(transport) })
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("id", &self.id)
            .field("api_key", &self.api_key)
            .field("headers", &self.headers)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

/// How a protocol sends its key.
#[derive(Clone, Copy)]
pub(crate) enum SentAs {
    /// As a bearer token.
    Bearer,
    /// Alone in this header.
    Header(&'static str),
    /// By something that is made for each request, for instance a token.
    Later,
}

/// A service that requests can be sent to.
pub(crate) struct Service {
    /// The provider's id.
    pub(crate) id: String,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) transport: Arc<Transport>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("id", &self.id)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

/// Gives options that hold a [`ConnectOptions`] as `connect` its choices.
#[allow(unused_macros, reason = "the parts that protocols share, alone, have none")]
macro_rules! connect_choices {
    ($options:ident with a key) => {
        impl $options {
            /// The same with this key.
            pub fn with_api_key(mut self, key: impl Into<archon_types::Secret>) -> Self {
                self.connect = self.connect.with_api_key(key);
                self
            }
        }
        $crate::connect::connect_choices!($options);
    };
    ($options:ident) => {
        impl $options {
            /// The same, reached like this.
            pub fn with_connect(mut self, connect: $crate::ConnectOptions) -> Self {
                self.connect = connect;
                self
            }

            /// The same with this id.
            pub fn with_id(mut self, id: impl Into<String>) -> Self {
                self.connect = self.connect.with_id(id);
                self
            }

            /// The same with one more header.
            pub fn with_header(
                mut self,
                name: impl Into<String>,
                value: impl Into<archon_types::Secret>,
            ) -> Self {
                self.connect = self.connect.with_header(name, value);
                self
            }

            /// The same with other ways to reach the service.
            pub fn with_http(mut self, http: $crate::HttpOptions) -> Self {
                self.connect = self.connect.with_http(http);
                self
            }

            /// The same with this clock.
            pub fn with_clock(mut self, clock: std::sync::Arc<dyn archon_types::Clock>) -> Self {
                self.connect = self.connect.with_clock(clock);
                self
            }
        }
    };
}
#[allow(unused_imports, reason = "a build may hold no protocol")]
pub(crate) use connect_choices;
