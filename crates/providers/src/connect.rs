//! Connection options that all protocols share: the provider's id, the key, additional headers, HTTP
//! options, the clock. The options of every protocol have them as `connect`.

use std::sync::Arc;

use archon_types::{Clock, Secret};

use crate::{
    error::SetupError,
    http::{HttpOptions, Transport},
};

/// Options of the connection to a service, for every protocol. Each option has a default.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_providers::{ConnectOptions, HttpOptions};
/// use archon_types::Clock;
///
/// fn options(clock: Arc<dyn Clock>) -> ConnectOptions {
///     ConnectOptions::default()
///         .with_id("gateway")
///         .with_api_key("sk-secret")
///         .with_header("x-team", "search")
///         .with_http(HttpOptions::default().with_plain_http())
///         .with_clock(clock)
/// }
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// The provider's id in messages and records. Default: the name of the profile if [`resolve`](crate::resolve)
    /// found one, else an id for the protocol, such as `google`.
    pub id: Option<String>,
    /// The key of the service, sent in the header that the protocol requires. Local servers need none.
    /// Default: none, or with [`resolve`](crate::resolve) the key in the service's environment variable.
    pub api_key: Option<Secret>,
    /// Additional headers for every request. Values are treated as secrets.
    pub headers: Vec<(String, Secret)>,
    /// The timeouts, proxy, certificates and other HTTP options. Providers that get clones of one value share
    /// one pool of connections.
    pub http: HttpOptions,
    /// The clock that gives the times of messages. Default: the system's clock.
    pub clock: Option<Arc<dyn Clock>>,
}

impl ConnectOptions {
    /// Sets the provider's id in messages and records. Default: an id for the service or protocol, such as `google`.
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the key, which is sent in the header that the protocol requires.
    pub fn with_api_key(mut self, key: impl Into<Secret>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Adds a header to every request. Its value is treated as a secret.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the HTTP options: timeouts, limits of answers, proxy, certificates.
    pub fn with_http(mut self, http: HttpOptions) -> Self {
        self.http = http;
        self
    }

    /// Sets the clock that gives the times of messages. Default: the system's clock.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Creates the service at `path` after `base_url`. `id` is the default id of the provider.
    pub(crate) fn service(
        self,
        id: &str,
        base_url: &str,
        path: &str,
        key: SentAs,
    ) -> Result<Service, SetupError> {
        self.service_with(id, base_url, path, key, |_| Ok(()))
    }

    /// Creates the service like [`service`](Self::service), with headers of the protocol that the caller's
    /// headers may replace.
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

archon_types::debug_fields!(ConnectOptions: id, api_key, headers, http);

/// The form in which a protocol sends the key.
#[derive(Clone, Copy)]
pub(crate) enum SentAs {
    /// As a bearer token.
    Bearer,
    /// In this header, without a prefix.
    Header(&'static str),
    /// In a form that is computed for each request, for instance a token.
    Later,
}

/// A service with its transport and clock.
pub(crate) struct Service {
    /// The provider's id.
    pub(crate) id: String,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) transport: Arc<Transport>,
}

archon_types::debug_fields!(Service: id, transport);

/// Adds setters for the connection to an options struct with a field `connect` of [`ConnectOptions`].
macro_rules! connect_choices {
    ($options:ident with a key) => {
        impl $options {
            /// Sets the key, which is sent in the header that the protocol requires.
            ///
            /// ```
            #[doc = concat!("let options = archon_providers::", stringify!($options), "::default()")]
            #[doc = "    .with_api_key(\"secret\");"]
            /// ```
            pub fn with_api_key(mut self, key: impl Into<archon_types::Secret>) -> Self {
                self.connect = self.connect.with_api_key(key);
                self
            }
        }
        $crate::connect::connect_choices!($options);
    };
    ($options:ident) => {
        impl $options {
            /// Sets all connection options at once: id, key, headers, HTTP options and clock.
            ///
            /// ```
            #[doc = concat!("let options = archon_providers::", stringify!($options), "::default()")]
            #[doc = "    .with_connect(archon_providers::ConnectOptions::default().with_id(\"gateway\"));"]
            /// ```
            pub fn with_connect(mut self, connect: $crate::ConnectOptions) -> Self {
                self.connect = connect;
                self
            }

            /// Sets the provider's id in messages and records. Default: an id for the service or protocol,
            /// such as `google`.
            ///
            /// ```
            #[doc = concat!("let options = archon_providers::", stringify!($options), "::default()")]
            #[doc = "    .with_id(\"gateway\");"]
            /// ```
            pub fn with_id(mut self, id: impl Into<String>) -> Self {
                self.connect = self.connect.with_id(id);
                self
            }

            /// Adds a header to every request. Its value is treated as a secret.
            ///
            /// ```
            #[doc = concat!("let options = archon_providers::", stringify!($options), "::default()")]
            #[doc = "    .with_header(\"x-team\", \"search\");"]
            /// ```
            pub fn with_header(
                mut self,
                name: impl Into<String>,
                value: impl Into<archon_types::Secret>,
            ) -> Self {
                self.connect = self.connect.with_header(name, value);
                self
            }

            /// Sets the HTTP options: timeouts, limits of answers, proxy, certificates.
            ///
            /// ```
            #[doc = concat!("let options = archon_providers::", stringify!($options), "::default()")]
            #[doc = "    .with_http(archon_providers::HttpOptions::default().with_plain_http());"]
            /// ```
            pub fn with_http(mut self, http: $crate::HttpOptions) -> Self {
                self.connect = self.connect.with_http(http);
                self
            }

            /// Sets the clock that gives the times of messages. Default: the system's clock.
            ///
            /// ```
            #[doc = concat!("let options = archon_providers::", stringify!($options), "::default()")]
            #[doc = "    .with_clock(std::sync::Arc::new(archon_testkit::VirtualClock::new()));"]
            /// ```
            pub fn with_clock(mut self, clock: std::sync::Arc<dyn archon_types::Clock>) -> Self {
                self.connect = self.connect.with_clock(clock);
                self
            }
        }
    };
}
pub(crate) use connect_choices;

/// Implements the methods of [`Provider`](archon_types::Provider) that only need the service.
macro_rules! service_methods {
    ($($service:tt).+) => {
        fn id(&self) -> &str {
            &self.$($service).+.id
        }

        fn secrets(&self) -> Vec<archon_types::Redactor> {
            vec![self.$($service).+.transport.redactor.clone()]
        }

        fn capabilities(&self, model: &str) -> archon_types::Capabilities {
            $crate::catalogue::capabilities(self.id(), model)
        }
    };
}
pub(crate) use service_methods;
