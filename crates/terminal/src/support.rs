//! The abilities of the terminal, as far as environment variables tell them.

use crate::{
    ansi,
    row::Size,
    theme::{Background, Theme, ThemeName},
};

/// The abilities of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Support {
    /// True if the output is a terminal that can move its cursor.
    pub is_terminal: bool,
    /// True if texts are in UTF-8. Without it, the columns of a text cannot be counted.
    pub has_utf8: bool,
    /// True if texts may have colors.
    pub has_colors: bool,
    /// True if the terminal can show any RGB color.
    pub has_true_color: bool,
    /// The background; dark if the terminal does not tell.
    pub background: Background,
    /// True if the terminal has the keyboard protocol of kitty, with which it can distinguish Shift+Enter and Escape
    /// from other keys.
    pub has_kitty_keys: bool,
}

/// The fewest columns and rows for a live area that can be read.
const LEAST: Size = Size::new(20, 6);

impl Support {
    /// Determines the abilities from the variables `TERM`, `TERM_PROGRAM`, `COLORTERM`, `COLORFGBG`, `NO_COLOR`,
    /// `LC_ALL`, `LC_CTYPE` and `LANG`, which `env` returns. `is_tty` is true if the output goes to a terminal. A
    /// missing locale counts as UTF-8: containers and remote shells seldom set one, and their terminals have long used
    /// UTF-8.
    ///
    /// ```
    /// use archon_terminal::{Size, Support};
    ///
    /// let env = |name: &str| (name == "TERM").then(|| "xterm-256color".to_owned());
    /// let support = Support::of(&env, true);
    /// assert!(support.is_enough(Size::new(80, 24)) && !support.is_enough(Size::new(20, 5)));
    /// ```
    pub fn of(env: &dyn Fn(&str) -> Option<String>, is_tty: bool) -> Self {
        let value = |name: &str| env(name).filter(|value| !value.is_empty());
        let term = value("TERM");
        let is_dumb = term.as_deref().map_or(cfg!(unix), |term| term == "dumb");
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(value);
        let is_utf8 = |locale: String| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        };
        let program = value("TERM_PROGRAM").unwrap_or_default();
        let is_kitty = |known: &&str| term.as_deref().is_some_and(|term| term.contains(known));
        Self {
            is_terminal: is_tty && !is_dumb,
            has_utf8: locale.is_none_or(is_utf8),
            has_colors: value("NO_COLOR").is_none() && !is_dumb,
            has_true_color: value("COLORTERM").is_some_and(|kind| kind == "truecolor" || kind == "24bit"),
            background: value("COLORFGBG").map(|colors| background(&colors)).unwrap_or_default(),
            has_kitty_keys: ["kitty", "ghostty", "foot", "alacritty"].iter().any(is_kitty)
                || ["ghostty", "WezTerm", "iTerm.app"].contains(&program.as_str()),
        }
    }

    /// Returns true if a terminal of this size can show a live area: it can move its cursor, has UTF-8, and has at
    /// least 20 columns and 6 rows. If not, print plain lines.
    pub fn is_enough(&self, size: Size) -> bool {
        let is_large = size.columns >= LEAST.columns && size.rows >= LEAST.rows;
        self.is_terminal && self.has_utf8 && is_large
    }

    /// Returns the theme [`ThemeName::Auto`], with the signs and the true color that the terminal can show.
    pub fn theme(&self) -> Theme {
        self.theme_named(ThemeName::Auto)
    }

    /// Returns the theme with this name, with the signs and the true color that the terminal can show. If the terminal
    /// has no colors, each name gives the theme [`ThemeName::Mono`].
    pub fn theme_named(&self, name: ThemeName) -> Theme {
        let fixed = |background| (Theme::for_background(background), background);
        let (theme, background) = match name {
            ThemeName::Dark if self.has_colors => fixed(Background::Dark),
            ThemeName::Light if self.has_colors => fixed(Background::Light),
            _ => (Theme::new(self.has_colors && name == ThemeName::Auto), self.background),
        };
        let theme = if self.has_true_color { theme.with_true_color(background) } else { theme };
        if self.has_utf8 { theme } else { theme.with_ascii_signs() }
    }

    /// Returns the bytes that make the terminal usable after the program was killed. They end all modes of
    /// [`Inline`](crate::Inline) and erase the live area. They do not end bracketed paste, because a shell that has
    /// taken over the terminal may have begun it again; [`END_PASTE`](crate::END_PASTE) ends it.
    pub fn restore_sequence(&self) -> String {
        let keys = if self.has_kitty_keys { ansi::END_KITTY_KEYS } else { "" };
        [ansi::PLAIN, ansi::END_SYNC, ansi::AUTOWRAP, ansi::SHOW_CURSOR, keys, ansi::ERASE_BELOW].concat()
    }

    /// Returns the bytes that make the terminal usable after the program was killed while it had the alternate screen.
    /// They end all modes of [`Alternate`](crate::Alternate), but not bracketed paste. Write them only then: on the
    /// terminal's own screen, they would move the cursor to an arbitrary place.
    pub fn restore_sequence_of_alternate(&self) -> String {
        let keys = if self.has_kitty_keys { ansi::END_KITTY_KEYS } else { "" };
        [ansi::PLAIN, ansi::END_SYNC, ansi::AUTOWRAP, ansi::SHOW_CURSOR, keys, ansi::END_ALTERNATE].concat()
    }
}

/// Returns the background from the value of `COLORFGBG`, whose last number is a color of the palette.
fn background(colors: &str) -> Background {
    let number = colors.rsplit(';').next().and_then(|number| number.parse::<u8>().ok());
    match number {
        Some(7 | 9..=15) => Background::Light,
        _ => Background::Dark,
    }
}
