//! `cargo xtask advisories`: checks our dependencies for known vulnerabilities, by the RustSec database. Run
//! before a release, not in `cargo xtask ci`: a new advisory is not the fault of today's change.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::command_line::CommandLine;
use crate::{prepare, repository};

/// The variable with the folder of databases, if no option gives it.
const VARIABLE: &str = "ARCHON_ADVISORIES";

/// The folder in which cargo-deny keeps the RustSec database: its name and a hash of its address.
const RUSTSEC: &str = "advisory-db-3157b0e258782691";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let (said, fetch) = (args.option("--database")?, args.flag("--fetch"));
    args.finish()?;
    let folder = folder(said, |name| env::var(name).ok())?;
    if !fetch {
        check_there(&folder)?;
    }
    prepare::prepare_cargo_deny()?;
    let config = with_database(&folder)?;
    if fetch {
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        CommandLine::cargo("deny --config").args([&config]).args(["fetch", "db"]).run()?;
    }
    // A database that is older than three months is refused.
    CommandLine::cargo("deny --offline --config").args([&config]).args(["check", "advisories"]).run()
}

/// Returns the folder of databases: from the option or the variable, else cargo-deny's own.
fn folder(said: Option<String>, var: impl Fn(&str) -> Option<String>) -> Result<PathBuf> {
    if let Some(folder) = said.or_else(|| var(VARIABLE)) {
        // A relative path is meant from the caller's folder, but the command runs at the top of the
        // repository.
        return Ok(env::current_dir().context("cannot find the current folder")?.join(folder));
    }
    let home = || Some(PathBuf::from(var("HOME").or_else(|| var("USERPROFILE"))?).join(".cargo"));
    let cargo = var("CARGO_HOME").map(PathBuf::from).or_else(home);
    cargo.map(|cargo| cargo.join("advisory-dbs")).with_context(|| {
        format!(
            "the folder of advisory databases is unknown: CARGO_HOME and HOME are not set; name it with --database or \
             {VARIABLE}"
        )
    })
}

fn check_there(folder: &Path) -> Result<()> {
    let place = folder.join(RUSTSEC);
    if place.is_dir() {
        return Ok(());
    }
    bail!(
        "there is no database of advisories at {0}; with a network, `cargo xtask advisories --fetch` fetches it; without \
         one, bring a clone of https://github.com/RustSec/advisory-db there, or name the folder that it stands in, under \
         the name {RUSTSEC}, with --database or {VARIABLE}",
        place.display()
    )
}

/// Writes a configuration of `cargo deny` with this folder of databases. Returns its path.
fn with_database(folder: &Path) -> Result<String> {
    let root = repository::root();
    let text = fs::read_to_string(root.join("deny.toml")).context("cannot read deny.toml")?;
    let path = root.join("target").join("advisories.toml");
    let write = || {
        fs::create_dir_all(root.join("target"))?;
        fs::write(&path, config(&text, folder))
    };
    write().with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path.display().to_string())
}

fn config(deny: &str, folder: &Path) -> String {
    // The debug format of a path is also a TOML string.
    format!("{deny}\n[advisories]\ndb-path = {:?}\n", folder.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_the_given_one_or_that_of_cargo_deny() {
        let found = |said: Option<&str>, vars: &[(&str, &str)]| {
            let var =
                |name: &str| vars.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
            folder(said.map(str::to_owned), var).map_err(|e| e.to_string())
        };
        let path = |text: &str| Ok(PathBuf::from(text));
        let vars = [("HOME", "/h"), ("CARGO_HOME", "/c"), (VARIABLE, "/v")];
        assert_eq!(found(Some("/said"), &vars), path("/said"));
        assert_eq!(found(None, &vars), path("/v"));
        assert_eq!(found(None, &vars[..2]), path("/c/advisory-dbs"));
        assert_eq!(found(None, &vars[..1]), path("/h/.cargo/advisory-dbs"));
        assert!(found(None, &[]).unwrap_err().contains("--database"));
    }

    #[test]
    fn check_there_without_a_database_says_how_to_get_one() {
        let dir = env::temp_dir().join(format!("archon-advisories-{}", std::process::id()));
        let refused = check_there(&dir).unwrap_err().to_string();
        for word in [RUSTSEC, "--fetch", "--database", "https://github.com/RustSec/advisory-db"] {
            assert!(refused.contains(word), "{word}: {refused}");
        }
        fs::create_dir_all(dir.join(RUSTSEC)).unwrap();
        assert!(check_there(&dir).is_ok());
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn config_adds_the_database_folder() {
        let deny = fs::read_to_string(repository::root().join("deny.toml")).unwrap();
        assert!(!deny.contains("[advisories]"), "it would stand there twice");
        assert_eq!(config("[bans]\n", Path::new("/a b")), "[bans]\n\n[advisories]\ndb-path = \"/a b\"\n");
    }
}
