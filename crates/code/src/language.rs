//! The languages that there are.

use std::fmt;

use archon_types::nearest;

/// A language that programs can be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Language {
    /// Python 3, without most of its library. With the feature `python`.
    #[cfg(feature = "python")]
    Python,
    /// JavaScript as QuickJS has it, without a host's objects but `console`. With the feature `javascript`.
    #[cfg(feature = "javascript")]
    JavaScript,
}

impl Language {
    /// Those that were built in.
    pub const ALL: &'static [Self] = &[
        #[cfg(feature = "python")]
        Self::Python,
        #[cfg(feature = "javascript")]
        Self::JavaScript,
    ];

    /// Its name, as calls say it.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "python")]
            Self::Python => "python",
            #[cfg(feature = "javascript")]
            Self::JavaScript => "javascript",
        }
    }

    /// The language of this name; what there is instead, if it is none.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|language| language.name() == name).ok_or_else(|| {
            let names = || Self::ALL.iter().map(|language| language.name());
            let meant = nearest(name, names()).map(|near| format!(" Did you mean '{near}'?"));
            let shown: String = name.chars().take(40).collect();
            let known = names().collect::<Vec<_>>().join(", ");
            format!("There is no language '{shown}'.{} There are: {known}.", meant.unwrap_or_default())
        })
    }

    /// Whether this word means something else in the language, so that no function can have it as its name.
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
