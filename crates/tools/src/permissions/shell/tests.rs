//! Tests of the parser, with tables of command lines, and with random lines: the parser must find the commands that
//! the shells of this machine run.

use super::*;

mod against_shells;

/// Formats the parsed line: commands in the order of their ends, then files; `?` is a word that is known only
/// when it runs.
fn analyse_line(line: &str) -> String {
    let Some(line) = analyse(line) else { return "refused".to_owned() };
    let said = |word: &KnownWord| word.known().map_or("?".to_owned(), |word| word.replace('\n', "\\n"));
    let all = |words: &[KnownWord]| words.iter().map(said).collect::<Vec<_>>().join("_");
    let mut text: Vec<String> = line.parts.iter().map(|part| all(&part.words)).collect();
    text.extend(line.reads.iter().map(|path| format!("<{}", said(path))));
    text.extend(line.writes.iter().map(|path| format!(">{}", said(path))));
    text.join(" ")
}

fn check(lines: &[(&str, &str)]) {
    for (line, expected) in lines {
        assert_eq!(analyse_line(line), *expected, "{line:?}");
    }
}

fn check_refused(lines: &[&str]) {
    for line in lines {
        assert_eq!(analyse_line(line), "refused", "{line:?}");
    }
}

// spec: AP-11
#[test]
fn analyse_of_lists_and_pipelines_finds_every_command() {
    check(&[
        ("", ""),
        (" \n\t", ""),
        ("a", "a"),
        ("a;b;", "a b"),
        ("a&b&", "a b"),
        ("a\n\n b\n", "a b"),
        ("a&&b||c", "a b c"),
        ("a &&\n b |\n c", "a b c"),
        ("a|b|&c", "a b c"),
        ("! a | b", "a b"),
        ("time ! a", "a"),
        ("'time' a; \\if b", "time_a if_b"),
        ("a ! } = b=c", "a_!_?_=_b=c"),
    ]);
    check_refused(&[";", "&", "|", "a;;b", "a;;&b", "a;&b", "a& &b", "a&&", "a||", "a|", "|a", "&& a"]);
    check_refused(&["a &&& b", "a ||| b", "a\n;b", "a | ! b", "! ! a", "! time a", "!", "time", "time; a"]);
    check_refused(&["time -p a", "time\na", "a | time b", "!(a)", "time(a)", "a)", "}", "fi", "done", "in"]);
}

// spec: AP-11
#[test]
fn analyse_of_groups_branches_and_loops_finds_every_command() {
    check(&[
        ("(a;b)|c", "a b c"),
        ("( (a) )", "a"),
        ("{ a; }", "a"),
        ("{ a\n} >b 2>&1", "a >b"),
        ("if a; then b; elif c; then d; else e; fi", "a b c d e"),
        ("if (a)\nthen\nb\nfi;c", "a b c"),
        ("while a; do b; done; until c; do d; done", "a b c d"),
        ("for x in a $(b) *\ndo c $x\ndone <d", "b c_? <d"),
        ("for x in; do a; done", "a"),
    ]);
    check_refused(&["()", "(a", "((a))", "((a);b)", "{ a }", "{a;}", "{ a; } b", "(a) b", "(a)b", "(a);;"]);
    check_refused(&[
        "if a; then; fi",
        "if a then b; fi",
        "if a; fi",
        "while a; done",
        "while a; { b; }",
        "do a; done",
    ]);
    check_refused(&[
        "for PATH in a; do b; done",
        "for x; do a; done",
        "for x in a; { b; }",
        "for ((;;)) do a; done",
    ]);
    check_refused(&[
        "case a in a) b;; esac",
        "select x in a; do b; done",
        "[[ a ]]",
        "coproc a",
        "function f { a; }",
    ]);
    check_refused(&["f() { a; }", "f () (a)", "if() { a; }", "f\t(a)", "a (b)", "a=(b)", "a b=(c)"]);
}

