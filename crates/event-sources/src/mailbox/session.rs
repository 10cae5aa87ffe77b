//! A session with a mail server. The library knows the protocol and does no I/O; it also bounds what the server may send.

use std::num::NonZeroU32;

use archon_types::{Secret, Timestamp};
use imap_next::{
    Interrupt, Io, State as _,
    client::{Client, Event, Options},
    imap_types::{
        command::{Command, CommandBody},
        core::{Atom, Tag, Vec1},
        datetime::NaiveDate,
        fetch::{MacroOrMessageDataItemNames, MessageDataItem, MessageDataItemName},
        flag::{Flag, FlagFetch, FlagPerm, StoreResponse, StoreType},
        response::{Code, Data, Status, StatusBody, StatusKind},
        search::SearchKey,
        sequence::SequenceSet,
    },
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::MailboxError;

/// The keyword of mail that was taken.
const TAKEN: &str = "archon";

/// The keyword of mail that was given to the program, before it is taken.
const BEGUN: &str = "archon-begun";

/// The most mail of one look.
const MOST: usize = 50;

/// The most bytes of an answer besides a mail.
const REST: u32 = 256 * 1024;

const TOO_MUCH: &str = "it sent what is no IMAP, or too much at once";

pub(super) struct Session<'a, S> {
    stream: S,
    client: Client,
    host: &'a str,
    commands: u32,
    /// The bytes that the server may still send for this command.
    room: usize,
    most: u32,
    /// True if the server keeps the keyword of mail that was begun.
    keeps_begun: bool,
}

/// A mail as the server has it, or its first bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    pub(super) bytes: Vec<u8>,
    /// True if the mail was given to the program before.
    pub(super) is_begun: bool,
}

/// The untagged parts of the answer to a command.
#[derive(Default)]
struct Answered {
    data: Vec<Data<'static>>,
    codes: Vec<Code<'static>>,
}

impl<'a, S: AsyncRead + AsyncWrite + Send + Unpin> Session<'a, S> {
    pub(super) fn new(stream: S, host: &'a str, max_bytes: u32) -> Self {
        let (mut options, most) = (Options::default(), max_bytes.saturating_add(REST));
        options.max_response_size = most;
        let room = most as usize;
        Self { stream, client: Client::new(options), host, commands: 0, room, most, keeps_begun: false }
    }

    pub(super) async fn sign_in(
        &mut self,
        user: &str,
        password: &Secret<String>,
    ) -> Result<(), MailboxError> {
        loop {
            match self.next_event().await? {
                Event::GreetingReceived { .. } => break,
                _ => continue,
            }
        }
        let login = CommandBody::login(user.to_owned(), password.expose().clone());
        let login = login.map_err(|_| self.wrong("the user or the password has a zero byte".to_owned()))?;
        self.run("sign in", login).await.map(drop)
    }

    /// Opens a folder. Returns the number with which its ids of mail are valid. With `marks`, the server must keep the keyword
    /// of mail that was taken: otherwise each look would take all mail again.
    pub(super) async fn select(&mut self, folder: &str, marks: bool) -> Result<u32, MailboxError> {
        let select = CommandBody::select(folder.to_owned())
            .map_err(|_| self.wrong(format!("the folder {folder:?} has a zero byte")))?;
        let answered = self.run("open the folder", select).await?;
        self.keeps_begun = marks && keeps_keyword(&answered.codes, BEGUN);
        if marks && !keeps_keyword(&answered.codes, TAKEN) {
            return Err(
                self.refused("keep the keyword `archon`", "the folder has no such flags (PERMANENTFLAGS)")
            );
        }
        let validity = answered.codes.iter().find_map(|code| match code {
            Code::UidValidity(number) => Some(number.get()),
            _ => None,
        });
        Ok(validity.unwrap_or_default())
    }

