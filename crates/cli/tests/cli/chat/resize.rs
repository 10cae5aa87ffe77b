//! Random conversations in a window whose size changes, and which is given to the shell now and then: each line is in
//! the scrollback once and in order. A full run has 200 of them in an emulator that keeps its rows as they are, and 50
//! in tmux, which breaks them anew. Lines have up to 160 characters. A terminal that becomes narrower may cut
//! a row, so the beginning of each line with its number is compared, and in the emulator no row has more than its line.

use archon_testkit::{Chance, Gate, MockResponse, MockServer, cases, first_seed};
use serde_json::json;

use super::{consent::answers, tmux, window::Window};
use crate::setup::{Place, answer, asks_for, chunk, text};

/// Runs the conversation, and continues it as often as it is suspended: 148 says that the signal `TSTP` did it. A shell
/// leaves a loop whose program is suspended, so there is none.
const SHELL: &str = "\
    set -m; n=0; \
    again() { [ $code = 148 ] || return; n=$((n + 1)); printf \"shell %04d.\\n\" $n; fg; code=$?; again; }; \
    \"$0\" \"$@\"; code=$?; again; echo \"code $code\"";

/// A person whose window changes.
struct Person {
    /// Dropped before the place, in which a tmux server has its socket.
    window: Window,
    chance: Chance,
    place: Place,
    server: MockServer,
    /// The lines that the conversation has so far, as the window shows them.
    lines: Vec<String>,
    /// The number of the next line, file or message.
    number: u32,
    suspended: u32,
    is_in_tmux: bool,
}

/// The beginning of a line, which no other line has.
fn beginning(line: &str) -> &str {
    line.split_inclusive('.').next().unwrap_or(line)
}

impl Person {
    async fn open(seed: u64, is_in_tmux: bool) -> Self {
        let server = MockServer::start([]).await;
        let place = Place::with_server(&server);
        let line = "chat --session random";
        let mut window = match is_in_tmux {
            true => tmux::open(&place, SHELL, line),
            false => Window::shell(&place, &["bash", "-c", SHELL], line),
        };
        window.shows("· mock ·").await;
        let chance = Chance(seed);
        Self { chance, place, server, window, lines: Vec::new(), number: 0, suspended: 0, is_in_tmux }
    }

    /// A line without words after its number.
    fn short(&mut self, what: &str) -> String {
        self.number += 1;
        format!("{what} {:04}.", self.number)
    }

    /// A line of any length.
    fn next(&mut self, what: &str) -> String {
        let words = usize::try_from(self.chance.below(31)).expect("a number");
        self.short(what) + &" word".repeat(words)
    }

    /// Waits until the beginning of a line is shown.
    async fn shows(&mut self, line: &str) {
        self.window.shows(beginning(line)).await;
    }

    /// Makes a pane so wide that the status and the keys of a question can be read.
    async fn widen(&mut self) {
        if self.is_in_tmux {
            self.resize(90, 30).await;
        }
    }

    /// Resizes the window, and waits until the program's terminal has the size, before anything is typed.
    async fn resize(&mut self, columns: u16, rows: u16) {
        self.window.resize(columns, rows);
        self.window.until("the size", |window| window.has_size(columns, rows)).await;
    }

    /// Sends a message, and waits until it is above the draft.
    async fn say(&mut self) {
        let text = self.short("message");
        self.window.says(&text).await;
        let line = format!("› {text}");
        // One capture: of two, the first could show the text in the draft, and the second the empty draft.
        let is_sent = |window: &mut Window| {
            let all = window.all();
            all.split_once(&line).is_some_and(|(_, below)| below.lines().any(|row| row == "›"))
        };
        self.window.until(&line, is_sent).await;
        self.lines.push(line);
    }

    /// Waits for the end of the run.
    async fn rest(&mut self) {
        self.widen().await;
        self.window.hides("Esc stops").await;
    }

    /// Changes the size of the window, suspends the program, or types.
    async fn disturb(&mut self) {
        match self.chance.below(5) {
            0 => {}
            1 => self.suspend().await,
            2 => self.draft().await,
            _ => {
                let (from, to): (u16, u64) = if self.is_in_tmux { (20, 100) } else { (30, 90) };
                for _ in 0..=self.chance.below(3) {
                    let mut any = |from, to| from + u16::try_from(self.chance.below(to)).expect("a size");
                    let (columns, rows) = (any(from, to), any(14, 30));
                    self.resize(columns, rows).await;
                }
            }
        }
    }

    async fn suspend(&mut self) {
        self.suspended += 1;
        let line = format!("shell {:04}.", self.suspended);
        self.window.types("\x1a");
        self.window.shows(&line).await;
        self.lines.push(line);
        self.window.until("the conversation", |window| window.is_raw()).await;
        // A key is one from now on: Ctrl+U and Ctrl+D are not those of a terminal for lines.
        self.draft().await;
    }

    /// Types something and erases it.
    async fn draft(&mut self) {
        // Its first letter answers no question: one may be open for long.
        self.window.types("my draft");
        self.window.until("the draft", |window| window.screen().contains("› my draft")).await;
        self.window.types("\x15");
        self.window.hides("my draft").await;
    }

