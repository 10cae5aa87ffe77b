//! `/resume`: lists the conversations of this data folder, and switches to one of them.

use archon::types::{RunFilter, SessionId, StartRuns};

use super::{Request, Situation};
use crate::{
    app::App,
    failure::Failure,
    lists::sessions::{Item, items},
    text::{format_time, one_line},
};

/// The maximum number of listed sessions.
const LISTED: usize = 20;
/// The maximum number of shown characters of a first prompt.
const SHOWN: usize = 60;

pub(super) fn resume(word: &str, situation: &Situation<'_>) {
    let (app, word, own) = (situation.app.clone(), word.to_owned(), situation.session.cloned());
    let requests = situation.requests.clone();
    situation.spawn(async move {
        let items = items(app.runs()?.list(&RunFilter::all().top_level()).await?);
        if word.is_empty() {
            print(&app, &with_words(&items, ""), own.as_ref());
            return Ok(());
        }
        let session = match (pick(&items, &word), &with_words(&items, &word)[..]) {
            (Ok(session), _) => session,
            (Err(failure), []) => return Err(failure),
            (Err(_), [(_, item)]) => item.session_id.clone(),
            (Err(_), many) => {
                print(&app, many, own.as_ref());
                return Ok(());
            }
        };
        // A conversation that has ended takes no requests.
        let _ = requests.send(Request::Open(Some(session)));
        Ok(())
    });
}

fn print(app: &App, items: &[(usize, &Item)], own: Option<&SessionId>) {
    for (number, item) in items.iter().take(LISTED) {
        let is_own = if own == Some(&item.session_id) { " (this one)" } else { "" };
        let (when, task) = (format_time(item.updated_at), one_line(&item.task, SHOWN));
        app.note(format!("{number:>3}  {when:<16}  {task}{is_own}"));
    }
    app.note_if(items.is_empty(), "there is no conversation yet");
    app.hint_if(items.len() > LISTED, "there are more: archon sessions list");
    app.hint_if(!items.is_empty(), "/resume N continues one");
}

/// Returns the sessions whose first prompt has all words of a text, each with its number in the list.
fn with_words<'a>(items: &'a [Item], text: &str) -> Vec<(usize, &'a Item)> {
    let text = text.to_lowercase();
    let has_all = |item: &Item| {
        let task = item.task.to_lowercase();
        text.split_whitespace().all(|word| task.contains(word))
    };
    (1..).zip(items).filter(|(_, item)| has_all(item)).collect()
}

/// Returns the session that a word means: its number in the list, its id, or the beginning or the end of the id.
fn pick(items: &[Item], word: &str) -> Result<SessionId, Failure> {
    let numbered = word.parse::<usize>().ok().and_then(|number| items.get(number.checked_sub(1)?));
    let exact = || items.iter().find(|item| item.session_id.as_str() == word);
    if let Some(item) = numbered.or_else(exact) {
        return Ok(item.session_id.clone());
    }
    let fits = |item: &&Item| {
        let id = item.session_id.as_str();
        id.starts_with(word) || id.ends_with(word)
    };
    let found: Vec<&Item> = items.iter().filter(fits).collect();
    match &found[..] {
        [item] => Ok(item.session_id.clone()),
        [] => Err(Failure::usage(
            format!("there is no conversation {word:?}"),
            "/resume lists them with their numbers",
        )),
        many => {
            let what = format!("{} conversations begin or end with {word:?}", many.len());
            Err(Failure::usage(what, "give more of the id, or the number that /resume lists"))
        }
    }
}

#[cfg(test)]
mod tests {
    use archon::types::{RunStatus, Timestamp};

    use super::*;

    fn item(id: &str) -> Item {
        Item {
            session_id: SessionId::new(id),
            started_at: Timestamp::default(),
            updated_at: Timestamp::default(),
            runs: 1,
            status: RunStatus::Finished,
            task: format!("Mend the {id} of Paris"),
        }
    }

    #[test]
    fn with_words_finds_all_words_in_any_order_and_keeps_the_numbers() {
        let items = ["tower", "bridge", "Tower"].map(item);
        for (text, expected) in
            [("", &[1, 2, 3][..]), ("paris TOWER", &[1, 3]), ("bridge", &[2]), ("bridge tower", &[])]
        {
            let numbers: Vec<usize> = with_words(&items, text).iter().map(|(number, _)| *number).collect();
            assert_eq!(numbers, expected, "{text}");
        }
    }

    #[test]
    fn pick_takes_a_number_an_id_or_a_part_of_one() {
        let items = ["session_1a", "session_1b", "sky"].map(item);
        for (word, expected) in
            [("1", Some("session_1a")), ("3", Some("sky")), ("sky", Some("sky")), ("1b", Some("session_1b"))]
        {
            assert_eq!(pick(&items, word).ok().as_ref().map(SessionId::as_str), expected, "{word}");
        }
        for word in ["0", "4", "session", "moon"] {
            assert!(pick(&items, word).is_err(), "{word}");
        }
    }
}
