//! A Redis of a test's own: its port, its directory, its end.

use std::{
    env,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
};

pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    _data: tempfile::TempDir,
}

impl Server {
    /// None, said aloud, where there is no `redis-server`: named by `ARCHON_TEST_REDIS_SERVER`, or on the path.
    pub(crate) fn start() -> Option<Self> {
        let Some(program) = program() else {
            assert!(env::var("ARCHON_REQUIRE_REDIS").is_err(), "there is no redis-server on this machine");
            let test = thread::current().name().unwrap_or("?").to_owned();
            eprintln!(
                "SKIP (1 test): {test}: no redis-server; `cargo xtask redis test -p archon-redis` brings one"
            );
            return None;
        };
        // Somebody may take the port between the look and the start: then another one.
        (0..5)
            .find_map(|_| Self::on_a_free_port(&program))
            .or_else(|| panic!("{} does not start", program.display()))
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

fn program() -> Option<PathBuf> {
    if let Some(named) = env::var_os("ARCHON_TEST_REDIS_SERVER") {
        return Some(named.into());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join("redis-server")).find(|file| file.is_file())
}
