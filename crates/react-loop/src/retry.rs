//! Retries of model calls. The machine decides about them, and every attempt is a record.

use archon_types::{ModelFailure, RetryConfig, Timestamp};

/// Returns the time of attempt `attempt + 1`; `None` if the failure is final.
///
/// A wait that the service asks for replaces the configured one. There is no retry after the run's
/// deadline.
pub(crate) fn next_attempt_at(
    retry: &RetryConfig,
    failure: &ModelFailure,
    attempt: u32,
    now: Timestamp,
    deadline: Timestamp,
) -> Option<Timestamp> {
    if !failure.retryable || attempt >= retry.max_retries {
        return None;
    }
    let ours = retry.delay_for_attempt(attempt, failure.jitter);
    let due = now + failure.retry_after_ms.map_or(ours, std::time::Duration::from_millis);
    (due < deadline).then_some(due)
}

#[cfg(test)]
mod tests {
    use archon_types::ProviderError;

    use super::*;

    // spec: P-31, P-32
    #[test]
    fn a_failure_is_retried_while_it_may_pass_and_time_is_left() {
        let retry = RetryConfig::default();
        let at = Timestamp::from_millis;
        let check = |error: ProviderError, attempt, deadline, expected: Option<u64>| {
            let failure = ModelFailure::new(&error, 0.0);
            let due = next_attempt_at(&retry, &failure, attempt, at(5000), at(deadline));
            assert_eq!(due.map(Timestamp::as_millis), expected, "{error} attempt {attempt}");
        };
        let network = || ProviderError::Network("reset".into());
        let limited = |s| ProviderError::RateLimited {
            retry_after: Some(std::time::Duration::from_secs(s)),
            message: String::new().into(),
        };
        check(network(), 0, 600_000, Some(6000));
        check(network(), 2, 600_000, Some(9000));
        check(network(), 3, 600_000, None);
        check(network(), 0, 5500, None);
        check(limited(0), 0, 600_000, Some(5000));
        check(limited(7), 0, 600_000, Some(12_000));
        check(limited(700), 0, 600_000, None);
        check(ProviderError::Auth("no".into()), 0, 600_000, None);
    }
}
