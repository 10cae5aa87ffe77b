//! `archon new`: writes a small Rust project with an agent into a new folder.
//!
//! The files are in the folder `template` of this crate, and the tests of this project compile them. They
//! are written into a temporary folder beside the new one, which then gets the project's name, so that no
//! partial project remains.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::json;

use crate::{app::App, exit::Exit, failure::Failure, text::visible_path};

#[derive(Debug, clap::Args)]
pub(crate) struct NewArgs {
    /// The name of the project and of its folder
    #[arg(value_name = "NAME")]
    name: String,
    /// Use the checkout of Archon in this folder, instead of a released version
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
}

/// The files of the project: their paths and contents.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("../../template/Cargo.toml.in")),
    ("src/main.rs", include_str!("../../template/src/main.rs")),
    ("src/tests.rs", include_str!("../../template/src/tests.rs")),
    ("archon.toml", include_str!("../../template/archon.toml")),
    (".gitignore", include_str!("../../template/gitignore")),
    ("README.md", include_str!("../../template/README.md")),
];

/// True if a released version of Archon can be downloaded.
const IS_RELEASED: bool = false;

/// The package that contains the library `archon`: in the registry, the package name `archon` is taken.
const PACKAGE: &str = "archon-agents";

const VERSION: &str = env!("CARGO_PKG_VERSION");

impl NewArgs {
    pub(crate) fn run(self, app: &App) -> Result<Exit, Failure> {
        check_name(&self.name)?;
        let dependency = match &self.path {
            Some(checkout) => path_dependency(checkout)?,
            None => format!("{{ package = \"{PACKAGE}\", version = \"={VERSION}\" }}"),
        };
        let folder = std::path::absolute(&self.name).map_err(|e| failed(Path::new(&self.name), &e))?;
        check_free(&folder)?;
        write(&folder, |text| text.replace("{{name}}", &self.name).replace("{{archon}}", &dependency))
            .map_err(|e| failed(&folder, &e))?;
        let files: Vec<_> = FILES.iter().map(|(path, _)| *path).collect();
        let item = json!({"name": self.name, "folder": folder.display().to_string(), "files": files});
        app.item(&item, || visible_path(&folder));
        if self.path.is_none() && !IS_RELEASED {
            app.output.warn(format!(
                "Archon {VERSION} is not released: before you build, set a checkout in Cargo.toml, as in archon = \
                 {{ package = \"{PACKAGE}\", path = \"../archon/crates/archon\" }}, or create the project with --path DIR"
            ));
        }
        if let Some(workspace) = workspace_above(&folder) {
            app.output.warn(format!(
                "the project is inside the workspace of {}: if neither `members` nor `exclude` there has it, add it to \
                 one of them before you build, or move the project out of that folder",
                visible_path(&workspace)
            ));
        }
        app.note(next_steps(&self.name));
        Ok(Exit::Finished)
    }
}

fn next_steps(name: &str) -> String {
    format!(
        "next: cd {name}\n  \
           cargo test                   # with a scripted model: no network, no key\n  \
           cargo run -- \"How many words has: to be or not to be\"\n  \
           ARCHON_MODEL=PROVIDER:MODEL  # chooses the model; `archon models list` shows some"
    )
}

fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic())
        || !name.chars().all(is_plain)
        || name.len() > LONGEST
    {
        return Err(Failure::usage(
            format!("{name:?} cannot be the name of a crate"),
            format!(
                "a name has the letters a to z and A to Z, digits, `-` and `_`, begins with a letter, and has \
                 at most {LONGEST} characters: archon new my-agent"
            ),
        ));
    }
    let crate_name = name.to_lowercase().replace('-', "_");
    if crate_name.starts_with("archon_") {
        return Err(Failure::usage(
            format!(
                "{name:?} cannot be the name of a project: names of Archon's own packages begin with `archon-`"
            ),
            "take another name: archon new my-agent",
        ));
    }
    if TAKEN.split_whitespace().any(|word| word == crate_name) {
        return Err(Failure::usage(
            format!("{name:?} cannot be the name of a crate: Rust, cargo or the project itself uses it"),
            format!("take another name: archon new {name}-agent"),
        ));
    }
    Ok(())
}

/// The maximum number of characters of a project's name; the registry has the same limit for packages.
const LONGEST: usize = 64;

/// Names that a project cannot have: words and crates of Rust, folders of cargo, devices of Windows, and the
/// dependencies of the project itself.
const TAKEN: &str = "
    abstract alloc archon as async aux await become box break build con const continue core crate
    deps do dyn else enum examples extern false final fn for gen if impl in incremental let loop
    macro match mod move mut nul override priv prn proc_macro pub ref return self serde_json static
    std struct super test tokio trait true try type typeof unsafe unsized use virtual where while
    yield
