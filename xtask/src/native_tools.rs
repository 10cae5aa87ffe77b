//! `cargo xtask native-tools`: finds or installs programs that cargo cannot bring. The local engine is C++;
//! building it from source needs cmake, a compiler and libclang. With `--mail`, the servers of the test of mail.
//! Missing ones are installed through the system's package manager if allowed, with a message.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::command_line::{CommandLine, find_on_path};

/// A required program.
struct Need {
    name: &'static str,
    is_there: fn() -> bool,
    /// Its package for each of [`MANAGERS`], in that order; empty if that system always has it.
    packages: [&'static str; 4],
}

const NEEDS: &[Need] = &[
    Need {
        name: "a C++ compiler",
        is_there: || ["c++", "g++", "clang++"].iter().any(|name| find_on_path(name).is_some()),
        packages: ["g++", "gcc-c++", "gcc", ""],
    },
    Need {
        name: "make",
        is_there: || ["make", "ninja"].iter().any(|name| find_on_path(name).is_some()),
        packages: ["make", "make", "make", ""],
    },
    Need {
        name: "cmake",
        is_there: || find_on_path("cmake").is_some(),
        packages: ["cmake", "cmake", "cmake", "cmake"],
    },
    Need {
        name: "clang",
        is_there: || find_on_path("clang").is_some(),
        packages: ["clang", "clang", "clang", "llvm"],
    },
    Need {
        name: "libclang",
        is_there: has_libclang,
        packages: ["libclang-dev", "clang-devel", "clang", "llvm"],
    },
];

/// The servers of the test `mail_assistant`.
const MAIL_NEEDS: &[Need] = &[
    Need {
        name: "dovecot",
        is_there: || is_server("dovecot"),
        packages: ["dovecot-imapd", "dovecot", "dovecot", "dovecot"],
    },
    Need {
        name: "msmtpd",
        is_there: || is_server("msmtpd"),
        packages: ["msmtp-mta", "msmtp", "msmtp", "msmtp"],
    },
];

/// Returns true if a server is installed; the folder of servers may not be on the path.
fn is_server(name: &str) -> bool {
    find_on_path(name).is_some() || Path::new("/usr/sbin").join(name).exists()
}

/// A package manager.
struct Manager {
    program: &'static str,
    /// Its commands; the names of packages are added to the last one.
    commands: &'static [&'static str],
    /// It needs root.
    needs_root: bool,
}

const MANAGERS: [Manager; 4] = [
    Manager {
        program: "apt-get",
        commands: &["apt-get update", "apt-get install --yes --no-install-recommends"],
        needs_root: true,
    },
    Manager { program: "dnf", commands: &["dnf install --assumeyes"], needs_root: true },
    Manager { program: "pacman", commands: &["pacman --sync --needed --noconfirm"], needs_root: true },
    Manager { program: "brew", commands: &["brew install"], needs_root: false },
];

/// Installs missing programs, or fails with the command line that would. Without the servers of mail their test is
/// ignored, so that is only a remark.
pub(crate) fn run(mut args: Args) -> Result<()> {
    let is_mail = args.flag("--mail");
    args.finish()?;
    if !is_mail {
        return install(NEEDS, "the local engine");
    }
    if let Err(error) = install(MAIL_NEEDS, "the test of mail") {
        println!("{error:#}; the test of mail is reported as ignored");
    }
    Ok(())
}

/// Installs what is missing of `needs`, for the part of the project that `user` names.
fn install(needs: &[Need], user: &str) -> Result<()> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !(need.is_there)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.iter().map(|need| need.name).collect::<Vec<_>>().join(", ");
    let Some(manager) = MANAGERS.iter().position(|manager| find_on_path(manager.program).is_some()) else {
        bail!("{user} needs {names}; {}", every_remedy(&missing));
    };
    let lines = install_lines(manager, &missing);
    let Some(prefix) = permission(MANAGERS[manager].needs_root) else {
        let remedy = lines.iter().map(|line| format!("sudo {line}")).collect::<Vec<_>>().join(" && ");
        bail!("{user} needs {names}; install with: {remedy}");
    };
    println!("{names}: missing, and needed by {user}; installing with {}", MANAGERS[manager].program);
    for line in lines {
        let mut words = prefix.iter().copied().chain(line.split_whitespace()).map(str::to_owned);
        let program = words.next().unwrap_or_default();
        CommandLine::new(program).args(words).env("DEBIAN_FRONTEND", "noninteractive").run()?;
    }
    match missing.iter().find(|need| !(need.is_there)()) {
        None => Ok(()),
        Some(need) => bail!("{} is still missing; install it by hand and run this again", need.name),
    }
}

