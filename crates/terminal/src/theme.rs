//! Styles of texts by their meaning, and the page that rows are made for.

mod name;

use archon_types::Timestamp;

pub use name::ThemeName;

/// A color of text or of its background. The terminal decides how a color of the palette looks, mostly so that it fits
/// the background.
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
    /// A color by its number among 256. From 16 on, the numbers have the same colors in all terminals.
    Indexed(u8),
    /// A color by its parts of red, green and blue, for terminals with true color.
    Rgb(u8, u8, u8),
}

/// The color and the attributes of a text. The default is plain text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Style {
    /// The color of the letters; `None` for the terminal's own.
    pub color: Option<Color>,
    /// The color behind the letters; `None` for the terminal's own.
    pub background: Option<Color>,
    /// True for bold letters.
    pub is_bold: bool,
    /// True for slanted letters.
    pub is_italic: bool,
    /// True for faint letters.
    pub is_dim: bool,
    /// True for exchanged colors of letters and background, as the draft's caret has them.
    pub is_reversed: bool,
}

impl Style {
    /// Plain text.
    pub const PLAIN: Self = Self {
        color: None,
        background: None,
        is_bold: false,
        is_italic: false,
        is_dim: false,
        is_reversed: false,
    };

    pub(crate) const fn bold(self) -> Self {
        Self { is_bold: true, ..self }
    }

    pub(crate) const fn italic(self) -> Self {
        Self { is_italic: true, ..self }
    }

    const fn dim(self) -> Self {
        Self { is_dim: true, ..self }
    }

    const fn in_color(color: Color) -> Self {
        Self { color: Some(color), ..Self::PLAIN }
    }

    const fn on(self, background: Color) -> Self {
        Self { background: Some(background), ..self }
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
    /// An added line of a diff.
    Added,
    /// A removed line of a diff.
    Removed,
    /// A part of an added line that differs from the removed line.
    AddedPart,
    /// A part of a removed line that differs from the added line.
    RemovedPart,
    /// Code within a sentence.
    Code,
    /// The address of a link.
    Address,
    /// A keyword in code.
    Keyword,
    /// A string literal in code.
    Literal,
    /// A number in code.
    Number,
    /// A comment in code.
    Comment,
    /// The character at the draft's caret.
    Caret,
}

/// Gives each [`Look`] a style.
///
/// ```
/// use archon_terminal::{Background, Theme};
///
/// let theme = Theme::for_background(Background::Light);
/// let plain = Theme::new(false).with_ascii_signs();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    colors: Colors,
    /// The background for which added and removed lines get background colors in true color; `None` without them.
    differences: Option<Background>,
    is_ascii: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colors {
    None,
    /// The colors of the terminal's palette.
    Palette,
    /// Colors that can be read on this background.
    For(Background),
}

/// The background of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// Light letters on a dark background.
    #[default]
    Dark,
    /// Dark letters on a light background.
    Light,
}

impl Theme {
    /// Creates the theme of a terminal with or without colors. With colors, it uses the palette that all terminals
    /// have; without, looks differ by bold, faint and reversed letters.
    pub const fn new(has_colors: bool) -> Self {
        let colors = if has_colors { Colors::Palette } else { Colors::None };
        Self { colors, differences: None, is_ascii: false }
    }

    /// Creates the theme for a terminal with this background and 256 colors. It uses only colors that are the same in
    /// all terminals; each has a contrast of at least 4.5 to 1 on usual backgrounds of this kind.
    pub const fn for_background(background: Background) -> Self {
        Self { colors: Colors::For(background), ..Self::new(true) }
    }

    /// Uses true color for the backgrounds of added and removed lines. A theme without colors stays unchanged.
    ///
    /// ```
    /// use archon_terminal::{Background, Color, Look, Theme};
    ///
    /// let theme = Theme::new(true).with_true_color(Background::Dark);
    /// assert_eq!(theme.style(Look::Added).background, Some(Color::Rgb(25, 60, 25)));
    /// ```
    pub const fn with_true_color(self, background: Background) -> Self {
        match self.colors {
            Colors::None => self,
            _ => Self { differences: Some(background), ..self },
        }
    }

    /// Draws the signs of lists in ASCII, for a terminal without UTF-8.
    ///
    /// ```
    /// use archon_terminal::Theme;
    ///
    /// let theme = Theme::new(true).with_ascii_signs();
    /// ```
    pub const fn with_ascii_signs(self) -> Self {
        Self { is_ascii: true, ..self }
    }

    pub(crate) const fn is_ascii(self) -> bool {
        self.is_ascii
    }

