//! Tests of media: types, names, hashes, JSON.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{Json, messages::Content};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n-the rest";

#[test]
fn sniff_knows_five_types_and_no_other() {
    let known: [(&[u8], _); 6] = [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF....WEBPVP8 ", "image/webp"),
        (b"%PDF-1.4", "application/pdf"),
        (b"\n%PDF-1.4", "application/pdf"),
    ];
    for (bytes, mime_type) in known {
        assert_eq!(sniff(bytes), Some(mime_type));
        assert!(TYPES.contains(&mime_type));
    }
    let late = [&[b' '; 1024], b"%PDF-1.4".as_slice()].concat();
    for other in [b"".as_slice(), b"\x89PNG", b"GIF8", b"RIFF....WAVE", b"<svg>", &late] {
        assert_eq!(sniff(other), None);
    }
}

// spec: EX-16
#[test]
fn media_take_their_type_from_the_data_and_their_name_without_folders() {
    let picture = Media::of_type(PNG, "application/pdf", Some("/home/me/a\u{1b}[2J.png")).unwrap();
    assert_eq!((picture.mime_type(), picture.name()), ("image/png", Some("a [2J.png")));
    assert_eq!(picture.data().as_deref(), Some(PNG));
    let sound = Media::of_type(b"RIFF....WAVE", "audio/WAV", Some("..\\")).unwrap();
    assert_eq!((sound.mime_type(), sound.name(), sound.kind()), ("audio/wav", None, MediaKind::Other));
    assert_eq!(Media::of_type(b"<svg>", "image/png", None), Err(MediaError::Mismatch("type")));
    assert_eq!(Media::new(b"<svg>", None), Err(MediaError::UnknownType));
    assert_eq!(Media::new(b"", None), Err(MediaError::Empty));
    let large = [PNG, &vec![0; Media::MAX_BYTES]].concat();
    assert_eq!(Media::new(&large, None), Err(MediaError::TooLarge { bytes: large.len() as u64 }));
}

#[test]
fn media_are_named_by_the_first_digits_of_their_hash() {
    let media = Media::new(PNG, None).unwrap();
    let whole = format!("media:{}", media.sha256());
    assert!(media.is_named(&media.reference()) && media.is_named(&whole));
    let short = &whole["media:".len()..];
    for other in ["media:", "media:0000000000000000", &whole[..21], short, &format!("{whole}0")] {
        assert!(!media.is_named(other), "{other}");
    }
}

#[test]
fn pages_are_counted_or_estimated_from_the_size() {
    let pages = |text: &str| Media::new(text.as_bytes(), None).unwrap().pages();
    let two = "%PDF-1.4 <</Type /Pages /Count 2>> <</Type/Page>> <</Type\n/Page/Parent 1 0 R>>";
    assert_eq!(pages(two), Some(2));
    assert_eq!(pages("%PDF-1.4"), Some(1));
    assert_eq!(pages(&format!("%PDF-1.4{}", " ".repeat(120_000))), Some(3));
    assert_eq!(Media::new(PNG, None).unwrap().pages(), None);
}

#[test]
fn json_of_media_has_the_data_unless_it_was_taken_out() {
    let block = Content::from(Media::new(PNG, Some("a.png")).unwrap());
    let whole = serde_json::to_value(&block).unwrap();
    assert_eq!(whole["type"], "media");
    let read: Content = serde_json::from_value(whole.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), whole);
    let Content::Media(media) = read else { panic!("{read:?}") };
    let bare = serde_json::to_value(media.without_data()).unwrap();
    assert_eq!(bare.get("data"), None);
    let mut read: Media = serde_json::from_value(bare).unwrap();
    assert_eq!((&read, read.base64()), (&media, None));
    assert_eq!(read.set_data(b"other"), Err(MediaError::Mismatch("size")));
    assert_eq!(read.set_data(b"\x89PNG\r\n\x1a\n-the ress"), Err(MediaError::Mismatch("hash")));
    read.set_data(PNG).unwrap();
    assert_eq!(read.base64(), media.base64());
    // A program may leave out what follows from the data.
    let short = json!({ "mime_type": "image/png", "data": media.base64() });
    assert_eq!(serde_json::from_value::<Media>(short).unwrap().sha256(), media.sha256());
}

#[test]
fn json_of_media_without_data_or_hash_is_refused_with_what_is_missing() {
    let error = |form: Json| serde_json::from_value::<Media>(form).unwrap_err().to_string();
    let short_hash = json!({ "mime_type": "image/png", "sha256": "ab", "bytes": 1 });
    for form in [json!({ "mime_type": "image/png" }), short_hash] {
        assert!(error(form).starts_with("the file has no data: give `data`, or `bytes` and `sha256`"));
    }
    let text = error(json!({ "mime_type": "image/png", "data": "no base64!" }));
    assert_eq!(text, "the data of the file is not base64 with padding");
}

fn any_media() -> impl Strategy<Value = Media> {
    let heads = prop::sample::select(vec![PNG, b"\xff\xd8\xff", b"%PDF-1.7", b"GIF87a", b"plain"]);
    (heads, prop::collection::vec(any::<u8>(), 0..64), any::<Option<String>>()).prop_map(
        |(head, rest, name)| Media::of_type(&[head, &rest].concat(), "text/plain", name.as_deref()).unwrap(),
    )
}

proptest! {
    #[test]
    fn media_with_one_wrong_member_are_refused(media in any_media(), place in any::<prop::sample::Index>()) {
        let form = serde_json::to_value(&media).unwrap();
        prop_assert_eq!(&serde_json::from_value::<Media>(form.clone()).unwrap(), &media);
        let digits: String = media.sha256().chars().rev().collect();
        prop_assume!(digits != media.sha256());
        let mut bytes = media.data().unwrap();
        let at = place.index(bytes.len());
        bytes[at] ^= 1;
        let other_type = if media.mime_type() == "image/png" { "image/gif" } else { "image/png" };
        for (member, value) in [
            ("sha256", json!(digits)),
            ("bytes", json!(media.size() + 1)),
            ("mime_type", json!(other_type)),
            ("data", json!(BASE64.encode(&bytes))),
            ("data", json!("?")),
        ] {
            let mut wrong = form.clone();
            wrong[member] = value;
            prop_assert!(serde_json::from_value::<Media>(wrong).is_err(), "{}", member);
        }
        let mut bare = form;
        bare.as_object_mut().unwrap().remove("data");
        for name in [json!("../../etc/passwd"), json!(media.sha256().to_uppercase() + "g"), Json::Null] {
            let mut wrong = bare.clone();
            wrong["sha256"] = name;
            prop_assert!(serde_json::from_value::<Media>(wrong).is_err());
        }
    }
}
