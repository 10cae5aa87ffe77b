//! Reads a secret from standard input: typed without display, or piped.

use std::io::{self, IsTerminal as _, Read as _};

use archon::types::{CancellationToken, Secret};

use crate::{app::App, exit::Exit, failure::Failure, interrupt, output::Look};

/// The maximum number of bytes to read; no key is longer.
const MOST: u64 = 64 * 1024;

/// Reads the secret that a person types after `question`, or that is piped in: one line. `pipe` is the
/// advice for the input without a terminal.
pub(crate) async fn read(app: &App, question: &str, pipe: &str) -> Result<Secret, Failure> {
    let read = match io::stdin().is_terminal() {
        true => typed(app, question, pipe).await?,
        false => tokio::task::spawn_blocking(piped).await.unwrap_or_else(|e| Err(io::Error::other(e))),
    };
    let text = read.map_err(|e| Failure::usage(format!("cannot read standard input: {e}"), pipe))?;
    line(&text, pipe)
}

fn line(text: &str, pipe: &str) -> Result<Secret, Failure> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Failure::usage("there is no key on standard input", pipe));
    }
    match text.chars().any(char::is_control) {
        true => Err(Failure::usage("the key has more than one line, or a control character", pipe)),
        false => Ok(Secret::from(text.to_owned())),
    }
}

fn piped() -> io::Result<String> {
    let mut text = String::new();
    io::stdin().lock().take(MOST).read_to_string(&mut text)?;
    Ok(text)
}

/// Reads a line from the terminal without displaying it. Ctrl-C ends the question, and the terminal displays
/// typed text again.
async fn typed(app: &App, question: &str, pipe: &str) -> Result<io::Result<String>, Failure> {
    let cancel = CancellationToken::new();
    let listener = interrupt::listen(cancel.clone(), app.output.clone());
    let Some(_unseen) = Unseen::begin() else {
        return Err(Failure::usage("a key cannot be typed here without being displayed", pipe));
    };
    app.output.note_piece(Look::Plain, question);
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line)
    });
    let read = tokio::select! {
        read = line => read.unwrap_or_else(|e| Err(io::Error::other(e))),
        () = cancel.cancelled() => {
            return Err(Failure::new(Exit::Interrupted, "interrupted", "no key was stored"));
        }
    };
    listener.abort();
    Ok(read)
}

/// Hides typed text on the terminal, except the end of the line, until this value is dropped.
#[cfg(unix)]
struct Unseen(rustix::termios::Termios);

#[cfg(unix)]
impl Unseen {
    fn begin() -> Option<Self> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin()).ok()?;
        let mut unseen = before.clone();
        unseen.local_modes.remove(LocalModes::ECHO);
        unseen.local_modes.insert(LocalModes::ECHONL);
        // Input typed before the question is not an answer.
        tcsetattr(io::stdin(), OptionalActions::Flush, &unseen).ok()?;
        Some(Self(before))
    }
}

#[cfg(unix)]
impl Drop for Unseen {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

#[cfg(not(unix))]
struct Unseen;

#[cfg(not(unix))]
impl Unseen {
    fn begin() -> Option<Self> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_one_line_and_not_empty() {
        for (text, expected) in [
            ("sk-1\n", Some("sk-1")),
            ("  sk-1\r\n", Some("sk-1")),
            ("\n", None),
            ("a\nb", None),
            ("a\u{1b}b", None),
        ] {
            let found = line(text, "pipe it in").ok();
            assert_eq!(found.as_ref().map(|key| key.expose().as_str()), expected, "{text:?}");
        }
    }
}
