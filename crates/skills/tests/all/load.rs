//! The lenient load, the sets, and the levels of a skill.

use std::os::unix::fs::symlink;

use archon_skills::{SkillError, SkillLevel, SkillSet};
use archon_types::{TokenCounter as _, TokenEstimate};
use proptest::prelude::*;

use crate::folders::{Place, names, warnings};

// spec: SK-01, Q-05
#[test]
fn load_of_two_folders_later_overrides_with_a_warning() {
    let (first, second) = (Place::new(), Place::new());
    first.skill("a", "license: MIT\n");
    first.skill("b", "");
    second.skill("b", "license: MIT\n");
    let set = SkillSet::load([first.path(), second.path()]);
    assert_eq!(names(&set), ["a", "b"]);
    assert_eq!(set.get("a").unwrap().source, "dir:0");
    assert_eq!(set.get("b").unwrap().source, "dir:1");
    let texts: Vec<&str> = set.warnings().iter().map(|warning| warning.text.as_str()).collect();
    assert_eq!(texts.len(), 1);
    assert!(
        texts[0].starts_with("the skill `b` replaces that of dir:0 (") && texts[0].contains("b/SKILL.md")
    );

    let mut merged = SkillSet::load_dir(second.path(), "mine");
    merged.merge(SkillSet::load_dir(first.path(), "ours"));
    assert_eq!(merged.get("b").unwrap().source, "ours");
    assert!(SkillSet::load([first.path().join("nothing")]).is_empty());
}

// spec: SK-02, Q-05
#[test]
fn load_reads_all_fields_of_both_spellings() {
    let place = Place::new();
    place.skill(
        "one",
        "license: MIT\ncompatibility: Needs git\nmodel: small\nmetadata:\n  author: Anna\n  version: 1.10\n\
         allowed-tools: Bash(git add:*) Read\ndisable-model-invocation: true\n",
    );
    place.skill("two", "allowed_tools: [Read, Grep]\ndisable_model_invocation: no\n");
    let set = place.load();
    assert_eq!(warnings(&set, &place), [""; 0]);
    let one = set.get("one").unwrap();
    assert_eq!(one.description, "About one.");
    assert_eq!((one.license.as_deref(), one.model.as_deref()), (Some("MIT"), Some("small")));
    assert_eq!(one.compatibility.as_deref(), Some("Needs git"));
    assert_eq!(one.metadata["version"], "1.10");
    assert_eq!(one.allowed_tools.as_ref().unwrap().rules(), ["bash(git add:*)", "read_file"]);
    assert!(one.disable_model_invocation);
    let two = set.get("two").unwrap();
    assert_eq!(two.allowed_tools.as_ref().unwrap().rules(), ["read_file", "search"]);
    assert!(!two.disable_model_invocation);
}

// spec: SK-02, Q-05
#[test]
fn load_of_broken_files_leaves_them_out_with_file_and_line() {
    let place = Place::new();
    place.skill("good", "");
    place.write("a/SKILL.md", "# No frontmatter\n");
    place.write("b/SKILL.md", "---\nname: b\n");
    place.write("c/SKILL.md", "---\nname: c\n---\n");
    place.write("d/SKILL.md", "---\nname: d\ndescription: \"x\n---\n");
    place.write("e/SKILL.md", b"---\nname: \xff\n---\n");
    place.write("f/SKILL.md", "---\nname: f\ndescription:  \n---\n");
    place.write("g/SKILL.md", "---\nname: g\ndescription: x\nallowed-tools:\n  a: b\n---\n");
    place.write("h/skill.md", "---\nname: h\ndescription: x\n---\n");
    let set = place.load();
    assert_eq!(names(&set), ["good"]);
    let mut warnings = warnings(&set, &place);
    warnings.sort();
    assert_eq!(
        warnings[0],
        "a/SKILL.md:1: the file must begin with a line `---` and YAML; the skill is left out"
    );
    assert_eq!(
        warnings[1],
        "b/SKILL.md:1: the second line `---`, after the YAML, is missing; the skill is left out"
    );
    assert_eq!(warnings[2], "c/SKILL.md:1: the field `description` has no text; the skill is left out");
    assert!(warnings[3].starts_with("d/SKILL.md:3: the YAML is not valid ("), "{}", warnings[3]);
    assert_eq!(
        warnings[4],
        "e/SKILL.md:1: the file cannot be read (it is not UTF-8 text); the skill is left out"
    );
    assert_eq!(warnings[5], "f/SKILL.md:3: the field `description` has no text; the skill is left out");
    assert!(
        warnings[6].starts_with("g/SKILL.md:4: the field `allowed-tools` must be names"),
        "{}",
        warnings[6]
    );
    assert_eq!(warnings[7], "h/skill.md:1: a skill's file must be named SKILL.md; rename it");
    assert_eq!(warnings.len(), 8);
}

