//! The example `mail_assistant` with a mail server of this machine: dovecot for IMAP and msmtpd for SMTP, from Debian's
//! packages `dovecot-imapd` and `msmtp-mta`. Without them the test is ignored.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test may panic")]

#[cfg(unix)]
#[path = "mail_assistant/server.rs"]
mod server;

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    archon_testkit::run_trials(&[server::TRIALS])
}

#[cfg(not(unix))]
fn main() {}
