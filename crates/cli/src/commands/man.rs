//! `archon man`: prints or writes the manual pages.

use std::path::PathBuf;

use crate::{app::App, exit::Exit, failure::Failure};

#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this folder, as in ~/.local/share/man/man1 [default: print the
    /// page of archon]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl ManArgs {
    #[cfg(feature = "shell")]
    pub(crate) fn run(self, app: &App, whole: fn() -> clap::Command) -> Result<Exit, Failure> {
        let command = whole();
        let Some(folder) = self.folder else {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(command).render(&mut page);
            rendered
                .map_err(|e| Failure::failed(format!("cannot create the manual page: {e}"), "report it"))?;
            app.output.piece(&String::from_utf8_lossy(&page));
            return Ok(Exit::Finished);
        };
        let shown = crate::text::visible_path(&folder);
        let written =
            std::fs::create_dir_all(&folder).and_then(|()| clap_mangen::generate_to(command, &folder));
        written.map_err(|e| {
            let what = format!("cannot write the pages into {shown}: {e}");
            Failure::failed(what, "give the path of a folder that you can write to")
        })?;
        app.item(&serde_json::json!({"folder": shown}), || shown.clone());
        Ok(Exit::Finished)
    }

    #[cfg(not(feature = "shell"))]
    pub(crate) fn run(self, _: &App, _: fn() -> clap::Command) -> Result<Exit, Failure> {
        let _ = self.folder;
        Err(Failure::usage("`archon man` is not in this build", "build with `--features shell`"))
    }
}