    /// Returns the style that the theme gives to a look.
    pub const fn style(self, look: Look) -> Style {
        let style = match look {
            Look::Plain => Style::PLAIN,
            Look::Dim | Look::Comment => Style::PLAIN.dim(),
            Look::Strong => Style::PLAIN.bold(),
            Look::Person => Style::in_color(Color::Cyan).bold(),
            Look::Key => Style::in_color(Color::Blue).bold(),
            Look::Good | Look::Added | Look::Literal => Style::in_color(Color::Green),
            Look::Warning => Style::in_color(Color::Yellow),
            Look::Error | Look::RemovedPart => Style::in_color(Color::Red).bold(),
            Look::Removed => Style::in_color(Color::Red),
            Look::AddedPart => Style::in_color(Color::Green).bold(),
            Look::Code | Look::Number => Style::in_color(Color::Cyan),
            Look::Address => Style::in_color(Color::Blue),
            Look::Keyword => Style::in_color(Color::Magenta),
            Look::Caret => Style { is_reversed: true, ..Style::PLAIN },
        };
        let style = match (self.colors, look) {
            // Nothing else tells it from the words around it.
            (Colors::None, Look::Code) => Style::PLAIN.bold(),
            (Colors::None, _) => Style { color: None, ..style },
            (Colors::Palette, _) => style,
            (Colors::For(background), _) => background.readable(style),
        };
        match self.differences {
            Some(background) => background.style(look, style),
            None => style,
        }
    }
}

impl Background {
    /// Replaces the color of a style by a similar color that can be read on this background. Faint letters become
    /// gray, because each terminal draws faint letters differently.
    const fn readable(self, style: Style) -> Style {
        let [red, green, yellow, blue, magenta, cyan, gray] = match self {
            Self::Dark => [210, 114, 221, 111, 176, 80, 247],
            Self::Light => [124, 22, 94, 19, 90, 24, 241],
        };
        let number = match style.color {
            Some(Color::Red) => red,
            Some(Color::Green) => green,
            Some(Color::Yellow) => yellow,
            Some(Color::Blue) => blue,
            Some(Color::Magenta) => magenta,
            Some(Color::Cyan) => cyan,
            None if style.is_dim => gray,
            _ => return style,
        };
        Style { color: Some(Color::Indexed(number)), is_dim: false, ..style }
    }

    /// Returns the true-color style of an added or removed line, and `other` for any other look. The letters have a
    /// fixed color, so that they can be read even if the terminal has another background than its environment says.
    const fn style(self, look: Look, other: Style) -> Style {
        let (letters, removed, added, part) = match self {
            Self::Dark => (
                Color::Rgb(230, 230, 230),
                Color::Rgb(60, 25, 25),
                Color::Rgb(25, 60, 25),
                Color::Rgb(60, 60, 25),
            ),
            Self::Light => (
                Color::Rgb(30, 30, 30),
                Color::Rgb(255, 225, 225),
                Color::Rgb(220, 245, 220),
                Color::Rgb(250, 240, 170),
            ),
        };
        let style = Style::in_color(letters);
        match look {
            Look::Removed => style.on(removed),
            Look::Added => style.on(added),
            Look::RemovedPart | Look::AddedPart => style.on(part).bold(),
            _ => other,
        }
    }
}

/// The page that rows are made for. Rows of the same cell for the same page are equal.
///
/// ```
/// use archon_terminal::{Page, Theme};
///
/// let page = Page::new(80, Theme::new(true)).with_details(true).unfolded().narrowed(2);
/// assert_eq!(page.width, 78);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The maximum number of columns of a row, at least 1.
    pub width: usize,
    /// The theme, which gives each text its style.
    pub theme: Theme,
    /// True if details are shown that only a person who looks for a fault needs.
    pub is_verbose: bool,
    /// True if the outputs of calls are shown whole, as far as they are kept.
    pub is_unfolded: bool,
    /// The present time, for the row that counts the agents at work; `None` leaves it out.
    pub now: Option<Timestamp>,
}

impl Page {
    /// Creates a page with this number of columns, at least 1. The page shows no details, and only a part of each
    /// call's output.
    pub fn new(width: usize, theme: Theme) -> Self {
        Self { width: width.max(1), theme, is_verbose: false, is_unfolded: false, now: None }
    }

    /// Sets if the details that only a person who looks for a fault needs are shown; by default they are not.
    pub fn with_details(mut self, is_verbose: bool) -> Self {
        self.is_verbose = is_verbose;
        self
    }

    /// Shows the outputs of calls whole, as far as they are kept; by default only a part of each.
    pub fn unfolded(mut self) -> Self {
        self.is_unfolded = true;
        self
    }

    /// Sets the present time, so that the row that counts the working agents shows the time since they began; see
    /// [`Cells::next_beat`](crate::Cells::next_beat).
    pub fn at(mut self, now: Timestamp) -> Self {
        self.now = Some(now);
        self
    }

    /// Returns a page that is narrower by this number of columns, but at least one column wide.
    pub fn narrowed(mut self, columns: usize) -> Self {
        self.width = self.width.saturating_sub(columns).max(1);
        self
    }
}

#[cfg(test)]
mod tests;
