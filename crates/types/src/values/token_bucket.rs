//! A token bucket, which limits the rate of actions. The bucket has no clock; the caller passes the time.

use std::time::Duration;

use super::time::Timestamp;

/// Limits the rate of actions. Each action takes a token from the bucket. The bucket is refilled one token at
/// a time, at the speed that fills an empty bucket in one period.
///
/// ```
/// use std::time::Duration;
/// use archon_types::{Timestamp, TokenBucket};
///
/// let at = Timestamp::from_millis;
/// let mut bucket = TokenBucket::new(2, Duration::from_secs(1), at(0));
/// assert_eq!((bucket.take(at(0)), bucket.take(at(0))), (Ok(()), Ok(())));
/// assert_eq!(bucket.take(at(100)), Err(at(500)), "the next token comes after half a second");
/// assert_eq!(bucket.take(at(500)), Ok(()));
/// ```
#[derive(Clone, Debug)]
pub struct TokenBucket {
    capacity: u32,
    /// The time in which one token is refilled.
    refill: Duration,
    count: u32,
    /// The time since which the next token is being refilled; meaningless while the bucket is full.
    since: Timestamp,
}

impl TokenBucket {
    /// Creates a full bucket of `tokens` tokens. An empty bucket is full again after `period`. 0 tokens count
    /// as 1.
    pub fn new(tokens: u32, period: Duration, now: Timestamp) -> Self {
        let capacity = tokens.max(1);
        Self { capacity, refill: period / capacity, count: capacity, since: now }
    }

    /// Takes one token.
    ///
    /// # Errors
    /// The bucket is empty. The error is the time of the next token, always later than `now`.
    pub fn take(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        self.pour(now);
        match self.count.checked_sub(1) {
            Some(count) => {
                self.count = count;
                Ok(())
            }
            // Times are whole milliseconds; a refill may take a fraction.
            None => Err((self.since + self.refill).max(now + Duration::from_millis(1))),
        }
    }

    /// Adds the tokens that were refilled until `now`.
    fn pour(&mut self, now: Timestamp) {
        let came = match self.refill.as_nanos() {
            0 => u128::from(self.capacity),
            refill => now.since(self.since).as_nanos() / refill,
        };
        let missing = self.capacity - self.count;
        if came >= u128::from(missing) {
            (self.count, self.since) = (self.capacity, now);
        } else {
            let came = u32::try_from(came).unwrap_or(missing);
            self.count += came;
            self.since = self.since + self.refill * came;
        }
    }
}
