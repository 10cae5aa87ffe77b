//! The end of a sign-in with a browser: the browser's answer on this machine, or an address that the person types.

use std::{fmt::Display, io::BufRead, pin::pin};

use futures_util::future::{Either, pending, select};
use serde_json::json;
use tokio::sync::mpsc;

use crate::app::App;

/// Shows the address of a sign-in, and waits until the browser has come back from it (`wait`), or until the person types
/// the address at which the browser ended, which `finish` takes.
pub(crate) async fn of_sign_in<E: Display>(
    app: &App,
    url: &str,
    wait: impl Future<Output = Result<(), E>>,
    finish: impl AsyncFn(String) -> Result<(), E>,
) -> Result<(), E> {
    app.item(&json!({"url": url}), || format!("Open this address in a browser:\n\n  {url}\n"));
    app.note_if(
        app.can_ask(),
        "If the browser is on another machine, it ends at an address that it cannot open: copy that here.",
    );
    let mut lines = typed_lines(app.can_ask());
    let mut answer = pin!(wait);
    loop {
        match select(answer.as_mut(), pin!(next_line(&mut lines))).await {
            Either::Left((done, _)) => return done,
            Either::Right((line, _)) => {
                let is_answer = line.contains("state=");
                match finish(line).await {
                    // The browser's answer may still come.
                    Err(e) if !is_answer => app.output.warn(e.to_string()),
                    done => return done,
                }
            }
        }
    }
}

/// Returns the lines that the person types; none without a terminal.
fn typed_lines(is_terminal: bool) -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    if is_terminal {
        // A thread of its own, because a read of the terminal cannot be stopped.
        std::thread::spawn(move || {
            let lines = std::io::stdin().lock().lines().map_while(Result::ok);
            for line in lines.filter(|line| !line.trim().is_empty()) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    lines
}

/// Returns the next line; waits for ever if there are no more.
async fn next_line(lines: &mut mpsc::UnboundedReceiver<String>) -> String {
    match lines.recv().await {
        Some(line) => line,
        None => pending().await,
    }
}
