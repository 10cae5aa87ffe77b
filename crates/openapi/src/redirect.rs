//! The browser's answer to a sign-in: a request to a port of this machine.

use std::{io, pin::pin, sync::Arc};

use reqwest::Url;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Maximum size of a request in bytes.
const LONGEST: usize = 16 << 10;
/// The path of the address to which the authorization server sends the browser.
const PATH: &str = "/callback";

/// Listens on a free port of this machine, and returns the address that the browser is sent to.
pub(crate) async fn listen() -> io::Result<(TcpListener, String)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = format!("http://{}{PATH}", listener.local_addr()?);
    Ok((listener, address))
}

/// Waits for the request whose query has the `state` of this sign-in, and returns the address that the browser requested.
/// Other requests are refused: any web page can make a browser send some.
pub(crate) async fn answer(listener: &TcpListener, state: &str) -> io::Result<String> {
    // A browser opens connections that it does not use, so one must not hold up the others.
    let (mut connections, state) = (JoinSet::new(), Arc::<str>::from(state));
    loop {
        tokio::select! {
            accepted = listener.accept() => drop(connections.spawn(serve(accepted?.0, state.clone()))),
            Some(served) = connections.join_next() => if let Ok(Some(address)) = served {
                return Ok(address);
            }
        }
    }
}

async fn serve(mut stream: TcpStream, state: Arc<str>) -> Option<String> {
    let target = target(&mut stream).await?;
    let address = format!("http://{}{target}", stream.local_addr().ok()?);
    let is_answer = Url::parse(&address).is_ok_and(|address| {
        let mut fields = address.query_pairs();
        address.path() == PATH && fields.any(|(name, value)| name == "state" && value == *state)
    });
    let (status, text) = match is_answer {
        true => ("200 OK", "The answer has arrived. You can close this page and go back to the program."),
        false => ("404 Not Found", "This is not the answer to the sign-in."),
    };
    let length = text.len();
    let page = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\n\
         cache-control: no-store\r\nconnection: close\r\n\r\n{text}"
    );
    // If the browser went away, the answer is there all the same.
    let _ = stream.write_all(page.as_bytes()).await;
    is_answer.then_some(address)
}

/// Reads the head of a request, and returns the path and the query of a GET.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut request = pin!(stream.take(LONGEST as u64));
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.lines().next()?.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned)).flatten()
}
