//! A mailbox by IMAP and a server for outgoing mail, at this machine, for one account.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

pub(crate) const PASSWORD: &str = "password-of-the-test";

/// The servers. They stop at the end of the test's runtime.
pub(crate) struct MailServers {
    pub(crate) imap: u16,
    pub(crate) smtp: u16,
    mails: Arc<Mutex<Mails>>,
}

#[derive(Default)]
struct Mails {
    /// The mails of the mailbox, each with its keywords.
    received: Vec<(String, Vec<String>)>,
    sent: Vec<String>,
}

impl MailServers {
    pub(crate) async fn start() -> Self {
        let mails: Arc<Mutex<Mails>> = Arc::default();
        let (imap, smtp) = (
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
        );
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        let servers = Self { imap: port(&imap), smtp: port(&smtp), mails: mails.clone() };
        let of_smtp = mails.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = imap.accept().await {
                let mails = mails.clone();
                tokio::spawn(async move { serve_imap(stream, &mails).await });
            }
        });
        tokio::spawn(async move {
            while let Ok((stream, _)) = smtp.accept().await {
                let mails = of_smtp.clone();
                tokio::spawn(async move { take_mail(stream, &mails).await });
            }
        });
        servers
    }

    /// Puts a mail into the mailbox.
    pub(crate) fn deliver(&self, mail: &str) {
        self.mails.lock().unwrap().received.push((mail.replace('\n', "\r\n"), Vec::new()));
    }

    /// Puts a mail into the mailbox that a program began to take, and then was killed.
    pub(crate) fn deliver_begun(&self, mail: &str) {
        self.deliver(mail);
        self.mails.lock().unwrap().received.last_mut().unwrap().1.push("archon-begun".to_owned());
    }

    /// Returns the mails that were sent, without the line breaks that their encoding adds.
    pub(crate) fn sent(&self) -> Vec<String> {
        self.mails.lock().unwrap().sent.iter().map(|mail| mail.replace("=\n", "")).collect()
    }

    /// Returns true if every mail of the mailbox was taken.
    pub(crate) fn are_all_taken(&self) -> bool {
        self.mails.lock().unwrap().received.iter().all(|(_, keywords)| is_taken(keywords))
    }
}

fn is_taken(keywords: &[String]) -> bool {
    keywords.iter().any(|keyword| keyword == "archon")
}

/// Serves a client of IMAP, as far as the command uses it.
async fn serve_imap(stream: TcpStream, mails: &Mutex<Mails>) -> Option<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"* OK [CAPABILITY IMAP4rev1] ready\r\n").await.ok()?;
    while let Ok(Some(line)) = lines.next_line().await {
        let (tag, command) = line.split_once(' ')?;
        let answer = imap_answer(command, &mut mails.lock().unwrap());
        write.write_all(format!("{answer}\r\n").replace("TAG", tag).as_bytes()).await.ok()?;
    }
    Some(())
}

fn imap_answer(command: &str, mails: &mut Mails) -> String {
    let uid = || command.split(' ').nth(2).and_then(|uid| uid.parse::<usize>().ok()).unwrap() - 1;
    if command.starts_with("LOGIN") && !command.contains(PASSWORD) {
        return "TAG NO [AUTHENTICATIONFAILED] the password is wrong".to_owned();
    }
    if command.starts_with("SELECT") {
        return "* OK [PERMANENTFLAGS (\\*)] kept\r\n* OK [UIDVALIDITY 1] valid\r\nTAG OK [READ-WRITE] done"
            .to_owned();
    }
    if command.starts_with("UID SEARCH") {
        let new = mails.received.iter().enumerate().filter(|(_, (_, keywords))| !is_taken(keywords));
        let new: String = new.map(|(at, _)| format!(" {}", at + 1)).collect();
        return format!("* SEARCH{new}\r\nTAG OK done");
    }
    if command.starts_with("UID FETCH") {
        let (uid, (mail, keywords)) = (uid() + 1, &mails.received[uid()]);
        let (flags, bytes) = (keywords.join(" "), mail.len());
        return format!(
            "* {uid} FETCH (UID {uid} FLAGS ({flags}) BODY[]<0> {{{bytes}}}\r\n{mail})\r\nTAG OK done"
        );
    }
    if command.starts_with("UID STORE") {
        let keyword = command.rsplit(' ').next().unwrap().trim_matches(['(', ')']);
        mails.received[uid()].1.push(keyword.to_owned());
    }
    let bye = if command.starts_with("LOGOUT") { "* BYE until later\r\n" } else { "" };
    format!("{bye}TAG OK done")
}

/// Takes the mail of a client of SMTP.
async fn take_mail(stream: TcpStream, mails: &Mutex<Mails>) -> Option<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"220 ready\r\n").await.ok()?;
    while let Ok(Some(line)) = lines.next_line().await {
        let answer = match line.split(' ').next()? {
            "DATA" => {
                write.write_all(b"354 go on\r\n").await.ok()?;
                let mut mail = String::new();
                while let Some(line) = lines.next_line().await.ok()?.filter(|line| line != ".") {
                    mail += &format!("{line}\n");
                }
                mails.lock().unwrap().sent.push(mail);
                "250 taken"
            }
            "QUIT" => "221 until later",
            _ => "250 good",
        };
        write.write_all(format!("{answer}\r\n").as_bytes()).await.ok()?;
    }
    Some(())
}
