//! Finds out facts about this machine: quickly, from files and common programs, without building anything.

use std::env;
use std::fs;
use std::io::Write as _;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use super::preflight::{CLibrary, Disk, Libstdcxx, Machine, Silent};
use crate::command_line::find_on_path;

/// Something to write, its folder, and the space that it needs.
pub(super) struct Room {
    pub(super) what: &'static str,
    pub(super) folder: PathBuf,
    pub(super) mb: u64,
}

impl Machine {
    /// Collects the facts. `builds`: the command must be built; `fetches`: something must be downloaded;
    /// `sources`: the servers of the missing model and engine.
    pub(super) fn look(rooms: &[Room], builds: bool, fetches: bool, sources: &[Source]) -> Self {
        let silent = reach(sources);
        Self {
            os: env::consts::OS.to_owned(),
            cpu: env::consts::ARCH.to_owned(),
            c_library: c_library(),
            libstdcxx: libstdcxx(),
            compiler: if builds { compiler() } else { None },
            memory_mb: if builds { memory_mb() } else { None },
            disks: disks(rooms),
            network: if fetches { network() } else { None },
            silent: silent.collect(),
        }
    }
}

/// A server of a download, and the settings that name another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) what: &'static str,
    pub(super) host: &'static str,
    /// If one of these variables is set, another server or a proxy is used.
    pub(super) variables: &'static [&'static str],
    /// The same for a file in the home folder.
    pub(super) file: Option<&'static str>,
}

/// With a proxy a program does not connect to the servers itself.
const PROXIES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

impl Source {
    /// Returns whether this server will be used.
    fn is_asked(&self) -> bool {
        let is_set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let file = self.file.zip(env::var_os("HOME")).map(|(file, home)| Path::new(&home).join(file));
        !PROXIES.iter().chain(self.variables).any(is_set) && !file.is_some_and(|file| file.is_file())
    }
}

/// The longest time for a server to answer. All are tried at once, besides cargo's own try.
const SILENCE: Duration = Duration::from_secs(6);

/// Connects to the servers; the iterator waits, and returns those that did not answer.
fn reach(sources: &[Source]) -> impl Iterator<Item = Silent> {
    let asked = sources.iter().filter(|source| source.is_asked()).map(|source| {
        let (tell, told) = channel();
        let (host, what) = (source.host, source.what);
        // Resolving a name has no time limit, so the thread may outlive the check.
        thread::spawn(move || tell.send(connect(host)));
        (what, host, told)
    });
    let (asked, began): (Vec<_>, _) = (asked.collect(), Instant::now());
    asked.into_iter().filter_map(move |(what, host, told)| {
        let answer = told.recv_timeout(SILENCE.saturating_sub(began.elapsed()));
        let why = answer.unwrap_or_else(|_| Err(format!("no answer in {} s", SILENCE.as_secs()))).err()?;
        Some(Silent { what, host, why })
    })
}

fn connect(host: &str) -> Result<(), String> {
    let addresses = (host, 443).to_socket_addrs().map_err(|e| e.to_string())?;
    let mut why = "its name has no address".to_owned();
    for address in addresses.take(4) {
        match TcpStream::connect_timeout(&address, SILENCE / 2) {
            Ok(_) => return Ok(()),
            Err(error) => why = error.to_string(),
        }
    }
    Err(why)
}

fn c_library() -> CLibrary {
    if cfg!(target_env = "musl") {
        return CLibrary::Musl;
    }
    if !cfg!(target_env = "gnu") {
        return CLibrary::Other;
    }
    // `glibc 2.36`
    let said = answer("getconf", &["GNU_LIBC_VERSION"]).unwrap_or_default();
    CLibrary::Glibc(said.split_whitespace().nth(1).and_then(two_numbers))
}

