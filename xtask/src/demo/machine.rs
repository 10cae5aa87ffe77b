//! Finds out what this machine is: quickly, by files and by programs that are everywhere, and without building anything.

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::preflight::{CLibrary, Disk, Libstdcxx, Machine};
use crate::command_line::find_on_path;

/// Something that is written, where, and how much room it takes.
pub(super) struct Room {
    pub(super) what: &'static str,
    pub(super) folder: PathBuf,
    pub(super) mb: u64,
}

impl Machine {
    /// Looks at this machine; `fetches` says whether anything has to come over the network.
    pub(super) fn look(rooms: &[Room], fetches: bool) -> Self {
        Self {
            os: env::consts::OS.to_owned(),
            cpu: env::consts::ARCH.to_owned(),
            c_library: c_library(),
            libstdcxx: libstdcxx(),
            compiler: compiler(),
            memory_mb: memory_mb(),
            disks: disks(rooms),
            network: if fetches { network() } else { None },
        }
    }
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

/// `2.36` as two numbers.
fn two_numbers(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.split_once('.')?;
    let minor = rest.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Where the loader finds it. The link's target is called after the version.
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

/// Compiles nothing but asks whether it could: a compiler without the C library's headers is of no use.
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

/// What the system has left, or what is left of the container's share if that is less.
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

/// `MemAvailable:   21823400 kB`
fn available_mb(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1_024 / 1_000_000)
}

/// What the system gives back when somebody needs it.
fn inactive_file(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("inactive_file "))?.trim().parse().ok()
}

/// The file systems of the rooms, each with everything that is written to it.
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

/// `Filesystem 1024-blocks Used Available Capacity Mounted on`, and a line below it.
fn free_and_mount(table: &str) -> Option<(u64, String)> {
    let line = table.lines().nth(1)?;
    let columns: Vec<&str> = line.split_whitespace().collect();
    let capacity = columns.iter().rposition(|column| column.ends_with('%'))?;
    let free = columns.get(capacity.checked_sub(1)?)?.parse::<u64>().ok()?;
    Some((free * 1_024 / 1_000_000, columns.get(capacity + 1..)?.join(" ")))
}

/// Has cargo look a small package up with nothing cached: it knows its own proxies and mirrors. At most 8 seconds.
fn network() -> Option<String> {
    let home = env::temp_dir().join(format!("archon-demo-{}", std::process::id()));
    let asked = (|| {
        fs::create_dir_all(&home).ok()?;
        for name in ["config.toml", "config", "credentials.toml"] {
            // A mirror, a proxy; most people have none.
            let _ = fs::copy(cargo_home()?.join(name), home.join(name));
        }
        // Elsewhere than in the workspace, which would have it look up everything that the workspace needs.
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

/// Cargo tells the cause last.
fn last_cause(text: &str) -> String {
    text.lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("it does not say why")
        .to_owned()
}

/// Where cargo keeps what it fetched.
pub(crate) fn cargo_home() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    set("CARGO_HOME").or_else(|| set("HOME").map(|home| home.join(".cargo")))
}

/// What a program prints, if it is there and does well.
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
    fn last_cause_of_cargos_words_is_the_last_line() {
        let text =
            "`cargo info` failed (101): error: download failed\n\nCaused by:\n  [6] Could not resolve host\n";
        assert_eq!(last_cause(text), "[6] Could not resolve host");
    }
}
