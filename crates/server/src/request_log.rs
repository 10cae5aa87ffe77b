//! The log of requests that change something: an append-only file that says which access token sent each request.

use std::{
    collections::HashSet,
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use archon_types::Timestamp;
use serde::{Deserialize, Serialize};

/// A file with a line of JSON for each request that changes something, also to a mounted router: the time, the name
/// and the role of the access token, the method, the path, the run or the question, and the status. A line is
/// synced before the response is sent. If the client disconnects before a mounted router responds, the line has the
/// status 499 and no run.
///
/// The file grows without a limit. To begin a new file, stop the server and move the file away; an audit then
/// shows only the requests in the new file. Two servers must not write to the same file.
#[derive(Debug)]
pub struct RequestLog {
    path: PathBuf,
    file: Mutex<LogFile>,
}

#[derive(Debug)]
struct LogFile {
    file: File,
    /// True if the last write may have left a part of a line, for instance on a full disk.
    is_torn: bool,
}

impl RequestLog {
    /// Opens the file, or creates it so that only its owner can read it.
    ///
    /// # Errors
    /// The file cannot be opened, created or written.
    ///
    /// ```no_run
    /// use archon_server::{RequestLog, ServerOptions};
    ///
    /// # fn open() -> std::io::Result<ServerOptions> {
    /// Ok(ServerOptions::default().with_request_log(RequestLog::open("data/requests.jsonl")?))
    /// # }
    /// ```
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        let mut options = OpenOptions::new();
        options.create(true).append(true).read(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path)?;
        // A process that died in the middle of a line leaves a part of it.
        let is_torn = !ends_with_newline(&mut file)?;
        Ok(Self { path, file: Mutex::new(LogFile { file, is_torn }) })
    }

    /// Adds a line.
    pub(crate) async fn add(self: Arc<Self>, request: LoggedRequest) -> io::Result<()> {
        let mut line = serde_json::to_vec(&request)?;
        line.push(b'\n');
        in_background(move || self.file.lock().unwrap_or_else(PoisonError::into_inner).add(&line)).await
    }

    /// Returns the requests with one of these targets, oldest first. A line that is damaged is left out.
    pub(crate) async fn of_targets(
        self: Arc<Self>,
        targets: HashSet<String>,
    ) -> io::Result<Vec<LoggedRequest>> {
        in_background(move || {
            let mut found = Vec::new();
            for line in BufReader::new(File::open(&self.path)?).split(b'\n') {
                let Ok(request) = serde_json::from_slice::<LoggedRequest>(&line?) else { continue };
                if request.target.as_ref().is_some_and(|target| targets.contains(target)) {
                    found.push(request);
                }
            }
            Ok(found)
        })
        .await
    }
}

impl LogFile {
    /// Writes a line to the storage medium, behind the part of a line that an earlier write left.
    fn add(&mut self, line: &[u8]) -> io::Result<()> {
        let was_torn = std::mem::replace(&mut self.is_torn, true);
        if was_torn {
            self.file.write_all(b"\n")?;
        }
        self.file.write_all(line)?;
        self.is_torn = false;
        self.file.sync_data()
    }
}

/// A request that changes something, and the access token that sent it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoggedRequest {
    /// The time at which the request was finished.
    pub(crate) at: Timestamp,
    /// The name of the token.
    pub(crate) token: String,
    pub(crate) role: String,
    pub(crate) method: String,
    pub(crate) path: String,
    /// The id of the run or question in the path, or of the run that the request started. For a mounted router,
    /// the id of the run that its response names. `None` if there is none.
    pub(crate) target: Option<String>,
    /// The status of the response; 499 if the client disconnected before a mounted router responded.
    pub(crate) status: u16,
    /// The code of the rule that refused the request; `None` if it was not refused.
    pub(crate) rule: Option<String>,
}

fn ends_with_newline(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Runs `work` on a thread that may block.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(token: &str, target: Option<&str>) -> LoggedRequest {
        LoggedRequest {
            at: Timestamp::from_millis(7),
            token: token.to_owned(),
            role: "operator".to_owned(),
            method: "POST".to_owned(),
            path: "/v1/runs".to_owned(),
            target: target.map(str::to_owned),
            status: 201,
            rule: None,
        }
    }

    async fn find(log: &Arc<RequestLog>, targets: &[&str]) -> Vec<LoggedRequest> {
        let targets = targets.iter().map(|&target| target.to_owned()).collect();
        log.clone().of_targets(targets).await.unwrap()
    }

    // spec: EX-12
    #[tokio::test]
    async fn of_targets_gives_the_lines_of_the_targets_also_after_a_line_that_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requests.jsonl");
        let log = Arc::new(RequestLog::open(&path).unwrap());
        for (token, target) in [("ann", Some("r1")), ("ben", Some("r2")), ("ann", Some("q1")), ("ann", None)]
        {
            log.clone().add(request(token, target)).await.unwrap();
        }
        drop(log);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"at\":").unwrap();
        let log = Arc::new(RequestLog::open(&path).unwrap());
        log.clone().add(request("cy", Some("r1"))).await.unwrap();
        let expected = [request("ann", Some("r1")), request("ann", Some("q1")), request("cy", Some("r1"))];
        assert_eq!(find(&log, &["r1", "q1"]).await, expected);
        assert_eq!(find(&log, &["r3"]).await, []);
    }

    #[tokio::test]
    async fn add_after_a_write_that_failed_in_the_middle_of_a_line_begins_a_new_line() {
        let folder = tempfile::tempdir().unwrap();
        let log = Arc::new(RequestLog::open(folder.path().join("requests.jsonl")).unwrap());
        {
            let mut file = log.file.lock().unwrap();
            file.file.write_all(b"{\"at\":").unwrap();
            file.is_torn = true;
        }
        log.clone().add(request("ann", Some("r1"))).await.unwrap();
        assert_eq!(find(&log, &["r1"]).await, [request("ann", Some("r1"))]);
    }

    #[cfg(unix)]
    #[test]
    fn open_creates_a_file_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requests.jsonl");
        drop(RequestLog::open(&path).unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(RequestLog::open(folder.path().join("none/requests.jsonl")).is_err());
    }
}
