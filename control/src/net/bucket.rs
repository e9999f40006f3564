//! A token bucket: bounds how many answers a flood of requests can draw from us.

use super::SECOND_NS;

/// Allows `per_second` on average and as many at once.
#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    per_second: u64,
    /// Credit in token-nanoseconds: one token is `SECOND_NS` of them, so that no rate is rounded.
    credit: u64,
    updated_ns: u64,
}

impl TokenBucket {
    /// A full bucket.
    pub fn new(per_second: u32) -> Self {
        let per_second = u64::from(per_second);
        TokenBucket { per_second, credit: per_second * SECOND_NS, updated_ns: 0 }
    }

    /// Takes a token if there is one.
    pub fn take(&mut self, now: u64) -> bool {
        let elapsed = now.saturating_sub(self.updated_ns);
        self.updated_ns = now.max(self.updated_ns);
        let earned = elapsed.saturating_mul(self.per_second);
        self.credit = self.credit.saturating_add(earned).min(self.per_second * SECOND_NS);
        match self.credit.checked_sub(SECOND_NS) {
            Some(rest) => {
                self.credit = rest;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_a_burst_then_the_rate() {
        let mut bucket = TokenBucket::new(3);
        assert_eq!((0..10).filter(|_| bucket.take(5)).count(), 3);
        assert!(!bucket.take(5 + SECOND_NS / 3 - 1));
        assert!(bucket.take(5 + SECOND_NS / 3 + 1));
        assert!(!bucket.take(5 + SECOND_NS / 3 + 2));
    }

    #[test]
    fn never_saves_more_than_a_second() {
        let mut bucket = TokenBucket::new(4);
        assert_eq!((0..10).filter(|_| bucket.take(u64::MAX / 2)).count(), 4);
    }
}
