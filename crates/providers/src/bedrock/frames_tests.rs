//! Tests that messages are split as Amazon's format says, and that no bytes cause a panic.

use proptest::prelude::*;

use super::{super::stream_tests::frame, *};

fn cut(bytes: &[u8]) -> Result<Vec<Frame>, String> {
    let mut cutter = Cutter::default();
    cutter.push(bytes);
    let mut all = Vec::new();
    while let Some(frame) = cutter.next()? {
        all.push(frame);
    }
    Ok(all)
}

/// The message with one header from the test vectors of Amazon's C library (`awslabs/aws-c-event-stream`,
/// `tests/message_deserializer_test.c`).
const PUBLISHED: &[u8] = &[
    0x00, 0x00, 0x00, 0x3D, 0x00, 0x00, 0x00, 0x20, 0x07, 0xFD, 0x83, 0x96, 0x0C, b'c', b'o', b'n', b't',
    b'e', b'n', b't', b'-', b't', b'y', b'p', b'e', 0x07, 0x00, 0x10, b'a', b'p', b'p', b'l', b'i', b'c',
    b'a', b't', b'i', b'o', b'n', b'/', b'j', b's', b'o', b'n', 0x7b, 0x27, 0x66, 0x6f, 0x6f, 0x27, 0x3a,
    0x27, 0x62, 0x61, 0x72, 0x27, 0x7d, 0x8D, 0x9C, 0x08, 0xB1,
];

// spec: P-27
#[test]
fn the_published_message_is_read() {
    let frames = cut(PUBLISHED).unwrap();
    let payload = Bytes::from_static(b"{'foo':'bar'}");
    assert_eq!(frames, [Frame { kind: FrameKind::Event(String::new()), payload }]);
}

// spec: P-27
#[test]
fn bedrock_frame_kind_is_read_from_the_headers() {
    let kinds = [
        (frame(&[(":message-type", "event"), (":event-type", "x")], "{}"), FrameKind::Event("x".into())),
        (
            frame(&[(":exception-type", "y"), (":message-type", "exception")], "{}"),
            FrameKind::Exception("y".into()),
        ),
        (
            frame(&[(":message-type", "error"), (":error-code", "c"), (":error-message", "m")], "{}"),
            FrameKind::Error { code: "c".into(), message: "m".into() },
        ),
    ];
    for (bytes, kind) in kinds {
        assert_eq!(cut(&bytes).unwrap(), [Frame { kind, payload: Bytes::from_static(b"{}") }]);
    }
    let two = [frame(&[], "1"), frame(&[], "")].concat();
    assert_eq!(cut(&two).unwrap().len(), 2);
    assert_eq!(count_event_stream_messages(&two), Some(2));
    assert_eq!(count_event_stream_messages(&two[1..]), None);
}

// spec: P-27, P-31
#[test]
fn bytes_that_are_no_messages_are_refused() {
    let good = frame(&[(":event-type", "x")], "payload");
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        // A greater length waits for more bytes; any other change gives a wrong checksum.
        assert!(cut(&bad).is_ok_and(|frames| frames.is_empty()) || cut(&bad).is_err(), "byte {at}");
    }
    for bytes in [&b"<html>no</html>"[..], b"data: {}\n\n", &[0; 16], &[0, 0, 0, 15], &[0xff; 16]] {
        assert!(cut(bytes).unwrap_err().starts_with("not an event stream: "), "{bytes:?}");
    }
}

proptest! {
    // spec: P-27
    #[test]
    fn bedrock_frames_of_any_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = cut(&bytes);
        // The same bytes with their true length, so that more of them is parsed.
        let mut long = bytes.clone();
        if long.len() >= 16 {
            let length = u32::try_from(long.len()).unwrap_or_default();
            long[..4].copy_from_slice(&length.to_be_bytes());
            prop_assert!(cut(&long).is_err() || count_event_stream_messages(&long) == Some(1));
        }
    }

    // spec: P-27
    #[test]
    fn a_changed_byte_is_found_and_headers_of_any_kind_are_survived(
        payload in ".{0,40}",
        name in "[a-z:-]{0,20}",
        headers in prop::collection::vec(any::<u8>(), 0..60),
        at: prop::sample::Index,
        flip in 1_u8..=255,
    ) {
        let good = frame(&[(&name, &payload)], &payload);
        prop_assert_eq!(count_event_stream_messages(&good), Some(1));
        let mut bad = good.clone();
        let at = at.index(bad.len());
        bad[at] ^= flip;
        prop_assert_ne!(count_event_stream_messages(&bad), Some(1));
        // Both checksums are right here, so the headers themselves are parsed.
        let _ = cut(&super::super::stream_tests::frame_of(&headers, payload.as_bytes()));
    }
}
