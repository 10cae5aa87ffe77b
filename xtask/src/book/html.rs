//! The book as HTML: a copy of the pages whose links fit, mdBook over it, and a check of what mdBook wrote.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::checks::{self, SUMMARY};
use crate::command_line::{CommandLine, find_on_path};
use crate::crate_downloads;
use crate::doc_links;
use crate::markdown;
use crate::python::environment;
use crate::repository::{self, TextFile};

const SETTINGS: &str = "docs/book/book.toml";
const VERSION: &str = "0.5.4";
/// The package with mdBook's program, by the sums of its files.
const REQUIREMENTS: &str = "xtask/mdbook-0.5.4.txt";

/// Builds the book into `target/book`. Returns the folder of the HTML, and the links in it that lead nowhere.
pub(crate) fn build(files: &[TextFile], target: &Path) -> Result<(PathBuf, Vec<String>)> {
    let source = target.join("book-source");
    let html = target.join("book");
    if source.exists() {
        fs::remove_dir_all(&source).with_context(|| format!("cannot remove {}", source.display()))?;
    }
    copy(files, &source)?;
    let words = ["build", &source.display().to_string(), "--dest-dir", &html.display().to_string()]
        .map(str::to_owned);
    CommandLine::new(mdbook(target)?).args(words).run()?;
    let problems = dead_links(&html)?;
    Ok((html, problems))
}

/// Copies the pages and what stands beside them, with links that hold in the book.
fn copy(files: &[TextFile], source: &Path) -> Result<()> {
    let manifest =
        fs::read_to_string(repository::root().join("Cargo.toml")).context("cannot read Cargo.toml")?;
    let pages: HashSet<&str> = checks::pages(files).iter().map(|page| page.path.as_str()).collect();
    let is_in_book = |file: &&TextFile| file.path.starts_with("docs/") || pages.contains(file.path.as_str());
    let has_place = |path: &&str| *path != SUMMARY && *path != SETTINGS;
    let in_book = files.iter().filter(is_in_book).map(|file| file.path.as_str()).filter(has_place).collect();
    let mut copied = HashSet::new();
    for file in files.iter().filter(is_in_book) {
        let is_page = pages.contains(file.path.as_str()) || file.path == SUMMARY;
        let to = match file.path.as_str() {
            SETTINGS => source.join("book.toml"),
            path => source.join("src").join(place(path)),
        };
        ensure!(copied.insert(to.clone()), "two files become {} in the book; rename one", place(&file.path));
        let text = match is_page {
            true => with_book_links(file, &in_book, repository_address(&manifest)),
            false => file.text.clone(),
        };
        fs::create_dir_all(to.parent().unwrap_or(&to))
            .with_context(|| format!("cannot create {}", to.display()))?;
        fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

/// Returns the place of a file of the repository in the book. The first page has to stand at the top, since mdBook shows
/// it as `index.html`, too.
fn place(path: &str) -> &str {
    let inner = path.strip_prefix("docs/").unwrap_or(path);
    inner.strip_prefix("book/").unwrap_or(inner)
}

fn repository_address(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("repository = "))?;
    Some(line.trim().trim_matches('"').trim_end_matches('/'))
}

/// Gives each link the address that it has in the book. A file that the book does not have is at the repository's
/// address; without one, the link becomes its text.
fn with_book_links(page: &TextFile, in_book: &HashSet<&str>, address: Option<&str>) -> String {
    let mut text = String::new();
    let mut done = 0;
    for link in markdown::links(&page.text).iter().filter(|link| !link.path.is_empty()) {
        let to = doc_links::target(&page.path, link.path).display().to_string();
        text.push_str(&page.text[done..link.start]);
        done = link.start + link.path.len();
        match address {
            _ if in_book.contains(to.as_str()) => text.push_str(&relative(place(&page.path), place(&to))),
            Some(address) => text.push_str(&format!("{address}/blob/main/{to}")),
            None => {
                text.truncate(text.len() - "](".len());
                if let Some(open) = text.rfind('[') {
                    text.remove(open);
                }
                done += page.text[done..].find(')').map_or(0, |end| end + 1);
            }
        }
    }
    text + &page.text[done..]
}

/// Returns the way from a file to another, both from the same folder.
fn relative(from: &str, to: &str) -> String {
    let folders: Vec<&str> = from.split('/').collect();
    let parts: Vec<&str> = to.split('/').collect();
    let depth = folders.len() - 1;
    let common = folders[..depth].iter().zip(&parts[..parts.len() - 1]).take_while(|(a, b)| a == b).count();
    let up = "../".repeat(depth - common);
    format!("{up}{}", parts[common..].join("/"))
}

/// Returns the program: the one on the path if it has the version, that of a package if there is Python, else one that
/// cargo builds.
fn mdbook(target: &Path) -> Result<String> {
    let on_path = find_on_path("mdbook").map(|program| program.display().to_string());
    let version = |program: &String| CommandLine::new(program.as_str()).args(["--version"]).output();
    if let Some(program) = on_path.filter(|it| version(it).is_ok_and(|printed| printed.contains(VERSION))) {
        return Ok(program);
    }
    let folder = target.join("third-party-mdbook");
    if find_on_path("python3").is_some() {
        let python = environment(&folder, &["--require-hashes", "--requirement", REQUIREMENTS])?;
        return Ok(Path::new(&python).with_file_name("mdbook").display().to_string());
    }
    let program = folder.join("bin").join("mdbook");
    if !program.exists() {
        let line = format!(
            "install mdbook --version ={VERSION} --locked --debug --no-default-features --features search"
        );
        let install = CommandLine::cargo(&line).args(["--root".to_owned(), folder.display().to_string()]);
        crate_downloads::run(&install)?;
    }
    Ok(program.display().to_string())
}

/// Returns links of the HTML to files or places that it does not have, and whatever a reader's browser would fetch from
/// elsewhere.
fn dead_links(html: &Path) -> Result<Vec<String>> {
    let mut pages = HashMap::new();
    let mut folders = vec![html.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "html") {
                let text =
                    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                pages.insert(path, text);
            }
        }
    }
    let mut problems = Vec::new();
    for (path, text) in &pages {
        let name = path.strip_prefix(html).unwrap_or(path).display();
        for link in
            attributes(text, "href").filter(|_| !path.ends_with("404.html") && !path.ends_with("toc.html"))
        {
            if !is_alive(path, link, &pages) {
                problems.push(format!("{name} of the book: the link leads to {link}, which is not there"));
            }
        }
        let sheets = text
            .split("<link ")
            .skip(1)
            .filter_map(|rest| attributes(rest.split('>').next()?, "href").next());
        let fetched = attributes(text, "src").chain(sheets).filter(|address| address.contains("//"));
        problems
            .extend(fetched.map(|address| format!("{name} of the book: a browser would fetch {address}")));
    }
    problems.sort();
    Ok(problems)
}