// spec: AP-11
#[test]
fn analyse_of_a_word_gives_its_expansion() {
    check(&[
        ("'a b'c\"d e\"\\ f", "a bcd e f"),
        ("a '' \"\"", "a__"),
        (r#"a "\$\`\"\\\n""#, r#"a_$`"\\n"#),
        (r"a \$x '$x' \'", "a_$x_$x_'"),
        ("a 'b\nc'", "a_b\\nc"),
        ("a '#' \"b # c\" ; d", "a_#_b # c d"),
        ("[ a ] ] [", "[_a_]_]_["),
        ("a \"it's\" '\"'", "a_it's_\""),
        ("a x=1 --b=c", "a_x=1_--b=c"),
        ("a * b? [c] {d,e} ~ ~/f g=~", "a_?_?_?_?_?_?_?"),
        ("a '*' \"~\" \\* 'b'\"{c}\"", "a_*_~_*_b{c}"),
        ("a $x \"$x\" ${x}y $1 ${12} $? \"$@\" ${!}", "a_?_?_?_?_?_?_?_?"),
        ("a $ \"$\" \"b$\" \"b$|c$ \"", "a_$_$_b$_b$|c$ "),
        ("$x a", "?_a"),
        ("a über 'zu gut'", "a_über_zu gut"),
    ]);
    check_refused(&["a 'b", "a \"b", "a \\", "'", "a $'b'", "a $\"b\"", "a$'b'", "a `b`", "a \"`b`\""]);
    check_refused(&["x=1", "x=1 a", "x+=1 a", "x[$(a)]=1 b", ">c x=1 a", "! x=1 a", "time x=1 a", "a=b=c"]);
    check_refused(&[
        "a ?(b|c)", "a +(b)", "@(a)", "a(", "a b(c)", "a#b", "a #b", "a \\#", "a \\\nb", "a '\\\n'",
    ]);
    check_refused(&["a $(b '#')", "a \"$(b \"#\")\"", "a <<'E'\n#\nE", "a <<E '#'\nE", "a \"\\#\""]);
    check_refused(&["a\rb", "a\u{b}b", "a\u{c}b", "a\0b", "a\u{7f}b", "a\u{85}b", "a\u{a0}b", "a\u{2028}b"]);
}

// spec: AP-11
#[test]
fn analyse_of_a_dollar_that_is_no_plain_variable_refuses_the_line() {
    // From bash 5.3 on, these run `b`.
    for form in ["${ b; }", "${| b; }", "${\tb; }", "${\nb; }", "${|b;}", "${ b;}", "${\t\nb\n}", "${(b)}"] {
        check_refused(&[&format!("a {form}"), &format!("a \"{form}\""), &format!("a x{form}y"), form]);
        check_refused(&[&format!("a <<< {form}"), &format!("a > {form}"), &format!("a <<E\n{form}\nE")]);
    }
    for form in
        ["x:-b", "x:=b", "x#b", "x/b/c", "x@P", "x[0]", "x[$(b)]", "x^", "x:1", "!x", "#x", "$", "", "x y"]
    {
        check_refused(&[&format!("a ${{{form}}}"), &format!("a \"${{{form}}}\"")]);
    }
    check_refused(&[
        "a $((1))",
        "a $[1]",
        "a $(((b)))",
        "a \"$((b))\"",
        "a $$",
        "a \"$${b}\"",
        "a $.",
        "a $'",
        "a $<b",
    ]);
    check_refused(&["a ${x", "a ${é}", "a ${1x}", "a $é", "a \"$'b'\"", "a $\\b", "a $=b", "a $~b", "a $^b"]);
}

// spec: AP-11
#[test]
fn analyse_of_substitutions_finds_the_commands_in_them() {
    check(&[
        ("a $(b c)", "b_c a_?"),
        ("a \"x$(b \"$(c)\")y\"", "c b_? a_?"),
        ("$(a) b", "a ?_b"),
        ("a $(b; (c) | d)", "b c d a_?"),
        ("a $(<b)", "a_? <b"),
        ("a <(b) >(c|d)", "b c d a_?_?"),
        ("a < <(b) > >(c)", "b c a"),
        ("a '$(b)'", "a_$(b)"),
    ]);
    check_refused(&[
        "a $()",
        "a $(b",
        "a $(b))",
        "a \"$(b\")",
        "a $(`b`)",
        "a $(case b in b) c;; esac)",
        "a $(b=c)",
    ]);
    check_refused(&[
        "<(a)",
        "<(a) b",
        "a <(b)c",
        "a b<(c)",
        "a <(b)<(c)",
        "a <((b))",
        "a 2<(b)",
        "(a) <(b)",
        "a <<(b)",
    ]);
}

// spec: AP-11
#[test]
fn analyse_of_redirections_lists_read_and_written_files() {
    check(&[
        ("a <b >c", "a <b >c"),
        (">c a", "a >c"),
        (">c", ">c"),
        ("a 2>>b >|c 3<>d", "a <d >b >c >d"),
        ("a>b<c", "a <c >b"),
        ("a2>b", "a2 >b"),
        ("a 2>&1 >&- <&3 4>&5-", "a"),
        ("a >& b <& c", "a <c >b"),
        ("a &>b; a b &>>c", "a a_b >b >c"),
        ("a > $x >'b c' > * < ~", "a <? >? >b c >?"),
        ("a <<< b <<< $(c) <<<'d e'", "c a"),
        ("while a; do b; done &> c", "a b >c"),
    ]);
    check_refused(&[
        "a >", "a > ;", "a > >b", "a >>> b", "a <b >", "a >(", "a > (b)", "a >& &", "a <<<", "a <<< <b",
    ]);
    // Up to bash 5.2, these are expanded twice.
    check_refused(&[
        "a >&'$(b)'",
        "a >& '`b`'",
        "a <& \"\\$(b)\"",
        "a >& \\<\\(b\\)",
        "a >&$x",
        "a 2>& \"b\"",
        "a >& ''",
    ]);
    // A second digit, a name in braces and `&>` are read by some shells only.
    check_refused(&[
        "a 12>b",
        "a >1>b",
        "a {x}>b",
        "a {PATH}<b",
        "a &>b c",
        "&>b a",
        "&>b",
        "a;&>b",
        ">b if c; then d; fi",
    ]);
}

// spec: AP-11
#[test]
fn analyse_of_here_documents_reads_past_text_that_is_only_text() {
    check(&[
        ("a <<'E'\n$(b) `c` \"'\nE\nd", "a d"),
        ("a <<\\E >b\nc\nE", "a >b"),
        ("a <<E; b\nc;\"'(\nE\nd", "a b d"),
        ("a <<-\"E\"\n\tb\n\t\tE\nc", "a c"),
        ("a <<E <<'F' | b\nc\nE\n$(d)\nF\n e", "a b e"),
        ("(a <<E\nb\nE\n)", "a"),
        ("while a; do b; done <<E\nc\nE\n", "a b"),
        ("a <<E\n E\nE \nE\nb", "a b"),
    ]);
    check_refused(&[
        "a <<E",
        "a <<E\n",
        "a <<E\nb",
        "a <<E\n\tE",
        "a <<E\n$b\nE",
        "a <<E\n`b`\nE",
        "a <<E\n\\b\nE",
    ]);
    check_refused(&["a <<$x\n$x", "a <<''\n\n", "a <<E*\nE*", "a <<'E F'\nE F", "a <<", "a <<E'\nb\n'"]);
    // Shells do not agree on where the text begins.
    check_refused(&[
        "a $(b <<E\nc\nE\n)",
        "a <<E $(b)\nc\nE",
        "a <<E 'b\nE\n'",
        "a <<E \"b\nE\n\"",
        "a <<E <(b)\nE",
    ]);
}

// spec: AP-11
#[test]
fn analyse_of_an_unknown_word_gives_its_known_prefix() {
    for (line, expected) in [
        ("a src/*.rs", "src/"),
        ("a src/{b,c}", "src/"),
        ("a \"src/$x\"", "src/"),
        ("a src/$x", ""),
        ("a \"src/$@\"", ""),
        ("a \"src/${@}\"", ""),
        ("a 'b c'*", "b c"),
        ("a ~/b", ""),
        ("a <(b)", "/"),
        ("a b", "b"),
    ] {
        let read = analyse(line).unwrap();
        assert_eq!(read.parts.last().unwrap().words[1].beginning(), expected, "{line:?}");
    }
}

// spec: AP-11
#[test]
fn may_be_of_a_pattern_covers_its_possible_expansions() {
    for (word, text, expected) in [
        ("a*c", "abc", true),
        ("a*c", "ac", true),
        ("a*c", "ab", false),
        ("a*c", "a/c", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("a[b]c", "abc", true),
        ("a\"$x\"", "abc", true),
        ("a\"$x\"", "b", false),
        ("a$x", "b", true),
        ("*b*", "abcb", true),
    ] {
        let read = analyse(&format!("a {word}")).unwrap();
        assert_eq!(read.parts[0].words[1].may_be(text), expected, "{word} {text}");
    }
    let form = |word: &str| analyse(&format!("a {word}")).unwrap().parts[0].words[1].form().to_vec();
    for (one, other, expected) in [
        ("a*", "*b", true),
        ("a*", "b*", false),
        ("*/b", "a/*", true),
        ("*", "a/*", false),
        ("a*b*c", "a?c", true),
    ] {
        assert_eq!(known_word::meet(&form(one), &form(other)), expected, "{one} {other}");
        assert_eq!(known_word::meet(&form(other), &form(one)), expected, "{other} {one}");
    }
}

// spec: AP-11
#[test]
fn analyse_of_too_long_or_too_deep_lines_is_refused() {
    check_refused(&[&"a ".repeat(LONGEST), &"(".repeat(LONGEST), &"{ ".repeat(2_000), &"a $(".repeat(1_000)]);
    check_refused(&[&"! ".repeat(2_000), &"if ".repeat(1_000), &"a <(".repeat(1_000), &"\"$(".repeat(1_000)]);
    check_refused(&[&format!("{}a{}", "( ".repeat(64), " )".repeat(64))]);
    assert_eq!(analyse_line(&format!("{}a{}", "( ".repeat(60), " )".repeat(60))), "a");
}
