//! Tests of the styles: their attributes without colors, and the contrast of their colors on the usual backgrounds.

use std::num::NonZeroU16;

use super::*;
use crate::{ansi::Bytes, row::TextSpan, support::Support};

/// The least contrast of text in WCAG 2.2, success criterion 1.4.3.
const LEAST_CONTRAST: f64 = 4.5;

const LOOKS: [Look; 19] = [
    Look::Plain,
    Look::Dim,
    Look::Strong,
    Look::Person,
    Look::Key,
    Look::Good,
    Look::Warning,
    Look::Error,
    Look::Added,
    Look::Removed,
    Look::AddedPart,
    Look::RemovedPart,
    Look::Code,
    Look::Address,
    Look::Keyword,
    Look::Literal,
    Look::Number,
    Look::Comment,
    Look::Caret,
];

type Rgb = [u8; 3];

/// The default backgrounds of xterm, VS Code, One Dark, Solarized and Ubuntu.
const DARK: [Rgb; 5] = [[0, 0, 0], [30, 30, 30], [40, 44, 52], [0, 43, 54], [48, 10, 36]];
/// White, and the light backgrounds of One Light, Solarized and of paper.
const LIGHT: [Rgb; 4] = [[255, 255, 255], [250, 250, 250], [253, 246, 227], [238, 238, 238]];

/// Returns a color of xterm's palette of 256, from its 16th on.
/// See <https://invisible-island.net/xterm/xterm.faq.html>.
fn of_palette(number: u8) -> Rgb {
    if let Some(step) = number.checked_sub(232) {
        return [8 + 10 * step; 3];
    }
    let number = number.checked_sub(16).expect("a color that each terminal chooses");
    let part = |n: u8| [0, 95, 135, 175, 215, 255][usize::from(n % 6)];
    [part(number / 36), part(number / 6), part(number)]
}

/// Returns the contrast of two colors, from 1 to 21, by the formula of WCAG 2.2.
/// See <https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio>.
fn contrast(one: Rgb, other: Rgb) -> f64 {
    let linear = |part: u8| match f64::from(part) / 255.0 {
        part if part <= 0.04045 => part / 12.92,
        part => ((part + 0.055) / 1.055).powf(2.4),
    };
    let luminance =
        |[red, green, blue]: Rgb| 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
    let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
    one.max(other) / one.min(other)
}

/// Returns the cell of a letter in a style, as a terminal has it.
fn cell_of(style: Style) -> vt100::Cell {
    let size = NonZeroU16::new(2).unwrap();
    let mut terminal = vt100::Parser::new(size, size, 0);
    let mut bytes = Bytes::default();
    bytes.spans(&[TextSpan::new("x", style)]);
    terminal.process(&bytes.0);
    terminal.screen().cell(0, 0).unwrap().clone()
}

/// Returns the colors of a letter and of its background; `None` for those that the terminal chooses.
fn colors_of(style: Style) -> (Option<Rgb>, Option<Rgb>) {
    let cell = cell_of(style);
    let rgb = |color: vt100::Color| match color {
        vt100::Color::Default => None,
        vt100::Color::Idx(number) => Some(of_palette(number)),
        vt100::Color::Rgb(red, green, blue) => Some([red, green, blue]),
    };
    (rgb(cell.fgcolor()), rgb(cell.bgcolor()))
}

fn support(variables: &[(&str, &str)]) -> Support {
    let env =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Support::of(&env, true)
}

#[test]
fn style_without_colors_keeps_bold_and_faint() {
    let style = Theme::new(false).style(Look::Error);
    assert!(style.color.is_none() && style.is_bold);
    assert!(Theme::new(false).style(Look::Dim).is_dim);
    let theme = Theme::new(false).with_true_color(Background::Dark);
    assert_eq!(theme.style(Look::Added), Style::PLAIN);
    assert_ne!(theme.style(Look::AddedPart), theme.style(Look::Added));
}

// spec: CL-09
#[test]
fn style_of_differences_in_true_color_has_the_backgrounds_of_its_terminal() {
    let of = |background, look| Theme::new(true).with_true_color(background).style(look).background;
    assert_eq!(of(Background::Dark, Look::Removed), Some(Color::Rgb(60, 25, 25)));
    assert_eq!(of(Background::Dark, Look::Added), Some(Color::Rgb(25, 60, 25)));
    assert_eq!(of(Background::Dark, Look::AddedPart), Some(Color::Rgb(60, 60, 25)));
    assert_ne!(of(Background::Light, Look::Added), of(Background::Dark, Look::Added));
    assert_eq!(of(Background::Dark, Look::Plain), None);
    assert_eq!(Theme::new(true).style(Look::Added).background, None);
}

#[test]
fn style_of_a_chosen_background_can_be_read_on_it() {
    // A look that is added below must be in the list, too.
    assert_eq!(LOOKS.len(), Look::Caret as usize + 1);
    for (name, own) in [(ThemeName::Dark, &DARK[..]), (ThemeName::Light, &LIGHT)] {
        for colors in ["", "truecolor"] {
            // The terminal may tell another background than the person.
            let theme = support(&[("TERM", "xterm"), ("COLORTERM", colors), ("COLORFGBG", "0;15")]);
            let theme = theme.theme_named(name);
            for look in LOOKS {
                let style = theme.style(look);
                assert!(!cell_of(style).dim(), "each terminal has another idea of faint: {look:?}");
                let (letters, background) = colors_of(style);
                // Letters without a color are those that the terminal has for its own background.
                let Some(letters) = letters else {
                    assert_eq!(background, None, "{name:?} {look:?}");
                    continue;
                };
                for place in own {
                    let found = contrast(letters, background.unwrap_or(*place));
                    assert!(found >= LEAST_CONTRAST, "{name:?} {look:?} on {place:?}: {found:.2}");
                }
            }
            let kinds = [Look::Good, Look::Warning, Look::Error].map(|look| colors_of(theme.style(look)).0);
            assert!(kinds[0] != kinds[1] && kinds[1] != kinds[2] && kinds[0] != kinds[2], "{kinds:?}");
        }
    }
}

#[test]
fn style_of_auto_has_colors_of_the_terminal_and_of_mono_none() {
    let xterm = support(&[("TERM", "xterm")]);
    for look in LOOKS {
        let cell = cell_of(xterm.theme().style(look));
        assert!(matches!(cell.fgcolor(), vt100::Color::Default | vt100::Color::Idx(1..=6)), "{look:?}");
        assert_eq!(cell.bgcolor(), vt100::Color::Default, "{look:?}");
    }
    let no_color = support(&[("TERM", "xterm"), ("COLORTERM", "truecolor"), ("NO_COLOR", "1")]);
    let mono = xterm.theme_named(ThemeName::Mono);
    for theme in ThemeName::ALL.map(|name| no_color.theme_named(name)).into_iter().chain([mono]) {
        let all = LOOKS.map(|look| colors_of(theme.style(look)));
        assert_eq!(all, [(None, None); LOOKS.len()], "{theme:?}");
    }
}
