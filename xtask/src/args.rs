//! Parses the words after a command. There are so few that a parser crate would cost a fresh clone more build
//! time than it saves lines.

use anyhow::{Result, bail};

/// Words that the command has not claimed yet, in order.
pub(crate) struct Args {
    command: &'static str,
    usage: &'static str,
    words: Vec<String>,
}

impl Args {
    pub(crate) fn new(command: &'static str, usage: &'static str, words: Vec<String>) -> Self {
        Self { command, usage, words }
    }

    /// Claims `flag` if it is given.
    pub(crate) fn flag(&mut self, flag: &str) -> bool {
        let found = self.words.iter().position(|word| word == flag);
        found.map(|index| self.words.remove(index)).is_some()
    }

    /// Claims `option VALUE` or `option=VALUE` if it is given.
    pub(crate) fn option(&mut self, option: &str) -> Result<Option<String>> {
        let prefix = format!("{option}=");
        let found = self.words.iter().position(|word| word == option || word.starts_with(&prefix));
        let Some(index) = found else { return Ok(None) };
        let word = self.words.remove(index);
        if let Some(value) = word.strip_prefix(&prefix) {
            return Ok(Some(value.to_owned()));
        }
        if index == self.words.len() {
            bail!("`{option}` wants a value; {}", self.usage_line());
        }
        Ok(Some(self.words.remove(index)))
    }

    /// Claims a whole number after `option` if it is given.
    pub(crate) fn number(&mut self, option: &str) -> Result<Option<u64>> {
        let Some(value) = self.option(option)? else { return Ok(None) };
        match value.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => bail!("`{option}` wants a whole number, not `{value}`; {}", self.usage_line()),
        }
    }

    /// Claims the first word; it is required.
    pub(crate) fn name(&mut self) -> Result<String> {
        if self.words.is_empty() || self.words[0].starts_with('-') {
            bail!("a name is missing; {}", self.usage_line());
        }
        Ok(self.words.remove(0))
    }

    /// Claims all remaining words, for a command that passes them on.
    pub(crate) fn rest(self) -> Vec<String> {
        self.words
    }

    /// Refuses unclaimed words, so that a typing error is not silently ignored.
    pub(crate) fn finish(self) -> Result<()> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => bail!("`{word}` is not understood; {}", self.usage_line()),
        }
    }

    fn usage_line(&self) -> String {
        format!("usage: cargo xtask {} {}", self.command, self.usage).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Args {
        Args::new("accept", "NAME [--seed N]", line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn options_stand_anywhere_and_take_either_form() {
        for line in ["--seed 7 loop", "loop --seed 7", "loop --seed=7"] {
            let mut args = args(line);
            assert_eq!(args.option("--seed").unwrap().as_deref(), Some("7"), "{line}");
            assert_eq!(args.name().unwrap(), "loop", "{line}");
            args.finish().unwrap();
        }
    }

    #[test]
    fn number_is_whole_or_refused() {
        assert_eq!(args("--seed 7").number("--seed").unwrap(), Some(7));
        assert_eq!(args("loop").number("--seed").unwrap(), None);
        for wrong in ["-1", "x", "1.5"] {
            let message = args(&format!("--seed {wrong}")).number("--seed").unwrap_err().to_string();
            let expected = format!(
                "`--seed` wants a whole number, not `{wrong}`; usage: cargo xtask accept NAME [--seed N]"
            );
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn options_error_names_the_problem_and_the_usage() {
        let message = args("loop --seed").option("--seed").unwrap_err().to_string();
        assert_eq!(message, "`--seed` wants a value; usage: cargo xtask accept NAME [--seed N]");
        let message = args("--sed 7").finish().unwrap_err().to_string();
        assert_eq!(message, "`--sed` is not understood; usage: cargo xtask accept NAME [--seed N]");
        let message = args("").name().unwrap_err().to_string();
        assert_eq!(message, "a name is missing; usage: cargo xtask accept NAME [--seed N]");
    }
}