// spec: SK-02
#[test]
fn load_of_doubtful_files_warns_and_loads_them() {
    let place = Place::new();
    place.write("a/SKILL.md", "---\nname: B_x\ndescription: Use when: asked\nextra: 1\n---\nDo it: now.\n");
    place.write(
        "b/SKILL.md",
        "---\r\ndescription: x\r\ndisable-model-invocation: maybe\r\n---\r\nDo\r\nit.\r\n",
    );
    let set = place.load();
    assert_eq!(names(&set), ["B_x", "b"]);
    let doubtful = set.get("B_x").unwrap();
    assert_eq!(doubtful.description, "Use when: asked");
    assert_eq!(doubtful.instructions().unwrap(), "Do it: now.");
    let windows = set.get("b").unwrap();
    assert_eq!(windows.instructions().unwrap(), "Do\nit.");
    assert!(windows.disable_model_invocation);
    let warnings = warnings(&set, &place);
    assert_eq!(
        warnings,
        [
            "a/SKILL.md:3: a value with a colon must be in quotes; it was read as if it were",
            "a/SKILL.md:2: the name `B_x` must be in lower case; other programs may refuse the skill",
            "a/SKILL.md:2: the name `B_x` may have only letters, digits and hyphens; \
             other programs may refuse the skill",
            "a/SKILL.md:2: the name `B_x` differs from the folder's name `a`; make them equal; \
             other programs may refuse the skill",
            "b/SKILL.md:1: the field `name` has no text; the folder's name `b` is used",
            "b/SKILL.md:3: the field `disable-model-invocation` must be `true` or `false`; it is read as `true`",
        ]
    );
}

// spec: SK-03, SK-09, Q-05
#[test]
fn format_for_prompt_is_xml_without_hidden_skills_and_empty_without_skills() {
    let place = Place::new();
    assert_eq!(place.load().format_for_prompt(), "");
    place.write("x&y/SKILL.md", "---\nname: x<&>\"'y\ndescription: </description> & \"so\" on\n---\n");
    place.skill("secret", "disable-model-invocation: true\n");
    place.write("long/SKILL.md", format!("---\nname: long\ndescription: {}\n---\n", "é".repeat(2000)));
    let set = place.load();
    let text = set.format_for_prompt();
    let tree = roxmltree::Document::parse(&text).unwrap();
    let values: Vec<&str> =
        tree.descendants().filter(|node| node.is_text()).filter_map(|node| node.text()).collect();
    let values: Vec<&str> = values.into_iter().filter(|text| !text.trim().is_empty()).collect();
    assert_eq!(values[0], "long");
    assert_eq!(values[1].chars().count(), 1024);
    assert_eq!(values[3..5], ["x<&>\"'y", "</description> & \"so\" on"]);
    assert!(values[5].ends_with("/x&y/SKILL.md"));
    assert_eq!(values.len(), 6);
    let mut only_hidden = set.clone();
    only_hidden.retain(|skill| skill.name == "secret");
    assert_eq!(only_hidden.format_for_prompt(), "");
}

// spec: SK-04, Q-05
#[test]
fn content_has_the_parts_of_its_level_and_is_read_when_it_is_needed() {
    let place = Place::new();
    let folder = place.skill("pdf", "");
    place.write("pdf/scripts/run.sh", "echo ran");
    place.write("pdf/assets/logo.png", b"\x89PNG\xff");
    place.write("pdf/references/a<b.md", "Read me.");
    place.write("pdf/notes.txt", "not a resource");
    place.write("pdf/.git/config", "x");
    let set = place.load();
    let skill = set.get("pdf").unwrap();
    assert_eq!(skill.content(SkillLevel::Metadata).unwrap(), "pdf: About pdf.");
    // Written after the load: nothing of the body was kept.
    place.write("pdf/SKILL.md", "---\nname: pdf\ndescription: x\n---\n\n  Do\n\tit & <more>.\n\n");
    let folder = folder.canonicalize().unwrap();
    let listed = format!(
        "<skill_content name=\"pdf\">\nDo\n\tit & <more>.\n\nSkill directory: {}\n\
         Relative paths in this skill are relative to the skill directory.\n<skill_resources>\n\
         <file>assets/logo.png</file>\n<file>notes.txt</file>\n<file>references/a&lt;b.md</file>\n\
         <file>scripts/run.sh</file>\n</skill_resources>\n",
        folder.display()
    );
    assert_eq!(skill.content(SkillLevel::Instructions).unwrap(), format!("{listed}</skill_content>"));
    let resources = "<resource path=\"references/a&lt;b.md\">\nRead me.\n</resource>\n\
                     <resource path=\"scripts/run.sh\">\necho ran\n</resource>\n";
    assert_eq!(skill.content(SkillLevel::Resources).unwrap(), format!("{listed}{resources}</skill_content>"));
    for number in 0..60 {
        place.write(&format!("pdf/many/{number:02}"), "");
    }
    assert!(
        skill.content(SkillLevel::Instructions).unwrap().contains("and 14 more files\n</skill_resources>")
    );
}

