//! The places of skills, and trust in those of a project.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use archon_skills::{SkillError, SkillPlaces, SkillSet, folder_hash};

use crate::folders::{Place, names};

fn places(home: &Place, project: &Place) -> SkillPlaces {
    SkillPlaces::new().with_user(home.path()).with_project(project.path())
}

// spec: SK-01
#[test]
fn discover_project_overrides_user_and_archon_overrides_the_others() {
    let (home, project) = (Place::new(), Place::new());
    for folder in [".archon", ".agents", ".claude"] {
        home.skill(&format!("{folder}/skills/a"), "");
        home.skill(&format!("{folder}/skills/b"), "");
        project.skill(&format!("{folder}/skills/b"), "");
    }
    home.skill(".claude/skills/c", "");
    let set = SkillSet::discover(&places(&home, &project), &|_: &Path, _: &str| true);
    let sources: Vec<&str> = set.iter().map(|skill| skill.source.as_str()).collect();
    assert_eq!(names(&set), ["a", "b", "c"]);
    assert_eq!(sources, ["user:.archon/skills", "project:.archon/skills", "user:.claude/skills"]);
    let one = places(&home, &project).with_folders([".claude/skills"]);
    let set = SkillSet::discover(&one, &|_: &Path, _: &str| false);
    assert_eq!(set.get("b").unwrap().source, "user:.claude/skills");
}

#[test]
fn discover_loads_a_projects_skill_only_with_the_trusted_hash() {
    let (home, project) = (Place::new(), Place::new());
    let folder = project.skill(".agents/skills/build", "").canonicalize().unwrap();
    project.write(".agents/skills/build/scripts/run.sh", "make");
    let agreed: RefCell<BTreeMap<PathBuf, String>> = RefCell::default();
    let trust = |folder: &Path, hash: &str| agreed.borrow().get(folder).is_some_and(|agreed| agreed == hash);
    let discover = || SkillSet::discover(&places(&home, &project), &trust);

    let set = discover();
    assert!(set.is_empty());
    let [untrusted] = set.untrusted() else { panic!("{:?}", set.untrusted()) };
    assert_eq!((untrusted.name.as_str(), &untrusted.folder), ("build", &folder));
    assert_eq!(untrusted.hash, folder_hash(&folder).unwrap());
    assert_eq!(set.warnings()[0].file, folder.join("SKILL.md"));
    // All that a person agrees to.
    assert_eq!(untrusted.text, "---\nname: build\ndescription: About build.\n---\n\nDo build.\n");
    let files: Vec<_> = untrusted.files.iter().map(|file| (file.name.as_str(), file.bytes)).collect();
    assert_eq!(files, [("SKILL.md", untrusted.text.len() as u64), ("scripts/run.sh", 4)]);

    agreed.borrow_mut().insert(folder.clone(), untrusted.hash.clone());
    let set = discover();
    assert!(set.untrusted().is_empty());
    let skill = set.get("build").unwrap();
    assert_eq!(skill.instructions().unwrap(), "Do build.");
    assert_eq!(skill.read_file("./scripts/run.sh").unwrap(), b"make");
    assert!(matches!(skill.read_file("scripts"), Err(SkillError::Unreadable { .. })));

    // A change after the load: neither the instructions nor the files are read.
    project.write(".agents/skills/build/scripts/run.sh", "make evil");
    assert_eq!(skill.instructions(), Err(SkillError::Changed(folder.clone())));
    assert_eq!(skill.read_file("scripts/run.sh"), Err(SkillError::Changed(folder)));
    assert!(discover().is_empty());
}

#[test]
fn discover_leaves_out_a_folder_that_is_too_large_to_be_hashed() {
    let (home, project) = (Place::new(), Place::new());
    project.skill(".agents/skills/small", "");
    project.skill(".agents/skills/long", "");
    project.write(".agents/skills/long/model.bin", vec![0; 16 << 20]);
    project.skill(".agents/skills/many", "");
    for number in 0..1_000 {
        project.write(&format!(".agents/skills/many/files/{number}"), "");
    }
    let set = SkillSet::discover(&places(&home, &project), &|_: &Path, _: &str| true);
    assert_eq!(names(&set), ["small"]);
    assert!(set.untrusted().is_empty());
    let warnings: Vec<String> = set.warnings().iter().map(ToString::to_string).collect();
    assert!(warnings[0].contains("/long/SKILL.md:1: nobody can trust the skill"), "{warnings:?}");
    assert!(warnings[0].contains("its files have more than 16 MiB"), "{warnings:?}");
    assert!(
        warnings[1].contains("/many/SKILL.md:1: ") && warnings[1].contains("more than 1000 files"),
        "{warnings:?}"
    );
    assert_eq!(warnings.len(), 2);
}

#[test]
fn discover_of_a_projects_folder_that_leads_outside_warns() {
    let (home, project, other) = (Place::new(), Place::new(), Place::new());
    other.skill("skills/far", "");
    std::fs::create_dir(project.path().join(".agents")).unwrap();
    symlink(other.path().join("skills"), project.path().join(".agents/skills")).unwrap();
    let set = SkillSet::discover(&places(&home, &project), &|_: &Path, _: &str| true);
    assert!(set.is_empty());
    assert!(set.warnings()[0].text.starts_with("the folder leads out of the project"));
}

#[test]
fn folder_hash_changes_with_each_change_of_the_folder() {
    let place = Place::new();
    let folder = place.skill("a", "");
    place.write("a/x", "12");
    let mut hashes = vec![folder_hash(&folder).unwrap()];
    let mut next = || hashes.push(folder_hash(&folder).unwrap());
    place.write("a/x", "13");
    next();
    place.write("a/x1", "3");
    next();
    place.write("a/x", "1");
    next();
    symlink("x", folder.join("link")).unwrap();
    next();
    std::fs::remove_file(folder.join("link")).unwrap();
    symlink("y", folder.join("link")).unwrap();
    next();
    place.write("a/.git/hooks/run", "evil");
    next();
    let count = hashes.len();
    hashes.sort();
    hashes.dedup();
    assert_eq!((hashes.len(), hashes[0].len()), (count, 64));
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(folder_hash(&folder).is_err());
}