fn install_lines(manager: usize, missing: &[&Need]) -> Vec<String> {
    let mut packages: Vec<&str> = Vec::new();
    for package in missing.iter().map(|need| need.packages[manager]).filter(|package| !package.is_empty()) {
        if !packages.contains(&package) {
            packages.push(package);
        }
    }
    let mut lines: Vec<String> = MANAGERS[manager].commands.iter().map(|line| (*line).to_owned()).collect();
    if let Some(last) = lines.last_mut() {
        *last = format!("{last} {}", packages.join(" "));
    }
    lines
}

/// Returns the install commands of all managers, for a system whose manager we do not know.
fn every_remedy(missing: &[&Need]) -> String {
    let remedy = |manager: usize| install_lines(manager, missing).pop().unwrap_or_default();
    let remedies: Vec<String> = (0..MANAGERS.len()).map(|manager| format!("`{}`", remedy(manager))).collect();
    format!("install with your package manager, as in {}", remedies.join(" or "))
}

/// Returns the words before the manager's command, or `None` if it may not run without asking a person.
fn permission(needs_root: bool) -> Option<&'static [&'static str]> {
    let says = |program: &str, args: &[&str]| Command::new(program).args(args).output();
    let is_root = || says("id", &["-u"]).is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    let may_sudo = || says("sudo", &["-n", "true"]).is_ok_and(|output| output.status.success());
    if !needs_root || is_root() {
        Some(&[])
    } else if may_sudo() {
        Some(&["sudo", "-n"])
    } else {
        None
    }
}

/// Checks the places where bindgen looks, as far as they matter on the systems above.
fn has_libclang() -> bool {
    let mut folders: Vec<PathBuf> = env::var_os("LIBCLANG_PATH").map(PathBuf::from).into_iter().collect();
    if let Ok(output) = Command::new("llvm-config").arg("--libdir").output() {
        folders.push(String::from_utf8_lossy(&output.stdout).trim().into());
    }
    for parent in ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/opt/homebrew/opt", "/usr/local/opt"] {
        folders.push(parent.into());
        let children = std::fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
        folders.extend(children.flat_map(|child| [child.join("lib"), child]));
    }
    folders.push("/Library/Developer/CommandLineTools/usr/lib".into());
    folders.iter().any(|folder| holds_libclang(folder))
}

fn holds_libclang(folder: &Path) -> bool {
    let is_libclang = |name: String| {
        // `libclang-18.so.18` is the library; `libclang-cpp.so` is another one.
        let rest = name.strip_prefix("libclang").unwrap_or("?");
        let rest = rest.trim_start_matches(|c: char| c == '-' || c == '.' || c.is_ascii_digit());
        ["so", "dylib"].iter().any(|kind| rest.starts_with(kind))
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).any(is_libclang)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_manager_is_asked_in_its_own_words() {
        let all: Vec<&Need> = NEEDS.iter().collect();
        assert_eq!(
            install_lines(0, &all),
            [
                "apt-get update",
                "apt-get install --yes --no-install-recommends g++ make cmake clang libclang-dev"
            ]
        );
        assert_eq!(install_lines(3, &all), ["brew install cmake llvm"]);
        assert!(every_remedy(&all).contains("`pacman --sync --needed --noconfirm gcc make cmake clang`"));
    }

    #[test]
    fn libclang_package_is_not_confused_with_similar_names() {
        for (name, expected) in [
            ("libclang.so", true),
            ("libclang-18.so.18", true),
            ("libclang.so.1", true),
            ("libclang.dylib", true),
            ("libclang-cpp.so.18", false),
            ("libclang.a", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(name), "").unwrap();
            assert_eq!(holds_libclang(folder.path()), expected, "{name}");
        }
    }
}
