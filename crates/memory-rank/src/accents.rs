//! Removes accents from letters as the databases do (`remove_diacritics` of FTS5): `zurich` finds Zürich.

/// Returns a lower-case letter without its accent; `None` for a combining mark.
pub(super) fn bare(c: char) -> Option<char> {
    match c {
        '\u{300}'..='\u{36f}' => None,
        '\u{c0}'..='\u{1eff}' => {
            Some(LETTERS.iter().find(|(_, all)| all.contains(c)).map_or(c, |(bare, _)| *bare))
        }
        _ => Some(c),
    }
}

/// The lower-case Latin letters that Unicode decomposes, by their base letter.
const LETTERS: &[(char, &str)] = &[
    ('a', "àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặ"),
    ('b', "ḃḅḇ"),
    ('c', "çćĉċčḉ"),
    ('d', "ďḋḍḏḑḓ"),
    ('e', "èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ"),
    ('f', "ḟ"),
    ('g', "ĝğġģǧǵḡ"),
    ('h', "ĥȟḣḥḧḩḫẖ"),
    ('i', "ìíîïĩīĭįǐȉȋḭḯỉị"),
    ('j', "ĵǰ"),
    ('k', "ķǩḱḳḵ"),
    ('l', "ĺļľḷḹḻḽ"),
    ('m', "ḿṁṃ"),
    ('n', "ñńņňǹṅṇṉṋ"),
    ('o', "òóôõöōŏőơǒǫǭȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợ"),
    ('p', "ṕṗ"),
    ('r', "ŕŗřȑȓṙṛṝṟ"),
    ('s', "śŝşšșṡṣṥṧṩ"),
    ('t', "ţťțṫṭṯṱẗ"),
    ('u', "ùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữự"),
    ('v', "ṽṿ"),
    ('w', "ŵẁẃẅẇẉẘ"),
    ('x', "ẋẍ"),
    ('y', "ýÿŷȳẏẙỳỵỷỹ"),
    ('z', "źżžẑẓẕ"),
];

#[cfg(test)]
mod tests {
    use super::*;

    // spec: M-16
    #[test]
    fn a_letter_loses_its_accents_and_others_stay_as_they_are() {
        let bare = |text: &str| text.chars().filter_map(bare).collect::<String>();
        for (accented, plain) in [
            ("zürich", "zurich"),
            ("zu\u{308}rich", "zurich"),
            ("phở ăn", "pho an"),
            ("straße øre 8", "straße øre 8"),
        ] {
            assert_eq!(bare(accented), plain);
        }
        // In other alphabets a mark makes another letter.
        assert_eq!(bare("μάρκο йод"), "μάρκο йод");
    }
}