    /// Returns the ids of mail since a day, with `is_new` only of mail that was not taken: the oldest first, from the one behind
    /// `last` on and then from the start.
    pub(super) async fn find(
        &mut self,
        since: Timestamp,
        is_new: bool,
        last: u32,
    ) -> Result<Vec<NonZeroU32>, MailboxError> {
        let day = i64::try_from(since.as_millis()).ok().and_then(chrono::DateTime::from_timestamp_millis);
        let day = day.and_then(|day| NaiveDate::try_from(day.date_naive()).ok());
        let mut keys = vec![day.map_or(SearchKey::All, SearchKey::Since)];
        if is_new {
            keys.push(SearchKey::Unkeyword(self.keyword(TAKEN)?));
        }
        let keys = Vec1::try_from(keys).unwrap_or(Vec1::from(SearchKey::All));
        let answered = self.run("search", CommandBody::search(None, keys, true)).await?;
        let mut found: Vec<NonZeroU32> = answered
            .data
            .into_iter()
            .filter_map(|data| match data {
                Data::Search(found, ..) => Some(found),
                _ => None,
            })
            .flatten()
            .collect();
        found.sort_unstable();
        let next = found.partition_point(|uid| uid.get() <= last);
        found.rotate_left(next);
        found.truncate(MOST);
        Ok(found)
    }

    /// Returns the first bytes of a mail, which stays unread; `None` if it is gone.
    pub(super) async fn fetch(
        &mut self,
        uid: NonZeroU32,
        most: u32,
    ) -> Result<Option<Fetched>, MailboxError> {
        let partial = NonZeroU32::new(most).map(|most| (0, most));
        let body = MessageDataItemName::BodyExt { section: None, partial, peek: true };
        let items = vec![MessageDataItemName::Flags, body];
        let items = MacroOrMessageDataItemNames::MessageDataItemNames(items);
        let fetch = CommandBody::Fetch {
            sequence_set: SequenceSet::from(uid),
            macro_or_item_names: items,
            uid: true,
        };
        let answered = self.run("fetch a mail", fetch).await?;
        Ok(answered.data.into_iter().find_map(|data| match data {
            Data::Fetch { items, .. } => mail_in(items.into_inner()),
            _ => None,
        }))
    }

    /// Notes at the server that a mail is given to the program, if the server keeps that.
    pub(super) async fn mark_begun(&mut self, uid: NonZeroU32) -> Result<(), MailboxError> {
        match self.keeps_begun {
            true => self.store(uid, BEGUN).await,
            false => Ok(()),
        }
    }

    /// Notes at the server that a mail was taken.
    pub(super) async fn mark_taken(&mut self, uid: NonZeroU32) -> Result<(), MailboxError> {
        self.store(uid, TAKEN).await
    }

    async fn store(&mut self, uid: NonZeroU32, keyword: &'static str) -> Result<(), MailboxError> {
        let store = CommandBody::Store {
            sequence_set: SequenceSet::from(uid),
            kind: StoreType::Add,
            response: StoreResponse::Silent,
            flags: vec![Flag::Keyword(self.keyword(keyword)?)],
            uid: true,
        };
        self.run("set a keyword", store).await.map(drop)
    }

    pub(super) async fn sign_out(&mut self) -> Result<(), MailboxError> {
        self.run("sign out", CommandBody::Logout).await.map(drop)
    }

    fn keyword(&self, keyword: &'static str) -> Result<Atom<'static>, MailboxError> {
        Atom::try_from(keyword).map_err(|error| self.wrong(error.to_string()))
    }

    /// Sends a command, and reads up to its answer.
    async fn run(
        &mut self,
        action: &'static str,
        body: CommandBody<'static>,
    ) -> Result<Answered, MailboxError> {
        (self.commands, self.room) = (self.commands + 1, self.most as usize);
        let tag =
            Tag::try_from(format!("A{}", self.commands)).map_err(|error| self.wrong(error.to_string()))?;
        self.client.enqueue_command(Command { tag: tag.clone(), body });
        let mut answered = Answered::default();
        loop {
            let status = match self.next_event().await? {
                Event::DataReceived { data } => {
                    answered.data.push(data);
                    continue;
                }
                Event::StatusReceived { status } | Event::CommandRejected { status, .. } => status,
                _ => continue,
            };
            match status {
                Status::Untagged(StatusBody { code, .. }) => answered.codes.extend(code),
                Status::Tagged(tagged) if tagged.tag == tag => {
                    return match tagged.body.kind {
                        StatusKind::Ok => Ok(answered),
                        _ => Err(self.refused(action, tagged.body.text.as_ref())),
                    };
                }
                Status::Tagged(_) => {}
                // The server says so before it closes; the answer to the sign-out comes afterwards.
                Status::Bye(_) if action == "sign out" => {}
                Status::Bye(bye) => return Err(self.broken(bye.text.as_ref())),
            }
        }
    }

    async fn next_event(&mut self) -> Result<Event, MailboxError> {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            match self.client.next() {
                Ok(event) => return Ok(event),
                Err(Interrupt::Io(Io::Output(bytes))) => {
                    let written = self.stream.write_all(&bytes).await;
                    written.map_err(|error| self.broken(&error.to_string()))?;
                }
                Err(Interrupt::Io(Io::NeedMoreInput)) => {
                    self.stream.flush().await.map_err(|error| self.broken(&error.to_string()))?;
                    match self.stream.read(&mut buffer).await {
                        Ok(0) => return Err(self.broken("it closed the connection")),
                        Ok(count) if count > self.room => return Err(self.broken(TOO_MUCH)),
                        Ok(count) => {
                            self.room -= count;
                            self.client.enqueue_input(&buffer[..count]);
                        }
                        Err(error) => return Err(self.broken(&error.to_string())),
                    }
                }
                // The error has what the server sent, which may be a mail.
                Err(Interrupt::Error(_)) => return Err(self.broken(TOO_MUCH)),
            }
        }
    }

