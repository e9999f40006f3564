//! Whether fetched-and-added values can be right, without keeping them: all QPs add 1 to one counter, so `n`
//! additions have to bring back each of 0 … n − 1 once, and on one QP in rising order.

use super::protocol::Faults;

/// What the originals add up to so far.
#[derive(Debug)]
pub(super) struct AtomicCheck {
    /// The least that each QP may bring back next.
    next: Vec<u64>,
    sum: u128,
    /// Sum of squares, so that two wrong values do not make up for each other.
    squares: u128,
}

impl AtomicCheck {
    pub fn new(qps: usize) -> Self {
        AtomicCheck { next: vec![0; qps], sum: 0, squares: 0 }
    }

    /// A QP brought back this original.
    pub fn note(&mut self, qp: usize, original: u64, faults: &mut Faults) {
        if original < self.next[qp] {
            let least = self.next[qp];
            faults.add(|| format!("QP {qp}: an atomic brought {original} back, after {}", least - 1));
        }
        self.next[qp] = original.saturating_add(1);
        let value = u128::from(original);
        self.sum = self.sum.wrapping_add(value);
        self.squares = self.squares.wrapping_add(value.wrapping_mul(value));
    }

    /// `count` additions were made.
    pub fn finish(&self, count: u64, faults: &mut Faults) {
        let n = u128::from(count);
        let less = n.saturating_sub(1);
        let sum = n * less / 2;
        // Beyond 2^42 additions (weeks) the product below would not fit: then the sum has to do.
        let squares = less.wrapping_mul(n).wrapping_mul(n + less) / 6;
        if self.sum != sum || (count < 1 << 42 && self.squares != squares) {
            faults.add(|| {
                format!("the {count} values that the atomics brought back are not 0 to {less}, each once")
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(originals: &[(usize, u64)]) -> u64 {
        let mut check = AtomicCheck::new(2);
        let mut faults = Faults::default();
        for &(qp, original) in originals {
            check.note(qp, original, &mut faults);
        }
        check.finish(originals.len() as u64, &mut faults);
        faults.count
    }

    #[test]
    fn each_value_once_and_rising_is_right() {
        assert_eq!(faults(&[]), 0);
        assert_eq!(faults(&[(0, 0)]), 0);
        assert_eq!(faults(&[(0, 0), (1, 2), (0, 1), (1, 3), (0, 4)]), 0);
    }

    #[test]
    fn doubled_lost_and_falling_values_are_found() {
        assert_eq!(faults(&[(0, 0), (1, 0)]), 1, "doubled");
        assert_eq!(faults(&[(0, 0), (0, 2)]), 1, "lost");
        assert_eq!(faults(&[(0, 1), (0, 0)]), 1, "falling");
        assert_eq!(
            faults(&[(0, 0), (0, 2), (0, 5), (1, 1), (1, 2), (1, 5)]),
            1,
            "the sum alone would be right"
        );
    }
}
