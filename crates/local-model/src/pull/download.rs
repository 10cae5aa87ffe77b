//! Downloads one file: continues a partial download, and gives the file its name only if its hash is right.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use futures_util::StreamExt;
use reqwest::{Client, Response, StatusCode, Url, header};
use sha2::{Digest, Sha256};

use super::{PullProgress, blocking, part_of};
use crate::error::LocalModelError;
use crate::prebuilt::{hash_of, hex};

/// The expected properties of a file, and its position in the whole download.
pub(super) struct Expected {
    /// The hash of the file, in hexadecimal digits.
    pub(super) sha256: String,
    /// The maximum number of bytes of the file; a larger download is cancelled.
    pub(super) most: u64,
    /// The number of bytes of the model before this file.
    pub(super) before: u64,
    /// The number of bytes of the whole model; if `None`, no progress is reported.
    pub(super) of: Option<u64>,
}

/// Downloads `url` to `path`. Until the download is complete, the file has the name `….part`, and the
/// download can be continued.
pub(super) async fn download(
    client: &Client,
    url: Url,
    path: &Path,
    expected: &Expected,
    progress: &mut dyn FnMut(PullProgress),
) -> Result<(), LocalModelError> {
    let part = part_of(path);
    let host = url.host_str().unwrap_or("the server").to_owned();
    let have = fs::metadata(&part).map_or(0, |m| m.len());
    let mut request = client.get(url);
    if have > 0 {
        request = request.header(header::RANGE, format!("bytes={have}-"));
    }
    let response = request.send().await.map_err(|e| LocalModelError::network(&host, &e))?;
    let mut hash = Sha256::new();
    let mut size = 0;
    // A server that cannot continue sends the whole file; if there are no more bytes, it answers that the
    // range is wrong.
    let complete = response.status() == StatusCode::RANGE_NOT_SATISFIABLE && have > 0;
    if complete || (response.status() == StatusCode::PARTIAL_CONTENT && starts_at(&response, have)) {
        let path = part.clone();
        let failed = |source| LocalModelError::Io { path: part.clone(), source };
        (hash, size) = (blocking(move || Ok(hash_of(&path))).await?.map_err(failed)?, have);
    }
    if !complete {
        let response = ok(response)?;
        let fresh = size == 0;
        let open = OpenOptions::new().create(true).write(true).append(!fresh).truncate(fresh).open(&part);
        let mut file = open.map_err(|e| LocalModelError::write(&part, Some(&part), e))?;
        let mut stream = response.bytes_stream();
        while let Some(bytes) = stream.next().await {
            let bytes = bytes.map_err(|e| LocalModelError::network(&host, &e))?;
            if size + bytes.len() as u64 > expected.most {
                let _ = fs::remove_file(&part);
                let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                return Err(LocalModelError::TooLarge { file, most: expected.most });
            }
            file.write_all(&bytes).map_err(|e| LocalModelError::write(&part, Some(&part), e))?;
            hash.update(&bytes);
            size += bytes.len() as u64;
            if expected.of.is_some() {
                progress(PullProgress::Fetched { bytes: expected.before + size, of: expected.of });
            }
        }
        file.sync_all().map_err(|e| LocalModelError::write(&part, Some(&part), e))?;
    }
    let found = hex(&hash.finalize());
    if found != expected.sha256 {
        let _ = fs::remove_file(&part);
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Err(LocalModelError::Checksum { file, expected: expected.sha256.clone(), found });
    }
    fs::rename(&part, path).map_err(|e| LocalModelError::write(path, None, e))
}

/// Parses an address.
pub(super) fn address(text: &str) -> Result<Url, LocalModelError> {
    Url::parse(text).map_err(|e| LocalModelError::Address { why: e.to_string() })
}

/// Returns the response if its status is a success.
pub(super) fn ok(response: Response) -> Result<Response, LocalModelError> {
    if response.status().is_success() {
        return Ok(response);
    }
    let host = response.url().host_str().unwrap_or("the server").to_owned();
    Err(LocalModelError::Refused { host, status: response.status().as_u16() })
}

/// Returns true if the response begins where the partial file ends.
fn starts_at(response: &Response, have: u64) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {have}-")))
}
