//! The confirmation of a sender by the server that received the mail: the header `Authentication-Results` of RFC 8601.

/// Returns true if the newest result of `server` says that DMARC passed for `domain`. `results` are the values of the header,
/// the newest first.
pub(super) fn is_confirmed(results: &[String], server: &str, domain: &str) -> bool {
    let results = results.iter().map(|value| without_comments(value));
    // Later ones with the same name may be the sender's.
    let newest = results.into_iter().find(|value| {
        let id = value.split(';').next().unwrap_or_default();
        id.split_whitespace().next().is_some_and(|id| id.eq_ignore_ascii_case(server))
    });
    let Some(newest) = newest else { return false };
    newest.split(';').skip(1).any(|result| {
        let mut words = result.split_whitespace();
        let passes = words.next().is_some_and(|method| method.eq_ignore_ascii_case("dmarc=pass"));
        // A server that names the domain names that of the sender.
        let from = words.filter_map(|word| word.split_once('=')).find(|(name, _)| *name == "header.from");
        passes && from.is_none_or(|(_, from)| from.eq_ignore_ascii_case(domain))
    })
}

/// Removes comments in parentheses and texts in quotes, which may have words of the sender.
fn without_comments(value: &str) -> String {
    let (mut kept, mut depth, mut is_quoted) = (String::with_capacity(value.len()), 0_u32, false);
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' if depth > 0 || is_quoted => drop(characters.next()),
            '"' if depth == 0 => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            c => kept.push(c),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(results: &[&str], expected: bool) {
        let results: Vec<String> = results.iter().map(|&result| result.to_owned()).collect();
        assert_eq!(is_confirmed(&results, "mx.example.com", "anna.example"), expected, "{results:?}");
    }

    // spec: AP-10
    #[test]
    fn is_confirmed_takes_only_a_pass_of_the_newest_result_of_the_server() {
        check(&["mx.example.com; dkim=pass; dmarc=pass (p=reject) header.from=anna.example"], true);
        check(&["MX.example.com 1;\r\n dmarc=pass"], true);
        check(&["mx.example.com; dmarc=fail header.from=anna.example"], false);
        check(&["mx.example.com; dmarc=pass header.from=evil.example"], false);
        check(&["mx.evil.example; dmarc=pass", "mx.example.com; dmarc=fail"], false);
        // The sender wrote the second one.
        check(&["mx.example.com; dmarc=none", "mx.example.com; dmarc=pass"], false);
        check(&["mx.example.com; none"], false);
        check(&[], false);
    }

    #[test]
    fn is_confirmed_reads_no_result_in_a_comment_or_a_quoted_text() {
        check(&["mx.example.com; spf=fail (x; dmarc=pass) smtp.mailfrom=a"], false);
        check(&["mx.example.com; spf=fail smtp.mailfrom=\"a; dmarc=pass\"@evil.example"], false);
        check(&["(mx.example.com; dmarc=pass) mx.evil.example; dmarc=pass"], false);
        check(&["mx.example.com; spf=fail (\\); dmarc=pass)"], false);
    }
}
