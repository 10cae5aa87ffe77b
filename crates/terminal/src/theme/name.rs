//! The names of themes, among which a person chooses.

/// The name of a theme. [`Support::theme_named`](crate::Support::theme_named) returns the theme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ThemeName {
    /// The colors of the terminal's own palette.
    #[default]
    Auto,
    /// Colors for a dark background.
    Dark,
    /// Colors for a light background.
    Light,
    /// No colors.
    Mono,
}

impl ThemeName {
    /// All names, in the order in which they are listed.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Dark, Self::Light, Self::Mono];

    /// Parses the name of a theme; `None` if there is no such theme.
    ///
    /// ```
    /// use archon_terminal::ThemeName;
    ///
    /// assert_eq!(ThemeName::named("light"), Some(ThemeName::Light));
    /// assert_eq!(ThemeName::named("pink"), None);
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }

    /// Returns the name as settings write it, such as `auto`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Dark => "dark",
            Self::Light => "light",
            Self::Mono => "mono",
        }
    }

    /// Describes the colors of the theme in one line, for people.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Auto => "The colors of the terminal",
            Self::Dark => "Colors for a dark background",
            Self::Light => "Colors for a light background",
            Self::Mono => "No colors: bold, faint and reversed letters",
        }
    }
}
