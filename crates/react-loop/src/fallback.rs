//! Fallbacks after failures that retries do not solve: the next key, less thinking, then the next model.
//!
//! The kind of the failure determines which of these may help, and in which order ([`REMEDIES`]). A fallback remains
//! in force for the rest of the run.

use std::{collections::BTreeSet, fmt, sync::Arc};

use archon_types::{
    ApiErrorKind, Content, FailurePolicy, FallbackModel, FallbackStep, MediaKind, ModelErrorCode,
    ModelFailure, ModelPrice, ModelTarget, Provider, Reads, RetryConfig, RunConfig, ThinkingLevel, Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::retry;

/// A fallback model, which is asked if the models before it cannot answer.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_react_loop::Fallback;
/// use archon_types::{ModelPrice, Provider};
///
/// fn cheaper(provider: Arc<dyn Provider>, second_key: Arc<dyn Provider>) -> Fallback {
///     // 0.25 dollars of input and 2 dollars of output for a million tokens.
///     let price = ModelPrice::new(250_000, 2_000_000);
///     Fallback::new(provider, "gpt-5-mini").with_keys(vec![second_key]).with_price(price)
/// }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Fallback {
    /// The provider of the model.
    pub provider: Arc<dyn Provider>,
    /// Providers of the same service with further keys, in the order in which they are tried.
    pub keys: Vec<Arc<dyn Provider>>,
    /// The model, by the provider's name for it.
    pub model: String,
    /// Price of the model's tokens, if the provider's price is unknown or wrong. A cost limit needs the
    /// price.
    pub price: Option<ModelPrice>,
}

archon_types::setters! {
impl Fallback {
    /// Sets further keys, as providers of the same service, each with its own key.
    pub fn with_keys(self, keys: Vec<Arc<dyn Provider>>) -> Self { self.keys = keys }

    /// Sets the price of the model's tokens.
    pub fn with_price(self, price: ModelPrice) -> Self { self.price = Some(price) }
}
}

impl Fallback {
    /// Creates a fallback with one key and no price.
    pub fn new(provider: Arc<dyn Provider>, model: impl Into<String>) -> Self {
        Self { provider, keys: Vec::new(), model: model.into(), price: None }
    }

    /// Returns the fallback in the form that the log stores.
    pub(crate) fn recorded(&self, retry: &RetryConfig) -> FallbackModel {
        let mut model = FallbackModel::new(self.provider.id(), self.model.clone());
        model.key_count = count(&self.keys);
        let capabilities = self.provider.capabilities(&self.model);
        model.retry = match capabilities.retries {
            true => RetryConfig::none(),
            false => retry.clone(),
        };
        model.price = self.price();
        (model.context_window, model.reads) = (capabilities.context_window, capabilities.reads);
        model
    }

    /// Returns the price of the fallback: the price that was set, or else the price that the provider knows.
    pub(crate) fn price(&self) -> Option<ModelPrice> {
        self.price.or_else(|| self.provider.capabilities(&self.model).price)
    }

    pub(crate) fn is(&self, recorded: &FallbackModel) -> bool {
        self.provider.id() == recorded.provider && self.model == recorded.model
    }
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fallback")
            .field("provider", &self.provider.id())
            .field("keys", &count(&self.keys))
            .field("model", &self.model)
            .field("price", &self.price)
            .finish()
    }
}

/// Returns the number of keys of a model with `further` keys besides its first.
pub(crate) fn count(further: &[Arc<dyn Provider>]) -> u32 {
    u32::try_from(further.len()).unwrap_or(u32::MAX).saturating_add(1)
}

/// Returns the failure policy with these keys and fallbacks, in the form that the log stores.
pub(crate) fn policy(
    keys: &[Arc<dyn Provider>],
    fallbacks: &[Fallback],
    retry: &RetryConfig,
) -> FailurePolicy {
    let mut policy = FailurePolicy::default();
    policy.key_count = count(keys);
    policy.fallbacks = fallbacks.iter().map(|model| model.recorded(retry)).collect();
    policy
}

