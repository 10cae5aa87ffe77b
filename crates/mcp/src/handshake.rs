//! The handshake that opens a connection, over any transport.

use std::error::Error;

use archon_types::{BoxFuture, CancellationToken};
use rmcp::{
    RoleClient,
    service::{
        ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle_and_ct,
    },
    transport::{IntoTransport, TransportAdapterIdentity},
};

use crate::{handler::Handler, late_probe::LateProbe};

/// A handshake under way.
pub(crate) type Handshake =
    BoxFuture<'static, Result<RunningService<RoleClient, Handler>, ClientInitializeError>>;

/// The client's side of a handshake.
pub(crate) struct Shake {
    pub(crate) handler: Handler,
    pub(crate) lifecycle: ClientLifecycleMode,
    pub(crate) end: CancellationToken,
}

impl Shake {
    /// Performs the handshake over a transport. `holds_back` is true for a transport that must not get
    /// `initialize` before an answer to the probe.
    pub(crate) fn over<T, E, A>(self, transport: T, holds_back: bool) -> Handshake
    where
        T: IntoTransport<RoleClient, E, A> + Send + 'static,
        E: Error + Send + Sync + 'static,
        A: 'static,
    {
        let transport = LateProbe::new(transport.into_transport(), holds_back);
        Box::pin(serve_client_with_lifecycle_and_ct::<_, _, _, TransportAdapterIdentity>(
            self.handler,
            transport,
            self.lifecycle,
            self.end,
        ))
    }
}
