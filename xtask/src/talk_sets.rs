//! Brings the conversations for measuring memories into the cache: from their public addresses, or from clones of
//! their repositories. Their licences do not let us redistribute them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

/// A set of conversations.
#[derive(Clone, Copy)]
struct TalkSet {
    /// Its folder in the cache.
    name: &'static str,
    /// `OWNER/NAME` on GitHub.
    repository: &'static str,
    /// The measured commit.
    commit: &'static str,
    /// SHA-256 of the hexadecimal SHA-256 sums of its files; results of other files would not be comparable.
    sum: &'static str,
    notice: &'static str,
    files: fn() -> Vec<String>,
}

const SETS: [TalkSet; 3] = [
    TalkSet {
        name: "locomo",
        repository: "snap-research/LoCoMo",
        commit: "3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376",
        sum: "dda815c63590af9c6022e97a8d41478ded90019062e785fec345dbb38ecfea3c",
        notice: "LoCoMo is by Snap Research, under CC BY-NC 4.0: not for commercial purposes.",
        files: || vec!["data/locomo10.json".to_owned()],
    },
    TalkSet {
        name: "realtalk",
        repository: "danny911kr/REALTALK",
        commit: "b903e06a9770bf4e5fe9018c3e132889666d3b4a",
        sum: "f0391f707acfc161c2e17d4b9bb345944f1b0697202a0c893205dcda94ea7eb4",
        notice: "REALTALK is by Lee and others; its repository names no licence.",
        files: || REALTALK.map(|name| format!("data/Chat_{name}.json")).to_vec(),
    },
    TalkSet {
        name: "beam",
        repository: "mohammadtavakoli78/BEAM",
        commit: "b2a3ee8ba12d68f83143dda191097dc3e028ddd3",
        sum: "5809d9624048a4614d8329a69cd0bef7bdf80f4eb02b906cbc52db122d60c8e1",
        notice: "BEAM is by Tavakoli and others; its repository names no licence.",
        files: || (1..=20).flat_map(beam).collect(),
    },
];

const REALTALK: [&str; 10] = [
    "1_Emi_Elise",
    "2_Kevin_Elise",
    "3_Kevin_Paola",
    "4_Emi_Paola",
    "5_Nicolas_Nebraas",
    "6_Vanessa_Nicolas",
    "7_Nebraas_Vanessa",
    "8_Akib_Muhhamed",
    "9_Fahim_Akib",
    "10_Fahim_Muhhamed",
];

/// The files of a chat of BEAM: its text, cut where there is a cut one, and its questions.
fn beam(chat: u32) -> [String; 2] {
    let text = if matches!(chat, 5 | 7 | 10..=12 | 16..=20) { "chat_trunecated" } else { "chat" };
    [text, "probing_questions/probing_questions"].map(|file| format!("chats/100K/{chat}/{file}.json"))
}

/// Returns true if all sets are in the folder.
pub(crate) fn are_in(folder: &Path) -> bool {
    SETS.iter().all(|set| folder.join(set.name).is_dir())
}

/// Downloads the sets that are missing.
pub(crate) fn download(folder: &Path) -> Result<()> {
    for set in SETS {
        set.bring(folder, |file, to| {
            let url = format!("https://raw.githubusercontent.com/{}/{}/{file}", set.repository, set.commit);
            curl(&url, to).with_context(|| {
                format!(
                    "cannot fetch {url}; without a network, clone the repositories and give `--from FOLDER`"
                )
            })
        })?;
    }
    Ok(())
}

/// Copies the sets that are missing out of clones, which are folders of `from` with the names of the repositories, in
/// any case.
pub(crate) fn copy(from: &Path, folder: &Path) -> Result<()> {
    for set in SETS {
        let clone = set.clone_in(from)?;
        set.bring(folder, |file, to| {
            if clone.join(file).is_file() {
                return fs::copy(clone.join(file), to).map(drop).context("cannot copy the file");
            }
            // A clone without a work tree.
            let mut git = Command::new("git");
            git.arg("-C").arg(&clone).args(["show", &format!("HEAD:{file}")]);
            fs::write(to, output(&mut git)?).context("cannot write the file")
        })?;
    }
    Ok(())
}