/// A change after which a failed request may succeed: another key, less thinking or another model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    Key,
    Thinking,
    Model,
}

/// The remedies for each kind of failure that retries do not solve, in the order in which they are tried. A failure
/// that is not listed is final: a cancel, a filter, or a conversation that compaction cannot make short enough.
const REMEDIES: &[(ModelErrorCode, &[Remedy])] = &[
    (ModelErrorCode::RateLimited, &[Remedy::Key, Remedy::Model]),
    (ModelErrorCode::Auth, &[Remedy::Key, Remedy::Model]),
    (ModelErrorCode::Overloaded, &[Remedy::Model]),
    (ModelErrorCode::Network, &[Remedy::Model]),
    (ModelErrorCode::Unreachable, &[Remedy::Model]),
    (ModelErrorCode::Timeout, &[Remedy::Model]),
    (ModelErrorCode::Protocol, &[Remedy::Model]),
    (ModelErrorCode::Other, &[Remedy::Model]),
];

/// The remedies for requests that a service refused.
const REFUSALS: &[(ApiErrorKind, &[Remedy])] = &[
    (ApiErrorKind::Quota, &[Remedy::Key, Remedy::Model]),
    (ApiErrorKind::Thinking, &[Remedy::Thinking, Remedy::Model]),
    (ApiErrorKind::NotFound, &[Remedy::Model]),
    (ApiErrorKind::InvalidRequest, &[Remedy::Model]),
    (ApiErrorKind::Other, &[Remedy::Model]),
];

fn remedies(failure: &ModelFailure) -> &'static [Remedy] {
    match failure.api_error {
        Some(kind) => REFUSALS.iter().find(|(k, _)| *k == kind).map_or(&[], |(_, remedies)| remedies),
        None => REMEDIES.iter().find(|(c, _)| *c == failure.code).map_or(&[], |(_, remedies)| remedies),
    }
}

/// The model and key that the run asks, and the failures of the current request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Chain {
    target: ModelTarget,
    /// Number of retryable failures of the current request since the latest fallback step.
    tries: u32,
    /// Number of these failures that were timeouts.
    timeouts: u32,
    /// Number of these failures that came after a part of the answer.
    #[serde(default)]
    broken: u32,
    /// The kinds of media in the prompts that only a model can read.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    needs: BTreeSet<MediaKind>,
    /// The next fallback step, until its record is applied.
    due: Option<Due>,
}

/// A fallback step and the failure that led to the step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Due {
    pub(crate) step: FallbackStep,
    pub(crate) code: ModelErrorCode,
    pub(crate) reason: String,
}

/// The reaction to a failed request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Next {
    /// Send the same request again at this time.
    Retry(Timestamp),
    /// Take the fallback step of [`Chain::due`].
    Step,
    /// Give up: the failure is final.
    Fail,
}

impl Chain {
    pub(crate) fn target(&self) -> ModelTarget {
        self.target
    }

    pub(crate) fn due(&self) -> Option<&Due> {
        self.due.as_ref()
    }

    /// Resets the failure counts and the due fallback step, for a new request.
    pub(crate) fn reset_counts(&mut self) {
        (self.tries, self.timeouts, self.broken, self.due) = (0, 0, 0, None);
    }

    /// Notes the media of a prompt: fallback models that cannot read them are skipped.
    pub(crate) fn note_prompt(&mut self, content: &[Content], config: &RunConfig) {
        let media = content.iter().filter_map(Content::as_media);
        let needed = media.filter(|media| !config.has_tool_for(media.mime_type)).map(|media| media.kind());
        self.needs.extend(needed.filter(|kind| *kind != MediaKind::Other));
    }

    /// Returns the chain at the run's own model and without failures.
    pub(crate) fn at_start(&self) -> Self {
        Self { needs: self.needs.clone(), ..Self::default() }
    }

