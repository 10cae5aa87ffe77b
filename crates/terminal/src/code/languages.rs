//! The languages whose code has colors.

use crate::theme::Look;

/// The words and signs of a language that have colors.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Language {
    names: &'static [&'static str],
    pub(super) line_comments: &'static [&'static str],
    pub(super) block_comment: Option<(&'static str, &'static str)>,
    pub(super) quotes: &'static [Quote],
    keywords: &'static str,
    has_any_case: bool,
    pub(super) is_diff: bool,
}

/// The quotes around a string literal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Quote {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    pub(super) has_escapes: bool,
    /// True if the literal may have several lines.
    pub(super) has_lines: bool,
}

impl Language {
    /// Returns the language that the info string of a code block names, such as `rust` in `rust,ignore`; `None` if it
    /// is not known.
    pub(crate) fn of(info: &str) -> Option<&'static Self> {
        let end = info.find(|c: char| c.is_whitespace() || matches!(c, ',' | '{' | ':'));
        let name = info.get(..end.unwrap_or(info.len()))?.to_ascii_lowercase();
        ALL.iter().find(|language| language.names.contains(&name.as_str()))
    }

    pub(super) fn look_of_word(&self, word: &str) -> Look {
        let is_word = |keyword: &str| match self.has_any_case {
            true => keyword.eq_ignore_ascii_case(word),
            false => keyword == word,
        };
        if self.keywords.split(' ').any(is_word) { Look::Keyword } else { Look::Plain }
    }
}

const fn line(open: &'static str) -> Quote {
    Quote { open, close: open, has_escapes: true, has_lines: false }
}

const fn lines(open: &'static str) -> Quote {
    Quote { has_lines: true, ..line(open) }
}

const fn raw(open: &'static str, close: &'static str) -> Quote {
    Quote { open, close, has_escapes: false, has_lines: true }
}

const PLAIN: Language = Language {
    names: &[],
    line_comments: &[],
    block_comment: None,
    quotes: &[],
    keywords: "",
    has_any_case: false,
    is_diff: false,
};
const SLASHES: &[&str] = &["//"];
const STARS: Option<(&str, &str)> = Some(("/*", "*/"));

/// All languages.
pub(super) const ALL: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        line_comments: SLASHES,
        block_comment: STARS,
        quotes: &[raw("r##\"", "\"##"), raw("r#\"", "\"#"), lines("\"")],
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod \
                   move mut pub ref return self Self static struct super trait true type union unsafe use where while",
        ..PLAIN
    },
    Language {
        names: &["python", "py", "python3", "pyi"],
        line_comments: &["#"],
        quotes: &[lines("\"\"\""), lines("'''"), line("\""), line("'")],
        keywords: "False None True and as assert async await break case class continue def del elif else except finally for \
                   from global if import in is lambda match nonlocal not or pass raise return try while with yield",
        ..PLAIN
    },
    Language {
        names: &["javascript", "js", "jsx", "mjs", "cjs", "typescript", "ts", "tsx"],
        line_comments: SLASHES,
        block_comment: STARS,
        quotes: &[lines("`"), line("\""), line("'")],
        keywords: "abstract any as async await boolean break case catch class const continue debugger declare default delete do \
                   else enum export extends false finally for from function get if implements import in instanceof interface \
                   let namespace new null number of private protected public readonly return set static string super switch \
                   this throw true try type typeof undefined var void while with yield",
        ..PLAIN
    },
    Language {
        names: &["go", "golang"],
        line_comments: SLASHES,
        block_comment: STARS,
        quotes: &[raw("`", "`"), line("\""), line("'")],
        keywords: "break case chan const continue default defer else fallthrough false for func go goto if import interface map \
                   nil package range return select struct switch true type var",
        ..PLAIN
    },
    Language {
        names: &[
            "c", "h", "cpp", "c++", "cc", "cxx", "hpp", "java", "csharp", "cs", "c#", "kotlin", "kt",
            "swift", "scala", "php", "dart",
        ],
        line_comments: SLASHES,
        block_comment: STARS,
        quotes: &[lines("\"\"\""), line("\""), line("'")],
        keywords: "abstract auto bool boolean break byte case catch char class const constexpr continue default delete do double \
                   else enum explicit extends extern false final finally float for foreach fun func function goto if implements \
                   import in inline int interface internal let long namespace native new null nullptr object operator override \
                   package private protected public readonly return sealed short signed sizeof static string struct super \
                   switch template this throw throws true try typedef typename union unsigned using val var virtual void \
                   volatile when while",
        ..PLAIN
    },
    Language {
        names: &["sh", "bash", "shell", "zsh", "console", "fish", "dockerfile", "makefile", "make"],
        line_comments: &["#"],
        quotes: &[lines("\""), raw("'", "'")],
        keywords: "case do done elif else esac exit export fi for function if in local return select set source then time \
                   until while FROM RUN COPY CMD ENTRYPOINT ENV WORKDIR ARG",
        ..PLAIN
    },
    Language {
        names: &["json", "jsonc", "json5", "jsonl"],
        line_comments: SLASHES,
        block_comment: STARS,
        quotes: &[line("\"")],
        keywords: "true false null",
        ..PLAIN
    },
    Language {
        names: &["toml", "ini", "cfg"],
        line_comments: &["#"],
        quotes: &[lines("\"\"\""), raw("'''", "'''"), line("\""), line("'")],
        keywords: "true false",
        ..PLAIN
    },
    Language {
        names: &["yaml", "yml"],
        line_comments: &["#"],
        quotes: &[line("\""), line("'")],
        keywords: "true false null yes no on off",
        ..PLAIN
    },
    Language {
        names: &["sql", "postgresql", "mysql", "sqlite"],
        line_comments: &["--"],
        block_comment: STARS,
        quotes: &[raw("'", "'"), line("\"")],
        keywords: "add all alter and as asc begin between by case check column commit constraint create cross database default \
                   delete desc distinct drop else end exists false foreign from full group having if in index inner insert into \
                   is join key left like limit not null offset on or order outer primary references returning right rollback \
                   select set table then transaction true union unique update using values view when where with",
        has_any_case: true,
        ..PLAIN
    },
    Language {
        names: &["html", "xml", "svg", "xhtml", "vue"],
        block_comment: Some(("<!--", "-->")),
        quotes: &[line("\"")],
        ..PLAIN
    },
    Language { names: &["diff", "patch"], is_diff: true, ..PLAIN },
];