// spec: SK-04, Q-05
#[test]
fn read_file_outside_of_the_folder_or_through_a_link_is_refused() {
    let place = Place::new();
    let folder = place.skill("pdf", "");
    place.write("secret.txt", "no");
    place.write("pdf/a.txt", "yes");
    symlink(place.path().join("secret.txt"), folder.join("link.txt")).unwrap();
    symlink(place.path(), folder.join("up")).unwrap();
    let set = place.load();
    let skill = set.get("pdf").unwrap();
    assert_eq!(skill.read_file("./a.txt").unwrap(), b"yes");
    let absolute = place.path().join("secret.txt");
    for path in
        ["../secret.txt", "a/../../secret.txt", "link.txt", "up/secret.txt", absolute.to_str().unwrap()]
    {
        assert_eq!(skill.read_file(path), Err(SkillError::Outside(path.to_owned())));
    }
    assert!(matches!(skill.read_file("nothing"), Err(SkillError::Unreadable { .. })));
    assert_eq!(skill.files(), ["a.txt"]);
}

// spec: SK-04
#[test]
fn load_dir_follows_no_link_and_stops_at_its_limits() {
    let (place, other) = (Place::new(), Place::new());
    place.skill("1/2/3/4/5/six", "");
    place.skill("1/2/3/4/5/6/seven", "");
    place.skill("node_modules/x", "");
    place.skill("outer", "");
    place.skill("outer/inner", "");
    other.skill("far", "");
    symlink(other.path().join("far"), place.path().join("far")).unwrap();
    symlink(place.path(), place.path().join("1/round")).unwrap();
    let file = place.skill("linked", "").join("SKILL.md");
    std::fs::remove_file(&file).unwrap();
    symlink(other.path().join("far/SKILL.md"), &file).unwrap();
    let set = place.load();
    assert_eq!(names(&set), ["outer", "six"]);
    let warnings = warnings(&set, &place);
    assert!(
        warnings[0].starts_with("1/2/3/4/5/6/seven:1: the folder is more than 6 folders deep"),
        "{warnings:?}"
    );
    assert!(warnings[1].starts_with("far:1: the folder is a symbolic link"), "{warnings:?}");
    assert!(warnings[2].starts_with("linked/SKILL.md:1: the file is a symbolic link"), "{warnings:?}");

    let wide = Place::new();
    for number in 0..2_001 {
        std::fs::create_dir(wide.path().join(format!("{number:04}"))).unwrap();
    }
    wide.skill("last", "");
    let set = wide.load();
    assert_eq!(names(&set), [""; 0]);
    assert_eq!(set.warnings().len(), 1);
    assert!(set.warnings()[0].text.starts_with("only 2000 folders are searched"));
}

// spec: SK-04
#[test]
fn format_for_prompt_of_two_hundred_skills_has_at_most_100_tokens_each() {
    let place = Place::new();
    let about = "Extracts text and tables from PDF files, fills PDF forms, and merges multiple PDFs. Use when working \
                 with PDF documents or when the user mentions PDFs, forms, or document extraction.";
    for number in 0..200 {
        let text =
            format!("---\nname: skill-{number}\ndescription: {about}\n---\n{}\n", "Body. ".repeat(1000));
        place.write(&format!("skill-{number}/SKILL.md"), text);
    }
    let text = place.load().format_for_prompt();
    let tokens = TokenEstimate.count(&text);
    assert!(tokens <= 200 * 100, "{tokens}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    // spec: SK-02, SK-03
    #[test]
    fn load_of_any_text_is_a_skill_or_a_warning_and_the_prompt_is_xml(
        fields in "((name|description|metadata|allowed-tools|x): ?[^a-z]{0,12}\n){0,4}",
        rest in "(---\n)?\\PC{0,20}",
    ) {
        let place = Place::new();
        place.write("a/SKILL.md", format!("---\n{fields}{rest}"));
        let set = place.load();
        prop_assert!(!set.is_empty() || !set.warnings().is_empty());
        let text = set.format_for_prompt();
        prop_assert!(text.is_empty() || roxmltree::Document::parse(&text).is_ok(), "{text}");
    }
}