    /// Counts a failure and returns the reaction.
    pub(crate) fn failed(
        &mut self,
        failure: &ModelFailure,
        config: &RunConfig,
        at: Timestamp,
        deadline: Timestamp,
    ) -> Next {
        let step = self.step_after(failure, config).filter(|_| at < deadline);
        let retry = fallback(config, self.target).map_or(&config.retry, |model| &model.retry);
        let too_long = |due: &Timestamp| due.since(at).as_millis() > u128::from(retry.max_delay_ms);
        let most_broken =
            config.failure_policy.as_ref().map_or(u32::MAX, |policy| policy.broken_stream_retries);
        let enough = failure.code == ModelErrorCode::Timeout && self.timeouts >= MOST_TIMEOUTS
            || failure.had_output && self.broken >= most_broken;
        let again = match enough {
            true => None,
            false => retry::next_attempt_at(retry, failure, self.tries, at, deadline),
        };
        // If the service asks for a longer wait than allowed, a fallback is used, if there is one.
        match again.filter(|due| step.is_none() || failure.retry_after_ms.is_none() || !too_long(due)) {
            Some(due) => {
                self.tries += u32::from(failure.retryable);
                self.timeouts += u32::from(failure.code == ModelErrorCode::Timeout);
                self.broken += u32::from(failure.had_output);
                Next::Retry(due)
            }
            None => {
                let due = |step| Due { step, code: failure.code, reason: failure.message.clone() };
                self.due = step.map(due);
                self.due.as_ref().map_or(Next::Fail, |_| Next::Step)
            }
        }
    }

    /// Applies a recorded fallback step.
    pub(crate) fn stepped(&mut self, step: &FallbackStep) {
        if self.due.as_ref().is_none_or(|due| due.step != *step) {
            return;
        }
        match step {
            FallbackStep::NextKey { key } => self.target.key = *key,
            FallbackStep::LowerThinking { level } => self.target.thinking = Some(*level),
            FallbackStep::NextModel { fallback, .. } => {
                self.target = ModelTarget::default();
                self.target.model = *fallback;
            }
            _ => {}
        }
        self.reset_counts();
    }

    fn step_after(&self, failure: &ModelFailure, config: &RunConfig) -> Option<FallbackStep> {
        let policy = config.failure_policy.as_ref()?;
        remedies(failure).iter().find_map(|remedy| match remedy {
            Remedy::Key => next_key(self.target, policy),
            Remedy::Thinking => less_thinking(thinking(config, self.target)),
            Remedy::Model => self.next_model(policy),
        })
    }

    /// Returns the step to the next fallback model that can read the media of the prompts.
    fn next_model(&self, policy: &FailurePolicy) -> Option<FallbackStep> {
        let reads_all = |model: &FallbackModel| self.needs.iter().all(|kind| model.reads.may_have(*kind));
        let later = (1..).zip(&policy.fallbacks).skip(self.target.model as usize);
        let (fallback, model) = later.into_iter().find(|(_, model)| reads_all(model))?;
        let (provider, model) = (model.provider.clone(), model.model.clone());
        Some(FallbackStep::NextModel { fallback, provider, model })
    }
}

fn next_key(target: ModelTarget, policy: &FailurePolicy) -> Option<FallbackStep> {
    let keys = match target.model.checked_sub(1) {
        None => policy.key_count,
        Some(place) => policy.fallbacks.get(place as usize).map_or(1, |model| model.key_count),
    };
    let key = target.key + 1;
    (key < keys).then_some(FallbackStep::NextKey { key })
}

fn less_thinking(level: ThinkingLevel) -> Option<FallbackStep> {
    level.lower().map(|level| FallbackStep::LowerThinking { level })
}

/// Returns the fallback model of a target; `None` if the target is the run's own model.
pub(crate) fn fallback(config: &RunConfig, target: ModelTarget) -> Option<&FallbackModel> {
    let place = target.model.checked_sub(1)?;
    config.failure_policy.as_ref()?.fallbacks.get(place as usize)
}

