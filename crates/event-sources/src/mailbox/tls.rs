//! TLS to a mail server, with the certificates that this machine trusts.

use std::sync::Arc;

use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{ClientConfig, Error, crypto::aws_lc_rs, pki_types::ServerName},
};

use super::MailboxError;

pub(super) async fn connect(host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, MailboxError> {
    let broken = |problem: String| MailboxError::Connection { host: host.to_owned(), problem };
    let config = config().map_err(|error| broken(error.to_string()))?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| broken(error.to_string()))?;
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    connected.map_err(|error| broken(error.to_string()))
}

fn config() -> Result<ClientConfig, Error> {
    // Named here, because another part of the program may have chosen no default, or another one.
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    Ok(builder.with_safe_default_protocol_versions()?.with_platform_verifier()?.with_no_client_auth())
}
