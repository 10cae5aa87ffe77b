//! A Redis of a test's own: its port, its directory, its end.

use std::{
    env,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
};

use archon_testkit::Need;

pub(crate) static REDIS: Need = Need::new(|| program().map(drop), "ARCHON_REQUIRE_REDIS");

pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    _data: tempfile::TempDir,
}

impl Server {
    /// Starts the `redis-server` that `ARCHON_TEST_REDIS_SERVER` names or that is on the path.
    pub(crate) fn start() -> Self {
        let program = program().unwrap();
        // Somebody may take the port between the look and the start: then another one.
        (0..5)
            .find_map(|_| Self::on_a_free_port(&program))
            .unwrap_or_else(|| panic!("{} does not start", program.display()))
    }

    fn on_a_free_port(program: &PathBuf) -> Option<Self> {
        let data = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut child = Command::new(program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--daemonize", "no", "--logfile", "", "--dir"])
            .arg(data.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        if !lines.any(|line| line.contains("eady to accept connections")) {
            child.wait().unwrap();
            return None;
        }
        // What it says later has to go somewhere.
        thread::spawn(move || lines.for_each(drop));
        Some(Self { child, url: format!("redis://127.0.0.1:{port}"), _data: data })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> Result<PathBuf, String> {
    if let Some(named) = env::var_os("ARCHON_TEST_REDIS_SERVER") {
        return Ok(named.into());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|folder| folder.join("redis-server")).find(|file| file.is_file());
    found.ok_or_else(|| "no redis-server; run `cargo xtask redis test -p archon-redis`".to_owned())
}
