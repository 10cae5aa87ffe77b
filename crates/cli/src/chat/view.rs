//! The layout of the live area: the open cells, the question, the messages that wait, the draft, and the status.

use archon_terminal::{Cells, Composer, Look, Page, Place, Printed, Question, Row};

use super::outbox::Unread;
use crate::text::one_line;

/// The parts of a frame.
pub(crate) struct View<'a> {
    pub(crate) cells: &'a Cells,
    pub(crate) printed: &'a Printed,
    pub(crate) composer: &'a mut Composer,
    pub(crate) question: Option<&'a Question>,
    /// The messages that no run has read yet.
    pub(crate) unread: &'a [Unread],
    pub(crate) status: Row,
}

/// The least number of rows that has room for a status.
const WITH_STATUS: usize = 3;
/// The least number of rows that has room for an empty row above the draft.
const WITH_SPACE: usize = 6;

impl View<'_> {
    /// Returns at most `most` rows, at least one, the place of the caret in them, and true if the question is among
    /// them. If there is little room, the rows go to the draft first, then to the question, the list below the draft,
    /// the messages that wait, and the end of the open cells. If there is room for only one row and the draft is empty,
    /// the question gets it.
    pub(crate) fn rows(self, page: &Page, most: usize) -> (Vec<Row>, Place, bool) {
        let most = most.max(1);
        let status = (most >= WITH_STATUS).then_some(self.status);
        let space = usize::from(most >= WITH_SPACE);
        let mut room = most - usize::from(status.is_some()) - space;
        let has_draft = !self.composer.is_empty() || self.composer.is_searching();
        let (draft, caret_in_draft) = match room == 1 && self.question.is_some() && !has_draft {
            true => (Vec::new(), Place::default()),
            false => self.composer.rows(page, room.div_ceil(2)),
        };
        room = room.saturating_sub(draft.len());
        let (question, caret_in_question) = match self.question.filter(|_| room > 0) {
            Some(question) => question.rows(page, room, has_draft.then_some(&*self.composer)),
            None => (Vec::new(), None),
        };
        room = room.saturating_sub(question.len());
        let shows_question = !question.is_empty();
        let popup = self.composer.popup(page, room);
        room = room.saturating_sub(popup.len());
        let unread = unread(self.unread, page, room);
        room = room.saturating_sub(unread.len());
        let mut rows = self.printed.open(self.cells, page, room);
        rows.extend((0..space).map(|_| Row::default()));
        let above_question = rows.len();
        rows.extend(question);
        rows.extend(unread);
        let caret = match caret_in_question {
            Some(place) => Place { row: place.row + above_question, ..place },
            None if draft.is_empty() => Place { row: above_question, column: 0 },
            None => Place { row: caret_in_draft.row + rows.len(), ..caret_in_draft },
        };
        rows.extend(draft);
        rows.extend(popup);
        rows.extend(status);
        (rows, caret, shows_question)
    }
}

/// Returns a row for each waiting message, with the time at which it is read. The last row has the number of messages
/// that have no room.
fn unread(messages: &[Unread], page: &Page, most: usize) -> Vec<Row> {
    let whole = if messages.len() > most { most.saturating_sub(1) } else { messages.len() };
    let row = |text: String| Row::of(text, Look::Dim, page).cut(page.width);
    let message = |Unread { text, when }: &Unread| {
        let when = if when.is_empty() { String::new() } else { format!(" · {when}") };
        let room = page.width.saturating_sub(when.chars().count() + 2);
        row(format!("… {}{when}", one_line(text, room)))
    };
    let mut rows: Vec<Row> = messages.iter().take(whole).map(message).collect();
    if whole < messages.len() && most > 0 {
        rows.push(row(format!("… {} messages wait", messages.len() - whole)));
    }
    rows
}

#[cfg(test)]
mod tests {
    use archon::types::{ApprovalRequest, Timestamp};
    use archon_terminal::{CompletionCandidate, Draft, Input, Key, Keymap, Theme, Work};

    use super::*;

    fn page() -> Page {
        Page::new(40, Theme::new(false))
    }

    fn rows(view: View<'_>, most: usize) -> (Vec<String>, Place) {
        let (rows, caret, _) = view.rows(&page(), most);
        (rows.iter().map(Row::text).collect(), caret)
    }