/// Returns the provider of a target: one of the run's own (first or further keys), or one of the
/// `fallbacks` of this process. `None` if this process does not have the provider.
pub(crate) fn provider<'a>(
    config: &RunConfig,
    target: ModelTarget,
    own: (&'a Arc<dyn Provider>, &'a [Arc<dyn Provider>]),
    fallbacks: &'a [Fallback],
) -> Option<&'a Arc<dyn Provider>> {
    let (first, further) = match fallback(config, target) {
        None => own,
        Some(recorded) => {
            let here = fallbacks.iter().find(|fallback| fallback.is(recorded))?;
            (&here.provider, &here.keys[..])
        }
    };
    match target.key.checked_sub(1) {
        None => Some(first),
        Some(place) => further.get(place as usize),
    }
}

/// Returns the model of a target, by the provider's name for it.
pub(crate) fn model(config: &RunConfig, target: ModelTarget) -> &str {
    fallback(config, target).map_or(&config.model, |fallback| &fallback.model)
}

/// Returns the media that the model of a target reads.
pub(crate) fn reads(config: &RunConfig, target: ModelTarget) -> Reads {
    fallback(config, target).map_or(config.reads, |fallback| fallback.reads)
}

/// Returns the level of thinking of a target.
pub(crate) fn thinking(config: &RunConfig, target: ModelTarget) -> ThinkingLevel {
    target.thinking.unwrap_or(config.options.thinking)
}

/// Returns the price of a target's tokens.
pub(crate) fn price(config: &RunConfig, target: ModelTarget) -> Option<&ModelPrice> {
    fallback(config, target).map_or(config.price.as_ref(), |fallback| fallback.price.as_ref())
}

/// Returns true if the prices of the run's own model and of all fallback models up to `target` are known.
pub(crate) fn is_priced(config: &RunConfig, target: ModelTarget) -> bool {
    let policy = config.failure_policy.as_ref();
    let fallbacks = policy.map_or(&[][..], |policy| &policy.fallbacks[..]);
    config.price.is_some() && fallbacks.iter().take(target.model as usize).all(|model| model.price.is_some())
}

