//! A token bucket: how many may begin now, and when the next one may. Pure; whoever waits brings the time.

use std::time::Duration;

use crate::Timestamp;

/// So many tokens at once, and no more than that in each period thereafter.
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
    /// How long one token takes to come back.
    refill: Duration,
    count: u32,
    /// Since when the next token is on its way; counts only while the bucket is not full.
    since: Timestamp,
}

impl TokenBucket {
    /// A full bucket. No tokens count as one.
    pub fn new(tokens: u32, period: Duration, now: Timestamp) -> Self {
        let capacity = tokens.max(1);
        Self { capacity, refill: period / capacity, count: capacity, since: now }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// There is none: the time from which on it makes sense to try again, always later than `now`.
    pub fn take(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        self.pour(now);
        match self.count.checked_sub(1) {
            Some(left) => {
                self.count = left;
                Ok(())
            }
            // Times are whole milliseconds, a refill need not be.
            None => Err((self.since + self.refill).max(now + Duration::from_millis(1))),
        }
    }

    /// Puts in what has come back since.
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