    // spec: AP-13
    #[test]
    fn question_has_the_only_row_unless_the_person_types() {
        let (cells, printed) = (Cells::default(), Printed::default());
        let question = Question::new(ApprovalRequest::new("q", "Run `ls`", serde_json::json!({})));
        for (draft, is_shown) in [("", true), ("a draft", false)] {
            let mut composer = Composer::new(Keymap::default());
            composer.replace(Draft::message(draft));
            let view = View {
                cells: &cells,
                printed: &printed,
                composer: &mut composer,
                question: Some(&question),
                unread: &[],
                status: Row::of("status", Look::Dim, &page()),
            };
            let (rows, caret, shows_question) = view.rows(&page(), 1);
            assert_eq!((rows.len(), caret.row, shows_question), (1, 0, is_shown), "{draft}: {rows:?}");
            assert_eq!(rows[0].text().contains("[y]es"), is_shown, "{draft}: {rows:?}");
        }
    }

    #[test]
    fn rows_of_a_low_terminal_have_the_draft_before_all_else() {
        let (cells, printed) = (Cells::default(), Printed::default());
        let question = Question::new(ApprovalRequest::new("q", "Run `ls`", serde_json::json!({})));
        let unread = ["one", "two", "three"].map(|text| Unread { text: text.to_owned(), when: "" });
        let mut composer = Composer::new(Keymap::default());
        composer.replace(Draft::message("a draft"));
        for most in 1..12 {
            let view = View {
                cells: &cells,
                printed: &printed,
                composer: &mut composer,
                question: Some(&question),
                unread: &unread,
                status: Row::of("status", Look::Dim, &page()),
            };
            let (rows, caret) = rows(view, most);
            assert!(rows.len() <= most, "{most}: {rows:?}");
            assert!(rows[caret.row].contains("a draft"), "{most}: {caret:?} {rows:?}");
            assert_eq!(rows.iter().any(|row| row == "status"), most >= WITH_STATUS, "{most}: {rows:?}");
        }
    }

    #[test]
    fn rows_with_an_open_field_have_the_caret_in_the_question() {
        let (cells, printed) = (Cells::default(), Printed::default());
        let mut question = Question::new(ApprovalRequest::new("q", "Run `ls`", serde_json::json!({})));
        question.mark_drawn(Timestamp::from_millis(0));
        question.apply(&Input::Key(Key::char('t')), Timestamp::from_millis(1_000), false);
        let mut composer = Composer::new(Keymap::default());
        let view = View {
            cells: &cells,
            printed: &printed,
            composer: &mut composer,
            question: Some(&question),
            unread: &[],
            status: Row::of("status", Look::Dim, &page()),
        };
        let (rows, caret) = rows(view, 9);
        let draft = rows.len() - 2;
        assert!(caret.row < draft, "{caret:?} {rows:?}");
    }

    #[test]
    fn rows_of_a_list_stand_between_the_draft_and_the_status() {
        let (cells, printed) = (Cells::default(), Printed::default());
        let mut composer = Composer::new(Keymap::default());
        let names = ["/one", "/two", "/three", "/four", "/five", "/six", "/seven"];
        composer.set_commands(names.map(|name| CompletionCandidate::new(name, name, "")).to_vec());
        composer.apply(Input::Key(Key::char('/')), Timestamp::from_millis(0), Work::Idle);
        for (most, expected) in [(1, 0), (3, 1), (8, 5), (20, 6)] {
            let view = View {
                cells: &cells,
                printed: &printed,
                composer: &mut composer,
                question: None,
                unread: &[],
                status: Row::of("status", Look::Dim, &page()),
            };
            let (rows, caret) = rows(view, most);
            let list = rows.iter().skip(caret.row + 1).take_while(|row| *row != "status");
            assert_eq!((list.count(), rows.len() <= most), (expected, true), "{most}: {rows:?}");
        }
    }

    #[test]
    fn unread_messages_without_room_are_counted() {
        let message =
            |n| Unread { text: format!("message {n}"), when: if n == 3 { "after this run" } else { "" } };
        let messages: Vec<Unread> = (1..=5).map(message).collect();
        let rows = |most| unread(&messages, &page(), most).iter().map(Row::text).collect::<Vec<_>>();
        assert_eq!((rows(5).len(), rows(5)[2].as_str()), (5, "… message 3 · after this run"));
        assert_eq!(rows(2), ["… message 1", "… 4 messages wait"]);
        assert_eq!(rows(0), Vec::<String>::new());
    }
}
