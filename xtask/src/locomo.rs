//! Fetches the conversations for measuring memories. Their licence does not let us redistribute them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

/// Address of the file, at the measured commit.
const URL: &str = "https://raw.githubusercontent.com/snap-research/locomo/3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376/data/locomo10.json";
/// SHA-256 of that file; results of another file would not be comparable.
const SUM: &str = "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4";
/// The licence notice.
const LICENCE: &str = "LoCoMo is by Snap Research, under CC BY-NC 4.0: not for commercial purposes.";

/// Downloads the file to `target`, unless it exists.
pub(crate) fn fetch(target: &Path) -> Result<()> {
    println!("{LICENCE}");
    fetch_from(URL, SUM, target)
}

fn fetch_from(url: &str, sum: &str, target: &Path) -> Result<()> {
    if target.is_file() && check(target, sum).is_ok() {
        println!("{} is there", target.display());
        return Ok(());
    }
    let folder = target.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    // A temporary name, so that a partial or wrong file is never taken for the right one.
    let part = Part(target.with_extension(format!("{}.part", std::process::id())));
    download(url, &part.0).with_context(|| {
        format!(
            "cannot fetch {url}; without a network, put data/locomo10.json of github.com/snap-research/locomo into {}",
            target.display()
        )
    })?;
    check(&part.0, sum).with_context(|| format!("{url} is not what is measured, and is not kept"))?;
    fs::rename(&part.0, target).with_context(|| format!("cannot write {}", target.display()))?;
    println!("fetched {}", target.display());
    Ok(())
}

fn download(url: &str, to: &Path) -> Result<()> {
    let mut curl = Command::new("curl");
    curl.args(["--fail", "--silent", "--show-error", "--location", "--connect-timeout", "20", "--output"]);
    let ran = curl.arg(to).arg(url).output().context("curl cannot be started; install it")?;
    if !ran.status.success() {
        bail!("{}", String::from_utf8_lossy(&ran.stderr).trim());
    }
    Ok(())
}

fn check(file: &Path, sum: &str) -> Result<()> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let found: String = hmac_sha256::Hash::hash(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    if found != sum {
        bail!("its SHA-256 is {found}, not {sum}");
    }
    Ok(())
}

/// Removes a file on drop, unless it was moved.
struct Part(PathBuf);

impl Drop for Part {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        thread,
    };

    use super::*;

    /// SHA-256 of `abc`, as FIPS 180-2 has it.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    /// Serves one request with this answer, and returns the address.
    fn served(answer: &'static str) -> String {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/file", server.local_addr().unwrap());
        thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            _ = stream.read(&mut [0; 4_096]).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        });
        url
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn locomo_fetch_stores_a_file_with_the_right_hash_only() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("archon");
        let target = cache.join("locomo10.json");
        const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc";
        const OTHER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabd";
        const CUT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nabc";
        const GONE: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc";
        for (answer, why) in [(OTHER, "not what is measured"), (CUT, "cannot fetch"), (GONE, "404")] {
            let error = format!("{:#}", fetch_from(&served(answer), ABC, &target).unwrap_err());
            assert!(error.contains(why), "{error}");
            assert_eq!(names(&cache), [""; 0], "{error}");
        }
        // Nobody listens there, as without a network.
        let error = format!("{:#}", fetch_from("http://127.0.0.1:1/file", ABC, &target).unwrap_err());
        assert!(error.contains("without a network, put data/locomo10.json of github.com/"), "{error}");
        fetch_from(&served(GOOD), ABC, &target).unwrap();
        assert_eq!(names(&cache), ["locomo10.json"]);
        // It is not asked for again, and another file in its place is replaced.
        fetch_from("http://127.0.0.1:1/file", ABC, &target).unwrap();
        fs::write(&target, "abd").unwrap();
        fetch_from(&served(GOOD), ABC, &target).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"abc");
    }
}
