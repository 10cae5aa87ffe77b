//! Tests: secrets are found in all forms and places, and nothing else is changed.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Content;

fn knows<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Redactor {
    let redactor = Redactor::default();
    secrets.into_iter().for_each(|secret| redactor.add(&secret.into()));
    redactor
}

fn clean(redactor: &Redactor, text: &str) -> String {
    redactor.clean(text.to_owned())
}

/// The secret of the tests. Its encoded forms below were made with OpenSSL's `base64`, Python's
/// `urllib.parse.quote` and `json.dumps`, and `xxd`.
const SECRET: &str = "sk-live+/Zürich\"01";

// spec: CR-05, P-05
#[test]
fn clean_finds_a_secret_in_every_form_that_programs_write() {
    let redactor = knows([SECRET]);
    for form in [
        "sk-live+/Zürich\"01",
        r#"sk-live+/Zürich\"01"#,
        r#"sk-live+\/Zürich\"01"#,
        r#"sk-live+/Z\u00fcrich\"01"#,
        r#"sk-live+/Z\u00FCrich\"01"#,
        r#"sk-live+/Zürich\\\"01"#,
        "c2stbGl2ZSsvWsO8cmljaCIwMQ==",
        "c2stbGl2ZSsvWsO8cmljaCIwMQ",
        "sk-live%2B%2FZ%C3%BCrich%2201",
        "sk-live%2b%2fZ%c3%bcrich%2201",
        "sk-live%2B/Z%C3%BCrich%2201",
        "sk-live+/Z%C3%BCrich%2201",
        "%73%6B%2D%6C%69%76%65%2B%2F%5A%C3%BC%72%69%63%68%22%30%31",
        "736b2d6c6976652b2f5ac3bc72696368223031",
        "736B2D6C6976652B2F5AC3BC72696368223031",
    ] {
        assert_eq!(clean(&redactor, &format!("before {form} after")), "before **** after", "{form}");
    }
}

