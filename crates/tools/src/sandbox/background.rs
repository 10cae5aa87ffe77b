//! A command that runs on after the call that started it. A task attends to it and keeps its output until it is
//! read.
//!
//! At the end of the command, control files are compared with their state before it. Changes are only reported,
//! because a person may have made them meanwhile. So the command is refused unless mounts protect the control files
//! while it runs.

use std::{
    collections::VecDeque,
    pin::{Pin, pin},
    process::Command,
    sync::{Arc, Mutex, PoisonError},
    task,
    time::Duration,
};

use archon_types::{Clock, ToolContext, ToolError};
use futures_util::future::join;
use tokio::{
    io::AsyncWriteExt,
    process::ChildStdin,
    sync::{oneshot, watch},
};

use super::{
    Cage,
    guarded::Owner,
    run::{End, Ended, attend, guarded, pump},
    start::start,
};

/// Maximum number of bytes of unread output; older output is dropped.
pub(crate) const MOST_UNREAD: usize = 1 << 20;
/// Maximum number of bytes of the last known output.
const LAST: usize = 2 * 1024;
/// Maximum wait for a command that reads its input slowly.
const SEND: Duration = Duration::from_secs(5);
/// Maximum wait for the end of a stopped command. It is killed after a second.
const STOP: Duration = Duration::from_secs(10);

/// A command in the background. Dropping it stops the command: SIGTERM to all its processes, and SIGKILL a second
/// later.
#[derive(Debug)]
pub(crate) struct Background {
    output: Arc<watch::Sender<Buffer>>,
    input: tokio::sync::Mutex<Option<ChildStdin>>,
    /// The command is stopped when the sender is dropped.
    stop: Mutex<Option<oneshot::Sender<()>>>,
}

/// The end of a command, or the error of waiting for it.
pub(crate) type Ending = Arc<Result<End, ToolError>>;

#[derive(Debug, Default)]
struct Buffer {
    unread: VecDeque<u8>,
    /// Number of bytes that were dropped since the last read.
    dropped: u64,
    last: String,
    end: Option<Ending>,
}

/// Output of a command that was not read before.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    pub(crate) text: String,
    /// Number of bytes before `text` that were dropped.
    pub(crate) dropped: u64,
    /// Number of bytes after `text` that are still to be read.
    pub(crate) waiting: usize,
    /// The end of all output that was read so far, at most 2 KiB.
    pub(crate) last: String,
    /// The end of the command; `None` while it runs.
    pub(crate) end: Option<Ending>,
}

impl Background {
    /// Starts the command. Its process group is in the run's log before it does anything.
    pub(crate) async fn start(
        command: &Command,
        cage: &Cage,
        context: &ToolContext,
    ) -> Result<Self, ToolError> {
        let guarded = guarded(cage, context, Owner::Process).await?;
        let mut started = start(command, cage, &guarded, Owner::Process, context).await?;
        let input = tokio::sync::Mutex::new(started.input.take());
        let (stdout, stderr) = (started.child.stdout.take(), started.child.stderr.take());
        let output = Arc::new(watch::Sender::new(Buffer::default()));
        let (stop, mut stopped) = oneshot::channel::<()>();
        let (cage, clock, buffer) = (cage.clone(), context.run.clock.clone(), output.clone());
        tokio::spawn(async move {
            let keep = |bytes: &[u8]| buffer.send_modify(|buffer| buffer.add(bytes));
            let pumps = join(pump(stdout, keep), pump(stderr, keep));
            let is_over =
                |task: &mut task::Context<'_>| Pin::new(&mut stopped).poll(task).map(|_| Ended::Stopped);
            let end = Arc::new(attend(started, guarded, pumps, &cage, &*clock, is_over).await);
            buffer.send_modify(|buffer| buffer.end = Some(end));
        });
        Ok(Self { output, input, stop: Mutex::new(Some(stop)) })
    }

    /// Returns whether the command has not ended.
    pub(crate) fn is_running(&self) -> bool {
        self.end().is_none()
    }

    /// Returns how the command ended; `None` while it runs.
    pub(crate) fn end(&self) -> Option<Ending> {
        self.output.borrow().end.clone()
    }

    /// Returns the number of bytes that are to be read.
    pub(crate) fn waiting(&self) -> usize {
        self.output.borrow().unread.len()
    }

    /// Waits until the command ends, at most `limit`.
    pub(crate) async fn wait_for_end(&self, limit: Duration, clock: &dyn Clock) {
        self.wait(limit, clock, |buffer| buffer.end.is_some()).await;
    }

    /// Waits until there is something to read or the command ends, at most `limit`.
    pub(crate) async fn wait_for_output(&self, limit: Duration, clock: &dyn Clock) {
        self.wait(limit, clock, |buffer| buffer.end.is_some() || !buffer.unread.is_empty()).await;
    }

