//! The mail server, and a day of the assistant with it.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use archon::{
    Archon,
    event_sources::{ImapMailbox, MailboxError, ReceivedMail},
    notify::SmtpOptions,
    store::InMemoryTaskStore,
    types::{CancellationToken, Clock, Secret, ToolCall},
};
use archon_testkit::{FnProvider, Need, Trial, VirtualClock, trial};
use serde_json::json;

use mail_assistant::Office;

#[path = "../../examples/mail_assistant.rs"]
mod mail_assistant;

const PASSWORD: &str = "password-of-the-test";

/// The name of the server that checked the senders of mail.
const RECEIVER: &str = "mx.example.com";

// `cargo xtask ci` installs the servers where it may.
static MAIL: Need = Need::new(|| programs().map(drop), "ARCHON_REQUIRE_MAIL").optional_in_ci();

pub(crate) static TRIALS: &[Trial] =
    &[trial!(mail_assistant_proposes_an_answer_asks_by_mail_sends_after_the_yes_and_sums_up_at_eight)
        .needs(&MAIL)
        .on_threads(2)];

/// Returns the programs of the servers for IMAP and SMTP.
fn programs() -> Result<(PathBuf, PathBuf), String> {
    let find = |name: &str| {
        let folders = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
        let found = folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists());
        found.ok_or_else(|| format!("there is no {name}: apt-get install dovecot-imapd msmtp-mta"))
    };
    Ok((find("dovecot")?, find("msmtpd")?))
}

/// A mail server with the users anna, archon and ben.
struct MailServer {
    folder: tempfile::TempDir,
    imap: u16,
    smtp: u16,
    dovecot: Child,
    msmtpd: Child,
}

impl MailServer {
    /// Starts the servers.
    fn start() -> Self {
        let (dovecot, msmtpd) = programs().unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (imap, smtp) = (free_port(), free_port());
        let config = folder.path().join("dovecot.conf");
        fs::write(&config, dovecot_config(folder.path(), imap)).unwrap();
        let deliver = folder.path().join("deliver.sh");
        fs::write(&deliver, DELIVER).unwrap();
        fs::set_permissions(&deliver, fs::Permissions::from_mode(0o755)).unwrap();
        for user in ["anna", "archon", "ben"] {
            for part in ["new", "cur", "tmp"] {
                let path = folder.path().join(user).join("Maildir").join(part);
                fs::create_dir_all(&path).unwrap();
                for path in path.ancestors().take(3) {
                    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
                }
            }
        }
        let start =
            |command: &mut Command| command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let dovecot = start(Command::new(dovecot).arg("-F").arg("-c").arg(&config));
        let command = format!("--command={} {}", deliver.display(), folder.path().display());
        let msmtpd =
            start(Command::new(msmtpd).args(["--interface=127.0.0.1", &format!("--port={smtp}"), &command]));
        Self { folder, imap, smtp, dovecot, msmtpd }
    }

    fn mailbox(&self, user: &str) -> ImapMailbox {
        ImapMailbox::new("127.0.0.1", user, Secret::from(PASSWORD)).port(self.imap).without_tls()
    }

    fn smtp(&self) -> SmtpOptions {
        SmtpOptions::new("127.0.0.1").port(self.smtp).without_tls()
    }

    /// Puts a mail into a mailbox, in a file with this name.
    fn deliver(&self, user: &str, name: &str, mail: &str) {
        let folder = self.folder.path().join(user).join("Maildir");
        fs::write(folder.join("tmp").join(name), mail).unwrap();
        fs::rename(folder.join("tmp").join(name), folder.join("new").join(name)).unwrap();
    }

    /// Returns the files of a mailbox: their names with the flags, and their texts.
    fn files(&self, user: &str) -> Vec<(String, String)> {
        let folder = self.folder.path().join(user).join("Maildir");
        let files = ["new", "cur"].into_iter().flat_map(|part| fs::read_dir(folder.join(part)).unwrap());
        files
            .filter_map(|file| {
                let file = file.unwrap();
                // The server may move it meanwhile.
                let text = String::from_utf8_lossy(&fs::read(file.path()).ok()?).into_owned();
                Some((file.file_name().to_string_lossy().into_owned(), text))
            })
            .collect()
    }

