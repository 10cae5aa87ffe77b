//! A browser for sign-ins: it reads the address that a command prints, and opens addresses.

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::Child,
};

/// Returns the address that a command prints for the browser.
pub(crate) async fn address_in(child: &mut Child) -> String {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap().unwrap();
        if line.trim().starts_with("http://") {
            break line.trim().to_owned();
        }
    }
}

/// Opens an address as a browser does, and returns the answer.
pub(crate) async fn browse(address: &str) -> String {
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    page
}