    fn wrong(&self, problem: String) -> MailboxError {
        MailboxError::Settings { host: self.host.to_owned(), problem }
    }

    fn broken(&self, problem: &str) -> MailboxError {
        MailboxError::Connection { host: self.host.to_owned(), problem: archon_types::one_line(problem, 200) }
    }

    fn refused(&self, action: &'static str, problem: &str) -> MailboxError {
        let problem = archon_types::one_line(problem, 200);
        MailboxError::Refused { host: self.host.to_owned(), action, problem }
    }
}

/// Returns the mail of an answer; `None` if the answer is about the flags of a mail only.
fn mail_in(items: Vec<MessageDataItem<'static>>) -> Option<Fetched> {
    let (mut bytes, mut is_begun) = (None, false);
    for item in items {
        match item {
            MessageDataItem::BodyExt { data, .. } => bytes = data.into_option(),
            MessageDataItem::Flags(flags) => {
                is_begun = flags.iter().any(|flag| match flag {
                    FlagFetch::Flag(Flag::Keyword(name)) => name.as_ref().eq_ignore_ascii_case(BEGUN),
                    _ => false,
                });
            }
            _ => {}
        }
    }
    Some(Fetched { bytes: bytes?.into_owned(), is_begun })
}

/// Returns true if the server keeps a keyword, as far as it says: without a list it keeps all.
fn keeps_keyword(codes: &[Code<'_>], keyword: &str) -> bool {
    let mut lists = codes.iter().filter_map(|code| match code {
        Code::PermanentFlags(flags) => Some(flags),
        _ => None,
    });
    let is_kept = |flag: &FlagPerm<'_>| match flag {
        FlagPerm::Asterisk => true,
        FlagPerm::Flag(Flag::Keyword(name)) => name.as_ref().eq_ignore_ascii_case(keyword),
        FlagPerm::Flag(_) => false,
    };
    lists.next().is_none_or(|flags| flags.iter().any(is_kept))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, BufReader, DuplexStream};

    use super::*;

    /// Answers each command by the first pair whose beginning it has; `TAG` stands for its tag. Returns the commands.
    async fn serve(stream: DuplexStream, answers: &[(&str, &str)]) -> Vec<String> {
        let (read, mut write) = tokio::io::split(stream);
        let (mut lines, mut commands) = (BufReader::new(read).lines(), Vec::new());
        write.write_all(b"* OK [CAPABILITY IMAP4rev1] ready\r\n").await.unwrap();
        while let Ok(Some(line)) = lines.next_line().await {
            let (tag, command) = line.split_once(' ').unwrap();
            let answer =
                answers.iter().find(|(start, _)| command.starts_with(start)).map(|(_, answer)| *answer);
            let answer = answer.unwrap_or("TAG OK done\r\n").replace("TAG", tag);
            commands.push(command.to_owned());
            if write.write_all(answer.as_bytes()).await.is_err() {
                break;
            }
        }
        commands
    }

    fn uid(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).unwrap()
    }

    fn secret() -> Secret<String> {
        Secret::from("very secret")
    }

    // spec: TR-04
    #[tokio::test]
    async fn session_finds_new_mail_reads_its_first_bytes_and_marks_it() {
        let (ours, theirs) = tokio::io::duplex(4_096);
        let mail = async {
            let mut session = Session::new(ours, "mail.example.com", 100);
            session.sign_in("anna", &secret()).await?;
            assert_eq!(session.select("INBOX", true).await?, 17);
            let since = "2026-03-27T08:00:00Z".parse().unwrap();
            assert_eq!(session.find(since, true, 0).await?, [uid(4), uid(7)]);
            assert_eq!(session.find(since, true, 4).await?, [uid(7), uid(4)]);
            let mails = [session.fetch(uid(4), 100).await?, session.fetch(uid(7), 100).await?];
            assert_eq!(session.fetch(uid(8), 100).await?, None);
            session.mark_begun(uid(7)).await?;
            session.mark_taken(uid(7)).await?;
            session.sign_out().await?;
            drop(session);
            Ok::<_, MailboxError>(mails)
        };
        let answers = [
            (
                "SELECT",
                "* 2 EXISTS\r\n* OK [PERMANENTFLAGS (\\Seen Archon archon-begun)] kept\r\n* OK [UIDVALIDITY 17] valid\r\n\
                 TAG OK [READ-WRITE] done\r\n",
            ),
            ("UID SEARCH", "* SEARCH 7 4\r\nTAG OK done\r\n"),
            (
                "UID FETCH 4",
                "* 1 FETCH (FLAGS (archon-begun))\r\n\
                 * 1 FETCH (UID 4 FLAGS (\\Recent Archon-Begun) BODY[]<0> {1}\r\nd)\r\nTAG OK done\r\n",
            ),
            (
                "UID FETCH 7",
                "* 1 FETCH (FLAGS (archon-begun))\r\n* 2 FETCH (UID 7 FLAGS (other) BODY[]<0> {5}\r\nab\r\nc)\r\n\
                 TAG OK done\r\n",
            ),
            ("LOGOUT", "* BYE until later\r\nTAG OK done\r\n"),
        ];
        let (mails, commands) = tokio::join!(mail, serve(theirs, &answers));
        let mail = |bytes: &[u8], is_begun| Some(Fetched { bytes: bytes.to_vec(), is_begun });
        assert_eq!(mails.unwrap(), [mail(b"d", true), mail(b"ab\r\nc", false)]);
        assert_eq!(
            commands,
            [
                "LOGIN anna \"very secret\"",
                "SELECT INBOX",
                "UID SEARCH SINCE \"27-Mar-2026\" UNKEYWORD archon",
                "UID SEARCH SINCE \"27-Mar-2026\" UNKEYWORD archon",
                "UID FETCH 4 (FLAGS BODY.PEEK[]<0.100>)",
                "UID FETCH 7 (FLAGS BODY.PEEK[]<0.100>)",
                "UID FETCH 8 (FLAGS BODY.PEEK[]<0.100>)",
                "UID STORE 7 +FLAGS.SILENT (archon-begun)",
                "UID STORE 7 +FLAGS.SILENT (archon)",
                "LOGOUT",
            ]
        );
    }

    /// Signs in at a server and opens a folder, and returns the error.
    async fn error_of(answers: &[(&str, &str)]) -> String {
        let (ours, theirs) = tokio::io::duplex(4_096);
        let opened = async {
            let mut session = Session::new(ours, "mail.example.com", 100);
            session.sign_in("anna", &secret()).await?;
            session.select("INBOX", true).await
        };
        let (opened, _) = tokio::join!(opened, serve(theirs, answers));
        opened.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn session_with_a_server_that_refuses_ends_or_sends_too_much_has_an_error_without_the_password() {
        let refused = error_of(&[("LOGIN", "TAG NO [AUTHENTICATIONFAILED] wrong\r\n")]).await;
        assert!(
            refused.contains("mail.example.com refused to sign in: wrong; check the account"),
            "{refused}"
        );
        let gone = error_of(&[("SELECT", "* BYE shutting down\r\n")]).await;
        assert!(gone.contains("failed: shutting down"), "{gone}");
        let flood = format!("* 1 FETCH (BODY[] {{100000000}}\r\n{}", "x".repeat(300_000));
        let large = error_of(&[("SELECT", &flood)]).await;
        assert!(large.contains("no IMAP, or too much at once"), "{large}");
        let other = error_of(&[("SELECT", "HTTP/1.1 400 Bad Request\r\n")]).await;
        assert!(other.contains("no IMAP, or too much at once"), "{other}");
        let flags = "* OK [PERMANENTFLAGS (\\Seen \\Deleted other)] kept\r\nTAG OK [READ-WRITE] done\r\n";
        let forgets = error_of(&[("SELECT", flags)]).await;
        assert!(forgets.contains("refused to keep the keyword `archon`: the folder has no"), "{forgets}");
        for error in [refused, gone, large, other, forgets] {
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