fn is_alive(page: &Path, link: &str, pages: &HashMap<PathBuf, String>) -> bool {
    if link.contains(':') {
        return true;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let to = if path.is_empty() { page.to_path_buf() } else { doc_links::plain(&page.with_file_name(path)) };
    match pages.get(&to) {
        Some(text) => anchor.is_empty() || text.contains(&format!("id=\"{anchor}\"")),
        None => to.exists(),
    }
}

fn attributes<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    html.split(&format!(" {name}=\""))
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str, address: Option<&str>) -> String {
        let in_book = HashSet::from(["docs/book/how-to/a.md", "docs/b.md", "SECURITY.md"]);
        with_book_links(&TextFile::new("docs/book/how-to/a.md", text), &in_book, address)
    }

    #[test]
    fn with_book_links_links_lead_to_pages_or_to_the_repository() {
        let text = "[b](../../b.md#x) [s](../../../SECURITY.md) [r\ns](../../../README.md#y).\n```text\n[r](../../../README.md)\n```\n";
        let end = ".\n```text\n[r](../../../README.md)\n```\n";
        assert_eq!(
            rewritten(text, Some("https://a.b/c")),
            format!("[b](../b.md#x) [s](../SECURITY.md) [r\ns](https://a.b/c/blob/main/README.md#y){end}")
        );
        assert_eq!(rewritten(text, None), format!("[b](../b.md#x) [s](../SECURITY.md) r\ns{end}"));
    }

    #[test]
    fn relative_way_goes_up_no_further_than_needed() {
        assert_eq!(relative("a/b/c.md", "a/d.md"), "../d.md");
        assert_eq!(relative("a.md", "b/c.md"), "b/c.md");
        assert_eq!(relative("a/b.md", "c.md"), "../c.md");
    }

    #[test]
    fn repository_address_is_that_of_the_manifest_or_none() {
        assert_eq!(repository_address("[package]\nrepository = \"https://a.b/c/\"\n"), Some("https://a.b/c"));
        assert_eq!(repository_address("[package]\n"), None);
    }

    #[test]
    fn dead_links_page_place_and_fetched_address_are_problems() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b.html"), "<h1 id=\"x\">").unwrap();
        let text = "<a href=\"b.html#x\"><a href=\"b.html#y\"><a href=\"c.html\"><a href=\"https://d.e\"><img src=\"https://d.e/f\">\
                    <link rel=\"stylesheet\" href=\"https://d.e/g.css\">";
        fs::write(folder.path().join("a.html"), text).unwrap();
        assert_eq!(
            dead_links(folder.path()).unwrap(),
            [
                "a.html of the book: a browser would fetch https://d.e/f",
                "a.html of the book: a browser would fetch https://d.e/g.css",
                "a.html of the book: the link leads to b.html#y, which is not there",
                "a.html of the book: the link leads to c.html, which is not there"
            ]
        );
    }
}
