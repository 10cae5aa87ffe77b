//! Connections of HTTP/1.1: their number, their handshake, their headers and their end have limits.

use std::{convert::Infallible, error::Error, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use archon_types::CancellationToken;
use hyper::{
    Request, Response,
    body::{Body, Incoming},
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::rt::{TokioIo, TokioTimer};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
};

/// Maximum time until the headers of a request have arrived.
const HEADERS: Duration = Duration::from_secs(10);
/// The pause after a failed accept, for instance because no file descriptor was left.
const PAUSE: Duration = Duration::from_millis(100);

/// A socket at which clients connect: at an address, or a Unix socket.
///
/// ```
/// use std::{io, net::SocketAddr};
///
/// use archon_http_access::Listener;
/// use tokio::net::{TcpListener, TcpStream};
///
/// /// Sends small packets at once.
/// struct Quick(TcpListener);
///
/// impl Listener for Quick {
///     type Stream = TcpStream;
///
///     async fn accept_client(&self) -> io::Result<TcpStream> {
///         let (stream, _) = self.0.accept().await?;
///         stream.set_nodelay(true)?;
///         Ok(stream)
///     }
///
///     fn address(&self) -> io::Result<Option<SocketAddr>> {
///         self.0.local_addr().map(Some)
///     }
/// }
/// ```
pub trait Listener: Send + Sync {
    /// The connection with a client.
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Waits for the next client.
    ///
    /// # Errors
    /// The connection was not accepted, for instance because no file descriptor is left.
    fn accept_client(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Returns the address; `None` for a Unix socket.
    ///
    /// # Errors
    /// The operating system does not tell the address.
    fn address(&self) -> io::Result<Option<SocketAddr>>;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept_client(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept().await?;
        Ok(stream)
    }

    fn address(&self) -> io::Result<Option<SocketAddr>> {
        self.local_addr().map(Some)
    }
}

#[cfg(unix)]
impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn accept_client(&self) -> io::Result<UnixStream> {
        let (stream, _) = self.accept().await?;
        Ok(stream)
    }

    fn address(&self) -> io::Result<Option<SocketAddr>> {
        Ok(None)
    }
}

/// The limits of the connections of a server.
///
/// ```
/// use std::time::Duration;
///
/// use archon_http_access::ConnectionOptions;
///
/// let options = ConnectionOptions::default()
///     .with_max_connections(1_000)
///     .with_handshake(Duration::from_secs(5))
///     .with_grace(Duration::from_secs(30));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionOptions {
    /// Maximum number of open connections; a further connection waits. Default 256.
    pub max_connections: usize,
    /// Maximum time for the handshake of a connection with TLS. Default 10 s.
    pub handshake: Duration,
    /// Maximum time for requests under way when the server ends. Default 5 s.
    pub grace: Duration,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self { max_connections: 256, handshake: Duration::from_secs(10), grace: Duration::from_secs(5) }
    }
}

archon_types::setters! {
impl ConnectionOptions {
    /// Sets the maximum number of open connections. Default 256.
    pub fn with_max_connections(self, connections: usize) -> Self { self.max_connections = connections }

    /// Sets the maximum time for the handshake of a connection with TLS. Default 10 s.
    pub fn with_handshake(self, handshake: Duration) -> Self { self.handshake = handshake }

    /// Sets the maximum time for requests under way when the server ends. Default 5 s.
    pub fn with_grace(self, grace: Duration) -> Self { self.grace = grace }
}
}

