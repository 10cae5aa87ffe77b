//! Tests that signatures equal those of Amazon's own library for Python, and depend only on their inputs.

use archon_types::Timestamp;
use reqwest::{Method, Url, header::HeaderValue};

use super::*;

struct Vector {
    url: &'static str,
    region: &'static str,
    token: Option<&'static str>,
    body: &'static str,
    now: &'static str,
    date: &'static str,
    scope: &'static str,
    signature: &'static str,
}

/// Made with botocore 1.43.11: `SigV4Auth(credentials, "bedrock", region)` with a fixed time.
const VECTORS: &[Vector] = &[
    Vector {
        url: "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-3-5-sonnet-20240620-v1%3A0/converse-stream",
        region: "us-east-1",
        token: None,
        body: "{\"messages\":[]}",
        now: "2026-01-01T00:00:00Z",
        date: "20260101T000000Z",
        scope: "20260101/us-east-1",
        signature: "14571ad94874219d1a5dd37c531c365bbf05f4a6c0a6075c1474d65000fda50f",
    },
    Vector {
        url: "https://bedrock-runtime.eu-central-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A123456789012%3Ainference-profile%2Feu.amazon.nova-pro-v1%3A0/converse-stream",
        region: "eu-central-1",
        token: Some("a/session+token=="),
        body: "{\"messages\":[{\"content\":[{\"text\":\"Grüße 🌍\"}],\"role\":\"user\"}]}",
        now: "2024-02-29T23:59:59Z",
        date: "20240229T235959Z",
        scope: "20240229/eu-central-1",
        signature: "dbf80154c02947cd3f3a6f887b2e80ee91a17da9d40b954cbd5cb2ce69df75a3",
    },
    Vector {
        url: "http://127.0.0.1:8080/base/model/m%20odel~_.-%C3%A9/converse-stream",
        region: "us-west-2",
        token: None,
        body: "",
        now: "1970-01-01T00:00:00Z",
        date: "19700101T000000Z",
        scope: "19700101/us-west-2",
        signature: "fd22df550fc62fa5f46da6bcf3e49f25bd331f6384d502a6ab083b6c768ec635",
    },
    Vector {
        url: "https://bedrock-runtime.cn-north-1.amazonaws.com.cn/model/x/converse-stream",
        region: "cn-north-1",
        token: Some("t"),
        body: "{}",
        now: "2099-12-31T23:59:59Z",
        date: "20991231T235959Z",
        scope: "20991231/cn-north-1",
        signature: "d8ae11c389786e76be3d12de5f63bfa87e54f450aea0521f7bdcfdf36cfcfab8",
    },
];

/// The example key of Amazon's documentation.
const KEY_ID: &str = "AKIDEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

fn signed(vector: &Vector, now: Timestamp, more: Option<&'static str>) -> Request {
    let mut request = Request::new(Method::POST, Url::parse(vector.url).unwrap());
    assert_eq!(request.url().as_str(), vector.url, "the address is sent as it is signed");
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(more) = more {
        request.headers_mut().insert("x-team", HeaderValue::from_static(more));
    }
    *request.body_mut() = Some(vector.body.into());
    let mut credentials = AwsCredentials::new(KEY_ID, SECRET);
    credentials.session_token = vector.token.map(Secret::from);
    sign_request(&mut request, &credentials, vector.region, now).unwrap();
    request
}

// spec: P-28
#[test]
fn signatures_are_those_of_amazons_own_library() {
    for vector in VECTORS {
        let now = vector.now.parse().unwrap();
        for request in [signed(vector, now, None), signed(vector, now, Some("headers that others add"))] {
            let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap());
            assert_eq!(header("x-amz-date"), Some(vector.date));
            assert_eq!(header("x-amz-security-token"), vector.token);
            let names = match vector.token {
                Some(_) => "content-type;host;x-amz-date;x-amz-security-token",
                None => "content-type;host;x-amz-date",
            };
            let expected = format!(
                "AWS4-HMAC-SHA256 Credential={KEY_ID}/{}/bedrock/aws4_request, SignedHeaders={names}, Signature={}",
                vector.scope, vector.signature
            );
            assert_eq!(header("authorization"), Some(expected.as_str()), "{}", vector.url);
            assert!(!format!("{request:?}").contains(vector.signature), "it is not shown");
        }
        let later = signed(vector, now + Duration::from_secs(1), None);
        let authorization = later.headers()["authorization"].to_str().unwrap();
        assert!(!authorization.ends_with(vector.signature), "time is signed");
    }
}

// spec: P-05, P-28
#[test]
fn credentials_that_cannot_be_sent_are_an_error_without_them() {
    let mut request = Request::new(Method::POST, Url::parse("http://h/x").unwrap());
    let credentials = AwsCredentials::new("id\n", "canary-secret").with_session_token("canary\ntoken");
    let error = sign_request(&mut request, &credentials, "r", Timestamp::default()).unwrap_err();
    assert_eq!(error.code().as_str(), "auth");
    assert!(!format!("{error:?} {credentials:?}").contains("canary"), "{error:?}");
}