impl TalkSet {
    fn clone_in(&self, from: &Path) -> Result<PathBuf> {
        let wanted = self.repository.rsplit('/').next().unwrap_or_default();
        let entries = fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
        let is_it = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().eq_ignore_ascii_case(wanted))
        };
        entries.flatten().map(|entry| entry.path()).find(is_it).with_context(|| {
            format!("{} has no folder {wanted}; clone github.com/{} there", from.display(), self.repository)
        })
    }

    /// Puts each file of the set into the cache with `put`, unless they are there.
    fn bring(&self, folder: &Path, put: impl Fn(&str, &Path) -> Result<()>) -> Result<()> {
        let target = folder.join(self.name);
        if target.is_dir() {
            return Ok(());
        }
        println!("{}", self.notice);
        // A temporary name, so that a partial or wrong set is never taken for the right one.
        let part = Part(folder.join(format!("{}.{}.part", self.name, std::process::id())));
        let mut sums = String::new();
        for file in (self.files)() {
            let to = part.0.join(&file);
            let parent = to.parent().unwrap_or(&part.0);
            fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
            put(&file, &to).with_context(|| format!("cannot get {file} of {}", self.repository))?;
            sums += &sum_of(&fs::read(&to).with_context(|| format!("cannot read {}", to.display()))?);
        }
        let found = sum_of(sums.as_bytes());
        if found != self.sum {
            bail!(
                "the files of {} differ from those of commit {}, which the evaluation needs, so they were not kept: \
                 their checksum is {found}, not {}",
                self.repository,
                self.commit,
                self.sum
            );
        }
        fs::rename(&part.0, &target).with_context(|| format!("cannot write {}", target.display()))?;
        println!("{} is in {}", self.repository, target.display());
        Ok(())
    }
}

fn sum_of(bytes: &[u8]) -> String {
    hmac_sha256::Hash::hash(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn curl(url: &str, to: &Path) -> Result<()> {
    let mut curl = Command::new("curl");
    curl.args(["--fail", "--silent", "--show-error", "--location", "--connect-timeout", "20", "--output"]);
    output(curl.arg(to).arg(url)).map(drop)
}

fn output(command: &mut Command) -> Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let ran = command.output().with_context(|| format!("{program} cannot be started; install it"))?;
    if !ran.status.success() {
        bail!("{}", String::from_utf8_lossy(&ran.stderr).trim());
    }
    Ok(ran.stdout)
}

/// Removes a folder on drop, unless it was moved.
struct Part(PathBuf);

impl Drop for Part {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
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

    /// A set of one file that says `abc`: its sum is that of the sum that FIPS 180-2 has.
    fn small() -> TalkSet {
        let sum = "dfe7a23fefeea519e9bbfdd1a6be94c4b2e4529dd6b7cbea83f9959c2621b13c";
        TalkSet {
            name: "small",
            repository: "owner/Small",
            sum,
            files: || vec!["data/a.json".to_owned()],
            ..SETS[0]
        }
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn talk_sets_with_the_right_sum_only_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let say = |text: &'static str| move |_: &str, to: &Path| fs::write(to, text).context("cannot write");
        let error = small().bring(dir.path(), say("abd")).unwrap_err().to_string();
        assert!(error.starts_with("the files of owner/Small differ from those of commit"), "{error}");
        small().bring(dir.path(), |_, _| bail!("no network")).unwrap_err();
        assert_eq!(names(dir.path()), [""; 0]);
        small().bring(dir.path(), say("abc")).unwrap();
        assert_eq!(names(dir.path()), ["small"]);
        // It is not brought again.
        small().bring(dir.path(), |_, _| bail!("no network")).unwrap();
        assert!(!are_in(dir.path()));
    }

    #[test]
    fn talk_sets_come_out_of_clones_with_and_without_a_work_tree() {
        let dir = tempfile::tempdir().unwrap();
        let error = small().clone_in(dir.path()).unwrap_err().to_string();
        assert!(error.ends_with("has no folder Small; clone github.com/owner/Small there"), "{error}");
        fs::create_dir(dir.path().join("small")).unwrap();
        assert_eq!(small().clone_in(dir.path()).unwrap(), dir.path().join("small"));
    }

    #[test]
    fn curl_says_what_the_server_answered() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/file", server.local_addr().unwrap());
        thread::spawn(move || {
            for answer in ["404 Not Found", "200 OK"] {
                let (mut stream, _) = server.accept().unwrap();
                _ = stream.read(&mut [0; 4_096]).unwrap();
                write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc")
                    .unwrap();
            }
        });
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("file");
        let error = curl(&url, &to).unwrap_err().to_string();
        assert!(error.contains("404"), "{error}");
        curl(&url, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"abc");
    }
}