/// Maximum number of retries of one request after timeouts.
const MOST_TIMEOUTS: u32 = 1;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use archon_types::ProviderError;

    use super::*;

    /// Returns a configuration with two keys, a fallback with two keys, another fallback, and much thinking.
    fn config() -> RunConfig {
        let mut config = RunConfig::default();
        config.model = "own".into();
        config.retry = RetryConfig::none();
        config.options = Arc::new({
            let mut options = archon_types::RequestOptions::default();
            options.thinking = ThinkingLevel::High;
            options
        });
        let mut policy = FailurePolicy::default();
        policy.key_count = 2;
        policy.fallbacks = vec![FallbackModel::new("b", "second"), FallbackModel::new("c", "third")];
        policy.fallbacks[0].key_count = 2;
        policy.fallbacks.iter_mut().for_each(|model| model.retry = RetryConfig::none());
        config.failure_policy = Some(policy);
        config
    }

    fn api(kind: ApiErrorKind) -> ProviderError {
        ProviderError::Api { status: 400, kind, message: String::new() }
    }

    /// Returns the fallback steps of a run in which every request fails like this.
    fn steps(error: &ProviderError) -> Vec<String> {
        let (config, mut chain, mut steps) = (config(), Chain::default(), Vec::new());
        let (now, late) = (Timestamp::from_millis(1), Timestamp::from_millis(600_000));
        while chain.failed(&ModelFailure::new(error, 0.0), &config, now, late) == Next::Step {
            let step = chain.due().expect("a step").step.clone();
            chain.stepped(&step);
            let at = match step {
                FallbackStep::NextModel { .. } => model(&config, chain.target()).to_owned(),
                FallbackStep::NextKey { key } => format!("key {key}"),
                _ => thinking(&config, chain.target()).to_string(),
            };
            steps.push(at);
            assert!(steps.len() < 20, "{steps:?}");
        }
        steps
    }

    // spec: ER-09, ER-10
    #[test]
    fn fallback_order_is_key_thinking_model_error() {
        let limited = ProviderError::RateLimited { retry_after: None, message: String::new().into() };
        let busy = ProviderError::Overloaded { status: 503, retry_after: None, message: String::new() };
        let keys = &["key 1", "second", "key 1", "third"][..];
        let thinking =
            &["medium", "low", "off", "second", "medium", "low", "off", "third", "medium", "low", "off"][..];
        let models = &["second", "third"][..];
        for (error, expected) in [
            (ProviderError::Auth("no".into()), keys),
            (limited, keys),
            (api(ApiErrorKind::Quota), keys),
            (api(ApiErrorKind::Thinking), thinking),
            (api(ApiErrorKind::NotFound), models),
            (api(ApiErrorKind::InvalidRequest), models),
            (busy, models),
            (ProviderError::Network("reset".into()), models),
            (ProviderError::Unreachable("refused".into()), models),
            (ProviderError::Protocol("odd".into()), models),
            (api(ApiErrorKind::ContentFiltered), &[]),
            (ProviderError::ContextOverflow("long".into()), &[]),
            (ProviderError::Cancelled, &[]),
        ] {
            assert_eq!(steps(&error), expected, "{error:?}");
        }
    }

    // spec: P-32, ER-03, ER-08, ER-09
    #[test]
    fn fallback_retries_first_and_restarts_retries_for_each_target() {
        let mut config = config();
        config.retry = RetryConfig::default();
        let (at, late) = (Timestamp::from_millis(0), Timestamp::from_millis(600_000));
        let mut chain = Chain::default();
        let mut next =
            |error: &ProviderError| chain.failed(&ModelFailure::new(error, 0.0), &config, at, late);
        let network = ProviderError::Network("reset".into());
        let timeout = ProviderError::Timeout("slow".into());
        let retry = |ms| Next::Retry(Timestamp::from_millis(ms));
        assert_eq!([next(&network), next(&network)], [retry(1000), retry(2000)]);
        assert_eq!([next(&timeout), next(&timeout)], [retry(4000), Next::Step], "a time-out is retried once");
        let patient = |s| ProviderError::RateLimited {
            retry_after: Some(Duration::from_secs(s)),
            message: String::new().into(),
        };
        let mut chain = Chain::default();
        let mut next =
            |error: &ProviderError| chain.failed(&ModelFailure::new(error, 0.0), &config, at, late);
        assert_eq!(next(&patient(30)), retry(30_000));
        assert_eq!(next(&patient(31)), Next::Step, "there is another key");
        config.failure_policy = None;
        let mut chain = Chain::default();
        let failure = ModelFailure::new(&patient(31), 0.0);
        assert_eq!(chain.failed(&failure, &config, at, late), retry(31_000), "there is nowhere to go");
    }

    // spec: ER-03, ER-08, ER-09
    #[test]
    fn fallback_retries_a_broken_stream_once_before_the_next_target() {
        let mut config = config();
        config.retry = RetryConfig::default();
        let (at, late) = (Timestamp::from_millis(0), Timestamp::from_millis(600_000));
        let mut broken = ModelFailure::new(&ProviderError::Network("reset".into()), 0.0);
        let silent = broken.clone();
        broken.had_output = true;
        let retry = |ms| Next::Retry(Timestamp::from_millis(ms));
        let mut chain = Chain::default();
        let mut next = |failure: &ModelFailure| chain.failed(failure, &config, at, late);
        assert_eq!([next(&silent), next(&silent), next(&silent)], [retry(1000), retry(2000), retry(4000)]);
        let mut chain = Chain::default();
        let mut next = |failure: &ModelFailure| chain.failed(failure, &config, at, late);
        assert_eq!([next(&silent), next(&broken), next(&broken)], [retry(1000), retry(2000), Next::Step]);
    }

    #[test]
    fn fallback_stops_at_the_time_limit() {
        let (config, mut chain) = (config(), Chain::default());
        let (at, failure) =
            (Timestamp::from_millis(9), ModelFailure::new(&ProviderError::Auth("no".into()), 0.0));
        assert_eq!(chain.failed(&failure, &config, at, at), Next::Fail);
    }
}