/// An independent base64 encoder, bit by bit.
fn base64(bytes: &[u8], digits: &[u8; 64]) -> String {
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let sextet = |bits: &[u8]| (0..6).fold(0, |sum, at| sum << 1 | bits.get(at).copied().unwrap_or(0));
    bits.chunks(6).map(|bits| char::from(digits[usize::from(sextet(bits))])).collect()
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

proptest! {
    // spec: CR-05
    #[test]
    fn clean_finds_a_base64_secret_at_any_offset(
        secret in "\\PC{8,40}", before in "\\PC{0,5}", after in "\\PC{0,5}",
    ) {
        let redactor = knows([secret.as_str()]);
        for digits in [STANDARD, URL] {
            let text = base64(format!("{before}{secret}{after}").as_bytes(), digits);
            let shown = clean(&redactor, &text);
            prop_assert!(shown.contains("****"), "{} {}", text, shown);
            // At either side a digit may also depend on the neighbouring bytes.
            let around = (before.len() + after.len()) * 8 / 6 + 4;
            prop_assert!(shown.len() <= around + "****".len(), "{} {}", text, shown);
        }
    }

    // spec: CR-05
    #[test]
    fn redacted_stream_cut_anywhere_equals_clean_of_the_whole_text(
        (secrets, text) in secrets_and_text(), cuts in proptest::collection::vec(0_usize..400, 0..40),
    ) {
        let redactor = knows(secrets.iter().map(String::as_str));
        let whole = clean(&redactor, &text);
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|at| text.is_char_boundary(*at)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut stream = redactor.stream();
        let mut out = String::new();
        for piece in cuts.windows(2) {
            out += &stream.push(text[piece[0]..piece[1]].to_owned());
            prop_assert!(whole.starts_with(&out));
        }
        out += &stream.end();
        prop_assert_eq!(&out, &whole);
        for form in Forms::of(&secrets.iter().map(|s| s.as_str().into()).collect::<Vec<_>>()).all() {
            prop_assert!(!whole.contains(form), "{} in {}", form, whole);
        }
    }

    // spec: CR-05
    #[test]
    fn a_text_without_a_secret_stays_byte_for_byte(text in "\\PC{0,200}", secret in "[a-z0-9]{20}") {
        let redactor = knows([secret.as_str()]);
        prop_assume!(!text.contains(&secret));
        prop_assert_eq!(clean(&redactor, &text), text.clone());
        let mut stream = redactor.stream();
        let shown: String = text.chars().map(|char| stream.push(char.to_string())).collect();
        prop_assert_eq!(shown + &stream.end(), text);
    }
}

/// Secrets that overlap and have the same beginning, and a text of their forms, of parts of these, and of
/// other characters.
fn secrets_and_text() -> impl Strategy<Value = (Vec<String>, String)> {
    let secrets = proptest::collection::vec("[ab+/ü\"]{8,14}", 1..4);
    let pieces = proptest::collection::vec((any::<prop::sample::Index>(), 0..60_usize, 0..60_usize), 0..12);
    (secrets, pieces).prop_map(|(secrets, pieces)| {
        let known: Vec<Secret> = secrets.iter().map(|secret| secret.as_str().into()).collect();
        let forms = Forms::of(&known);
        let forms: Vec<&str> = forms.all().collect();
        let text = pieces.iter().map(|(which, from, to)| {
            let form = *which.get(&forms);
            match (form.get(*from % 7..), form.get(..*to)) {
                (_, None) => form.to_owned(),
                (Some(end), _) if from % 3 == 0 => end.to_owned(),
                (_, Some(beginning)) => beginning.to_owned(),
            }
        });
        (secrets, text.collect())
    })
}

// spec: CR-05
#[test]
fn redacted_stream_holds_back_only_a_possible_beginning_of_a_secret() {
    let redactor = knows(["sk-live-0123456789"]);
    let mut stream = redactor.stream();
    let mut shown = Vec::new();
    for piece in ["This is", " no key: sk-li", "st. This is: sk-li", "ve-01234567", "89!", " A task", " is"] {
        shown.push(stream.push(piece.to_owned()));
    }
    assert_eq!(shown, ["This i", "s no key: ", "sk-list. This is: ", "", "****!", " A ta", "sk i"]);
    assert_eq!(stream.end(), "s");
}

// spec: P-05
#[test]
fn overlapping_secrets_are_hidden_to_the_end_of_the_last() {
    let redactor = knows(["team-key", "team-key-of-alice", "alice-and-her-key"]);
    redactor.add_expiring(&"team-key-of-alice-today".into());
    let text = "team-key team-key-of-alice team-key-of-alice-today team-key-of-alice-and-her-key";
    assert_eq!(clean(&redactor, text), "**** **** **** ****");
}

// spec: P-05
#[test]
fn clean_cut_hides_the_beginning_of_a_secret_where_a_text_was_cut() {
    let redactor = knows(["sk-ant-schlüssel"]);
    for (text, clean) in [
        ("the key sk-ant-schlüsse… is wrong", "the key ****… is wrong"),
        ("the key sk-ant-schl…", "the key ****…"),
        ("sk-ant-schlü… sk-ant… sk-a… sk-…", "****… ****… ****… sk-…"),
        ("task… sk-ant sk-ant", "task… sk-ant sk-ant"),
    ] {
        assert_eq!(redactor.clean_cut(text.to_owned(), '…'), clean);
    }
}

// spec: CR-05
#[test]
fn secrets_of_fewer_than_eight_bytes_are_left_alone() {
    let redactor = knows(["1234567", "12345678"]);
    assert_eq!(clean(&redactor, "1234567 12345678"), "1234567 ****");
}

// spec: CR-05
#[test]
fn redactor_include_sees_later_secrets_and_drops_expired_tokens() {
    let (run, provider) = (Redactor::default(), knows(["first-key"]));
    run.include(&provider);
    run.include(&provider);
    provider.include(&run);
    assert_eq!(clean(&run, "first-key later-key"), "**** later-key");
    provider.add(&"later-key".into());
    assert_eq!(clean(&run, "first-key later-key"), "**** ****");
    (0..9).for_each(|n| provider.add_expiring(&format!("token-no-{n}").into()));
    assert_eq!(clean(&run, "token-no-0 token-no-1 token-no-8"), "token-no-0 **** ****");
    assert!(!format!("{run:?} {provider:?}").contains("key"));
}

// spec: CR-05
#[test]
fn results_are_cleaned_in_text_metadata_and_its_keys() {
    let redactor = Redactor::default();
    redactor.add_credentials(
        &json!({"user": "anna@example.com", "tokens": ["secret-one", "secret-two"], "pin": 7}),
    );
    redactor.add(&"1234567890".into());
    let mut result = ToolResult::success("secret-one of anna@example.com")
        .with_metadata("secret-one", json!([{"secret-two": "x", "secret-one": 1_234_567_890}]))
        .with_metadata("secret-two", "c2VjcmV0LW9uZQ==");
    result.error_message = Some("no secret-two".to_owned());
    redactor.clean_result(&mut result);
    assert_eq!(result.content, [Content::text("**** of anna@example.com")]);
    assert_eq!(result.error_message.as_deref(), Some("no ****"));
    let metadata = json!({"****": [{"****": "x", "*****": "****"}], "*****": "****"});
    assert_eq!(Json::Object(result.metadata), metadata);
}
