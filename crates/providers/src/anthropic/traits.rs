//! The abilities of Anthropic's models, by their names. Models differ in the parameters of thinking, and
//! refuse unknown parameters with status 400.
//!
//! Source: the table of thinking support by model at
//! <https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting>, the pages of the
//! models, and <https://platform.claude.com/docs/en/build-with-claude/structured-outputs>.

/// The parameters that a model accepts, and its behaviour with thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnthropicTraits {
    /// The parameter that controls thinking.
    pub thinking: ThinkingForm,
    /// The way to turn thinking off.
    pub thinking_off: ThinkingOff,
    /// True if the model accepts `output_config.effort`.
    pub effort: bool,
    /// True if the model accepts `temperature`.
    pub sampling: bool,
    /// True if a request can force the model to call a tool.
    pub forced_tools: bool,
    /// True if the model refuses an earlier thinking block when the messages before the block were changed.
    pub bound_thinking: bool,
    /// True if the model accepts a JSON Schema for its answer; other models get a tool whose arguments are
    /// the answer.
    pub json_schema: bool,
}

/// The way in which a request asks a model to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThinkingForm {
    /// The model cannot think; requests do not mention thinking.
    Never,
    /// The request sets the maximum number of thinking tokens ([`ThinkingBudgets`](crate::ThinkingBudgets)).
    Budget,
    /// The model decides how much it thinks; the request only sets an effort, such as `low`.
    Adaptive,
}

/// The way to turn off a model's thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThinkingOff {
    /// The request does not mention thinking: the model thinks only if it is asked to.
    Unasked,
    /// The request contains a parameter that disables thinking, because the model thinks by default.
    Disabled,
    /// Thinking is disabled before the answer; the model still writes notes between tool calls.
    BetweenTools,
    /// The model always thinks; the request asks for the minimum effort.
    LeastEffort,
}

impl AnthropicTraits {
    /// The traits of models that are not Anthropic's, on services with the same protocol.
    pub const OTHER: Self = Self {
        thinking: ThinkingForm::Budget,
        thinking_off: ThinkingOff::Unasked,
        effort: false,
        sampling: true,
        forced_tools: true,
        bound_thinking: false,
        json_schema: false,
    };

    /// Returns the traits of the model with this name. A newer Claude model than this table gets the traits
    /// of the newest model of its family. A name without `claude-` gets [`OTHER`](Self::OTHER).
    pub fn of(model: &str) -> Self {
        let model = model.to_lowercase().replace(['.', '@', ':', '/'], "-");
        let Some(at) = model.find("claude-") else { return Self::OTHER };
        let rest = &model[at + "claude-".len()..];
        let newest = rest.split('-').any(|word| matches!(word, "fable" | "mythos"));
        let has = |family: &str| rest.split('-').any(|word| word == family);
        let version = version(rest);
        let always_thinks = newest || has("opus") && version >= (5, 5);
        Self {
            thinking: match version {
                v if v < (3, 7) => ThinkingForm::Never,
                v if v < (4, 6) => ThinkingForm::Budget,
                _ => ThinkingForm::Adaptive,
            },
            thinking_off: match version {
                _ if always_thinks => ThinkingOff::LeastEffort,
                v if has("sonnet") && v >= (5, 5) => ThinkingOff::BetweenTools,
                v if v >= (5, 0) => ThinkingOff::Disabled,
                _ => ThinkingOff::Unasked,
            },
            effort: version >= (4, 6) || has("opus") && version >= (4, 5),
            sampling: version <= (4, 6),
            forced_tools: !(newest && version >= (5, 1) || !has("haiku") && version >= (5, 5)),
            bound_thinking: newest && version >= (5, 1) || version >= (5, 5),
            json_schema: version >= (4, 5) || has("opus") && version >= (4, 1),
        }
    }
}

/// Returns the version in names such as `opus-4-5-20251101` or `3-7-sonnet-latest`; a date is not a
/// version. A name without a version counts as version 5.0: such names appeared when all versions were
/// below 5.0.
fn version(name: &str) -> (u32, u32) {
    let words = name.split('-').filter(|word| word.len() <= 2).map(str::parse::<u32>);
    let mut numbers = words.skip_while(Result::is_err).map_while(Result::ok);
    let Some(major) = numbers.next() else { return (5, 0) };
    (major, numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    // spec: P-12
    #[test]
    fn anthropic_traits_of_model_names() {
        let names = [
            "claude-3-5-haiku-20241022",
            "claude-3-7-sonnet-latest",
            "claude-sonnet-4-20250514",
            "claude-opus-4-1-20250805",
            "claude-opus-4-5",
            "anthropic/claude-haiku-4.5",
            "us.anthropic.claude-opus-4-6-v1:0",
            "claude-opus-4-8",
            "claude-mythos-preview",
            "claude-opus-5",
            "claude-sonnet-5@20260301",
            "claude-fable-5",
            "claude-fable-5-1",
            "claude-opus-5-5",
            "claude-sonnet-5-5",
            "claude-haiku-5-5",
            "claude-opus-6",
            "kimi-k2-thinking",
        ];
        let mut table = String::new();
        for name in names {
            let t = AnthropicTraits::of(name);
            let flags = [
                (t.effort, "effort"),
                (t.sampling, "sampling"),
                (t.forced_tools, "forced"),
                (t.bound_thinking, "bound"),
                (t.json_schema, "schema"),
            ];
            let flags: Vec<_> = flags.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
            let (form, off) = (format!("{:?}", t.thinking), format!("{:?}", t.thinking_off));
            table += &format!("{name:33} {form:8} off: {off:12} {}\n", flags.join(" "));
        }
        expect![[r#"
            claude-3-5-haiku-20241022         Never    off: Unasked      sampling forced
            claude-3-7-sonnet-latest          Budget   off: Unasked      sampling forced
            claude-sonnet-4-20250514          Budget   off: Unasked      sampling forced
            claude-opus-4-1-20250805          Budget   off: Unasked      sampling forced schema
            claude-opus-4-5                   Budget   off: Unasked      effort sampling forced schema
            anthropic/claude-haiku-4.5        Budget   off: Unasked      sampling forced schema
            us.anthropic.claude-opus-4-6-v1:0 Adaptive off: Unasked      effort sampling forced schema
            claude-opus-4-8                   Adaptive off: Unasked      effort forced schema
            claude-mythos-preview             Adaptive off: LeastEffort  effort forced schema
            claude-opus-5                     Adaptive off: Disabled     effort forced schema
            claude-sonnet-5@20260301          Adaptive off: Disabled     effort forced schema
            claude-fable-5                    Adaptive off: LeastEffort  effort forced schema
            claude-fable-5-1                  Adaptive off: LeastEffort  effort bound schema
            claude-opus-5-5                   Adaptive off: LeastEffort  effort bound schema
            claude-sonnet-5-5                 Adaptive off: BetweenTools effort bound schema
            claude-haiku-5-5                  Adaptive off: Disabled     effort forced bound schema
            claude-opus-6                     Adaptive off: LeastEffort  effort bound schema
            kimi-k2-thinking                  Budget   off: Unasked      sampling forced
        "#]]
        .assert_eq(&table);
    }
}
