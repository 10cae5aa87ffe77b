//! The strict validation: folders made by hand, with the verdicts of `skills-ref` 0.1.1.

use archon_skills::{SkillProblemKind as Kind, validate};

use crate::folders::Place;

/// Checks the kinds and lines of the problems of a skill in the folder `my-skill`.
fn check(text: impl AsRef<[u8]>, expected: &[(Kind, usize)]) {
    let place = Place::new();
    place.write("my-skill/SKILL.md", text.as_ref());
    let problems = validate(&place.path().join("my-skill"));
    let found: Vec<(Kind, usize)> = problems.iter().map(|problem| (problem.kind, problem.line)).collect();
    assert_eq!(found, expected, "{}\n{problems:?}", String::from_utf8_lossy(text.as_ref()));
}

fn with(fields: &str) -> String {
    format!("---\nname: my-skill\ndescription: Does it.\n{fields}\n---\nBody.\n")
}

// spec: SK-02
#[test]
fn validate_of_valid_skills_finds_nothing() {
    let fields = "license: MIT\ncompatibility: |\n  git\n  and jq\nallowed-tools: Bash(git:*) Read\n\
                  metadata:\n  a: b # c";
    check(with(fields), &[]);
    check("---\nname: \"my-skill\"\ndescription: >-\n  Does\n  it.\n---", &[]);
    check("---\r\nname: my-skill\r\ndescription: Does it.\r\n---\r\nBody.\r\n", &[]);
    check("---\nname: my-skill\ndescription: null\n---\n", &[]);
    check("---\nname: my-skill\ndescription: a --- b\n", &[]);
    check(with("metadata: just a text"), &[]);
    check(with("license: \"a\tb\" #\tc\ncompatibility: |\n  a\tb\n  \t\n\nmetadata: 'a\n\tb'"), &[]);
    check(with("<<:\n  a: b"), &[]);
    check(with("allowed-tools:\n  - Read\n  - Bash"), &[]);
    check(with(&format!("compatibility: {}", "é".repeat(500))), &[]);
}

// spec: SK-02
#[test]
fn validate_of_broken_files_finds_one_problem() {
    check("", &[(Kind::Frontmatter, 1)]);
    check("\u{feff}---\nname: my-skill\n---\n", &[(Kind::Frontmatter, 1)]);
    check("---\nname: my-skill\n", &[(Kind::Frontmatter, 1)]);
    check("---\n---\n", &[(Kind::Yaml, 1)]);
    check("---\n- a\n---\n", &[(Kind::Yaml, 2)]);
    check(with("license: [a]"), &[(Kind::Yaml, 4)]);
    check(with("metadata: {a: b}"), &[(Kind::Yaml, 4)]);
    check(with("license: &a MIT"), &[(Kind::Yaml, 4)]);
    check(with("license: !!str MIT"), &[(Kind::Yaml, 4)]);
    check(with("license: *a"), &[(Kind::Yaml, 4)]);
    check(with("name: my-skill"), &[(Kind::Yaml, 4)]);
    check(with("metadata:\n  a: b\n  a: c"), &[(Kind::Yaml, 6)]);
    check(with("license: a: b"), &[(Kind::Yaml, 4)]);
    check(with("license: \"a"), &[(Kind::Yaml, 4)]);
    check(with("license: a\u{7}"), &[(Kind::Yaml, 4)]);
    check(with("license: a\t# b"), &[(Kind::Yaml, 4)]);
    check(with("license: |\n  a\tb\n\t\n"), &[(Kind::Yaml, 6)]);
    check(with("<<: a"), &[(Kind::Yaml, 4)]);
    check("---\n...\nname: a\n---\n", &[(Kind::Yaml, 2)]);
    check(b"---\nname: \xff\n---\n", &[(Kind::Unreadable, 1)]);
}

// spec: SK-02
#[test]
fn validate_of_wrong_fields_finds_each_of_them() {
    check("---\nlicense: MIT\n---\n", &[(Kind::Name, 1), (Kind::Description, 1)]);
    check("---\nname:\ndescription: ' '\n---\n", &[(Kind::Name, 2), (Kind::Description, 3)]);
    check("---\nname:\n  - a\ndescription:\n  a: b\n---\n", &[(Kind::Name, 2), (Kind::Description, 4)]);
    check("---\nname: <<\ndescription: =\n---\n", &[(Kind::Name, 2), (Kind::Description, 3)]);
    check(with("model: x\nb: y"), &[(Kind::UnknownField, 4)]);
    check(with("compatibility:\n  - a"), &[(Kind::Compatibility, 4)]);
    check(with(&format!("compatibility: {}", "é".repeat(501))), &[(Kind::Compatibility, 4)]);
    let long = format!("---\nname: my-skill\ndescription: {}\n---\n", "é".repeat(1025));
    check(long, &[(Kind::Description, 3)]);
}

// spec: SK-02
#[test]
fn validate_of_names_is_that_of_unicode() {
    let kinds = |name: &str| {
        let place = Place::new();
        place.write(&format!("{name}/SKILL.md"), format!("---\nname: {name}\ndescription: x\n---\n"));
        validate(&place.path().join(name)).len()
    };
    for name in ["a", "a-b-1", "技能", "über", "мой-навык", "½", &"a".repeat(64)] {
        // The fraction becomes `1⁄2` with a symbol; all others are letters and digits.
        assert_eq!(kinds(name), usize::from(name == "½"), "{name}");
    }
    assert_eq!(kinds("Abc"), 1);
    assert_eq!(kinds("-a"), 1);
    assert_eq!(kinds("a-"), 1);
    assert_eq!(kinds("a--b"), 1);
    assert_eq!(kinds("a_b"), 1);
    assert_eq!(kinds("नमस्ते"), 1);
    assert_eq!(kinds(&"a".repeat(65)), 1);
    assert_eq!(kinds("-A_b--"), 4);
    check("---\nname: other\ndescription: x\n---\n", &[(Kind::FolderName, 2)]);
}

#[test]
fn validate_of_paths_finds_the_file() {
    let place = Place::new();
    let kinds = |path: &str| validate(&place.path().join(path)).iter().map(|p| p.kind).collect::<Vec<_>>();
    place.write("empty/README.md", "");
    place.write("lower/skill.md", "---\nname: lower\ndescription: x\n---\n");
    place.write("folder/SKILL.md/x", "");
    assert_eq!(kinds("nothing"), [Kind::Missing]);
    assert_eq!(kinds("empty"), [Kind::Missing]);
    assert_eq!(kinds("empty/README.md"), [Kind::Missing]);
    assert_eq!(kinds("folder"), [Kind::Unreadable]);
    assert_eq!(kinds("lower"), []);
    assert_eq!(kinds("lower/skill.md"), []);
    let head = "---\nname: large\ndescription: x\n---\n";
    place.write("large/SKILL.md", format!("{head}{}", "a".repeat((1 << 20) - head.len())));
    assert_eq!(kinds("large"), []);
    place.write("large/SKILL.md", format!("{head}{}", "a".repeat(1 << 20)));
    assert_eq!(kinds("large"), [Kind::Unreadable]);
}