    /// Waits until the servers take connections.
    async fn until_ready(&self) {
        for port in [self.imap, self.smtp] {
            while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.dovecot.id().to_string()).status();
        let _ = self.dovecot.wait();
        let _ = self.msmtpd.kill();
        let _ = self.msmtpd.wait();
    }
}

/// Puts a mail into the mailbox of each recipient. The first argument is the folder of the mailboxes.
const DELIVER: &str = r#"#!/bin/sh
root=$1; shift
name=$(date +%s%N).$$
cat > "$root/$name"
for to in "$@"; do
  user=${to%@*}
  cp "$root/$name" "$root/$user/Maildir/tmp/$name" && mv "$root/$user/Maildir/tmp/$name" "$root/$user/Maildir/new/$name"
done
rm "$root/$name"
"#;

/// A server without rights of the system: all parts are of the user of the test.
fn dovecot_config(folder: &Path, port: u16) -> String {
    let root = folder.display();
    let id = |option: &str| {
        let output = Command::new("id").arg(option).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let own = [id("-un"), id("-un"), id("-gn"), id("-un"), id("-gn")];
    // No part works as root.
    let own = if id("-u") == "0" {
        ["dovecot", "dovenull", "dovecot", "mail", "mail"].map(str::to_owned)
    } else {
        own
    };
    let [internal, login, internal_group, user, group] = own;
    format!(
        "protocols = imap\nlisten = 127.0.0.1\nbase_dir = {root}/run\nstate_dir = {root}/state\nlog_path = {root}/log\n\
         ssl = no\ndisable_plaintext_auth = no\ndefault_internal_user = {internal}\ndefault_login_user = {login}\n\
         default_internal_group = {internal_group}\nfirst_valid_uid = 1\nfirst_valid_gid = 1\nmail_location = maildir:~/Maildir\n\
         passdb {{\n  driver = static\n  args = password={{PLAIN}}{password}\n}}\n\
         userdb {{\n  driver = static\n  args = uid={user} gid={group} home={root}/%u\n}}\n\
         service imap-login {{\n  chroot =\n  inet_listener imap {{\n    port = {port}\n  }}\n  inet_listener imaps {{\n    port = 0\n  }}\n}}\n\
         service anvil {{\n  chroot =\n}}\nservice stats {{\n  chroot =\n}}\n",
        password = PASSWORD,
    )
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A model that answers mail of Ben, and sums up what `recent_mail` returned.
fn model() -> FnProvider {
    FnProvider::new(|_, request| {
        let last = request.messages.iter().last().map(|last| last.text()).unwrap_or_default();
        let reply = json!({ "to": "ben@example.com", "subject": "Re: Lunch", "text": "Noon is fine." });
        match last.as_str() {
            text if text.contains("Summarize") => {
                FnProvider::calls(vec![ToolCall::new("c", "recent_mail", json!({}))])
            }
            text if text.contains("Propose an answer") => {
                assert!(text.contains("Shall we meet at noon?"), "{text}");
                FnProvider::calls(vec![ToolCall::new("c", "send_mail", reply)])
            }
            text if text.contains("was sent") => FnProvider::text("Ben knows."),
            text => FnProvider::text(&format!(
                "One mail of {}.",
                if text.contains("ben@") { "Ben" } else { "nobody" }
            )),
        }
    })
}

/// Looks into a mailbox until a mail has this text, while the time of the assistant passes. Returns the mail.
async fn wait_for(server: &MailServer, user: &str, text: &str, clock: &VirtualClock) -> String {
    let mailbox = server.mailbox(user);
    for _ in 0..3_000 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        clock.advance(Duration::from_millis(200));
        // The keywords of this look are not those of the assistant: it only reads.
        let all: Vec<ReceivedMail> = match mailbox.list(&archon::SystemClock, archon::SystemClock.now()).await
        {
            Ok(all) => all,
            Err(MailboxError::Connection { .. }) => continue,
            Err(error) => panic!("{error}"),
        };
        let all = all.iter().map(|mail| String::from_utf8_lossy(&mail.bytes).into_owned());
        if let Some(found) = all.into_iter().find(|mail| mail.contains(text)) {
            return found;
        }
    }
    panic!("no mail to {user} has {text:?}");
}

/// Waits until the assistant has taken a mail: then the server keeps two keywords with it, as letters behind its name.
async fn wait_until_taken(server: &MailServer, user: &str, name: &str, clock: &VirtualClock) {
    let is_taken = |(file, _): &(String, String)| {
        let flags = file.strip_prefix(name).and_then(|rest| rest.split_once("2,"));
        flags.is_some_and(|(_, flags)| flags.matches(|flag: char| flag.is_ascii_lowercase()).count() == 2)
    };
    for _ in 0..3_000 {
        if server.files(user).iter().any(is_taken) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        clock.advance(Duration::from_millis(200));
    }
    panic!("the mail {name} to {user} was not taken: {:?}", server.files(user));
}

// spec: TR-04, TR-09, AP-10, A-39, A-40
async fn mail_assistant_proposes_an_answer_asks_by_mail_sends_after_the_yes_and_sums_up_at_eight() {
    let server = MailServer::start();
    server.until_ready().await;
    // The days of the server are those of the machine.
    let clock = VirtualClock::starting_at(archon::SystemClock.now());
    let office = Office {
        smtp: server.smtp(),
        anna: (server.mailbox("anna"), "anna@example.com".to_owned()),
        archon: (server.mailbox("archon"), "archon@example.com".to_owned()),
        secret: Secret::from("the secret of the test"),
        receiver: RECEIVER.to_owned(),
    };
    let model = model();
    let builder =
        Archon::builder().provider(Arc::new(model.clone()), "scripted").clock(Arc::new(clock.clone()));
    let (stop, tasks) = (CancellationToken::new(), Arc::new(InMemoryTaskStore::new()));
    let serving =
        tokio::spawn(mail_assistant::serve(office, builder, tasks, Arc::new(clock.clone()), stop.clone()));

    // No person wrote it, so it starts no run.
    server.deliver(
        "anna",
        "report",
        "Return-Path: <>\r\nFrom: mailer-daemon@example.com\r\nTo: anna@example.com\r\n\
         Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\n\r\nThere is no eve.\r\n--b--\r\n",
    );
    let lunch = "From: Ben <ben@example.com>\r\nTo: anna@example.com\r\nSubject: Lunch\r\n\r\nShall we meet at noon?\r\n";
    server.deliver("anna", "lunch", lunch);
    let question = wait_for(&server, "anna", "send_mail", &clock).await;
    let id = question
        .lines()
        .find_map(|line| line.strip_prefix("Message-ID: "))
        .unwrap_or_else(|| panic!("{question}"));
    let reply = |results: &str| {
        let confirmed = format!("Authentication-Results: {RECEIVER}; {results} header.from=example.com\r\n");
        format!(
            "{confirmed}From: anna@example.com\r\nTo: archon@example.com\r\nIn-Reply-To: {id}\r\n\r\nyes\r\n"
        )
    };
    server.deliver("archon", "forged", &reply("dmarc=fail"));
    wait_until_taken(&server, "archon", "forged", &clock).await;
    assert!(server.files("ben").is_empty(), "a reply whose sender is not confirmed answers nothing");
    server.deliver("archon", "reply", &reply("dmarc=pass"));
    wait_for(&server, "ben", "Noon is fine.", &clock).await;
    wait_for(&server, "anna", "Ben knows.", &clock).await;

    // At most a day until it is eight in Shanghai.
    clock.advance(Duration::from_secs(24 * 60 * 60));
    wait_for(&server, "anna", "One mail of Ben.", &clock).await;
    // The summary read the mail of the question, and the model saw no token of it.
    let token = id.split('.').nth(1).unwrap();
    let read = format!("{:?}", model.requests());
    assert!(read.contains("question.[token]@archon") && !read.contains(token), "{read}");
    // Only the mail of Ben started a run: not the report, and not the mail of the assistant.
    let asks = |text: &str| text.contains("Propose an answer");
    let requests = model.requests();
    let proposals =
        requests.iter().filter(|one| one.messages.iter().last().is_some_and(|last| asks(&last.text())));
    assert_eq!(proposals.count(), 1, "{read}");
    stop.cancel();
    serving.await.unwrap().unwrap();
}