";

/// Returns the dependency on a checkout, as TOML.
fn path_dependency(checkout: &Path) -> Result<String, Failure> {
    let shown = visible_path(checkout);
    let library = checkout.join("crates").join("archon");
    let no_checkout = || {
        Failure::usage(
            format!("{shown} is not a checkout of Archon: it has no crates/archon"),
            "give the path of the folder that you cloned: archon new NAME --path DIR",
        )
    };
    let manifest = fs::read_to_string(library.join("Cargo.toml")).map_err(|_| no_checkout())?;
    let manifest: toml::Table = toml::from_str(&manifest).map_err(|_| no_checkout())?;
    if manifest.get("package").and_then(|package| package.get("name")?.as_str()) != Some(PACKAGE) {
        return Err(no_checkout());
    }
    let path = library.canonicalize().ok().and_then(|path| path.into_os_string().into_string().ok());
    let path = path.ok_or_else(|| {
        Failure::usage(
            format!("the path of {shown} is not UTF-8, which Cargo.toml requires"),
            "move or rename the checkout",
        )
    })?;
    Ok(format!("{{ package = \"{PACKAGE}\", path = {} }}", toml::Value::String(path)))
}

/// Returns the manifest of the workspace in which cargo looks for a package of this folder: the nearest above it.
fn workspace_above(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().skip(1).map(|parent| parent.join("Cargo.toml")).find(|manifest| {
        let text = fs::read_to_string(manifest).unwrap_or_default();
        toml::from_str::<toml::Table>(&text).is_ok_and(|manifest| manifest.contains_key("workspace"))
    })
}

/// Returns an error if a file or a folder with content is at this path.
fn check_free(folder: &Path) -> Result<(), Failure> {
    let shown = visible_path(folder);
    let another = "take another name, or move it away";
    match fs::symlink_metadata(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(failed(folder, &e)),
        Ok(there) if !there.is_dir() => {
            Err(Failure::usage(format!("{shown} exists and is not a folder"), another))
        }
        Ok(_) => match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::usage(format!("the folder {shown} is not empty"), another)),
            Err(e) => Err(failed(folder, &e)),
        },
    }
}

/// Writes all files into a temporary folder, and gives it the name of the project.
fn write(folder: &Path, fill: impl Fn(&str) -> String) -> io::Result<()> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = folder.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let written = write_all(&unfinished, fill).and_then(|()| {
        // Not every system renames over an empty folder.
        match fs::remove_dir(folder) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => fs::rename(&unfinished, folder),
        }
    });
    if written.is_err() {
        let _ = fs::remove_dir_all(&unfinished);
    }
    written
}

fn write_all(folder: &Path, fill: impl Fn(&str) -> String) -> io::Result<()> {
    fs::create_dir(folder)?;
    for (path, text) in FILES {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, fill(text))?;
    }
    Ok(())
}

fn failed(folder: &Path, e: &io::Error) -> Failure {
    Failure::failed(
        format!("cannot write the project into {}: {e}", visible_path(folder)),
        "go to a folder that you can write to, and try again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse_settings;

    #[test]
    fn check_name_of_no_crate_is_refused() {
        for name in ["a", "my-agent", "Agent_2", "hello-archon", &"a".repeat(64)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in
            ["", "2a", "-a", "_a", "a b", "a/b", "..", "ä", "a.b", "fn", "Test", "archon", "proc-macro"]
        {
            assert!(check_name(name).is_err(), "{name}");
        }
        for name in ["archon-run", "Archon_agents"] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name(&"a".repeat(65)).is_err());
    }

    #[test]
    fn settings_of_the_template_hold_and_so_do_those_in_its_comments() {
        let (_, text) = FILES.iter().find(|(path, _)| *path == "archon.toml").unwrap();
        parse_settings(Path::new("archon.toml"), text).unwrap();
        let is_setting = |line: &str| line.contains(" = ");
        let uncommented: Vec<_> = text
            .lines()
            .map(|line| line.strip_prefix("# ").filter(|line| is_setting(line)).unwrap_or(line))
            .collect();
        let settings = parse_settings(Path::new("archon.toml"), &uncommented.join("\n")).unwrap();
        assert_eq!(settings.model.as_deref(), Some("ollama:qwen3"));
        assert!(settings.max_duration.is_some() && settings.tools.is_some() && settings.system.is_some());
    }

    #[test]
    fn write_that_fails_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("mine"), "").unwrap();
        assert!(write(&folder, str::to_owned).is_err(), "it came between the check and the end");
        let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, std::slice::from_ref(&folder));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }
}
