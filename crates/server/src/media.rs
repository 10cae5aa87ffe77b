//! Images and files of a run.

use axum::{
    body::Body,
    http::{
        HeaderValue,
        header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE},
    },
    response::Response,
};

use crate::{
    problem::{Problem, Rule},
    reply::Reply,
    request::Call,
};

/// Returns the data of an image or a file in the log of a run. A browser saves the data and never shows it as a page of
/// this server, because a tool or a person may have put anything into it.
pub(crate) async fn get(mut call: Call) -> Reply {
    let run = call.run().await?;
    let sha256 = call.parameter("sha256").await?;
    let records = call.runs().records(&run, None).await?.records;
    let media = records.iter().flat_map(|record| record.body.media());
    let found = media
        .filter(|media| media.sha256() == sha256)
        .find_map(|media| Some((media.mime_type(), media.data()?)));
    let Some((mime_type, data)) = found else {
        let detail = format!("the log of run {run} has no image and no file with the SHA-256 {sha256}");
        return Err(Problem::new(Rule::UnknownMedia, detail)
            .advise("take the member `sha256` of a block `media` of the run's records"));
    };
    let mut response = Response::new(Body::from(data));
    let unknown = HeaderValue::from_static("application/octet-stream");
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_str(mime_type).unwrap_or(unknown));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    Ok(response)
}
