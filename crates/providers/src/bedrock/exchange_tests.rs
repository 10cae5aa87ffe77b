//! Makes twenty signed requests, which the conformance check compares with the signatures of Amazon's own
//! library.

use std::{collections::BTreeSet, sync::Arc};

use archon_testkit::VirtualClock;
use archon_types::{Message, Request, Secret, Timestamp};

use super::*;
use crate::wire_fixture::{BASE_URL, sent};

/// The example key of Amazon's documentation; `tests/conformance/bedrock.py` uses it too.
const KEY_ID: &str = "AKIDEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

// spec: P-28
#[test]
fn twenty_requests_differ_in_their_signatures() {
    let models = [
        "us.anthropic.claude-sonnet-4-20250514-v1:0",
        "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.amazon.nova-pro-v1:0",
        "a model~_.-é",
        "meta.llama3-3-70b-instruct-v1:0",
        "x",
    ];
    let places = [
        ("us-east-1", None, 1_767_225_600_000),
        ("eu-central-1", Some("a/session+token=="), 1_709_251_199_000),
        ("cn-north-1", Some("t"), 4_102_444_799_000),
        ("us-west-2", None, 0),
    ];
    let mut signatures = BTreeSet::new();
    for model in models {
        for (region, token, now) in places {
            let mut credentials = AwsCredentials::new(KEY_ID, SECRET);
            credentials.session_token = token.map(Secret::from);
            let clock = VirtualClock::starting_at(Timestamp::from_millis(now));
            let options = BedrockOptions::default()
                .with_auth(BedrockAuth::Signed(credentials))
                .with_region(region)
                .with_clock(Arc::new(clock));
            let provider = Bedrock::new(BASE_URL, options).unwrap();
            let text = format!("Grüße 🌍 from {region}");
            let request = Request::new(model, vec![Message::user(text, Timestamp::default())]);
            let sent = sent(&provider, &request);
            signatures.insert(sent.header("authorization").unwrap().to_owned());
        }
    }
    assert_eq!(signatures.len(), 20);
}
