//! Random conversations in a window whose size changes, and which is given to the shell now and then: each line is in
//! the scrollback once and in order.

use archon_testkit::{Chance, Gate, MockResponse, MockServer, cases, first_seed};
use serde_json::json;

use super::{consent::answers, window::Window};
use crate::setup::{Place, answer, asks_for, chunk, text};

/// Runs the conversation, and continues it as often as it is suspended: 148 says that the signal `TSTP` did it. A shell
/// leaves a loop whose program is suspended, so there is none.
const SHELL: &str = "\
    set -m; n=0; \
    again() { [ $code = 148 ] || return; n=$((n + 1)); echo \"shell $n\"; fg; code=$?; again; }; \
    \"$0\" \"$@\"; code=$?; again; echo \"code $code\"";

/// A person whose window changes.
struct Person {
    chance: Chance,
    place: Place,
    server: MockServer,
    window: Window,
    /// The lines that the conversation has so far, as the window shows them.
    lines: Vec<String>,
    /// The number of the next line, file or message.
    number: u32,
    suspended: u32,
}

impl Person {
    async fn open(seed: u64) -> Self {
        let server = MockServer::start([]).await;
        let place = Place::with_server(&server);
        let mut window = Window::shell(&place, &["bash", "-c", SHELL], "chat --session random");
        window.shows("· mock ·").await;
        Self { chance: Chance(seed), place, server, window, lines: Vec::new(), number: 0, suspended: 0 }
    }

    fn next(&mut self, what: &str) -> String {
        self.number += 1;
        format!("{what} {:04}.", self.number)
    }

    /// Sends a message, and waits until it is above the draft.
    async fn say(&mut self) {
        let text = self.next("message");
        self.window.says(&text).await;
        let line = format!("› {text}");
        let is_sent = |window: &mut Window| {
            window.all().contains(&line) && window.screen().lines().any(|row| row == "›")
        };
        self.window.until(&line, is_sent).await;
        self.lines.push(line);
    }

    /// Waits for the end of the run.
    async fn rest(&mut self) {
        self.window.hides("Esc stops").await;
    }

    /// Changes the size of the window, suspends the program, or types.
    async fn disturb(&mut self) {
        match self.chance.below(5) {
            0 => {}
            1 => self.suspend().await,
            2 => self.draft().await,
            _ => {
                for _ in 0..=self.chance.below(3) {
                    let mut any = |from, to| from + u16::try_from(self.chance.below(to)).expect("a size");
                    let (columns, rows) = (any(30, 90), any(14, 30));
                    self.window.resize(columns, rows);
                }
            }
        }
    }

    async fn suspend(&mut self) {
        self.suspended += 1;
        let line = format!("shell {}", self.suspended);
        self.window.types("\x1a");
        self.window.shows(&line).await;
        self.lines.push(line);
        self.window.until("the conversation", |window| window.is_raw()).await;
        // A key is one from now on: Ctrl+U and Ctrl+D are not those of a terminal for lines.
        self.draft().await;
    }

    /// Types something and erases it.
    async fn draft(&mut self) {
        self.window.types("a draft");
        self.window.until("the draft", |window| window.screen().contains("› a draft")).await;
        self.window.types("\x15");
        self.window.hides("a draft").await;
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
                self.window.shows(last).await;
            }
            self.lines.extend_from_slice(&lines[shown..before]);
            shown = before;
            self.disturb().await;
            gate.open();
        }
        self.window.shows(lines.last().map_or("", String::as_str)).await;
        self.lines.extend_from_slice(&lines[shown..]);
        self.rest().await;
    }

    /// The output of a tool.
    async fn output(&mut self) {
        let lines: Vec<String> = (0..=self.chance.below(4)).map(|_| self.next("output")).collect();
        let name = format!("file{}.txt", self.number);
        std::fs::write(self.place.path(&name), lines.join("\n")).expect("a file");
        let end = self.next("answer");
        self.server.push(asks_for("read_file", &json!({"path": name}).to_string()));
        self.server.push(answer(&end));
        self.say().await;
        self.window.shows(&end).await;
        self.rest().await;
        self.lines.extend(lines.iter().map(|line| format!("  {line}")));
        self.lines.push(end);
    }

    /// A question that is answered with yes or no.
    async fn question(&mut self) {
        let content = self.next("content");
        let end = self.next("answer");
        let name = format!("new{}.txt", self.number);
        self.server.push(asks_for("write_file", &json!({"path": name, "content": content}).to_string()));
        self.server.push(answer(&end));
        self.say().await;
        let line = format!("  | 1 +{content}");
        self.window.shows(&line).await;
        self.lines.push(line);
        self.disturb().await;
        self.window.shows("[y]es, once").await;
        let is_yes = self.chance.percent(50);
        answers(&mut self.window, if is_yes { "y" } else { "n" }, &end).await;
        self.rest().await;
        assert_eq!(self.place.path(&name).exists(), is_yes, "{}", self.window.all());
        self.lines.push(end);
    }

    /// Ends the conversation, and checks what the window has.
    async fn check(mut self, seed: u64) {
        self.window.types("\x04");
        self.window.shows("code 0").await;
        let all = self.window.all();
        let known = |row: &&str| self.lines.iter().any(|line| line == row);
        let found: Vec<&str> = all.lines().map(str::trim_end).filter(known).collect();
        assert_eq!(found, self.lines, "seed {seed}: {all}");
        let bytes = String::from_utf8_lossy(&self.window.bytes);
        for (sequence, what) in
            [("\x1b[3J", "the scrollback is cleared"), ("\x1b[?1049h", "the screen is another one")]
        {
            assert!(!bytes.contains(sequence), "seed {seed}: {what}");
        }
        assert!(self.window.is_for_lines() && self.window.has_visible_cursor(), "seed {seed}");
        self.server.assert_paired();
    }
}

#[tokio::test]
async fn random_resizes_of_the_program_lose_and_repeat_no_line() {
    let (mut lines, seeds) = (0, cases(5, 200));
    for seed in first_seed()..first_seed() + seeds {
        let mut person = Person::open(seed).await;
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
    eprintln!("{seeds} conversations with resizes: {lines} lines are shown once and in order");
}
