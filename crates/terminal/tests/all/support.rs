//! Tests of what a terminal can do, by its environment and size.

use archon_terminal::{Background, Size, Support};

fn of(variables: &[(&str, &str)], is_tty: bool) -> Support {
    let env =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Support::of(&env, is_tty)
}

// spec: CL-14
#[test]
fn is_enough_needs_a_terminal_that_can_move_its_cursor_and_counts_columns() {
    let size = Size::new(80, 24);
    let xterm = [("TERM", "xterm")];
    for (variables, is_tty, size, expected) in [
        (&xterm[..], true, size, true),
        (&xterm, false, size, false),
        (&xterm, true, Size::new(20, 6), true),
        (&xterm, true, Size::new(20, 5), false),
        (&xterm, true, Size::new(19, 24), false),
        (&xterm, true, Size::new(1, 1), false),
        (&[("TERM", "dumb")], true, size, false),
        (&[("TERM", "xterm"), ("LANG", "C")], true, size, false),
        (&[("TERM", "xterm"), ("LANG", "de_DE.ISO-8859-1")], true, size, false),
        (&[("TERM", "xterm"), ("LANG", "C.UTF-8")], true, size, true),
        (&[("TERM", "xterm"), ("LC_ALL", "en_US.utf8"), ("LANG", "C")], true, size, true),
        (&[("TERM", "xterm"), ("LC_ALL", ""), ("LANG", "C")], true, size, false),
    ] {
        assert_eq!(of(variables, is_tty).is_enough(size), expected, "{variables:?} {is_tty} {size:?}");
    }
}

#[test]
fn colors_are_off_if_no_color_has_a_value() {
    assert!(of(&[("TERM", "xterm"), ("NO_COLOR", "")], true).has_colors);
    assert!(!of(&[("TERM", "xterm"), ("NO_COLOR", "1")], true).has_colors);
}

#[test]
fn background_and_true_color_follow_the_environment() {
    let plain = of(&[("TERM", "xterm-256color")], true);
    assert_eq!((plain.has_true_color, plain.background), (false, Background::Dark));
    for (colors, expected) in [
        ("0;15", Background::Light),
        ("0;default;7", Background::Light),
        ("15;0", Background::Dark),
        ("x", Background::Dark),
    ] {
        let support = of(&[("TERM", "xterm"), ("COLORTERM", "truecolor"), ("COLORFGBG", colors)], true);
        assert_eq!((support.has_true_color, support.background), (true, expected), "{colors}");
    }
}

#[test]
fn restore_sequence_ends_kitty_keys_only_where_they_were_begun() {
    let kitty = of(&[("TERM", "xterm-kitty")], true);
    assert!(kitty.restore_sequence().contains("\x1b[<u"));
    let xterm = of(&[("TERM", "xterm")], true).restore_sequence();
    assert_eq!(xterm, "\x1b[0m\x1b[?2026l\x1b[?7h\x1b[?25h\x1b[J");
}

#[test]
fn restore_sequence_of_alternate_goes_back_after_it_ended_the_keys_of_that_screen() {
    let kitty = of(&[("TERM", "xterm-kitty")], true).restore_sequence_of_alternate();
    assert!(kitty.ends_with("\x1b[<u\x1b[?1049l"), "{kitty:?}");
    let xterm = of(&[("TERM", "xterm")], true).restore_sequence_of_alternate();
    assert_eq!(xterm, "\x1b[0m\x1b[?2026l\x1b[?7h\x1b[?25h\x1b[?1049l");
}
