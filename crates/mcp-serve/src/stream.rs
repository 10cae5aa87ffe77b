//! One client over a pair of streams, such as standard input and output.

use archon_types::CancellationToken;
use rmcp::{
    ServerHandler,
    service::{ServerInitializeError, serve_server_with_ct},
    transport::async_rw::AsyncRwTransport,
};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::ToolServerError;

/// The maximum size of a client's message in bytes, 8 MiB. A longer message is dropped without being kept
/// in memory.
pub const MAX_MESSAGE: usize = 8 << 20;

/// Serves one client, a message per line, until `input` ends or `end` is cancelled. Nothing but the protocol is
/// written to `output`. Lines that are not messages, or are longer than [`MAX_MESSAGE`], are dropped.
///
/// # Errors
/// No connection was opened with the client.
pub async fn serve_stream<H: ServerHandler>(
    handler: H,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    end: CancellationToken,
) -> Result<(), ToolServerError> {
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_MESSAGE);
    match serve_server_with_ct(handler, transport, end).await {
        Ok(service) => {
            if let Err(error) = service.waiting().await {
                tracing::error!(target: "archon::mcp", %error, "the connection to a client was lost");
            }
            Ok(())
        }
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(ToolServerError::Handshake(error.to_string())),
    }
}
