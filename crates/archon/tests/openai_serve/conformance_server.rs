//! The server that official OpenAI clients are run against: serves the agents of the tests on a free port of this machine
//! while a command runs, and ends with the command's exit code. `{url}` in the command becomes the address.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use archon::{
    openai_serve,
    server::{ServeOptions, serve},
    types::CancellationToken,
};
use tokio::net::TcpListener;

#[allow(dead_code, reason = "the tests use more of it")]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod desk;

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    let end = CancellationToken::new();
    let desk = desk::Desk::new();
    let server = desk.server(openai_serve::ModelServerOptions::default().with_end(end.clone()));
    let served = {
        let end = end.clone();
        tokio::spawn(async move { serve(server.router(), listener, &ServeOptions::default(), &end).await })
    };
    let mut words = std::env::args().skip(1).map(|word| word.replace("{url}", &url));
    let program = words.next().context("usage: openai_conformance_server COMMAND [ARG...]")?;
    let mut command = Command::new(program);
    command.args(words);
    let status = tokio::task::spawn_blocking(move || command.status()).await??;
    end.cancel();
    served.await??;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