    async fn wait(&self, limit: Duration, clock: &dyn Clock, is_enough: impl Fn(&Buffer) -> bool + Send) {
        let mut output = self.output.subscribe();
        let mut enough = pin!(output.wait_for(is_enough));
        clock.before(clock.now() + limit, |task| enough.as_mut().poll(task).map(|_| ())).await;
    }

    /// Returns the next output, at most `max` bytes, which then counts as read.
    pub(crate) fn take(&self, max: usize) -> Unread {
        let mut unread = Unread::default();
        self.output.send_modify(|buffer| unread = buffer.take(max));
        unread
    }

    /// Sends bytes to the command's input, and then closes the input if `is_last`.
    ///
    /// # Errors
    /// The input is closed, or the command does not read it.
    pub(crate) async fn send(&self, bytes: &[u8], is_last: bool, clock: &dyn Clock) -> Result<(), ToolError> {
        let mut input = self.input.lock().await;
        let pipe = input.as_mut().ok_or_else(|| ToolError::Failed("its input is closed".to_owned()))?;
        let sent = {
            let mut sending = pin!(pipe.write_all(bytes));
            clock.before(clock.now() + SEND, |task| sending.as_mut().poll(task)).await
        };
        match sent {
            Some(Ok(())) => {}
            Some(Err(e)) => return Err(ToolError::Failed(format!("its input cannot be written: {e}"))),
            None => {
                let why =
                    "it read only a part of the text within 5 seconds; read its output before you go on";
                return Err(ToolError::Failed(why.to_owned()));
            }
        }
        if is_last {
            *input = None;
        }
        Ok(())
    }

    /// Stops the command with all its processes, and waits for their end.
    pub(crate) async fn stop(&self, clock: &dyn Clock) {
        drop(self.stop.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.wait_for_end(STOP, clock).await;
    }
}

impl Buffer {
    fn add(&mut self, bytes: &[u8]) {
        self.unread.extend(bytes);
        let over = self.unread.len().saturating_sub(MOST_UNREAD);
        self.unread.drain(..over);
        self.dropped += over as u64;
    }

    fn take(&mut self, max: usize) -> Unread {
        let mut bytes: Vec<u8> = self.unread.iter().copied().take(max).collect();
        if self.end.is_none() || bytes.len() < self.unread.len() {
            bytes.truncate(whole_length(&bytes));
        }
        self.unread.drain(..bytes.len());
        let text = String::from_utf8_lossy(&bytes).into_owned();
        self.last.push_str(&text);
        let over = self.last.ceil_char_boundary(self.last.len().saturating_sub(LAST));
        self.last.drain(..over);
        Unread {
            text,
            dropped: std::mem::take(&mut self.dropped),
            waiting: self.unread.len(),
            last: self.last.clone(),
            end: self.end.clone(),
        }
    }
}

/// Returns the length of the text without an unfinished character at its end.
fn whole_length(text: &[u8]) -> usize {
    let begin = text.iter().rposition(|byte| byte & 0xC0 != 0x80).unwrap_or(0);
    match std::str::from_utf8(&text[begin..]) {
        Err(e) if e.error_len().is_none() => begin + e.valid_up_to(),
        _ => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_over_its_limit_drops_the_oldest_bytes_and_counts_them() {
        let mut buffer = Buffer::default();
        (0..3).for_each(|_| buffer.add(&vec![b'x'; MOST_UNREAD / 2]));
        buffer.add(b"end");
        assert_eq!(buffer.unread.len(), MOST_UNREAD);
        let unread = buffer.take(usize::MAX);
        assert_eq!(unread.dropped, (MOST_UNREAD / 2 + 3) as u64);
        assert!(unread.text.ends_with("xend") && unread.waiting == 0);
        assert!(unread.last.len() == LAST && unread.last.ends_with("xend"));
        assert_eq!(buffer.take(9).dropped, 0);
    }

    #[test]
    fn buffer_read_in_pieces_keeps_characters_whole() {
        let mut buffer = Buffer::default();
        buffer.add("aé€".as_bytes());
        assert_eq!(buffer.take(2).text, "a");
        assert_eq!(buffer.take(4).text, "é");
        let (begin, end) = "€".as_bytes().split_at(2);
        assert_eq!(buffer.take(4).text, "€");
        buffer.add(begin);
        assert_eq!(buffer.take(4).text, "", "the rest of the character may come");
        buffer.add(end);
        assert_eq!(buffer.take(4).text, "€");
        buffer.add(b"\xff\x80\x80\x80\x80");
        assert_eq!(buffer.take(9).text.chars().count(), 5);
    }
}
