//! The programming languages that are built in.

use std::fmt;

use archon_types::nearest;

/// A programming language in which programs can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Language {
    /// Python 3, without most of its standard library. Needs the feature `python`.
    #[cfg(feature = "python")]
    Python,
    /// JavaScript by QuickJS; `console` is the only host object. Needs the feature `javascript`.
    #[cfg(feature = "javascript")]
    JavaScript,
}

impl Language {
    /// The languages that this build has.
    pub const ALL: &'static [Self] = &[
        #[cfg(feature = "python")]
        Self::Python,
        #[cfg(feature = "javascript")]
        Self::JavaScript,
    ];

    /// Returns the language's name in the arguments of calls.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "python")]
            Self::Python => "python",
            #[cfg(feature = "javascript")]
            Self::JavaScript => "javascript",
        }
    }

    /// Finds a language by name; the error text lists the known names and suggests a similar one.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|language| language.name() == name).ok_or_else(|| {
            let names = || Self::ALL.iter().map(|language| language.name());
            let meant = nearest(name, names()).map(|near| format!(" Did you mean '{near}'?"));
            let shown: String = name.chars().take(40).collect();
            let known = names().collect::<Vec<_>>().join(", ");
            format!("There is no language '{shown}'.{} There are: {known}.", meant.unwrap_or_default())
        })
    }

    /// Returns whether the word is reserved in the language, so that no function can have it as its name.
    pub(crate) fn is_reserved(self, word: &str) -> bool {
        let reserved = match self {
            #[cfg(feature = "python")]
            Self::Python => RESERVED_IN_PYTHON,
            #[cfg(feature = "javascript")]
            Self::JavaScript => RESERVED_IN_JAVASCRIPT,
        };
        reserved.split_whitespace().any(|reserved| reserved == word)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reserved words, which cannot be names of functions.
#[cfg(feature = "python")]
const RESERVED_IN_PYTHON: &str = "False None True and as assert async await break class continue def del elif \
    else except finally for from global if import in is lambda nonlocal not or pass print raise return try \
    while with yield";

/// Reserved words, which cannot be names of functions.
#[cfg(feature = "javascript")]
const RESERVED_IN_JAVASCRIPT: &str = "arguments await break case catch class console const continue debugger \
    default delete do else enum eval export extends false finally for function if implements import in \
    instanceof interface let new null package private protected public return static super switch this throw \
    true try typeof undefined var void while with yield";