    /// An answer that streams: each line in two pieces, so that no whole line is in the live area.
    async fn answer(&mut self) {
        let count = 1 + self.chance.below(12);
        let (mut gates, mut lines) = (Vec::new(), Vec::new());
        let mut response = MockResponse::events::<&str>([]);
        for _ in 0..count {
            let line = self.next("answer");
            if self.chance.percent(40) {
                let gate = Gate::new();
                response = response.wait(&gate);
                gates.push((gate, lines.len()));
            }
            let (first, rest) = line.split_at(6);
            response = response.event(&text(first)).event(&text(&format!("{rest}\n\n")));
            lines.push(line);
        }
        self.server.push(response.event(&chunk(&json!({}), Some("stop"))).event("[DONE]"));
        self.say().await;
        let mut shown = 0;
        for (gate, before) in gates {
            // What the shell writes stands behind the lines so far.
            if let Some(last) = lines[shown..before].last() {
                self.window.shows(beginning(last)).await;
            }
            self.lines.extend_from_slice(&lines[shown..before]);
            shown = before;
            self.disturb().await;
            gate.open();
        }
        self.shows(lines.last().map_or("", String::as_str)).await;
        self.lines.extend_from_slice(&lines[shown..]);
        self.rest().await;
    }

    /// The output of a tool.
    async fn output(&mut self) {
        // The end of an answer may be in the live area, so no resize may come when it is shown.
        self.widen().await;
        let lines: Vec<String> = (0..=self.chance.below(4)).map(|_| self.next("output")).collect();
        let name = format!("file{}.txt", self.number);
        std::fs::write(self.place.path(&name), lines.join("\n")).expect("a file");
        let end = self.next("answer");
        self.server.push(asks_for("read_file", &json!({"path": name}).to_string()));
        self.server.push(answer(&end));
        self.say().await;
        self.shows(&end).await;
        self.rest().await;
        self.lines.extend(lines.iter().map(|line| format!("  {line}")));
        self.lines.push(end);
    }

    /// A question that is answered with yes or no.
    async fn question(&mut self) {
        self.widen().await;
        let content = self.next("content");
        let end = self.next("answer");
        let name = format!("new{}.txt", self.number);
        self.server.push(asks_for("write_file", &json!({"path": name, "content": content}).to_string()));
        self.server.push(answer(&end));
        self.say().await;
        let line = format!("  | 1 +{content}");
        self.shows(&line).await;
        self.lines.push(line);
        self.disturb().await;
        self.widen().await;
        self.window.shows("[y]es, once").await;
        let is_yes = self.chance.percent(50);
        answers(&mut self.window, if is_yes { "y" } else { "n" }, beginning(&end)).await;
        self.rest().await;
        assert_eq!(self.place.path(&name).exists(), is_yes, "{}", self.window.all());
        self.lines.push(end);
    }

    /// Ends the conversation, and checks what the window has.
    async fn check(mut self, seed: u64) {
        self.widen().await;
        self.window.types("\x04");
        self.window.shows("code 0").await;
        let all = self.window.all();
        let mut found = Vec::new();
        for row in all.lines() {
            // In tmux, what stands behind a rest of the live area continues its line.
            let mut own: Vec<(usize, &String)> = Vec::new();
            for line in &self.lines {
                own.extend(row.match_indices(beginning(line)).map(|(at, _)| (at, line)));
            }
            own.sort_unstable();
            for (at, line) in own {
                let text = row[at..].trim_end().trim_end_matches('…');
                let is_of_line = self.is_in_tmux || line.starts_with(text);
                assert!(is_of_line, "seed {seed}: {text:?} is not of {line:?}: {all}");
                found.push(line);
            }
        }
        assert_eq!(found, self.lines.iter().collect::<Vec<_>>(), "seed {seed}: {all}");
        assert!(self.window.is_for_lines(), "seed {seed}");
        self.server.assert_paired();
        if self.is_in_tmux {
            // The sequences and the cursor of the window are those of tmux.
            return;
        }
        let bytes = String::from_utf8_lossy(&self.window.bytes);
        for (sequence, what) in
            [("\x1b[3J", "the scrollback is cleared"), ("\x1b[?1049h", "the screen is another one")]
        {
            assert!(!bytes.contains(sequence), "seed {seed}: {what}");
        }
        assert!(self.window.has_visible_cursor(), "seed {seed}");
    }
}

/// Has so many conversations, and checks each.
async fn converse(seeds: u64, is_in_tmux: bool) {
    let mut lines = 0;
    for seed in first_seed()..first_seed() + seeds {
        let mut person = Person::open(seed, is_in_tmux).await;
        for _ in 0..6 {
            match person.chance.below(4) {
                0 | 1 => person.answer().await,
                2 => person.output().await,
                _ => person.question().await,
            }
            person.disturb().await;
        }
        lines += person.lines.len();
        person.check(seed).await;
    }
    let place = if is_in_tmux { "in tmux" } else { "in an emulator" };
    eprintln!("{seeds} conversations with resizes {place}: {lines} lines are shown once and in order");
}

#[tokio::test]
async fn random_resizes_of_the_program_lose_and_repeat_no_line() {
    converse(cases(5, 200), false).await;
}

#[tokio::test]
async fn random_resizes_in_tmux_lose_and_repeat_no_line() {
    if tmux::is_there() {
        converse(cases(3, 50), true).await;
    }
}
