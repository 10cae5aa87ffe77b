//! The programming languages that are built in.

use std::fmt;

use archon_types::nearest;

/// A language of programs.
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

    /// Returns the name that calls use.
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
        match self {
            #[cfg(feature = "python")]
            Self::Python => crate::python::RESERVED.contains(&word),
            #[cfg(feature = "javascript")]
            Self::JavaScript => crate::javascript::RESERVED.contains(&word),
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