/// Parses `2.36` as two numbers.
fn two_numbers(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.split_once('.')?;
    let minor = rest.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Finds the library that the loader finds. The target of the link has the version in its name.
fn libstdcxx() -> Libstdcxx {
    let name = "libstdc++.so.6";
    let listed =
        answer("ldconfig", &["-p"]).or_else(|| answer("/sbin/ldconfig", &["-p"])).unwrap_or_default();
    // `libstdc++.so.6 (libc6,x86-64) => /lib/x86_64-linux-gnu/libstdc++.so.6`
    let from_cache = listed.lines().filter(|line| line.trim_start().starts_with(name));
    let from_cache = from_cache.filter_map(|line| Some(PathBuf::from(line.split_once("=> ")?.1)));
    let named = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let arch = env::consts::ARCH;
    let usual = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"].into_iter().map(PathBuf::from);
    let usual =
        usual.chain([format!("/usr/lib/{arch}-linux-gnu"), format!("/lib/{arch}-linux-gnu")].map(Into::into));
    let folders = env::split_paths(&named).chain(usual).map(|folder| folder.join(name));
    let found: Vec<PathBuf> = from_cache.chain(folders).filter(|file| file.exists()).collect();
    match found.is_empty() {
        true => Libstdcxx::Missing,
        // Of several (for 32 bits, say) the newest: the loader takes one that fits.
        false => Libstdcxx::There(found.iter().filter_map(|file| version_of(file)).max()),
    }
}

fn version_of(file: &Path) -> Option<u32> {
    let target = fs::canonicalize(file).ok()?;
    target.file_name()?.to_str()?.strip_prefix("libstdc++.so.6.0.")?.parse().ok()
}

/// Returns the C compiler's fault, if it has one. It checks a small program, since a compiler without the C
/// library's headers is of no use.
fn compiler() -> Option<String> {
    let chosen = env::var("CC").ok().filter(|name| !name.trim().is_empty());
    let name = chosen.as_deref().unwrap_or("cc");
    let mut words = name.split_whitespace();
    let program = words.next().unwrap_or("cc");
    if find_on_path(program).is_none() && !Path::new(program).is_file() {
        return Some(format!("there is no `{program}` on PATH"));
    }
    let child = Command::new(program)
        .args(words)
        .args(["-fsyntax-only", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let output = child.and_then(|mut child| {
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(b"#include <stdlib.h>\nint main(void) { return 0; }\n")?;
        }
        child.wait_with_output()
    });
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Some(format!("`{name}` says: {}", said.lines().next().unwrap_or("nothing")))
        }
        Err(error) => Some(format!("`{name}` cannot be started: {error}")),
    }
}

/// Returns the system's free memory, or that of the container if it is less.
fn memory_mb() -> Option<u64> {
    let read = |path: &str| fs::read_to_string(path).ok();
    let of_system = read("/proc/meminfo").as_deref().and_then(available_mb)?;
    let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
    let of_container = (|| {
        let limit = number("/sys/fs/cgroup/memory.max")?;
        let used = number("/sys/fs/cgroup/memory.current")?;
        let cache = read("/sys/fs/cgroup/memory.stat").as_deref().and_then(inactive_file).unwrap_or(0);
        Some(limit.saturating_sub(used.saturating_sub(cache)) / 1_000_000)
    })();
    Some(of_container.map_or(of_system, |mb| mb.min(of_system)))
}

/// Parses `MemAvailable:   21823400 kB`.
fn available_mb(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1_024 / 1_000_000)
}

/// Returns the memory that the system gives back on demand.
fn inactive_file(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("inactive_file "))?.trim().parse().ok()
}

/// Returns the file systems of the rooms, each with everything that will be written to it.
fn disks(rooms: &[Room]) -> Vec<Disk> {
    let mut disks: Vec<Disk> = Vec::new();
    for room in rooms.iter().filter(|room| room.mb > 0) {
        let there = room.folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
        let table = answer("df", &["-Pk", &there.display().to_string()]).unwrap_or_default();
        let Some((free_mb, mount)) = free_and_mount(&table) else { continue };
        match disks.iter_mut().find(|disk| disk.mount == mount) {
            Some(disk) => {
                disk.needed_mb += room.mb;
                disk.for_what.push(room.what);
            }
            None => disks.push(Disk { mount, free_mb, needed_mb: room.mb, for_what: vec![room.what] }),
        }
    }
    disks
}

