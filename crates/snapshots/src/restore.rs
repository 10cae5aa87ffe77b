//! Carries out the plan of an undo in a workspace.

use std::{collections::HashMap, io, path::Path, path::PathBuf};

use crate::{
    beneath::{Folder, Stamp},
    objects::Objects,
    plan::{Change, Left, Plan, Restored},
    tree::{Entry, Kind},
};

/// The workspace and the store with which a plan is carried out.
pub(crate) struct Restore<'a> {
    pub(crate) root: &'a Folder,
    pub(crate) objects: &'a Objects,
    /// The stamps of all files when the plan was made. A file whose stamp differs now is left as it is.
    pub(crate) stamps: &'a HashMap<PathBuf, Stamp>,
}

impl Restore<'_> {
    /// Carries out a plan. A path that cannot be changed is in `left` of the result, with the reason.
    pub(crate) fn run(&self, plan: &Plan) -> Restored {
        let changes = plan.changes();
        let mut restored = Restored { left: plan.paths_to_leave(), ..Restored::default() };
        // Removes files before the folders that contain them.
        for (path, now, wanted) in changes.iter().rev() {
            let Some(now) = now.filter(|now| wanted.is_none_or(|wanted| wanted.kind != now.kind)) else {
                continue;
            };
            match self.remove(path, &now) {
                Ok(()) if wanted.is_none() => restored.removed.push(path.clone()),
                Ok(()) => {}
                Err(error) => restored.left.push(failure_at(path, &error)),
            }
        }
        restored.removed.reverse();
        for (path, now, wanted) in &changes {
            let Some(wanted) = wanted else { continue };
            match self.put(path, now.as_ref(), wanted) {
                Ok(()) => restored.written.push(path.clone()),
                Err(error) => restored.left.push(failure_at(path, &error)),
            }
        }
        self.set_modes(&changes, &mut restored);
        restored.left.sort_by(|a, b| a.path.cmp(&b.path));
        restored.left.dedup_by(|a, b| a.path == b.path);
        restored
    }

    fn remove(&self, path: &Path, now: &Entry) -> io::Result<()> {
        let (folder, name) = self.root.parent_of(path)?;
        if !now.is_folder() {
            self.check(path, Some(now))?;
        }
        folder.remove(name, now.is_folder())
    }

    fn put(&self, path: &Path, now: Option<&Entry>, wanted: &Entry) -> io::Result<()> {
        let (folder, name) = self.root.parent_of(path)?;
        // An entry of another kind was removed before.
        let now = now.filter(|now| now.kind == wanted.kind);
        match wanted.kind {
            Kind::Folder if now.is_some() => Ok(()),
            Kind::Folder => folder.create_folder(name),
            Kind::File => {
                self.check(path, now)?;
                folder.put_file(name, wanted.mode, |file| self.objects.copy(&wanted.hash, file))
            }
            Kind::Link => {
                self.check(path, now)?;
                let target = self.objects.read(&wanted.hash).ok_or_else(damage_error)?;
                folder.put_link(name, &target)
            }
            Kind::Other => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Sets the permissions of folders. This is done last, because the permissions may forbid writing in a folder.
    fn set_modes(&self, changes: &[Change], restored: &mut Restored) {
        for (path, _, wanted) in changes.iter().rev() {
            let Some(wanted) = wanted.filter(Entry::is_folder) else { continue };
            let set = self.root.parent_of(path).and_then(|(folder, name)| folder.set_mode(name, wanted.mode));
            if let Err(error) = set {
                restored.left.push(failure_at(path, &error));
                restored.written.retain(|written| written != path);
            }
        }
    }

    /// Checks that a file is as it was when the plan was made.
    fn check(&self, path: &Path, now: Option<&Entry>) -> io::Result<()> {
        let (folder, name) = self.root.parent_of(path)?;
        match (folder.find(name)?, now) {
            (None, None) => Ok(()),
            (Some(_), None) => Err(io::Error::other("something that no snapshot has is in its place")),
            (Some(found), Some(_)) if self.stamps.get(path) == Some(&found.stamp) => Ok(()),
            _ => Err(io::Error::other("it was changed just now")),
        }
    }
}

fn failure_at(path: &Path, error: &io::Error) -> Left {
    let why = match error.kind() {
        io::ErrorKind::DirectoryNotEmpty => {
            "it holds files that no snapshot has, such as ignored ones".to_owned()
        }
        io::ErrorKind::NotFound => "its folder, or its content in the store, is gone".to_owned(),
        _ => error.to_string(),
    };
    Left { path: path.to_owned(), why }
}

fn damage_error() -> io::Error {
    io::Error::other("its content in the store of snapshots is damaged")
}
