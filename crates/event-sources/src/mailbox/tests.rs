//! Looks into a mailbox of a small server.

use archon_testkit::VirtualClock;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

use super::*;

/// A mail of the server, and its keywords.
type Kept = (String, Vec<String>);

/// Serves a client until it signs out. The number of a mail begins at 1.
async fn serve(stream: DuplexStream, mails: &Mutex<Vec<Kept>>) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"* OK [CAPABILITY IMAP4rev1] ready\r\n").await.unwrap();
    while let Ok(Some(line)) = lines.next_line().await {
        let (tag, command) = line.split_once(' ').unwrap();
        let before = answer_before(command, &mut mails.lock().unwrap());
        if write.write_all(format!("{before}{tag} OK done\r\n").as_bytes()).await.is_err() {
            return;
        }
    }
}

fn answer_before(command: &str, mails: &mut [Kept]) -> String {
    let words: Vec<&str> = command.split(' ').collect();
    match words[..] {
        ["SELECT", ..] => "* OK [UIDVALIDITY 17] valid\r\n".to_owned(),
        ["UID", "SEARCH", ..] => {
            let is_new = |(_, keywords): &Kept| !keywords.contains(&"archon".to_owned());
            let new = mails.iter().enumerate().filter(|(_, mail)| is_new(mail));
            format!("* SEARCH{}\r\n", new.map(|(at, _)| format!(" {}", at + 1)).collect::<String>())
        }
        ["UID", "FETCH", uid, ..] => {
            let (text, keywords) = &mails[uid.parse::<usize>().unwrap() - 1];
            let (flags, bytes) = (keywords.join(" "), text.len());
            format!("* {uid} FETCH (UID {uid} FLAGS ({flags}) BODY[]<0> {{{bytes}}}\r\n{text})\r\n")
        }
        ["UID", "STORE", uid, "+FLAGS.SILENT", keyword] => {
            let keyword = keyword.trim_matches(['(', ')']).to_owned();
            mails[uid.parse::<usize>().unwrap() - 1].1.push(keyword);
            String::new()
        }
        ["LOGOUT"] => "* BYE until later\r\n".to_owned(),
        _ => String::new(),
    }
}

fn mailbox() -> ImapMailbox {
    ImapMailbox::new("mail.example.com", "anna", Secret::from("very-secret"))
}

/// Looks once, takes the mails that `takes` names by their numbers, and returns all that were given to it: their numbers, and
/// whether each was a repeat.
async fn look(
    mailbox: &ImapMailbox,
    mails: &Mutex<Vec<Kept>>,
    last: &mut u32,
    takes: impl Fn(u32) -> bool + Sync,
) -> Vec<(u32, bool)> {
    let (ours, theirs) = tokio::io::duplex(4_096);
    let given = Mutex::new(Vec::new());
    let take = |mail: ReceivedMail| {
        let uid: u32 = mail.id.strip_prefix("17/").unwrap().parse().unwrap();
        given.lock().unwrap().push((uid, mail.is_repeat));
        std::future::ready(takes(uid).then_some(()).ok_or_else(|| "the task is full".to_owned()))
    };
    let looking = async {
        let mut session = Session::new(ours, "mail.example.com", 1_000);
        let look = Look { since: Timestamp::from_millis(0), is_new: true, last };
        mailbox.look_in(&mut session, &VirtualClock::new(), look, &take).await.unwrap();
    };
    tokio::join!(looking, serve(theirs, mails));
    given.into_inner().unwrap()
}

fn mails(count: usize) -> Mutex<Vec<Kept>> {
    let mail = |number| (format!("From: ben@example.com\r\n\r\n{number}\r\n"), Vec::new());
    Mutex::new((0..count).map(mail).collect())
}

fn numbers_of_taken(mails: &Mutex<Vec<Kept>>) -> Vec<usize> {
    let mails = mails.lock().unwrap();
    let is_taken = |(_, keywords): &Kept| keywords.iter().any(|keyword| keyword == "archon");
    (1..=mails.len()).filter(|number| is_taken(&mails[number - 1])).collect()
}

// spec: TR-04
#[tokio::test]
async fn mail_that_is_refused_at_each_look_keeps_no_mail_behind_it_from_being_read() {
    let (mailbox, mails, mut last) = (mailbox(), mails(60), 0);
    let is_reply = |uid| uid > 55;
    let first = look(&mailbox, &mails, &mut last, is_reply).await;
    assert_eq!(first, (1..=50).map(|uid| (uid, false)).collect::<Vec<_>>());
    let second = look(&mailbox, &mails, &mut last, is_reply).await;
    let expected: Vec<_> = (51..=60).map(|uid| (uid, false)).chain((1..=40).map(|uid| (uid, true))).collect();
    assert_eq!(second, expected);
    assert_eq!(numbers_of_taken(&mails), [56, 57, 58, 59, 60]);
    // Mail that was refused comes again, and then is taken.
    let third = look(&mailbox, &mails, &mut last, |_| true).await;
    assert_eq!((third[0], third.len()), ((41, true), 50));
    look(&mailbox, &mails, &mut last, |_| true).await;
    assert_eq!(numbers_of_taken(&mails).len(), 60);
}

// spec: TR-04
#[tokio::test]
async fn mail_that_a_program_wrote_is_left_out_unless_it_is_wanted() {
    let report = "Return-Path: <>\r\nContent-Type: multipart/report; boundary=b\r\n\r\n--b--\r\n".to_owned();
    let (mut last, wants) = (0, mailbox().with_automatic_mail());
    for (mailbox, expected) in [(mailbox(), vec![(2, false)]), (wants, vec![(1, false), (2, false)])] {
        let mails = mails(2);
        mails.lock().unwrap()[0].0.clone_from(&report);
        assert_eq!(look(&mailbox, &mails, &mut last, |_| true).await, expected);
        assert_eq!(numbers_of_taken(&mails), [1, 2]);
    }
}

#[test]
fn server_beyond_this_machine_needs_tls() {
    let mailbox = mailbox().without_tls();
    assert!(!format!("{mailbox:?}").contains("very-secret"));
    let connected = futures_util::FutureExt::now_or_never(mailbox.connect(&VirtualClock::new()));
    let error = connected.unwrap().err().unwrap();
    assert!(error.to_string().contains("leave out `without_tls`"), "{error}");
}