/// The connection of a request. Each request has it as an extension. A handler that takes the connection over, for
/// instance as a websocket, keeps a clone until it is done: then the connection counts for
/// [`ConnectionOptions::max_connections`], and the end of the server waits for it.
///
/// ```
/// use archon_http_access::HeldConnection;
/// use hyper::{Request, body::Incoming};
///
/// /// Takes the connection over.
/// fn take_over(request: Request<Incoming>) {
///     let held = request.extensions().get::<HeldConnection>().cloned();
///     tokio::spawn(async move {
///         if let Ok(stream) = hyper::upgrade::on(request).await {
///             // Here the other protocol is spoken.
///             drop(stream);
///         }
///         drop(held);
///     });
/// }
/// ```
#[derive(Clone, Debug)]
pub struct HeldConnection {
    _counted: Arc<OwnedSemaphorePermit>,
    _open: mpsc::Sender<()>,
}

/// Serves clients that connect to `listener` until `end` is cancelled. Then it accepts no new connection, gives
/// running requests [`ConnectionOptions::grace`] to finish, and returns even if some of them have not finished.
/// A handler may take a connection over; see [`HeldConnection`].
pub async fn serve_connections<L, S, B>(
    listener: L,
    service: S,
    options: &ConnectionOptions,
    end: &CancellationToken,
) where
    L: Listener,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let open = |stream| std::future::ready(Ok(stream));
    serve_with_handshake(listener, open, service, options, end).await;
}

/// Serves clients like [`serve_connections`], but speaks HTTP over the stream that `open` makes from the stream of
/// the client, for instance with a TLS handshake. `open` runs in the task of the connection, so that a slow handshake
/// delays no other client.
pub(crate) async fn serve_with_handshake<L, O, F, T, S, B>(
    listener: L,
    open: O,
    service: S,
    options: &ConnectionOptions,
    end: &CancellationToken,
) where
    L: Listener,
    O: Fn(L::Stream) -> F,
    F: Future<Output = io::Result<T>> + Send + 'static,
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let connections = Arc::new(Semaphore::new(options.max_connections));
    // It receives nothing: it ends when the last connection is closed.
    let (alive, mut all_closed) = mpsc::channel(1);
    while let Some((stream, permit)) = next_client(&listener, &connections, end).await {
        let handshake = finish_handshake(open(stream), options.handshake, end.clone());
        let held = HeldConnection { _counted: Arc::new(permit), _open: alive.clone() };
        let (service, end) = (service.clone(), end.clone());
        tokio::spawn(async move {
            if let Some(stream) = handshake.await {
                serve_connection(stream, service, held, end).await;
            }
        });
    }
    drop((listener, alive));
    let _ = tokio::time::timeout(options.grace, all_closed.recv()).await;
}

/// Serves one client until it closes the connection, a handler takes the connection over, or the server ends.
async fn serve_connection<T, S, B>(stream: T, service: S, held: HeldConnection, end: CancellationToken)
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(held.clone());
        service.call(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADERS);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = end.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(target: "archon::http", %error, "a connection failed");
    }
}

/// Waits for the handshake; `None` if it fails, takes too long, or the server ends.
async fn finish_handshake<T>(
    handshake: impl Future<Output = io::Result<T>>,
    most: Duration,
    end: CancellationToken,
) -> Option<T> {
    let opened = tokio::select! {
        // A connection that is open already is served also when the server ends.
        biased;
        opened = tokio::time::timeout(most, handshake) => opened,
        () = end.cancelled() => return None,
    };
    match opened {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => tracing::debug!(target: "archon::http", %error, "a handshake failed"),
        Err(_) => tracing::debug!(target: "archon::http", "a handshake took too long"),
    }
    None
}

/// Waits until one more connection is allowed, and accepts it; `None` when the server ends.
async fn next_client<L: Listener>(
    listener: &L,
    connections: &Arc<Semaphore>,
    end: &CancellationToken,
) -> Option<(L::Stream, OwnedSemaphorePermit)> {
    let next = async {
        let permit = connections.clone().acquire_owned().await.ok()?;
        loop {
            match listener.accept_client().await {
                Ok(stream) => return Some((stream, permit)),
                Err(error) => {
                    tracing::warn!(target: "archon::http", %error, "a connection was not accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        next = next => next,
        () = end.cancelled() => None,
    }
}
