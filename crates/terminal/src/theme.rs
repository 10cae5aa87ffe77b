//! Styles of texts by their meaning, and the page that rows are made for.

/// A color of the terminal's own palette, so that it can be read on a light and on a dark background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Color {
    /// The palette's red.
    Red,
    /// The palette's green.
    Green,
    /// The palette's yellow.
    Yellow,
    /// The palette's blue.
    Blue,
    /// The palette's magenta.
    Magenta,
    /// The palette's cyan.
    Cyan,
}

/// The color and the attributes of a text. The default is plain text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Style {
    /// The color of the letters; `None` for the terminal's own.
    pub color: Option<Color>,
    /// True for bold letters.
    pub is_bold: bool,
    /// True for faint letters.
    pub is_dim: bool,
    /// True for exchanged colors of letters and background, as the draft's caret has them.
    pub is_reversed: bool,
}

impl Style {
    /// Plain text.
    pub const PLAIN: Self = Self { color: None, is_bold: false, is_dim: false, is_reversed: false };

    const fn bold(self) -> Self {
        Self { is_bold: true, ..self }
    }

    const fn dim(self) -> Self {
        Self { is_dim: true, ..self }
    }

    const fn in_color(color: Color) -> Self {
        Self { color: Some(color), ..Self::PLAIN }
    }
}

/// The meaning of a text, from which a [`Theme`] makes its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Look {
    /// An answer, or any other text without a meaning of its own.
    Plain,
    /// Something that matters less: details, times, the status line.
    Dim,
    /// Something that a person looks for: the name of a tool, a heading.
    Strong,
    /// A message of a person.
    Person,
    /// A key that can be pressed.
    Key,
    /// Something that went well.
    Good,
    /// Something that a person should know.
    Warning,
    /// Something that failed.
    Error,
    /// An added line of a difference.
    Added,
    /// A removed line of a difference.
    Removed,
    /// The cell under the draft's caret.
    Caret,
}

/// The styles of all looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    has_colors: bool,
}

impl Theme {
    /// Creates the theme of a terminal with or without colors. Without colors, looks differ by bold, faint and
    /// reversed letters.
    pub const fn new(has_colors: bool) -> Self {
        Self { has_colors }
    }

    /// Returns the style of a look.
    pub const fn style(self, look: Look) -> Style {
        let style = match look {
            Look::Plain => Style::PLAIN,
            Look::Dim => Style::PLAIN.dim(),
            Look::Strong => Style::PLAIN.bold(),
            Look::Person => Style::in_color(Color::Cyan).bold(),
            Look::Key => Style::in_color(Color::Blue).bold(),
            Look::Good | Look::Added => Style::in_color(Color::Green),
            Look::Warning => Style::in_color(Color::Yellow),
            Look::Error => Style::in_color(Color::Red).bold(),
            Look::Removed => Style::in_color(Color::Red),
            Look::Caret => Style { is_reversed: true, ..Style::PLAIN },
        };
        match self.has_colors {
            true => style,
            false => Style { color: None, ..style },
        }
    }
}

/// The page that rows are made for. Rows of the same cell for the same page are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The maximum number of columns of a row, at least 1.
    pub width: usize,
    /// The styles.
    pub theme: Theme,
    /// True if details are shown that only a person who looks for a fault needs.
    pub is_verbose: bool,
}

impl Page {
    /// Creates a page with this number of columns, without details.
    pub fn new(width: usize, theme: Theme) -> Self {
        Self { width: width.max(1), theme, is_verbose: false }
    }

    /// Shows details too, or not.
    pub fn with_details(mut self, is_verbose: bool) -> Self {
        self.is_verbose = is_verbose;
        self
    }

    /// Returns a page that is narrower by this number of columns, but at least one column wide.
    pub fn narrowed(mut self, columns: usize) -> Self {
        self.width = self.width.saturating_sub(columns).max(1);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_without_colors_keeps_bold_and_faint() {
        let style = Theme::new(false).style(Look::Error);
        assert!(style.color.is_none() && style.is_bold);
        assert!(Theme::new(false).style(Look::Dim).is_dim);
    }
}
