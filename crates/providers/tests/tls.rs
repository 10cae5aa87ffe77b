//! Encrypted connections: trusted certificates, HTTP/2, and a handshake that never ends.
//!
//! The server is a real one. Its certificate is for 127.0.0.1, by an authority that nobody trusts; its key
//! is worth nothing.

// A test that cannot go on panics, its helpers included.
#![allow(clippy::unwrap_used)]

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon_providers::{HttpOptions, OpenAiCompatible, OpenAiOptions, Timeouts};
use archon_types::{
    AssistantMessage, CancellationToken, Message, ModelEvent, Provider, ProviderError, Request, Timestamp,
};
use tokio::{io::AsyncWriteExt as _, net::TcpListener};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        version::{TLS12, TLS13},
    },
};

const AUTHORITY: &[u8] = include_bytes!("tls/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("tls/server.pem");
const KEY: &[u8] = include_bytes!("tls/server.key");
const ANSWER: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// A server that speaks HTTP/2 and nothing else; returns its address and how many connections it had.
async fn http2_server() -> (String, Arc<AtomicUsize>) {
    let certificates = CertificateDer::pem_slice_iter(CERTIFICATE).collect::<Result<_, _>>().unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&TLS12, &TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, PrivateKeyDer::from_pem_slice(KEY).unwrap())
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let (acceptor, count) = (acceptor.clone(), count.clone());
            tokio::spawn(async move {
                // A client that does not trust the certificate ends it here.
                let Ok(socket) = acceptor.accept(socket).await else { return };
                count.fetch_add(1, Ordering::SeqCst);
                let Ok(mut connection) = h2::server::handshake(socket).await else { return };
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    assert_eq!(request.uri().path(), "/v1/chat/completions");
                    let head = http::Response::builder().header("content-type", "text/event-stream");
                    let mut body = respond.send_response(head.body(()).unwrap(), false).unwrap();
                    body.send_data(ANSWER.into(), true).unwrap();
                }
            });
        }
    });
    (url, connections)
}

async fn ask(url: &str, http: HttpOptions) -> Result<AssistantMessage, ProviderError> {
    let provider = OpenAiCompatible::new(url, OpenAiOptions::default().with_http(http)).unwrap();
    let request = Request::new("m", vec![Message::user("hi", Timestamp::default())]);
    let mut events = provider.stream(request, CancellationToken::new());
    loop {
        match poll_fn(|cx| events.as_mut().poll_next(cx)).await.unwrap()? {
            ModelEvent::Done(message) => return Ok(*message),
            _ => continue,
        }
    }
}

// spec: P-15
#[tokio::test]
async fn tls_own_ca_certificate_is_trusted_and_http2_is_used() {
    let (url, connections) = http2_server().await;
    let http = HttpOptions::default().with_ca_certificates(AUTHORITY);
    assert_eq!(ask(&url, http.clone()).await.unwrap().text(), "a");
    assert_eq!(ask(&url, http).await.unwrap().text(), "a");
    assert_eq!(connections.load(Ordering::SeqCst), 1, "both calls share a connection");
}

// spec: P-31
#[tokio::test]
async fn tls_untrusted_certificate_is_refused() {
    let (url, connections) = http2_server().await;
    let error = ask(&url, HttpOptions::default()).await.unwrap_err();
    assert!(matches!(error, ProviderError::Network(_)), "{error:?}");
    assert!(error.to_string().contains("certificate"), "{error}");
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

// spec: P-35
#[tokio::test]
async fn tls_connection_without_a_handshake_times_out() {
    // The system takes the connection, and nobody answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let mut timeouts = Timeouts::default();
    timeouts.connect = Duration::from_millis(40);
    let error = ask(&url, HttpOptions::default().with_timeouts(timeouts)).await.unwrap_err();
    assert!(matches!(error, ProviderError::Timeout(_)), "{error:?}");
    assert!(error.to_string().contains("is not reached"), "{error}");
}

// spec: P-31
#[tokio::test]
async fn tls_to_a_plain_server_is_unreachable_and_not_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            // A plain server reads no request in a handshake.
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n").await;
        }
    });
    let error = ask(&format!("{url}/v1"), HttpOptions::default()).await.unwrap_err();
    assert!(matches!(error, ProviderError::Unreachable(_)) && !error.is_retryable(), "{error:?}");
    assert!(error.to_string().contains("answers without TLS"), "{error}");
}