/// Parses `Filesystem 1024-blocks Used Available Capacity Mounted on`, and the line below it.
fn free_and_mount(table: &str) -> Option<(u64, String)> {
    let line = table.lines().nth(1)?;
    let columns: Vec<&str> = line.split_whitespace().collect();
    let capacity = columns.iter().rposition(|column| column.ends_with('%'))?;
    let free = columns.get(capacity.checked_sub(1)?)?.parse::<u64>().ok()?;
    Some((free * 1_024 / 1_000_000, columns.get(capacity + 1..)?.join(" ")))
}

/// Lets cargo look up a small package without a cache, since cargo knows its own proxies and mirrors. At most
/// 8 seconds.
fn network() -> Option<String> {
    let home = env::temp_dir().join(format!("archon-demo-{}", std::process::id()));
    let asked = (|| {
        fs::create_dir_all(&home).ok()?;
        for name in ["config.toml", "config", "credentials.toml"] {
            // A mirror, a proxy; most people have none.
            let _ = fs::copy(cargo_home()?.join(name), home.join(name));
        }
        // Outside of the workspace, which would make cargo look up all its dependencies.
        let output = Command::new("cargo")
            .args(["info", "--quiet", "anyhow"])
            .current_dir(&home)
            .env("CARGO_HOME", &home)
            .env("CARGO_HTTP_TIMEOUT", "4")
            .env("CARGO_NET_RETRY", "0")
            .stdin(Stdio::null())
            .output()
            .ok()?;
        let said = String::from_utf8_lossy(&output.stderr);
        (!output.status.success()).then(|| last_cause(&said))
    })();
    let _ = fs::remove_dir_all(&home);
    asked
}

/// Returns the last line, in which cargo gives the cause.
fn last_cause(text: &str) -> String {
    text.lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("it does not say why")
        .to_owned()
}

/// Returns cargo's home folder.
pub(crate) fn cargo_home() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    set("CARGO_HOME").or_else(|| set("HOME").map(|home| home.join(".cargo")))
}

/// Returns the output of a program, if it exists and succeeds.
fn answer(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).env("LC_ALL", "C").stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_and_mount_reads_the_table_of_df() {
        let table = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n\
                     /dev/vda         263112772 22020096  73400320      25% /\n";
        assert_eq!(free_and_mount(table), Some((75_161, "/".to_owned())));
        let spaced = "Filesystem 1024-blocks Used Available Capacity Mounted on\n\
                      a b 10 5 5 50% /mnt/my disk\n";
        assert_eq!(free_and_mount(spaced), Some((0, "/mnt/my disk".to_owned())));
        assert_eq!(free_and_mount("df: no such file"), None);
    }

    #[test]
    fn available_mb_reads_the_systems_own_estimate() {
        assert_eq!(available_mb("MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:   2000000 kB\n"), Some(2_048));
        assert_eq!(available_mb("MemTotal: 9 kB\n"), None);
    }

    #[test]
    fn two_numbers_of_a_version_are_its_first() {
        assert_eq!(two_numbers("2.36"), Some((2, 36)));
        assert_eq!(two_numbers("2.35.1"), Some((2, 35)));
        assert_eq!(two_numbers("two"), None);
    }

    #[test]
    fn disks_on_one_file_system_are_added_up() {
        let room = |what, mb| Room { what, folder: env::temp_dir().join("not-there-yet"), mb };
        let disks = disks(&[room("the build", 2), room("nothing", 0), room("the model", 3)]);
        assert_eq!(disks.len(), 1);
        assert_eq!((disks[0].needed_mb, disks[0].for_what.as_slice()), (5, &["the build", "the model"][..]));
    }

    #[test]
    fn reach_of_an_unresolvable_name_names_the_server() {
        let source = |host, variables| Source { what: "the engine", host, variables, file: None };
        let nowhere = source("archon.invalid", &[]);
        if nowhere.is_asked() {
            let silent: Vec<Silent> = reach(&[nowhere]).collect();
            assert_eq!((silent.len(), silent[0].host), (1, "archon.invalid"));
        }
        // Every test runs with a PATH.
        assert_eq!(reach(&[source("archon.invalid", &["PATH"])]).count(), 0, "another server is asked");
    }

    #[test]
    fn last_cause_of_cargos_words_is_the_last_line() {
        let text =
            "`cargo info` failed (101): error: download failed\n\nCaused by:\n  [6] Could not resolve host\n";
        assert_eq!(last_cause(text), "[6] Could not resolve host");
    }
}
